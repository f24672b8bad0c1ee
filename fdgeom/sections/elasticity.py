"""The elasticity matrix of all materials of a section, as one field on its mesh, and checks of both.

Every linear material is a 6×6 matrix between strain and stress in Mandel's order
(11, 22, 33, √2 23, √2 13, √2 12), in the axes of the section. So one form serves them all, compiled
once, and a change of a material is a change of a coefficient.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from types import MappingProxyType

import numpy as np
import ufl
from firedrake import Constant, FiniteElement, Function, FunctionSpace, TensorElement
from firedrake.mesh import MeshGeometry
from mpi4py import MPI
from pyadjoint.tape import stop_annotating
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr

from fdgeom.forms import is_real
from fdgeom.messages import format_value
from fdgeom.operations.interpolate import ConditionsInside
from fdgeom.validation import choice, instance

from .material import Material, Ply, entries, unchecked

ROOT = np.sqrt(2.0)
#: Entry (i, j) and factor of each component of Mandel's vector.
MANDEL = ((0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (1, 2, ROOT), (0, 2, ROOT), (0, 1, ROOT))
#: A step along the imaginary axis: the imaginary part is the derivative to the last digit.
STEP = 1e-30


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


def _columns(stress: Callable, size: float = 1.0) -> Iterator[list]:
    """The columns of C: Mandel's vectors of the stress under the six symmetric 3×3 of a norm, over it."""
    for i, j, factor in MANDEL:
        strain = np.zeros((3, 3))
        strain[i, j] = strain[j, i] = size / factor
        yield [entry / size for entry in to_mandel(stress(strain))]


def matrix_of(material: Material) -> np.ndarray:
    """C (..., 6, 6) of a material whose parameters are numbers or arrays of one shape."""
    columns = _columns(lambda strain: material.components(strain, np.eye(3)))
    found = np.stack(np.broadcast_arrays(*chain(*columns)), axis=-1)
    return np.swapaxes(found.reshape(*found.shape[:-1], 6, 6), -1, -2)


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
                values[nodes] = _interpolated(field.function_space(), in_ufl(material))[nodes]
        return field

    def check_linear(self, element) -> None:
        """Raise ``ValueError`` if a stress that is known in UFL only is not linear in the strain."""
        space = FunctionSpace(self.mesh, TensorElement(element, shape=(6, 6)))
        for _, material, nodes in self.nodes(space):
            if _knows(material):
                continue
            # Twice as large, and of the other sign: a stress may differ in compression alone.
            one, other = (_interpolated(space, in_ufl(material, size))[nodes] for size in (1, -2))
            differs = np.abs(other - one).max(initial=0.0) > 1e-9 * np.abs(one).max(initial=0.0)
            if self.mesh.comm.allreduce(bool(differs), op=MPI.LOR):
                raise ValueError(
                    f"materials: the stress of {format_value(material)} is not linear in the strain: "
                    "a section needs a linear one"
                )

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


class _AllInside(ConditionsInside):
    """As the base class, also conditions on Functions (level sets), and of equality, as in ``sign``."""

    eq = ne = ConditionsInside.condition

    def of(self, value):
        with stop_annotating():  # materials are given data
            return super().of(value)

    def moved(self, condition):
        functions = (f for f in extract_coefficients(condition) if not is_real(f))
        return [*super().moved(condition), *functions]


def values_at(space, nodes: np.ndarray) -> Callable:
    """A function that evaluates a parameter at nodes of a scalar space; numbers stay numbers."""
    inside = _AllInside()

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
        if type(material).stress is not Ply.stress:
            return False
        material = material.material
    return isinstance(material, Material) and type(material).stress is Material.stress


def _interpolated(space, expression: Expr) -> np.ndarray:
    """The values of an expression at the nodes of a space on this rank."""
    return Function(space).interpolate(_AllInside().of(expression)).dat.data_ro


def _is_cellwise(value) -> bool:
    if not isinstance(value, Expr) or isinstance(value, Constant):
        return True
    return isinstance(value, Function) and value.ufl_element().embedded_superdegree == 0


def in_ufl(material, size: float = 1.0) -> Expr:
    """C of a material, 6×6, from its stress in UFL under strains of a size."""
    frame = ufl.as_matrix(np.eye(3).tolist())
    columns = _columns(lambda strain: material.stress(ufl.as_matrix(strain.tolist()), frame), size)
    return ufl.as_matrix([*zip(*columns, strict=True)])


def change_of(regions: Regions, parameter, tag, element) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of C (points, 6, 6) and ρ (points,) by a parameter of the material with a tag."""
    name, index = parameter if isinstance(parameter, tuple) else (parameter, None)
    if tag is not None and tag not in regions.materials:
        raise ValueError(f"tag: no material has the tag {tag!r}")
    space = FunctionSpace(regions.mesh, element)
    there = [(m, nodes) for here, m, nodes in regions.nodes(space) if tag in (None, here)]
    changed = []
    # No derivative leaves out a material that has the parameter, too.
    if not any(name in _names_in(material) for material, _ in there if not _knows(material)):
        for material, nodes in there:
            if _knows(material):
                present = material.evaluated(values_at(space, nodes))
                if (moved := _moved(present, name, index)) is not None:
                    changed.append((nodes, moved))
    if not changed:
        raise ValueError(
            f"parameter: no material there has {parameter!r}, or its formulas are a user's own; take "
            "finite differences of those"
        )
    count = space.dof_dset.size
    elasticity, density = np.zeros((count, 6, 6)), np.zeros(count)
    for nodes, moved in changed:
        elasticity[nodes] = matrix_of(moved).imag / STEP
        density[nodes] = np.imag(moved.density) / STEP
    return elasticity, density


def _names_in(material) -> set[str]:
    """The parameters of a material, and of the material of a ply."""
    names = set()
    while isinstance(material, Material):
        names |= vars(material).keys()
        material = getattr(material, "material", None)
    return names


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


# --- checks of the mesh and the materials ------------------------------------------------------------
def check_mesh(mesh, degree: int) -> None:
    """Raise unless this is a plane mesh of triangles or quadrilaterals that ``degree`` can carry."""
    instance("mesh", mesh, MeshGeometry, "a Firedrake mesh")
    cell, dim = mesh.ufl_cell().cellname, mesh.geometric_dimension
    if cell not in ("triangle", "quadrilateral") or dim != 2:
        raise ValueError(
            "mesh must be the drawing of a section: triangles or quadrilaterals in a plane; this "
            f"one has {cell} cells in {dim} dimension{'s' if dim > 1 else ''}"
        )
    choice("degree", degree, range(1, 5))
    curved = mesh.coordinates.function_space().ufl_element().degree()
    curved = max(curved) if isinstance(curved, tuple) else curved
    if curved > degree:
        raise ValueError(
            f"degree must be at least that of the mesh's coordinates ({curved}), not {degree}: the "
            "warping must be able to move the section rigidly"
        )


def check_materials(mesh, materials) -> Regions:
    """The materials of a mesh by tag of its cells, ``{None: material}`` for a single one."""
    given = dict(materials) if hasattr(materials, "items") else {None: materials}
    if not given:
        raise ValueError("materials is empty: give one for each tag of the mesh")
    for tag, material in given.items():
        if not (hasattr(material, "density") and callable(getattr(material, "stress", None))):
            raise TypeError(
                "materials must be fdgeom.Isotropic, fdgeom.Orthotropic, fdgeom.Ply or another "
                f"with density and stress(strain, frame), not {format_value(material)}"
            )
        if tag is not None and (isinstance(tag, bool) or not isinstance(tag, int | np.integer)):
            raise TypeError(
                f"materials: a tag of cells must be a whole number, not {format_value(tag)}"
            )
    if None in given:
        if len(given) > 1:
            raise ValueError("materials: None stands for the whole mesh and goes with no other tag")
        return Regions(mesh, given)
    plex = mesh.topology_dm
    own = plex.getLabelIdIS("Cell Sets").indices if plex.hasLabel("Cell Sets") else ()
    known = {int(tag) for part in mesh.comm.allgather([*own]) for tag in part}
    missing = sorted(set(given) - known)
    if missing:
        raise ValueError(
            f"materials: no cell has the tag {missing[0]}; the mesh has "
            f"{', '.join(map(str, sorted(known))) or 'no tags'}"
        )
    regions = Regions(mesh, {int(tag): material for tag, material in given.items()})
    count = np.zeros(mesh.cell_set.size, dtype=int)
    for _, _, cells in regions:
        count[cells] += 1
    bare, twice = mesh.comm.allreduce(np.array([np.sum(count == 0), np.sum(count > 1)]))
    if bare:
        others = ", ".join(map(str, sorted(known - set(given))))
        raise ValueError(
            f"materials: {bare} cells of the mesh have none of the tags given"
            + (f"; the mesh has {others} too" if others else "; they have no tag")
        )
    if twice:
        raise ValueError(f"materials: {twice} cells of the mesh have two of the tags given")
    return regions


def check_connected(mesh) -> None:
    """Raise ``ValueError`` unless edges connect all cells: pieces can turn about a common corner."""
    number = Function(FunctionSpace(mesh, broken_element(mesh, 0)))
    dofs, owned = number.function_space().cell_node_list[:, 0], mesh.cell_set.size
    start = mesh.comm.exscan(owned) or 0
    number.dat.data_wo[dofs[:owned]] = start + np.arange(owned)
    pairs = np.asarray(mesh.interior_facets.facet_cell, dtype=int).reshape(-1, 2)
    # On the rim of the halo a facet has one cell here.
    pairs = number.dat.data_ro_with_halos[dofs[pairs[(pairs >= 0).all(axis=1)]]].astype(int)
    pairs, cells = np.concatenate(mesh.comm.allgather(pairs)), mesh.comm.allreduce(owned)
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(cells, cells))
    pieces, _ = connected_components(graph, directed=False)
    if pieces > 1:
        raise ValueError(
            f"mesh: the section is in {pieces} pieces that share no edge; a section must be connected"
        )


def check_elasticity(C: Function, degree: int) -> None:
    """Raise ``ValueError`` unless C is symmetric positive definite, and not too stiff in volume."""
    # With degree=1 a nearly incompressible material locks: bending comes out tens of per cent too
    # stiff (32 % for ν = 0.4999 on 8×8 cells).
    comm = C.function_space().mesh().comm
    matrices = C.dat.data_ro
    finite = bool(np.all(np.isfinite(matrices)))
    if not comm.allreduce(finite, op=MPI.LAND):
        raise ValueError("materials: the stiffness is not finite everywhere on the section")
    # A field of few distinct materials: look at each once.
    distinct = np.unique(matrices.reshape(-1, 36), axis=0).reshape(-1, 6, 6)
    gap = np.abs(distinct - np.swapaxes(distinct, 1, 2)).max(initial=0.0)
    size = np.abs(distinct).max(initial=0.0)
    values, vectors = np.linalg.eigh(distinct)
    volume = np.abs(vectors[:, :3, -1].sum(axis=1)) / np.sqrt(3)
    locks = (volume > 0.9) & (values[:, -1] > 15 * values[:, -2])
    least = comm.allreduce(values[:, 0].min(initial=np.inf), op=MPI.MIN)
    if comm.allreduce(bool(gap > 1e-9 * size), op=MPI.LOR):
        raise ValueError("materials: a stress is not the derivative of an energy (C not symmetric)")
    if not least > 0:
        raise ValueError(
            "materials: the stiffness of a material is not positive definite: its least eigenvalue "
            f"is {least:.3g}"
        )
    if degree == 1 and comm.allreduce(bool(np.any(locks)), op=MPI.LOR):
        raise ValueError(
            "degree=1 locks with a material so nearly incompressible (Poisson's ratio above 0.45); "
            "take degree=2"
        )
