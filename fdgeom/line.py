"""Checks of an interval mesh as one line of cells, and the nodes at its two ends."""

import numpy as np
from firedrake import FunctionSpace
from mpi4py import MPI

from fdgeom.measures import check_interval
from fdgeom.numbering import coordinates_of, is_linear

# Of the length of the line: what is no length, and what coordinates of one node may differ by.
_NO_LENGTH, _SAME = 1e-10, 1e-12


def check_line(mesh, argument: str = "mesh"):
    """Return ``mesh`` if it is one line of straight cells, open and without folds, of any lengths,
    numbering and direction; raise otherwise.
    """
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
    """Local index of the node at an end of a line, if this rank has it (its own or a ghost); "left"
    is the end at the smaller coordinate, whatever the mesh marks it with.
    """
    element = space.ufl_element()
    scalar = FunctionSpace(
        space.mesh(), element.sub_elements[0] if space.value_size > 1 else element
    )
    place = coordinates_of(scalar)
    comm = space.mesh().comm
    first = comm.allreduce(place.min(initial=np.inf), op=MPI.MIN)
    last = comm.allreduce(place.max(initial=-np.inf), op=MPI.MAX)
    end = {"left": first, "right": last}[name]
    return np.flatnonzero(np.abs(place - end) <= _SAME * (last - first))
