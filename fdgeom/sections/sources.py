"""The Functions that the materials of a section are made of, and how elasticity and density follow."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import ufl
from firedrake import Cofunction, Function, FunctionSpace
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr

from fdgeom.solvers.rules import Interpolated

from .change import change_of
from .elasticity import Regions, knows, matrix_in_ufl
from .material import Material


def sources_of(materials: Mapping) -> list[Function]:
    """The Functions that some materials are made of."""
    strain, frame = (ufl.as_matrix(a.tolist()) for a in (np.ones((3, 3)), np.eye(3)))
    made = [e for m in materials.values() for e in (m.density, m.stress(strain, frame))]
    found = [
        f for e in made for f in extract_coefficients(ufl.as_ufl(e)) if isinstance(f, Function)
    ]
    return list(dict.fromkeys(found))


class Following:
    """How elasticity C and density ρ follow the Functions that materials are made of.

    Parameters
    ----------
    regions : Regions
        Materials and their cells.
    element : FiniteElement
        Whose nodes are the points of C and ρ.
    """

    def __init__(self, regions: Regions, element) -> None:
        self._space = FunctionSpace(regions.mesh, element)
        self._regions, self._element = regions, element

    def _parts(self) -> Iterator[tuple[Expr, np.ndarray, np.ndarray]]:
        """For each parameter made of Functions its expression, dC and dρ by it at the points."""
        for tag, material, _ in self._regions:
            if isinstance(material, Material) and knows(material):
                for name, value in _named(material):
                    if isinstance(value, Expr) and extract_coefficients(value):
                        yield value, *change_of(self._regions, name, tag, self._element)
            else:
                yield from self._of_users(tag, material)

    def _of_users(self, tag, material) -> Iterator[tuple[Expr, np.ndarray, np.ndarray]]:
        """The same where the entries of C are known in UFL alone."""
        here = np.zeros(self._space.dof_dset.total_size)
        here[self._space.cell_node_list[self._regions.cells(tag)]] = 1.0
        here = here[: self._space.dof_dset.size]
        matrix = matrix_in_ufl(material)
        for i in range(6):
            for j in range(6):
                if extract_coefficients(matrix[i][j]):
                    unit = np.zeros((6, 6))
                    unit[i, j] = 1.0
                    yield matrix[i][j], here[:, None, None] * unit, 0.0 * here
        density = ufl.as_ufl(material.density)
        if extract_coefficients(density):
            yield density, np.zeros((len(here), 6, 6)), here

    def along(self, changes: Mapping[Function, Function]) -> tuple[np.ndarray, np.ndarray]:
        """dC and dρ at the points, for changes of some Functions."""
        count = self._space.dof_dset.size
        elasticity, density, field = np.zeros((count, 6, 6)), np.zeros(count), Function(self._space)
        for e, by_elasticity, by_density in self._parts():
            for source in (f for f in changes if f in extract_coefficients(e)):
                moved = Interpolated(e).along(field, source, changes[source])
                elasticity += moved[:, None, None] * by_elasticity
                density += moved * by_density
        return elasticity, density

    def across(
        self, of_elasticity: np.ndarray, of_density: np.ndarray, wanted: Sequence[Function]
    ) -> dict[Function, Cofunction]:
        """The cotangents of some Functions, from those of C and ρ at the points."""
        field = Function(self._space)
        found = {f: Cofunction(f.function_space().dual()) for f in wanted}
        for e, by_elasticity, by_density in self._parts():
            bar = np.einsum("pij,pij->p", of_elasticity, by_elasticity) + of_density * by_density
            for source in (f for f in wanted if f in extract_coefficients(e)):
                more = Interpolated(e).across(field, source, bar)
                if more is not None:
                    found[source].dat.data[...] += more.dat.data_ro
        return found


def _named(material: Material) -> Iterator[tuple[str | tuple[str, int], object]]:
    """The parameters of a material with their names, those of what a ply is made of too."""
    for name, value in vars(material).items():
        if isinstance(value, Material):
            yield from _named(value)
        elif isinstance(value, tuple):
            yield from (((name, k), v) for k, v in enumerate(value))
        else:
            yield name, value
