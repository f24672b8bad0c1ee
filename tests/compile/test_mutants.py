"""Tests that compare compiled code with PETSc SNES fail where compiled code does nothing.

Of each family one cheap test is run with code in place of the compiled one that gives up at once, and
with one that says that it is done.
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from firedrake.exceptions import ConvergenceError

import fdgeom as fg
from fdgeom.compile import CompiledTrajectory
from fdgeom.compile import unit as compiled_lists
from fdgeom.compile.executor import Iteration
from fdgeom.errors import SolveFailed
from fdgeom.operations import Reason
from fdgeom.statics.compiled import CompiledNewton
from fdgeom.systems.motion.accelerations import LinearSolve

TESTS = Path(__file__).parents[1]


def _solve_of(unit) -> int:
    """The number of the first call that solves."""
    return next(k for k, code in enumerate(unit.codes) if code.solves)


_ADVANCE = compiled_lists.Unit.advance


def _of_solves(instead):
    """A stand-in for `Unit.advance`, which assignments of the way through PETSc do not see."""

    def advance(unit, steps, t, dt, **options):
        if all(isinstance(op, fg.Map) for op in unit.operations):
            return _ADVANCE(unit, steps, t, dt, **options)
        return instead(unit, steps)

    return advance


#: Stand-ins for compiled code, by what they say: that they gave up, or that they are done.
LISTS = compiled_lists.Unit, "advance", {
    "gives up": _of_solves(lambda unit, steps: (Reason.TOO_MANY, 0, _solve_of(unit))),
    "is idle": _of_solves(lambda unit, steps: (0, steps, -1)),
}  # fmt: skip
EQUILIBRIUM = CompiledNewton, "_iterate", {
    "gives up": lambda newton: Reason.SINGULAR,
    "is idle": lambda newton: Reason.UPDATE,
}  # fmt: skip
PATH = CompiledNewton, "_iterate_along", {
    "gives up": lambda newton, *arguments: Reason.SINGULAR,
    "is idle": lambda newton, *arguments: Reason.UPDATE,
}  # fmt: skip
ACCELERATION = LinearSolve, "solve", {
    "gives up": lambda linear: False,
    "is idle": lambda linear: True,
}  # fmt: skip
ITERATION = Iteration, "run", {"is idle": lambda iteration, **options: 0}
TRAJECTORY = CompiledTrajectory, "pull", {"is idle": lambda trajectory: None}
LISTS_GIVE_UP = compiled_lists.Unit, "advance", {"gives up": LISTS[2]["gives up"]}

ALPHA = "string, generalized-alpha"
#: Family: the module, what is called in it, and what does nothing.
FAMILIES = {
    "chains": ("steppers.test_chain_steps", lambda m: m.test_same_steps("energy-momentum", "free"), LISTS),
    "chains, alpha": (
        "steppers.test_chain_steps", lambda m: m.test_same_steps("generalized-alpha", "free"), LISTS
    ),
    "acceleration": (
        "steppers.test_chain_steps",
        lambda m: m.test_same_steps("generalized-alpha", "clamped"), ACCELERATION,
    ),
    "assemblies": (
        "steppers.test_chain_assemblies",
        lambda m: m.test_same_steps(m.double_pendulum, fg.EnergyMomentum), LISTS,
    ),
    "types": ("steppers.test_chain_types", lambda m: m.test_same_steps(ALPHA), LISTS),
    "types of SNES": ("steppers.test_chain_types", lambda m: m.test_same_steps(ALPHA), ITERATION),
    "many rods": (
        "steppers.test_many_rods",
        lambda m: m.test_they_keep_energy_and_momenta(m.unit.__wrapped__()), LISTS,
    ),
    "ranks": ("verification.parallel_rods", lambda m: m.run("energy-momentum"), LISTS),
    "ranks, local": ("verification.parallel_rods", lambda m: m.run("variational"), LISTS),
    "statics": ("statics.test_compiled", lambda m: m.test_same_equilibria("loaded"), EQUILIBRIUM),
    "statics, joints": (
        "statics.test_compiled", lambda m: m.test_same_equilibria("joined"), EQUILIBRIUM
    ),
    "paths": (
        "statics.test_compiled", lambda m: m.test_same_paths_over_limits_and_bifurcations(), PATH
    ),
    "two paths": ("steppers.test_two_paths", lambda m: m.test_small_systems("ImplicitMidpoint"), LISTS),
    "two paths, beam": (
        "steppers.test_two_paths", lambda m: m.test_beam(fg.PoissonIntegrator, 1, {}), LISTS
    ),
    "joints": (
        "steppers.test_variational_joints",
        lambda m: m.test_compiled_joints_are_those_of_petsc(m.double_pendulum, 1e-3), LISTS,
    ),
    "constraints": (
        "steppers.test_rattle",
        lambda m: m.test_compiled_and_snes_agree(fg.SHAKE, m.spherical_pendulum, m.PAPER), LISTS,
    ),
    "one node": (
        "compile.test_local_problem",
        lambda m: m.test_local_newton_solves_a_variational_problem_like_newtonls(False), LISTS,
    ),
    "gradients of chains": (
        "adjoint.test_chains_swept_back", lambda m: m.swept.__wrapped__(m.Case()), LISTS_GIVE_UP
    ),
    "gradients of chains, back": (
        "adjoint.test_chains_swept_back",
        lambda m: m.test_the_same_as_solve_by_solve(
            m.Case(), fg.EnergyMomentum, np.random.default_rng(1)
        ), TRAJECTORY,
    ),
    "gradients, local": (
        "adjoint.test_swept_back",
        lambda m: m.test_the_same_as_solve_by_solve("RATTLE", np.random.default_rng(1), None), TRAJECTORY,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("family", "does"), [(f, does) for f, case in FAMILIES.items() for does in case[2][2]]
)
@pytest.mark.filterwarnings("ignore:.*went through PETSc SNES")
def test_a_comparison_notices_code_that(family, does, monkeypatch):
    module, call, (owner, name, stand_ins) = FAMILIES[family]
    monkeypatch.syspath_prepend(str(TESTS / module.split(".")[0]))
    module = import_module(module)
    monkeypatch.setattr(owner, name, stand_ins[does])
    with pytest.raises((AssertionError, fg.StepFailed, SolveFailed, ConvergenceError)):
        call(module)
