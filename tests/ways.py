"""Which way solves have gone: in compiled code or through PETSc SNES."""

import fdgeom as fg


def check_way(solver, compiled=True):
    """All steps of a stepper, or equilibria, so far have gone the way that a test means.

    Else a test that compares the two ways would compare PETSc SNES with itself.
    """
    assert solver.is_compiled is compiled, solver.why_not_compiled
    stats = solver.solver_stats()
    assert stats["solves"] > 0
    steps = stats.get("steps", stats["solves"])
    assert stats["steps_through_petsc"] == (0 if compiled else steps), solver.fallbacks
    assert not solver.fallbacks


def solvers_of(stepper):
    """The SNES of the solves of a step."""
    found = {op.original: None for op in stepper.operations if isinstance(op, fg.Solve)}
    return [stepper._executor.make(op).snes for op in found]


def number_of_solves(stepper):
    """How many solves a step has."""
    return sum(isinstance(op, fg.Solve) for op in stepper.operations)
