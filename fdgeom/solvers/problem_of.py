"""What a PETSc solver solves, and how far it is: for types of SNES and PC written in Python."""

from firedrake import Form, Function, dmhooks
from petsc4py import PETSc

from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.essential import EssentialValues, dofs_of

_ATTRIBUTE = "fdgeom_problem"


def attach_problem(snes: PETSc.SNES, residual: Form, unknown: Function, essential=()) -> None:
    """Tell a raw SNES and its preconditioner what is solved, should they be of such a type."""
    problem = residual, unknown, tuple(essential)
    for holder in (snes, snes.getKSP().getPC()):
        holder.setAttr(_ATTRIBUTE, problem)


def problem_of(
    holder: PETSc.SNES | PETSc.PC, name: str
) -> tuple[Form, Function, tuple[EssentialValues, ...]]:
    """Residual, unknown and essential values: of fdgeom's own solves, or of a Firedrake problem.

    Raises
    ------
    CannotCompile
        If there is none; calls the type ``name``.
    """
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
    """Tell PETSc, its history and its monitors how far an iteration of one's own has come."""
    snes.setIterationNumber(iteration)
    snes.setFunctionNorm(norm)
    snes.logConvergenceHistory(norm)
    snes.monitor(iteration, norm)
