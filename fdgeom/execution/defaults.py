"""Default PETSc options and convergence tests for each kind of equations; tests of Jacobians find the
kind.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
from ufl.algorithms.map_integrands import map_integrand_dags
from ufl.classes import Integral

from fdgeom.data import Snapshot, entries
from fdgeom.forms import MATRIX_COMPILER, EachCase, is_affine, simplify
from fdgeom.operations import LOCAL_TEST, ConvergenceTest

#: Solves go to round-off, so that invariants hold to the last digits.
NEWTON = {
    "snes_type": "newtonls",
    "snes_linesearch_type": "basic",
    "snes_rtol": 1e-13,
    "snes_atol": 1e-50,
    "snes_stol": 1e-14,
    "snes_max_it": 25,
}
LINEAR = {"snes_type": "ksponly"}
#: The Jacobian is block diagonal, node by node: inverting the blocks solves exactly.
LOCAL = {"mat_type": "baij", "ksp_type": "preonly", "pc_type": "pbjacobi"}
#: One sparse LU of everything.
COUPLED = {"mat_type": "aij", "ksp_type": "preonly", "pc_type": "lu"}

# Up to this number of unknowns a plain LU, in spite of its fill, is faster than a Schur complement.
_SMALL = 1000
_MUMPS = {"pc_factor_mat_solver_type": "mumps", "mat_mumps_icntl_7": 5}
_NATURAL = {"pc_factor_mat_ordering_type": "natural", "pc_factor_zeropivot": 1e-50}
_SCHUR = {
    "pc_type": "fieldsplit",
    "pc_fieldsplit_type": "schur",
    "pc_fieldsplit_schur_fact_type": "full",
    "pc_fieldsplit_schur_precondition": "selfp",
    "pc_fieldsplit_detect_saddle_point": True,
    "fieldsplit_0_ksp_type": "preonly",
    "fieldsplit_0_pc_type": "jacobi",
    "fieldsplit_1_ksp_type": "preonly",
    "fieldsplit_1_pc_type": "lu",
}


def defaults(residual: Form, unknown: Function, local: bool) -> dict:
    """The default options for a residual: linear or Newton, node by node or coupled."""
    kind = LINEAR if is_affine(residual, unknown) else NEWTON
    options = {**kind, **(LOCAL if local else COUPLED)}
    if not local and unknown.function_space().comm.size > 1:
        options["pc_factor_mat_solver_type"] = "mumps"
    return options


def saddle_defaults(residual: Form, unknown: Function) -> dict:
    """Default options for F(x, λ) = 0, linear or Newton."""
    options = defaults(residual, unknown, local=False)
    if options["snes_type"] != "ksponly":
        # Constraints hold to the last digit; the convergence test ends the iteration at round-off.
        options["snes_rtol"] = 1e-15
    space = unknown.function_space()
    parallel = space.comm.size > 1
    # A diagonal matrix of x (mass lumping) makes the elimination of x exact: by PETSc's LU in the
    # natural order for small problems, else by a Schur complement that selfp assembles.
    if not first_block_is_diagonal(residual, unknown):
        return options | _MUMPS
    if space.dim() <= _SMALL and not parallel:
        return options | _NATURAL
    options |= _SCHUR
    if parallel:
        options |= {f"fieldsplit_1_{key}": value for key, value in _MUMPS.items()}
    return options


def banded(comm) -> dict:
    """PETSc options for unknowns in the order of a rod: an LU without pivoting; MUMPS on several ranks."""
    return COUPLED | (_MUMPS if comm.size > 1 else _NATURAL)


@dataclass(frozen=True)
class Numerics:
    """PETSc options, convergence test and caching of the matrix for one kind of equations."""

    #: Flat PETSc options; those of the user override them.
    options: Mapping
    #: The convergence test of Newton's method; None for PETSc's own.
    converged: ConvergenceTest | Callable | None = None
    #: Whether matrix and factors are used again while the data of the matrix do not change.
    reuse_matrix: bool = False


def plain(residual: Form, unknown: Function, *, pivots: bool = False) -> Numerics:
    """Linear or Newton solves, node by node for local equations, otherwise with one LU."""
    local = is_local(residual, unknown)
    options = defaults(residual, unknown, local)
    if pivots and not local:
        # MUMPS pivots: saddle points have zeros on their diagonals.
        options["pc_factor_mat_solver_type"] = "mumps"
    return Numerics(options, LOCAL_TEST if local else ConvergenceTest())


def saddle(residual: Form, unknown: Function) -> Numerics:
    """The numerics for a motion together with the multiplier of its constraint."""
    return Numerics(saddle_defaults(residual, unknown), ConvergenceTest())


_MESHES = {
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
    # Both sides of conditionals count, where both are defined: one may be where no value is tried.
    jacobian = simplify(derivative(residual, unknown))
    found = _on_few_cells(map_integrand_dags(EachCase(), jacobian), space)
    found = _on_few_cells(jacobian, space) if found is None else found
    return _on_whole_mesh(jacobian, unknown) if found is None else found


def _on_few_cells(jacobian: Form, space) -> bool | None:
    """The answer of a small mesh; None if it cannot be used or gives numbers that are not finite."""
    mesh = space.mesh()
    cell = mesh.ufl_cell().cellname
    if cell not in _MESHES or mesh.geometric_dimension != mesh.topological_dimension:
        return None
    if len(jacobian.ufl_domains()) > 1:
        return None
    # Meshes of several communicators may have one number, which is all that UFL compares.
    while (small := _small_mesh(cell)) == mesh:
        _small_mesh.cache_clear()
    rng = np.random.default_rng(0)

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
    mesh = _MESHES[cell]()
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


def _random_data(form: Form) -> dict:
    """Functions and Constants of random values for those of a form."""
    rng = np.random.default_rng(0)
    made = {
        c: Constant(rng.uniform(0.5, 1.5, c.ufl_shape)) for c in extract_firedrake_constants(form)
    }
    coordinates = [mesh.coordinates for mesh in form.ufl_domains()]
    for f in form.coefficients():
        if f not in coordinates:
            made[f] = Function(f.function_space())
            for part in made[f].subfunctions:
                part.dat.data_wo[...] = rng.uniform(0.5, 1.5, part.dat.data_ro.shape)
    return made


def _couplings(jacobian: Form, block: int) -> np.ndarray:
    """The matrix entries between different nodes in this rank's rows."""
    matrix = assemble(jacobian, mat_type="aij", form_compiler_parameters=MATRIX_COMPILER).petscmat
    rows, columns, values = entries(matrix)
    return values[rows // block != columns // block]


def first_block_is_diagonal(residual: Form, unknown: Function) -> bool:
    """Whether the equations of the first part couple none of its values to one another."""
    # The whole Jacobian is assembled, by the kernels of the solver, with random data: the present
    # ones may be a special case.
    jacobian = map_integrand_dags(EachCase(), derivative(residual, unknown))
    matrix = assemble(
        replace(jacobian, _random_data(jacobian)),
        mat_type="aij", form_compiler_parameters=MATRIX_COMPILER,
    ).petscmat  # fmt: skip
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
    coupled = np.abs(values[block & (rows != columns)]) > 1e-14 * scale
    # Values that are not finite show nothing.
    return not comm.allreduce(int(coupled.any() or not np.isfinite(scale)))
