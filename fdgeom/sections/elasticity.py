"""The elasticity matrix of all materials of a section, as one field on its mesh.

Every linear material is a 6×6 matrix between strain and stress in Mandel's order
(11, 22, 33, √2 23, √2 13, √2 12), in the axes of the section. So one form serves them all, compiled
once, and a change of a material is a change of a coefficient.
"""

from collections.abc import Callable, Iterator
from types import MappingProxyType

import numpy as np
import ufl
from firedrake import Constant, FiniteElement, Function, FunctionSpace, TensorElement
from mpi4py import MPI
from ufl.core.expr import Expr

from fdgeom.operations.interpolate import ConditionsInside

from .material import Material, Ply, entries, unchecked

ROOT = np.sqrt(2.0)
#: Entry (i, j) and factor of each component of Mandel's vector.
MANDEL = ((0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (1, 2, ROOT), (0, 2, ROOT), (0, 1, ROOT))
#: A step along the imaginary axis: the imaginary part is the derivative to the last digit.
STEP = 1e-30


def mandel_basis() -> Iterator[np.ndarray]:
    """The six symmetric 3×3 matrices of unit norm."""
    for i, j, factor in MANDEL:
        matrix = np.zeros((3, 3))
        matrix[i, j] = matrix[j, i] = 1 / factor
        yield matrix


def to_mandel(tensor) -> list:
    """Mandel's vector of a symmetric 3×3, in UFL or as rows."""
    rows = entries(tensor)
    return [factor * rows[i][j] for i, j, factor in MANDEL]


def from_mandel(vector) -> list[list]:
    """Symmetric 3×3 of Mandel's vector."""
    rows = [[None] * 3 for _ in range(3)]
    for (i, j, factor), k in zip(MANDEL, range(6), strict=True):
        rows[i][j] = rows[j][i] = vector[k] / factor
    return rows


def matrix_of(material: Material) -> np.ndarray:
    """C (..., 6, 6) of a material whose parameters are numbers or arrays of one shape."""
    columns = [
        np.stack(np.broadcast_arrays(*to_mandel(material.components(strain, np.eye(3)))))
        for strain in mandel_basis()
    ]
    return np.moveaxis(np.stack(np.broadcast_arrays(*columns), axis=1), (0, 1), (-2, -1))


class Regions:
    """The materials of a section and the cells of this rank that have them."""

    def __init__(self, mesh, materials: dict) -> None:
        self.mesh, self.materials = mesh, MappingProxyType(materials)

    def __iter__(self) -> Iterator[tuple[object, object, np.ndarray]]:
        """Tag (None for a single material), material, cells."""
        for tag, material in self.materials.items():
            yield tag, material, self.cells(tag)

    def cells(self, tag) -> np.ndarray:
        if tag is None:
            return np.arange(self.mesh.cell_set.size)
        return np.asarray(self.mesh.cell_subset(tag).owned_indices)

    def nodes(self, space) -> Iterator[tuple[object, object, np.ndarray]]:
        """Tag, material, nodes of a discontinuous space in its cells."""
        for tag, material, cells in self:
            yield tag, material, space.cell_node_list[cells]

    def elasticity(self, element) -> Function:
        """The field C with the nodes of a scalar element that is discontinuous."""
        space = FunctionSpace(self.mesh, element)
        field = Function(FunctionSpace(self.mesh, TensorElement(element, shape=(6, 6))))
        values = field.dat.data_wo
        for _, material, nodes in self.nodes(space):
            if _knows(material):
                values[nodes] = matrix_of(material.evaluated(values_at(space, nodes)))
            else:
                # Of a stress that is known in UFL only.
                expression = ConditionsInside().of(in_ufl(material))
                known = Function(field.function_space()).interpolate(expression)
                values[nodes] = known.dat.data_ro[nodes]
        return field

    def density(self, element) -> np.ndarray:
        """ρ at the nodes of a scalar element that is discontinuous, on this rank."""
        space = FunctionSpace(self.mesh, element)
        found = np.zeros(space.dof_dset.size)
        for _, material, nodes in self.nodes(space):
            found[nodes] = values_at(space, nodes)(material.density)
        least = self.mesh.comm.allreduce(found.min(initial=np.inf), op=MPI.MIN)
        if not least > 0:
            raise ValueError(f"materials: a density is not positive everywhere, but {least:.3g}")
        return found

    def given(self) -> list[Expr]:
        """The UFL expressions in the materials."""
        found = []
        for m in self.materials.values():
            found += parameters(m) if _knows(m) else (in_ufl(m), m.density)
        return [value for value in found if isinstance(value, Expr)]

    @property
    def is_constant(self) -> bool:
        """Whether no material varies inside a cell, as far as its form shows without evaluation."""
        return all(
            _knows(m) and all(map(_is_cellwise, parameters(m))) for m in self.materials.values()
        )

    def element(self, degree: int) -> FiniteElement:
        """Scalar element for fields to integrate with a rule of this degree."""
        if self.is_constant:
            return broken_element(self.mesh, 0)
        return FiniteElement("Quadrature", self.mesh.ufl_cell(), degree)


def broken_element(mesh, degree: int) -> FiniteElement:
    """Scalar discontinuous Lagrange element with nodes at the corners of the cells."""
    family = "DQ" if mesh.ufl_cell().cellname == "quadrilateral" else "DG"
    variant = "equispaced" if degree else None
    return FiniteElement(family, mesh.ufl_cell(), degree, variant=variant)


def parameters(material) -> Iterator:
    """All parameters of a material, with those of the material of a ply."""
    for value in vars(material).values():
        if isinstance(value, Material):
            yield from parameters(value)
        elif isinstance(value, tuple):
            yield from value
        else:
            yield value


def values_at(space, nodes: np.ndarray) -> Callable:
    """A function that evaluates a parameter at nodes of a scalar space; numbers stay numbers."""
    inside = ConditionsInside()

    def evaluate(value):
        if not isinstance(value, Expr):
            return value
        if isinstance(value, Constant):
            return float(value)
        # At a corner on the interface of two materials, that of the cell counts.
        return Function(space).interpolate(inside.of(value)).dat.data_ro[nodes]

    return evaluate


def _knows(material) -> bool:
    """Whether a material and that of its plies have entry-wise formulas, unlike a user's material."""
    while isinstance(material, Ply):
        material = material.material
    return isinstance(material, Material)


def _is_cellwise(value) -> bool:
    if not isinstance(value, Expr) or isinstance(value, Constant):
        return True
    return isinstance(value, Function) and value.ufl_element().embedded_superdegree == 0


def in_ufl(material) -> Expr:
    """C of a material, 6×6, from its stress in UFL."""
    frame = ufl.as_matrix(np.eye(3).tolist())
    columns = [
        to_mandel(material.stress(ufl.as_matrix(strain.tolist()), frame))
        for strain in mandel_basis()
    ]
    return ufl.as_matrix([[columns[j][i] for j in range(6)] for i in range(6)])


def change_of(regions: Regions, parameter, tag, element) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of C (points, 6, 6) and ρ (points,) by a parameter of the material with a tag."""
    name, index = parameter if isinstance(parameter, tuple) else (parameter, None)
    if tag is not None and tag not in regions.materials:
        raise ValueError(f"tag: no material has the tag {tag!r}")
    space = FunctionSpace(regions.mesh, element)
    count = space.dof_dset.size
    elasticity, density = np.zeros((count, 6, 6)), np.zeros(count)
    found = False
    for here, material, nodes in regions.nodes(space):
        if tag not in (None, here) or not _knows(material):
            continue
        moved = _moved(material.evaluated(values_at(space, nodes)), name, index)
        if moved is None:
            continue
        found = True
        elasticity[nodes] = matrix_of(moved).imag / STEP
        density[nodes] = np.imag(moved.density) / STEP
    if not found:
        raise ValueError(
            f"parameter: no material there has {parameter!r}, or its formulas are a user's own; take "
            "finite differences of those"
        )
    return elasticity, density


def _moved(material, name: str, index: int | None):
    """The material with the parameter off the real axis; None if it has no such parameter."""
    values = vars(material)
    if name in values and not isinstance(values[name], Material):
        value = values[name]
        if index is None and not isinstance(value, tuple):
            return unchecked(material, **{name: value + 1j * STEP})
        if index is None or not isinstance(value, tuple) or not 0 <= index < len(value):
            return None
        moved = tuple(v + 1j * STEP if k == index else v for k, v in enumerate(value))
        return unchecked(material, **{name: moved})
    inner = values.get("material")
    moved = None if inner is None else _moved(inner, name, index)
    return None if moved is None else unchecked(material, material=moved)
