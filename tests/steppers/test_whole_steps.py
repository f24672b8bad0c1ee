"""Whatever happens, the state left is that of a whole step, and a stopped run goes on bit for bit."""

import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from every_stepper import CASES, T0, differing, values
from verification.small_systems import pendulum

import fdgeom as fg
from fdgeom.compile.unit import Unit as ListUnit
from fdgeom.execution import HeldSNES


@contextmanager
def cut(monkeypatch, after=None):
    """MemoryError at the end of so many solves (or pieces of compiled steps); counts them."""
    count = [0]

    def counted(method):
        def run(*arguments, **options):
            result = method(*arguments, **options)
            count[0] += 1
            if count[0] == after:
                raise MemoryError
            return result

        return run

    original = ListUnit.advance
    cut_steps = counted(original)

    def advance(unit, *arguments, **options):
        # Assignments around the steps are no pieces of them.
        plain = all(isinstance(op, fg.Map) for op in unit.operations)
        return (original if plain else cut_steps)(unit, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(HeldSNES, "solve", counted(HeldSNES.solve))
        patch.setattr(ListUnit, "advance", advance)
        yield count


def agrees(stepper, t, steps) -> bool:
    """Whether the stepper, its system and the beams of that are at one time."""
    clocks = [
        s.time
        for s in (stepper.system, *getattr(stepper.system, "beams", ()))
        if hasattr(s, "time")
    ]
    return stepper.steps == steps and all(x == t for x in (stepper.t, *map(float, clocks)))


@pytest.mark.parametrize("name", CASES)
def test_no_step_walks_through_expressions(name):
    """What a step needs of forms is found before: a walk through one takes longer than a small step."""
    dt, make = CASES[name]
    stepper = make(dt, t0=T0)
    if not stepper.is_compiled:
        pytest.skip("Firedrake's own solvers ask forms for their coefficients")
    stepper.advance(2)
    stepper.advance(1)
    walks = set()

    def note(frame, event, argument):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        walks_through = "traversal" in name or name.startswith(("extract_", "map_"))
        if event == "call" and walks_through and f"{os.sep}ufl{os.sep}" in file:
            walks.add(name)

    sys.setprofile(note)
    try:
        stepper.advance(1)
    finally:
        sys.setprofile(None)
    assert not walks


@pytest.mark.parametrize("name", CASES)
def test_cut_steps_and_resumed_runs(name, tmp_path, monkeypatch):
    dt, make = CASES[name]
    stepper = make(dt, t0=T0)
    assert agrees(stepper, T0, 0)
    stepper.advance(2)
    stepper.dt = 0.8 * dt
    stepper.advance(1)
    with cut(monkeypatch) as count:
        stepper.advance(1)
    solves = count[0]
    t = T0 + 2 * dt + 2 * (0.8 * dt)
    assert agrees(stepper, t, 4)
    before = values(stepper)
    for after in {1, solves}:
        with cut(monkeypatch, after), pytest.raises(MemoryError):
            stepper.advance(3)
        assert not differing(values(stepper), before)
        assert agrees(stepper, t, 4)
    fg.save(stepper, tmp_path / "state.h5")
    if not stepper.is_compiled:
        # In the second step, so that the first is taken.
        with cut(monkeypatch, solves + 1), pytest.raises(MemoryError):
            stepper.advance(3)
    else:
        stepper.advance()
    assert agrees(stepper, stepper.t, 5)
    stepper.advance(2)
    fresh = make(0.8 * dt, t0=T0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.resume(fresh, tmp_path / "state.h5")
    assert agrees(fresh, t, 4)
    assert not differing(values(fresh), before)
    fresh.advance(3)
    assert fresh.clock == stepper.clock
    assert not differing(values(fresh), values(stepper))


@pytest.fixture
def python_takes_ctrl_c():
    """Python's own handler, which a process that was started in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_takes_ctrl_c")
def test_ctrl_c_in_a_long_advance_of_compiled_steps():
    system = pendulum()
    stepper = fg.ImplicitMidpoint(system, 1e-3, compiled=True)
    stepper.advance()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        stepper.advance(10**9)
    timer.join()
    assert 1 < stepper.steps < 10**9
    assert stepper.t == stepper.steps * 1e-3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    twin = fg.ImplicitMidpoint(pendulum(), 1e-3, compiled=True)
    twin.advance(stepper.steps)
    assert not differing(values(stepper), values(twin))


@pytest.mark.usefixtures("python_takes_ctrl_c")
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("name", ["ImplicitMidpoint, waves", "FourthOrderAlpha", "RATTLE, chain"])
def test_ctrl_c_inside_of_a_solve(name, times):
    """The first waits for the end of the step; the second cuts it, and nothing of it is left."""
    dt, make = CASES[name]
    options = {"compiled": False} if "RATTLE" in name else {}
    stepper, twin = (make(dt, **options) for _ in range(2))
    for s in (stepper, twin):
        s.advance(2)

    def monitor(snes, iteration, norm):
        if hit:
            hit.pop()
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    stepper._executor.solvers[-1].snes.setMonitor(monitor)
    hit = [True]
    with pytest.raises(KeyboardInterrupt):
        stepper.advance(3)
    taken = 2 - times
    twin.advance(taken) if taken else None
    assert agrees(stepper, twin.t, 2 + taken)
    assert not differing(values(stepper), values(twin))
    # And it goes on as if nothing had been.
    for s in (stepper, twin):
        s.advance(2)
    assert not differing(values(stepper), values(twin))


def test_an_error_in_a_callback_leaves_a_whole_step():
    dt, make = CASES["ImplicitMidpoint, waves"]
    stepper = make(dt)
    stepper.advance()
    before = values(stepper)

    def monitor(snes, iteration, norm):
        if iteration == 1:
            raise ZeroDivisionError

    stepper._executor.solvers[0].snes.setMonitor(monitor)
    with pytest.raises(ZeroDivisionError):
        stepper.advance(3)
    assert agrees(stepper, dt, 1)
    assert not differing(values(stepper), before)
    stepper._executor.solvers[0].snes.monitorCancel()
    stepper.advance()
    twin = make(dt)
    twin.advance(2)
    assert not differing(values(stepper), values(twin))


@pytest.mark.usefixtures("python_takes_ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_between_two_steps(number, tmp_path):
    """With the samples, a checkpoint and closed files; SIGTERM with the usual status."""
    dt, make = CASES["RATTLE, chain"]

    class Batch:
        every, closed = 1, False

        def open(self, stepper):
            pass

        def write(self, stepper):
            if stepper.steps == 3:
                signal.raise_signal(number)

        def close(self):
            self.closed = True

    stepper, output = make(dt), Batch()
    expected = KeyboardInterrupt if number == signal.SIGINT else SystemExit
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(expected) as caught:
        stepper.run(
            steps=9, output=output, checkpoint=tmp_path / "a.h5", csv=tmp_path / "a.csv",
            monitors=fg.Energy(),
        )  # fmt: skip
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    if number == signal.SIGTERM:
        assert caught.value.code == 128 + 15
    assert output.closed
    assert caught.value.history.step.tolist() == [0, 1, 2, 3]
    assert np.array_equal(fg.History.from_csv(tmp_path / "a.csv").step, [0, 1, 2, 3])
    fresh = make(dt)
    fg.resume(fresh, tmp_path / "a.h5")
    assert fresh.steps == stepper.steps == 3
    assert not differing(values(fresh), values(stepper))
