"""Implicit steppers as compiled lists: the states of their steps through PETSc."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, SpatialCoordinate, cos, dx, exp
from step_lists import operations_of
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.rod_cases import SEPARATE, moving

import fdgeom as fg
from fdgeom.compile import CompiledExecutor


def wave(degree=1):
    mesh = uneven_mesh(30)
    V, (x,) = FunctionSpace(mesh, "CG", degree), SpatialCoordinate(mesh)
    q = Function(V, name="q").interpolate(exp(-20 * (x - 0.4) ** 2))
    p = Function(V, name="p").interpolate(exp(-20 * (x - 0.6) ** 2))
    return fg.HamiltonianSystem(q, p, (p**2 / 2 + q.dx(0) ** 2 / 2 + 1 - cos(q)) * dx)


def clamped():
    tip = fg.Load(force=(0.0, 0.1, 0.2), at="right")
    return moving(SEPARATE, 13, left="clamped", loads=tip)


CASES = {
    "GaussLegendre(1)": (fg.GaussLegendre(1), wave, 0.02),
    "GaussLegendre(4)": (fg.GaussLegendre(4), wave, 0.02),
    "degree 2": (fg.GaussLegendre(1), lambda: wave(2), 0.02),
    "mixed": (fg.ImplicitMidpoint, wave, 0.02),
    "two fields of a beam": (
        fg.ImplicitMidpoint,
        lambda: set_smooth(fg.Beam(uneven_mesh(8), SOFT)),
        0.01,
    ),
    "EnergyMomentum, clamped": (fg.EnergyMomentum, clamped, 0.01),
    "GeneralizedAlpha": (fg.GeneralizedAlpha, lambda: moving(SEPARATE, 13), 0.01),
}


def state_of(stepper):
    """The Functions that steps change by themselves; others are set after them."""
    system = stepper.system
    configuration = getattr(system, "configuration", None)
    return [*configuration, system.v] if configuration else list(system.functions().values())


@pytest.mark.parametrize("name", CASES)
def test_states_and_iterations(name):
    """After twenty steps; one more iteration in each, which ends at round-off."""
    method, build, dt = CASES[name]
    stepper, twin = method(build(), dt, compiled=False), method(build(), dt)
    executor = CompiledExecutor(operations_of(twin))
    assert executor.advance(20, 0.0, dt) == (20, None)
    stepper.advance(20)
    for f, g in zip(state_of(stepper), state_of(twin), strict=True):
        ours, theirs = g.dat.data_ro, f.dat.data_ro
        assert np.abs(ours - theirs).max() < 1e-10 * max(1.0, np.abs(theirs).max()), f.name()
    stats = executor.stats()
    assert stats["solves"] == 20
    assert stats["newton_iterations"] <= stepper.solver_stats()["newton_iterations"] + 20
