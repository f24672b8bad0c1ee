"""A mesh of one cell, on which DG0 values stand for the values at one node of another mesh."""

from functools import cache

from firedrake import COMM_SELF, UnitIntervalMesh

from fdgeom.forms import shaped_space


@cache
def one_node_mesh():
    """The mesh: one cell of length one."""
    return UnitIntervalMesh(1, comm=COMM_SELF)


def one_node_space(shape: tuple[int, ...]):
    """The space of values of a shape at one node."""
    return shaped_space(shape, one_node_mesh(), "DG", 0)
