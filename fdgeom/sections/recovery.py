"""Stress and strain in three dimensions from the six solutions, and failure criteria."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from firedrake import Function, FunctionSpace, TensorFunctionSpace, VectorFunctionSpace, interpolate
from firedrake.assemble import get_assembler

from fdgeom import citations
from fdgeom.messages import format_value
from fdgeom.validation import number

from .elasticity import Regions, broken_element, from_mandel, values_at
from .material import material_axes, turned
from .operators import Operators, strain_vector
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

    def scalar(self, name: str, values: np.ndarray | float) -> Function:
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
        own, field = np.array(from_mandel(vectors.T)), Function(self.space, name=name)
        field.dat.data_wo[...] = np.einsum("ai,ijn,bj->nab", self._axes, own, self._axes)
        return field


class Criterion:
    """Base class of failure criteria, for stress as entries ``[i][j]`` in the axes of the material."""

    def index(self, stress) -> np.ndarray:
        """Failure index: below 1 the material holds."""
        raise NotImplementedError

    def reserve(self, stress) -> np.ndarray:
        """Factor by which the stress can grow until the index is 1."""
        raise NotImplementedError


@dataclass(frozen=True)
class VonMises(Criterion):
    """Von Mises' criterion: √(3/2 s:s) over the yield stress, s the deviatoric stress.

    Parameters
    ----------
    yield_stress : float

    Raises
    ------
    TypeError, ValueError
        If the yield stress is not a positive number.
    """

    yield_stress: float

    def __post_init__(self) -> None:
        number("yield_stress", self.yield_stress, above=0)

    def index(self, stress) -> np.ndarray:
        (a, f, e), (_, b, d), (_, _, c) = stress
        squares = ((a - b) ** 2 + (b - c) ** 2 + (c - a) ** 2) / 2 + 3 * (d**2 + e**2 + f**2)
        return np.sqrt(squares) / self.yield_stress

    def reserve(self, stress) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return 1 / self.index(stress)


@dataclass(frozen=True)
class TsaiWu(Criterion):
    """Tsai and Wu's criterion of a ply: F_i σ_i + F_ij σ_i σ_j, in the ply's axes (1 the fibre).

    Parameters
    ----------
    tensile, compressive : three floats
        Strengths along 1, 2, 3, all positive.
    shear : three floats
        Strengths in the planes 12, 13, 23.
    interaction : float
        f in F_ij = f √(F_ii F_jj), i ≠ j ≤ 3; between -½ and ½ the criterion is an ellipsoid.

    Raises
    ------
    TypeError, ValueError
        If a number is not as described.

    Notes
    -----
    F_i = 1/X_t - 1/X_c, F_ii = 1/(X_t X_c), 1/S² for shear: S. W. Tsai, E. M. Wu, A general theory
    of strength for anisotropic materials, J. Composite Materials 5, 1971.
    """

    cites = ("TsaiWu1971",)

    tensile: Sequence[float]
    compressive: Sequence[float]
    shear: Sequence[float]
    interaction: float = -0.5

    def __post_init__(self) -> None:
        citations.cite(type(self))
        for name in ("tensile", "compressive", "shear"):
            values = getattr(self, name)
            if np.ndim(values) != 1 or len(values) != 3:
                raise ValueError(f"{name} must be three numbers, not {format_value(values)}")
            for value in values:
                number(name, value, above=0)
        number("interaction", self.interaction, least=-0.5, most=0.5)

    def _parts(self, stress) -> tuple[np.ndarray, np.ndarray]:
        """The linear and the quadratic part."""
        normal = [stress[k][k] for k in range(3)]
        strengths = list(zip(self.tensile, self.compressive, strict=True))
        linear = sum((1 / t - 1 / c) * s for (t, c), s in zip(strengths, normal, strict=True))
        scaled = [s / np.sqrt(t * c) for (t, c), s in zip(strengths, normal, strict=True)]
        quadratic = sum(s**2 for s in scaled)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            quadratic = quadratic + 2 * self.interaction * scaled[i] * scaled[j]
        for (i, j), s in zip(((0, 1), (0, 2), (1, 2)), self.shear, strict=True):
            quadratic = quadratic + (stress[i][j] / s) ** 2
        return linear, quadratic

    def index(self, stress) -> np.ndarray:
        linear, quadratic = self._parts(stress)
        return linear + quadratic

    def reserve(self, stress) -> np.ndarray:
        linear, quadratic = self._parts(stress)
        # The positive root of quadratic r² + linear r = 1, in the form that does not cancel.
        with np.errstate(divide="ignore"):
            return 2 / (linear + np.sqrt(linear**2 + 4 * quadratic))
