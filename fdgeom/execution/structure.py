"""Tests of Jacobians: whether they are block diagonal, node by node, or diagonal in one block."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from firedrake import (
    COMM_SELF,
    Constant,
    Form,
    Function,
    FunctionSpace,
    UnitCubeMesh,
    UnitIntervalMesh,
    UnitSquareMesh,
    assemble,
    derivative,
)
from firedrake.mg.ufl_utils import ReconstructIntegrand
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import replace
from ufl.classes import Integral

from fdgeom.data import Snapshot, entries
from fdgeom.forms import MATRIX_COMPILER

_SMALL = {
    "interval": lambda: UnitIntervalMesh(3, comm=COMM_SELF),
    "triangle": lambda: UnitSquareMesh(2, 2, comm=COMM_SELF),
    "quadrilateral": lambda: UnitSquareMesh(2, 2, quadrilateral=True, comm=COMM_SELF),
    "tetrahedron": lambda: UnitCubeMesh(1, 1, 1, comm=COMM_SELF),
}


def is_local(residual: Form, unknown: Function) -> bool:
    """Whether the equations of a residual couple only unknowns of one node; never for a mixed unknown."""
    space = unknown.function_space()
    if len(space) > 1:
        return False
    # The Jacobian is assembled with random values: every entry between two nodes must be exactly zero
    # (collocated quadratures give exact zeros). A few cells of the mesh's type suffice; where they
    # cannot be used (extruded or curved meshes, several meshes, values that are not finite), the
    # whole mesh is assembled with the present coefficients and a random unknown.
    jacobian = derivative(residual, unknown)
    found = _on_few_cells(jacobian, space)
    return _on_whole_mesh(jacobian, unknown) if found is None else found


def _on_few_cells(jacobian: Form, space) -> bool | None:
    """The answer of a small mesh; None if it cannot be used or gives numbers that are not finite."""
    mesh = space.mesh()
    cell = mesh.ufl_cell().cellname
    if cell not in _SMALL or mesh.geometric_dimension != mesh.topological_dimension:
        return None
    if len(jacobian.ufl_domains()) > 1:
        return None
    small, rng = _small_mesh(cell), np.random.default_rng(0)

    def on_small_mesh(item, _, coefficient_mapping=None):
        """A mesh, a space or a function, as ReconstructIntegrand asks for them."""
        if isinstance(item, Function):
            made = Function(on_small_mesh(item.function_space(), None))
            for part in made.subfunctions:
                values = part.dat.data_wo
                values[...] = rng.uniform(0.5, 1.5, values.shape)
            return made
        return FunctionSpace(small, item.ufl_element()) if hasattr(item, "ufl_element") else small

    constants = {
        c: Constant(rng.uniform(0.5, 1.5, c.ufl_shape))
        for c in extract_firedrake_constants(jacobian)
    }
    functions = {f: on_small_mesh(f, None) for f in jacobian.coefficients()}
    move = ReconstructIntegrand(
        lambda item, *_, **__: functions.get(item) or on_small_mesh(item, None)
    )
    made = Form(
        [
            Integral(move(replace(i.integrand(), constants)), i.integral_type(), small,
                     "everywhere", i.metadata(), None)
            for i in jacobian.integrals()
        ]
    )  # fmt: skip
    couplings = _couplings(made, space.block_size)
    return not couplings.any() if np.isfinite(couplings).all() else None


@cache
def _small_mesh(cell: str):
    """A few cells of a type without special shape: right angles make stiffnesses vanish."""
    mesh = _SMALL[cell]()
    places = mesh.coordinates.dat.data_wo
    places += np.random.default_rng(1).uniform(-0.1, 0.1, places.shape)
    return mesh


def _on_whole_mesh(jacobian: Form, unknown: Function) -> bool:
    space = unknown.function_space()
    with _random_values(unknown):
        couplings = _couplings(jacobian, space.block_size)
    return not space.comm.allreduce(int(np.any(couplings != 0)))


@contextmanager
def _random_values(function: Function) -> Iterator[None]:
    """Context in which a Function has random values."""
    keep = Snapshot(function.subfunctions)
    keep.take()
    rng = np.random.default_rng(0)
    for f in function.subfunctions:
        f.dat.data_wo[...] = rng.uniform(0.5, 1.5, f.dat.data_ro.shape)
    try:
        yield
    finally:
        keep.restore()


def _couplings(jacobian: Form, block: int) -> np.ndarray:
    """The matrix entries between different nodes in this rank's rows."""
    matrix = assemble(jacobian, mat_type="aij", form_compiler_parameters=MATRIX_COMPILER).petscmat
    rows, columns, values = entries(matrix)
    return values[rows // block != columns // block]


def first_block_is_diagonal(residual: Form, unknown: Function) -> bool:
    """Whether the equations of the first part couple none of its values to one another."""
    with _random_values(unknown):
        # The whole Jacobian is assembled: its kernels are needed anyway.
        matrix = assemble(derivative(residual, unknown), mat_type="aij").petscmat
    rows, columns, values = entries(matrix)
    # Rows and columns of a rank are those of the first part, then those of the second.
    comm, part = unknown.function_space().comm, unknown.function_space()[0]
    sizes = np.array(comm.allgather(part.dof_dset.size * part.block_size))
    owners = matrix.getOwnershipRanges()

    def in_first(index):
        rank = np.searchsorted(owners, index, side="right") - 1
        return index - owners[rank] < sizes[rank]

    block = in_first(rows) & in_first(columns)
    scale = np.abs(values[block]).max(initial=0.0)
    coupled = np.any(np.abs(values[block & (rows != columns)]) > 1e-14 * scale)
    return not comm.allreduce(int(coupled))
