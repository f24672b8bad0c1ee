"""Checks of the mesh and the materials of a section: cell type, tags, connectivity, elasticity."""

import numpy as np
from firedrake import Function, FunctionSpace
from firedrake.mesh import MeshGeometry
from mpi4py import MPI
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from fdgeom.messages import format_value
from fdgeom.validation import choice, instance

from .elasticity import Regions, broken_element


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
