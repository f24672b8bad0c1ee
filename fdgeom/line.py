"""Meshes that are one line of cells: their checks, and the numbering of nodes along them; cells that
link lines.
"""

from functools import cached_property

import numpy as np
import ufl
from firedrake import Cofunction, Function, FunctionSpace, SpatialCoordinate
from mpi4py import MPI
from ufl.algorithms import extract_coefficients
from ufl.classes import Form

from fdgeom.compat import cache_of
from fdgeom.forms import scalar_space
from fdgeom.measures import check_interval
from fdgeom.validation import firedrake_function

# Of the length of the line: what is no length, and what coordinates of one node may differ by.
_NO_LENGTH, _SAME = 1e-10, 1e-12


def check_line(mesh, argument: str = "mesh"):
    """Return ``mesh`` if it is one open line of straight cells without folds; raise otherwise."""
    check_interval(mesh, argument)
    coordinates = mesh.coordinates
    if coordinates.function_space().ufl_element().embedded_superdegree != 1:
        raise ValueError(f"{argument} must have straight cells: coordinates of degree 1")
    comm = mesh.comm
    cells = coordinates.function_space().cell_node_map().values
    ends = np.concatenate(comm.allgather(coordinates.dat.data_ro_with_halos[cells]))
    if not np.all(np.isfinite(ends)):
        raise ValueError(f"{argument} has coordinates that are not finite")
    ends = ends[np.argsort(ends.min(axis=1))]
    low, high = ends.min(axis=1), ends.max(axis=1)
    length = high.max() - low[0]
    if not (high - low).min() > _NO_LENGTH * length:
        raise ValueError(
            f"{argument} has a cell of no length at {low[np.argmin(high - low)]:.6g}: move its nodes "
            "apart"
        )
    gaps = low[1:] - high[:-1]
    if gaps.min(initial=0.0) < -_SAME * length:
        raise ValueError(
            f"{argument} is folded: cells lie on one another at {low[1:][np.argmin(gaps)]:.6g}; the "
            "coordinate must go one way along the line"
        )
    space = coordinates.function_space()
    if not is_linear(space.ufl_element().sub_elements[0]):  # as on a closed mesh
        space = FunctionSpace(mesh, "CG", 1)
    nodes = space.dim()
    if gaps.max(initial=0.0) > _SAME * length or nodes > len(ends) + 1:
        raise ValueError(
            f"{argument} is in pieces; make a beam of each, and join them by a fdgeom.Assembly"
        )
    if nodes < len(ends) + 1:
        raise ValueError(
            f"{argument}: a closed mesh has no first node to build a beam from; take an open one, "
            "such as IntervalMesh(n, length), and join the ends of the beam by "
            "fdgeom.Assembly([beam], [fdgeom.Rigid(beam.right, beam.left)])"
        )
    return mesh


def end_node(space, name: str) -> np.ndarray:
    """Local index of the node at an end, if this rank has it; "left" has the smaller coordinate."""
    place = coordinates_of(scalar_space(space))
    first, last = bounds(space.mesh())
    end = {"left": first, "right": last}[name]
    return np.flatnonzero(np.abs(place - end) <= _SAME * (last - first))


def coordinates_of(space) -> np.ndarray:
    """The coordinate of each local node, ghosts included, of a space of scalars on intervals."""
    mesh, element = space.mesh(), space.ufl_element()
    places = mesh.coordinates.function_space().ufl_element()
    if is_linear(element) and is_linear(places.sub_elements[0]):
        # They are those of the mesh, which needs no kernel to be looked up.
        return np.array(mesh.coordinates.dat.data_ro_with_halos).reshape(-1)
    x = Function(space).interpolate(SpatialCoordinate(mesh)[0])
    return np.array(x.dat.data_ro_with_halos)


def is_linear(element) -> bool:
    """Whether the nodes are the ends of the cells, each once."""
    return element.family() == "Lagrange" and element.degree() == 1


def extent(mesh) -> tuple[int, float]:
    """The number of cells of a line and its length, on all ranks together."""
    first, last = bounds(mesh)
    return mesh.comm.allreduce(mesh.cell_set.size), last - first


def bounds(mesh) -> tuple[float, float]:
    """The smallest and the largest coordinate of a line, on all ranks together."""
    x, comm = mesh.coordinates.dat.data_ro, mesh.comm
    first = comm.allreduce(x.min(initial=np.inf), op=MPI.MIN)
    return float(first), float(comm.allreduce(x.max(initial=-np.inf), op=MPI.MAX))


class Numbering:
    """Numbers the nodes of a space on a mesh of intervals by their coordinates, and the cells."""

    # Arrays of values at all nodes are in the order of the coordinates, the same on every rank. The
    # nodes of the space lie at different places: `coordinates` are those of all, increasing;
    # `nodes` are the numbers of the local ones, ghosts included. Where they are the ends of the
    # cells, DG0 functions have values in the order of the cells.
    def __init__(self, space) -> None:
        self._space, self.comm = scalar_space(space), space.mesh().comm
        place, owned = coordinates_of(self._space), self._space.dof_dset.size
        self.coordinates = np.sort(np.concatenate(self.comm.allgather(place[:owned])))
        # Ranks may disagree in the last digit of a coordinate: look up between the nodes.
        middles = 0.5 * (self.coordinates[1:] + self.coordinates[:-1])
        self.nodes = np.searchsorted(middles, place)

    @cached_property
    def pairs(self) -> np.ndarray:
        """Numbers of the two ends of each local cell, the smaller first; halo cells too."""
        return np.sort(self.nodes[self._space.cell_node_map().values_with_halo], axis=1)

    @cached_property
    def cells(self) -> np.ndarray:
        """Numbers of the local cells; those of a single line. Halo cells too."""
        return self.pairs[:, 0]

    def numbers(self, function: Function | Cofunction) -> np.ndarray:
        """The number of the node or cell of each local value of a function, ghosts included."""
        if not is_cellwise(function.function_space()) or is_cellwise(self._space):
            return self.nodes
        dofs = function.function_space().cell_node_map().values_with_halo[:, 0]
        found = np.empty(len(dofs), dtype=int)
        found[dofs] = self.cells
        return found

    def gather(self, function: Function) -> np.ndarray:
        """The values at all nodes, or in all cells, on every rank."""
        own = function.dat.data_ro
        numbers = self.numbers(function)[: len(own)]
        pieces = [(numbers, own)]
        if self.comm.size > 1:
            pieces = self.comm.allgather((numbers, np.array(own)))
        found = np.empty((sum(len(index) for index, _ in pieces), *own.shape[1:]))
        for index, values in pieces:
            found[index] = values
        return found

    def scatter(self, values: np.ndarray, function: Function) -> None:
        """Set a function to values at all nodes, or in all cells."""
        data = function.dat.data_wo_with_halos
        # Vectors of one component are stored as numbers.
        data[...] = values[self.numbers(function)].reshape(-1, *data.shape[1:])


def is_cellwise(space) -> bool:
    """Whether functions of a space have one value in each cell."""
    return space.ufl_element().embedded_superdegree == 0


def nodal_values(function: Function) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and values at the nodes of a line, in the order of the coordinate, on every rank.

    Parameters
    ----------
    function : Function
        On a mesh of intervals, continuous or with one value in each cell (DG0), such as
        ``beam.position`` or ``beam.velocity``.

    Returns
    -------
    s : numpy.ndarray, shape (n,)
        Coordinates of the nodes: arc lengths of a beam.
    values : numpy.ndarray, shape (n, ...)
        Values there.

    Raises
    ------
    TypeError, ValueError
        If the argument is not such a Function.
    """
    space = firedrake_function("function", function).function_space()
    element = space.ufl_element()
    if len(space) > 1 or (element not in ufl.H1 and element.embedded_superdegree):
        raise ValueError(
            "function must be continuous or have one value in each cell, and not be mixed: "
            f"interpolate it, or use its subfunctions; its element is {element}"
        )
    check_interval(space.mesh(), "the mesh of function")
    numbering = Numbering(space)
    return numbering.coordinates, numbering.gather(function)


def mark_links(mesh, inside, links=None) -> None:
    """Mark a mesh as chains with links: ``inside`` (DG0) is 0 in links and 1 elsewhere, None for no links;
    ``links`` is a factor of all integrals over links.
    """
    mesh.geometric_shared_data_cache["fdgeom"].update({"inside": inside, "links": links})


def inside_of(mesh):
    """The function given to :func:`mark_links`; None if there are no links."""
    return mesh.geometric_shared_data_cache["fdgeom"].get("inside")


def links_of(mesh) -> np.ndarray:
    """A mask of the cells (with halo) that are links, in the order of the maps from cells to nodes."""
    inside = inside_of(mesh)
    if inside is None:
        return np.zeros(mesh.cell_set.total_size, dtype=bool)
    dofs = inside.function_space().cell_node_map().values_with_halo[:, 0]
    return inside.dat.data_ro_with_halos[dofs] < 0.5


def without_links(name: str, form):
    """A user's functional over the chains of a mesh alone, without its links; ``ValueError`` for ds and dS.

    Integrals of fdgeom, which have a factor for cells or links, stay.
    """
    if not isinstance(form, Form):
        return form
    # Callers cache what they make of a form by its identity.
    key, changed = "fdgeom without links", {}
    if key in cache_of(form):
        return cache_of(form)[key]
    for integral in form.integrals():
        marks = integral.ufl_domain().geometric_shared_data_cache["fdgeom"]
        inside, integrand = marks.get("inside"), integral.integrand()
        if inside is None or {inside, marks["links"]} & {*extract_coefficients(integrand)}:
            continue
        if integral.integral_type() != "cell":
            raise ValueError(
                f"{name}: ds and dS on the mesh of an assembly are not the ends and nodes of its beams: "
                "write an integral over the mesh of a beam, of the beam's own fields"
            )
        # No product: in links the integrand need not be a number.
        integrand = ufl.conditional(ufl.gt(inside, 0.5), integrand, 0.0)
        changed[id(integral)] = integral.reconstruct(integrand=integrand)
    if changed:
        made = Form([changed.get(id(integral), integral) for integral in form.integrals()])
        return cache_of(form).setdefault(key, made)
    return form
