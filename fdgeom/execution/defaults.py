"""Default PETSc options and convergence tests for each kind of equations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from firedrake import Constant, Form, Function, assemble, derivative
from firedrake.formmanipulation import split_form
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import extract_arguments, replace
from ufl.algorithms.map_integrands import map_integrand_dags
from ufl.classes import CellAvg, Expr, FacetAvg, Grad
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.data import entries
from fdgeom.forms import (
    MATRIX_COMPILER,
    EachCase,
    has_nodal_values,
    is_affine,
    is_zero,
    scalar_space,
    simplify,
)
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


def is_local(residual: Form, unknown: Function) -> bool:
    """Whether the equations of a residual couple only unknowns of one node; never for a mixed unknown.

    Integrals over interior facets count as coupling.
    """
    # Inside of the function: motions and methods can be read without the compiler.
    from fdgeom.compile.terms import has_points_at_nodes

    space = unknown.function_space()
    if len(space) > 1 or not has_nodal_values(space):
        return False
    # Only the unknown counts: coefficients may have values of other nodes.
    integrals = simplify(derivative(residual, unknown)).integrals()
    if any(
        i.integral_type().startswith("interior_facet") or _reads_neighbours(i.integrand())
        for i in integrals
    ):
        return False
    return all(has_points_at_nodes(i, scalar_space(space)) for i in integrals)


def _reads_neighbours(integrand: Expr) -> bool:
    """Whether an integrand has a derivative or a mean of an argument."""
    return any(
        isinstance(e, Grad | CellAvg | FacetAvg) and extract_arguments(e)
        for e in unique_pre_traversal(integrand)
    )


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


def first_block_is_diagonal(residual: Form, unknown: Function) -> bool:
    """Whether the equations of the first part couple none of its values to one another."""
    # Assembled with random data: the present ones may be a special case.
    jacobian = map_integrand_dags(EachCase(), simplify(derivative(residual, unknown)))
    block = dict(split_form(jacobian))[0, 0]
    if is_zero(block):
        return False
    matrix = assemble(
        replace(block, _random_data(block)),
        mat_type="aij", form_compiler_parameters=MATRIX_COMPILER,
    ).petscmat  # fmt: skip
    rows, columns, values = entries(matrix)
    scale = np.abs(values).max(initial=0.0)
    coupled = np.abs(values[rows != columns]) > 1e-14 * scale
    # Values that are not finite show nothing.
    comm = unknown.function_space().comm
    return not comm.allreduce(int(coupled.any() or not np.isfinite(scale)))
