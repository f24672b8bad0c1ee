"""Adjoints of implicit steps through compiled trajectories: those through PETSc."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    TestFunction,
    assemble,
    derivative,
    dx,
)
from step_lists import operations_of
from test_chain_solves import wave
from test_chain_steppers import CASES, state_of
from test_compiled_trajectories import adjoint, same
from verification.beams import SOFT
from ways import StepsThroughPETSc, take_steps

import fdgeom as fg
from fdgeom.compile import CompiledTrajectory
from fdgeom.line import mark_links
from fdgeom.operations import Map, Solve


def both(step, state, everything, dt):
    """The cotangents of a state after some steps, by both kinds of trajectories."""
    start = {f: np.array(f.dat.data_ro) for f in everything}
    return [
        adjoint(kind, step, [state[-1]], state, start, (3, 1, 3), dt)
        for kind in (CompiledTrajectory, StepsThroughPETSc)
    ]


def written(step):
    return [part for op in step for f in op.writes for part in f.subfunctions]


def test_prescribed_values_and_the_time():
    step = wave()
    found = both(step, [step[1].guess], written(step), 0.02)
    same(*found)
    assert np.abs(found[0][0]).max() > 0.1


@pytest.mark.parametrize("name", list(CASES))
def test_implicit_steppers(name):
    method, build, dt = CASES[name]
    stepper = method(build(), dt)
    step, state = operations_of(stepper), state_of(stepper)
    found = both(step, state, [*state, *written(step)], dt)
    same(*found)
    assert max(np.abs(values).max() for values in found[0]) > 0.1


@pytest.mark.parametrize("links", [[], [4, 9]])
def test_against_dense_matrices(links, rng):
    """c̄ of F(u; c, d) = 0, v = u² + c u: with c at the nodes and d in the cells."""
    mesh = IntervalMesh(14, 1.0)
    space, cells = FunctionSpace(mesh, "CG", 1), FunctionSpace(mesh, "DG", 0)
    inside = Function(cells).assign(1.0)
    inside.dat.data_wo[links] = 0.0
    mark_links(mesh, inside if links else None)
    u, c, v = (Function(space, name=name) for name in "ucv")
    d = Function(cells, name="d")
    for f in (u, c, d):
        f.dat.data_wo[...] = rng.uniform(1, 2, f.dat.data_ro.shape)
    w = TestFunction(space)
    # Not symmetric, so that a matrix in the place of its transpose is noticed.
    residual = ((u**3 + u) * w + d * u.dx(0) * (w.dx(0) + c * w) - d * c**2 * w) * dx(degree=4)
    step = [Solve(work=residual, unknown=u), Map(values={v: u**2 + c * u})]
    trajectory = CompiledTrajectory(step, [v], [c, d])
    take_steps(trajectory, 1, 0.0, 1.0)
    incoming = rng.uniform(-1, 1, v.dat.data_ro.shape)
    trajectory.cotangents[v].dat.data_wo[...] = incoming
    trajectory.pull()
    assert np.abs(assemble(residual).dat.data_ro).max() < 1e-13
    matrix, by_c, by_d = (
        assemble(derivative(residual, f), mat_type="aij").petscmat[:, :] for f in (u, c, d)
    )
    u_bar = (2 * u.dat.data_ro + c.dat.data_ro) * incoming
    multiplier = np.linalg.solve(matrix.T, u_bar)
    # Round-off of a matrix whose condition is some 1e3.
    for f, slope, direct in ((c, by_c, u.dat.data_ro * incoming), (d, by_d, 0.0)):
        expected = direct - slope.T @ multiplier
        found = trajectory.cotangents[f].dat.data_ro
        assert found == pytest.approx(expected, rel=0, abs=1e-11 * abs(expected).max())


def test_every_plan_holds_the_places_that_chains_share():
    """Rows of another address need another plan; the one before is used again later."""
    rods = [
        fg.Beam(IntervalMesh(4, 1.0), SOFT, left="clamped"),
        fg.Beam(IntervalMesh(3, 1.0), SOFT),
    ]
    rods[1].reconstruct(position=(1.0, 0.0, 0.0))
    joint = fg.Spherical(rods[0].right, rods[1].left)
    stepper = fg.GeneralizedAlpha(fg.Assembly(rods, joints=[joint]), 1e-3)
    unit = stepper.ready_steps().unit
    wanted = np.concatenate([[len(places), *places] for places in unit.layout.shared])
    assert len(wanted) >= 3
    runs, others = [], []
    for name in range(3):
        unit.plan(name=name)
        runs.append(unit.single_step().args[0]._obj)  # the struct that `byref` was called with
        # They take memory that has been freed.
        others.append([np.full(len(wanted), -1) for _ in range(1000)])
    for run in runs:
        address = ctypes.cast(run.shared, ctypes.POINTER(ctypes.c_int64))
        assert np.array_equal(np.ctypeslib.as_array(address, wanted.shape), wanted)
