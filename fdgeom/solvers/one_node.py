"""A mesh of one cell, on which DG0 values stand for the values at one node of another mesh."""

from functools import cache

from firedrake import COMM_SELF, FunctionSpace, TensorFunctionSpace, UnitIntervalMesh
from firedrake import VectorFunctionSpace as VectorSpace


@cache
def one_node_mesh():
    """The mesh: one cell of length one."""
    return UnitIntervalMesh(1, comm=COMM_SELF)


def one_node_space(shape: tuple[int, ...]):
    """Values of a shape at one node."""
    if shape == ():
        return FunctionSpace(one_node_mesh(), "DG", 0)
    if len(shape) == 1:
        return VectorSpace(one_node_mesh(), "DG", 0, dim=shape[0])
    return TensorFunctionSpace(one_node_mesh(), "DG", 0, shape=shape)
