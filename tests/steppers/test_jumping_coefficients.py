"""Coefficients that jump or change before every step: methods that carry accelerations keep their order."""

import numpy as np
import pytest
from firedrake import Constant, Function, VectorFunctionSpace, cos, dot, dx, inner

import fdgeom as fg

METHODS = {fg.GeneralizedAlpha: 2, fg.HermiteSimpson: 4, fg.FourthOrderAlpha: 4}


def spring(method, dt, k, force=0.0):
    """v̇ = f - k q from q = 1, at rest; how often its accelerations are solved for counts itself."""
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=1)
    q, v = Function(space), Function(space)
    q.dat.data_wo[...] = 1.0
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (inner(a + k * q, w) - force * w[0]) * dx, q, v
    )
    stepper = method(system, dt)
    start = stepper._accelerations
    start.counted = 0
    find = start.find

    def counting():
        start.counted += 1
        find()

    start.find = counting
    return stepper, q, v


@pytest.mark.parametrize("method", METHODS)
def test_a_stiffness_that_jumps(method):
    """q = cos t until t = 1, then the oscillation of three times the frequency, in closed form."""
    errors = []
    for n in (20, 40, 80):
        k = Constant(1.0)
        stepper, q, _ = spring(method, 1 / n, k)
        stepper.advance(n)
        k.assign(9.0)
        stepper.advance(n)
        errors.append(abs(q.dat.data_ro[0] - EXACT))
        assert stepper._accelerations.counted == 1
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([METHODS[method]] * 2, abs=0.1)
    # As of a stepper made at the jump; a stale acceleration makes it 4e-4.
    assert errors[-1] < {2: 1e-4, 4: 1e-8}[METHODS[method]]


EXACT = np.cos(1) * np.cos(3) - np.sin(1) / 3 * np.sin(3)


def test_a_jump_beside_a_sampled_load():
    """A load that changes before every step does not hide that the stiffness jumps."""
    errors = []
    for n in (20, 40, 80):
        k, force = Constant(1.0), Constant(0.0)
        stepper, q, _ = spring(fg.GeneralizedAlpha, 1 / n, k, force)
        for j in range(2 * n):
            force.assign(1e-9 * (j + 1))  # without effect on the errors
            if j == n:
                k.assign(9.0)
            stepper.advance(1)
        errors.append(abs(q.dat.data_ro[0] - EXACT))
        # At the first change of each coefficient.
        assert stepper._accelerations.counted == 2
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([2, 2], abs=0.1)


def test_a_jump_where_another_stepper_takes_over():
    """The accelerations that the other one has left belong to the old stiffness."""
    errors = []
    for n in (20, 40, 80):
        k = Constant(1.0)
        first, q, _ = spring(fg.GeneralizedAlpha, 1 / n, k)
        second = fg.GeneralizedAlpha(first.system, 1 / n)
        first.advance(n)
        k.assign(9.0)
        second.t = first.t
        second.advance(n)
        errors.append(abs(q.dat.data_ro[0] - EXACT))
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([2, 2], abs=0.1)


@pytest.mark.parametrize("method", [fg.HermiteSimpson, fg.FourthOrderAlpha])
def test_a_jump_is_a_new_stepper(method):
    """Of methods that carry the true acceleration, to round-off."""
    k = Constant(1.0)
    stepper, q, v = spring(method, 0.05, k)
    stepper.advance(7)
    k.assign(9.0)
    other, other_q, other_v = spring(method, 0.05, Constant(9.0))
    other_q.dat.data_wo[...] = q.dat.data_ro
    other_v.dat.data_wo[...] = v.dat.data_ro
    stepper.advance(5)
    other.advance(5)
    assert q.dat.data_ro == pytest.approx(other_q.dat.data_ro, rel=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_a_control_loop(method):
    """Force of a state that is read every 1/5, held in between: exact in NumPy, by the exponential."""
    k, force, errors = 4.0, Constant(0.0), []
    state = np.array([1.0, 0.0])
    w, h = 2.0, 0.2
    turn = np.array([[np.cos(w * h), np.sin(w * h) / w], [-w * np.sin(w * h), np.cos(w * h)]])
    for _ in range(5):
        rest = np.array([-1.5 * state[1] / k, 0.0])
        state = rest + turn @ (state - rest)
    for n in (4, 8, 16):
        force.assign(0.0)
        stepper, q, v = spring(method, h / n, Constant(k), force)
        for _ in range(5):
            force.assign(-1.5 * v.dat.data_ro[0])
            stepper.advance(n)
        errors.append(abs(q.dat.data_ro[0] - state[0]))
        assert stepper._accelerations.counted <= 5
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([METHODS[method]] * 2, abs=0.2)


def test_a_load_that_is_sampled_before_each_step():
    """GeneralizedAlpha takes it at the end of the step: second order, and no solve more a step."""
    errors = []
    for n in (20, 40, 80):
        force = Constant(0.0)
        stepper, q, _ = spring(fg.GeneralizedAlpha, 1 / n, Constant(4.0), force)
        for j in range(n):
            force.assign(np.sin((j + 1) / n))
            stepper.advance(1)
        # q̈ + 4 q = sin t, from q = 1 at rest.
        exact = np.sin(1) / 3 + np.cos(2) - np.sin(2) / 6
        errors.append(abs(q.dat.data_ro[0] - exact))
        assert stepper._accelerations.counted == 1
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([2, 2], abs=0.15)


@pytest.mark.parametrize("method", METHODS)
def test_the_time_is_no_coefficient(method):
    """A load in the symbol of the time changes without a solve."""
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=1)
    q, v = Function(space), Function(space)
    load = (lambda t: 0.5 * t) if method is fg.FourthOrderAlpha else (lambda t: cos(t))
    stepper = method(
        fg.SecondOrderSystem(lambda q, v, a, t, w: (dot(a + q, w) - load(t) * w[0]) * dx, q, v),
        0.1,
    )
    for _ in range(3):
        stepper.advance(1)
        assert stepper.start() == []
