"""Tests whether a quadrature rule has its points at the nodes of a space."""

from functools import cache

import numpy as np
from firedrake import (
    COMM_SELF,
    FunctionSpace,
    Measure,
    TestFunction,
    TrialFunction,
    UnitIntervalMesh,
    assemble,
)
from ufl.classes import Form, Integral

from fdgeom.errors import CannotCompile
from fdgeom.solvers.data import entries

# Off-diagonal entries of a collocated mass matrix are zero up to the tabulation's round-off.
_ROUND_OFF = 1e-14


def scalar_space(space) -> FunctionSpace:
    """The space of one component, with the same nodes."""
    element = space.ufl_element()
    if not has_nodal_values(space):
        raise CannotCompile(f"{element}: its degrees of freedom are not values at nodes")
    return FunctionSpace(space.mesh(), element.sub_elements[0] if space.value_shape else element)


def has_nodal_values(space) -> bool:
    """Whether the degrees of freedom are components at nodes, unlike those of N1curl or RT."""
    size = int(np.prod(space.value_shape, dtype=int))
    return space.block_size == size and (size == 1 or bool(space.ufl_element().sub_elements))


def is_collocated(space, integral: Integral) -> bool:
    """Whether the mass matrix of a space is diagonal under the measure of an integral."""
    if integral.integral_type() not in ("cell", "exterior_facet") or not has_nodal_values(space):
        return False
    if space.mesh().ufl_cell().cellname == "interval":
        metadata = tuple(sorted(integral.metadata().items()))
        return _on_two_cells(scalar_space(space).ufl_element(), integral.integral_type(), metadata)
    u, v = TrialFunction(scalar_space(space)), TestFunction(scalar_space(space))
    return _is_diagonal(Form([integral.reconstruct(integrand=u * v)]))


@cache
def _on_two_cells(element, integral_type: str, metadata: tuple) -> bool:
    """The answer of :func:`is_collocated` from a mesh of two intervals, which holds for all intervals."""
    mesh = UnitIntervalMesh(2, comm=COMM_SELF)
    space = FunctionSpace(mesh, element)
    measure = Measure(
        "dx" if integral_type == "cell" else "ds", domain=mesh, metadata=dict(metadata)
    )
    return _is_diagonal(TrialFunction(space) * TestFunction(space) * measure)


def _is_diagonal(form) -> bool:
    rows, columns, values = entries(assemble(form, mat_type="aij").petscmat)
    scale = np.abs(values).max(initial=0.0)
    return bool(np.all(np.abs(values[rows != columns]) <= _ROUND_OFF * scale))
