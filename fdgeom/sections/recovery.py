"""Strain and stress in three dimensions from the six solutions."""

from functools import cached_property

import numpy as np
from firedrake import Function, FunctionSpace, TensorFunctionSpace, VectorFunctionSpace, interpolate
from firedrake.assemble import get_assembler

from .elasticity import MANDEL, Regions, broken_element, from_mandel, values_at
from .material import turned
from .operators import Operators, strain_vector
from .ply import material_axes
from .saint_venant import SaintVenant, mixed


class Recovery:
    """Fields on a section's mesh for resultants about its centroid, in its own axes."""

    def __init__(
        self, operators: Operators, solutions: SaintVenant, regions: Regions, axes: np.ndarray
    ) -> None:
        self._op, self._solutions, self._regions, self._axes = operators, solutions, regions, axes
        mesh, degree = operators.mesh, operators.space.ufl_element().embedded_subdegree
        #: Discontinuous, with nodes at the corners of the cells: extremes of stress are there.
        self.element = broken_element(mesh, degree)
        self.space = TensorFunctionSpace(mesh, self.element, shape=(3, 3))
        self._values = Function(VectorFunctionSpace(mesh, self.element, dim=6))
        expression = strain_vector(*operators.put(None, None))
        self._strain = get_assembler(interpolate(expression, self._values.function_space()))

    @cached_property
    def _elasticity(self) -> np.ndarray:
        return self._regions.elasticity(self.element).dat.data_ro.copy()

    def strain_values(self, loads: np.ndarray) -> np.ndarray:
        """Mandel's vectors (nodes, 6) in the section's own axes."""
        self._op.put(mixed(loads, self._solutions.warping), mixed(loads, self._solutions.slope))
        self._strain.assemble(tensor=self._values)
        return self._values.dat.data_ro.copy()

    def stress_values(self, loads: np.ndarray) -> np.ndarray:
        """Mandel's vectors (nodes, 6) in the section's own axes."""
        return np.einsum("nij,nj->ni", self._elasticity, self.strain_values(loads))

    def strain(self, loads: np.ndarray) -> Function:
        return self._tensor("strain", self.strain_values(loads))

    def stress(self, loads: np.ndarray) -> Function:
        return self._tensor("stress", self.stress_values(loads))

    def warping(self, loads: np.ndarray) -> Function:
        field = Function(self._op.space, name="warping")
        field.dat.data_wo[...] = mixed(loads, self._solutions.warping) @ self._axes.T
        return field

    def scalar(self, name: str, values: np.ndarray) -> Function:
        """A scalar field of values at the nodes."""
        field = Function(FunctionSpace(self._op.mesh, self.element), name=name)
        field.dat.data_wo[...] = values
        return field

    def failure(self, loads: np.ndarray, criteria: dict, quantity: str, start: float) -> Function:
        """A quantity of the criteria by tag, from the stress in the axes of each material."""
        field = self.scalar(quantity, start)
        values, stress = field.dat.data_wo_with_halos, self._values
        stress.dat.data_wo[...] = self.stress_values(loads)
        vectors = stress.dat.data_ro_with_halos
        space = field.function_space()
        for tag, material, cells in self._regions:
            criterion = criteria.get(tag, criteria.get(None))
            if criterion is None:
                continue
            nodes = space.cell_node_list[cells]
            own = from_mandel(np.moveaxis(vectors[nodes], -1, 0))
            axes = material_axes(material, np.eye(3), values_at(space, nodes))
            values[nodes] = getattr(criterion, quantity)(turned(own, axes))
        return field

    def _tensor(self, name: str, vectors: np.ndarray) -> Function:
        own, field = tensors(vectors), Function(self.space, name=name)
        field.dat.data_wo[...] = np.einsum("ai,nij,bj->nab", self._axes, own, self._axes)
        return field


def tensors(vectors: np.ndarray) -> np.ndarray:
    """Symmetric matrices (nodes, 3, 3) of Mandel's vectors (nodes, 6)."""
    made = np.empty((len(vectors), 3, 3))
    for k, (i, j, factor) in enumerate(MANDEL):
        made[:, i, j] = made[:, j, i] = vectors[:, k] / factor
    return made
