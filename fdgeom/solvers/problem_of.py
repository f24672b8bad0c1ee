"""Access to the problem and the monitors of a PETSc solver, for SNES and PC types in Python."""

from typing import Any

from firedrake import Form, Function, dmhooks
from petsc4py import PETSc

from fdgeom.errors import CannotCompile
from fdgeom.solvers.essential import EssentialValues, dofs_of

_ATTRIBUTE = "fdgeom_problem"

# PETSc's stubs make a reason an int and take a ConvergedReason.
REASON: Any = PETSc.SNES.ConvergedReason
#: PETSc's reasons for those of compiled Newton iterations.
DIVERGED = {
    -1: REASON.DIVERGED_MAX_IT,
    -2: REASON.DIVERGED_LINEAR_SOLVE,
    -3: REASON.DIVERGED_FUNCTION_NANORINF,
}


def attach_problem(snes: PETSc.SNES, residual: Form, unknown: Function, essential=()) -> None:
    """Attach a problem to a raw SNES and its preconditioner, for types that call :func:`problem_of`."""
    problem = residual, unknown, tuple(essential)
    for holder in (snes, snes.getKSP().getPC()):
        holder.setAttr(_ATTRIBUTE, problem)


def problem_of(
    holder: PETSc.SNES | PETSc.PC, name: str
) -> tuple[Form, Function, tuple[EssentialValues, ...]]:
    """Residual, unknown and essential values of a solver of fdgeom or of Firedrake; or ``CannotCompile``."""
    if _ATTRIBUTE in holder.getDict():
        return holder.getAttr(_ATTRIBUTE)
    context = dmhooks.get_appctx(holder.getDM())
    if context is None:
        raise CannotCompile(f"{name} found no variational problem on this {holder.klass}")
    problem = context._problem
    return problem.F, problem.u, tuple(_essential(bc, problem.u) for bc in problem.dirichlet_bcs())


def _essential(bc, unknown: Function) -> EssentialValues:
    """The degrees of freedom of a DirichletBC; Firedrake has put their values into the unknown."""
    space = bc.function_space()
    whole = space if space.component is None else space.parent
    return EssentialValues(part=whole.index or 0, dofs=dofs_of(bc), old=unknown)


def show_iteration(snes: PETSc.SNES, iteration: int, norm: float) -> None:
    """Report the progress of an iteration to PETSc, its convergence history and its monitors."""
    snes.setIterationNumber(iteration)
    snes.setFunctionNorm(norm)
    snes.logConvergenceHistory(norm)
    snes.monitor(iteration, norm)
