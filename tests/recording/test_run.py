"""The time loop: when things are done, and that nothing is lost when it stops."""

import os
import signal

import numpy as np
import pytest
from firedrake import dx
from recording_fakes import Oscillators, OscillatorStepper, Rod, RodStepper

from fdgeom.errors import StepFailed
from fdgeom.recording import Checkpoint, Energy, Functional, History, Momentum, resume, run


class Witness:
    """An output that notes what was asked of it."""

    def __init__(self, every=1, raises_at=None):
        self.every = every
        self.raises_at = raises_at
        self.steps = []
        self.opened = self.closed = 0

    def open(self, stepper):
        self.opened += 1

    def write(self, stepper):
        if stepper.steps == self.raises_at:
            raise KeyboardInterrupt
        self.steps.append(stepper.steps)

    def close(self):
        self.closed += 1


def test_samples_outputs_and_pieces_follow_their_rhythms():
    stepper = OscillatorStepper(Oscillators())
    witness = Witness(every=6)
    history = run(stepper, steps=20, monitors=Energy(), every=8, output=witness)
    assert history.step.tolist() == [0, 8, 16, 20]
    assert witness.steps == [0, 6, 12, 18, 20]
    assert stepper.pieces == [6, 2, 4, 4, 2, 2]
    assert (witness.opened, witness.closed) == (1, 1)
    assert history.stats == {"steps": 20}


def test_a_second_run_counts_from_its_own_start():
    stepper = OscillatorStepper(Oscillators())
    run(stepper, steps=5)
    assert run(stepper, steps=20, every=10, monitors=Energy()).step.tolist() == [5, 15, 25]


def test_without_monitors_the_pieces_are_large():
    stepper = OscillatorStepper(Oscillators())
    assert run(stepper, steps=90).step.tolist() == [0, 90]
    assert stepper.pieces == [90]


def test_samples_equal_the_exact_flow():
    system = Oscillators(cells=3)
    stepper = OscillatorStepper(system, dt=0.05)
    history = run(
        stepper, until=2.0, monitors=[("sums", (system.q * dx, system.p * dx)), system.q**2 * dx]
    )
    # q(0) = 1.5, 2.5, 3.5 in cells of unit length, p(0) = 0
    exact = 7.5 * np.stack([np.cos(history.t), -np.sin(history.t)], axis=1)
    # 40 rotations, each rounded: 40 * 7.5 * eps = 7e-14
    assert np.allclose(history["sums"], exact, rtol=0, atol=1e-13)
    squares = (1.5**2 + 2.5**2 + 3.5**2) * np.cos(history.t) ** 2
    assert np.allclose(history["functional_1"], squares, rtol=0, atol=5e-13)


@pytest.mark.parametrize(("until", "steps"), [(1.0, 10), (1.0 + 1e-9, 10), (0.95, 10), (1.01, 11)])
def test_until_ends_with_the_first_step_there_or_beyond(until, steps):
    stepper = OscillatorStepper(Oscillators(), dt=0.1)
    run(stepper, until)
    assert stepper.steps == steps


def test_backward_in_time():
    stepper = OscillatorStepper(Oscillators(), dt=-0.1)
    run(stepper, until=-1.0)
    assert stepper.steps == 10


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "until"),
        ({"until": 1.0, "steps": 1}, "until"),
        ({"until": 0.0}, "until"),
        ({"until": float("nan")}, "until"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"steps": 1, "every": 0}, "every"),
        ({"steps": 1, "progress": 3}, "progress"),
        ({"steps": 1, "monitors": ["energy"]}, "monitors"),
        ({"steps": 1, "monitors": Momentum()}, "momenta"),
        ({"steps": 1, "monitors": Energy}, "monitors"),
        ({"steps": 1, "output": "beam.pvd"}, "output"),
        ({"steps": 1, "output": Witness(every=0)}, "every"),
        ({"steps": 1, "csv": "/dev/null/x.csv"}, "csv"),
        ({"steps": 1, "checkpoint": "/dev/null/x.h5"}, "path"),
    ],
)
def test_bad_arguments_are_named_before_the_first_step(arguments, named):
    stepper = OscillatorStepper(Oscillators())
    with pytest.raises((ValueError, TypeError), match=named):
        run(stepper, **arguments)
    assert stepper.pieces == []


def test_two_outputs_of_one_file_are_refused(tmp_path):
    path, twice = tmp_path / "a", Witness()
    (tmp_path / "link").symlink_to(path)
    for arguments, named in (
        ({"csv": path, "checkpoint": path}, f"path = '{path}'"),
        ({"csv": tmp_path / "link", "checkpoint": path}, "link"),
        ({"output": [twice, twice]}, "Witness"),
    ):
        stepper = OscillatorStepper(Oscillators())
        with pytest.raises(ValueError, match=f"{named}.* is given to two outputs of this run"):
            run(stepper, steps=1, **arguments)
        assert stepper.pieces == []
    assert not path.exists()
    run(OscillatorStepper(Oscillators()), steps=1, output=[Witness(), Witness()])


def test_outputs_opened_before_a_bad_one_are_closed():
    witness = Witness()
    with pytest.raises(ValueError, match="csv"):
        run(OscillatorStepper(Oscillators()), steps=1, output=witness, csv="/dev/null/x.csv")
    assert (witness.opened, witness.closed) == (1, 1)


def test_a_failed_step_keeps_what_was_recorded(tmp_path):
    stepper = OscillatorStepper(Oscillators(), fail_at=7)
    witness = Witness()
    with pytest.raises(StepFailed, match="made to fail") as caught:
        run(
            stepper,
            steps=20,
            monitors=Energy(),
            every=3,
            output=witness,
            csv=tmp_path / "new folder" / "a.csv",
            checkpoint=tmp_path / "a.h5",
        )
    history = caught.value.history
    assert history.step.tolist() == [0, 3, 6]
    assert history.stats == {"steps": 7}
    assert witness.closed == 1
    again = History.from_csv(tmp_path / "new folder" / "a.csv")
    assert np.array_equal(again["energy"], history["energy"])
    assert (tmp_path / "a.h5").exists()
    assert not (tmp_path / "a.h5.part").exists()


def test_a_monitor_that_is_not_finite_stops_the_run_and_keeps_the_checkpoint(tmp_path):
    stepper = OscillatorStepper(Oscillators(), poison_at=9)
    with pytest.raises(StepFailed, match=r"'kinetic_energy'|'potential_energy'") as caught:
        run(stepper, steps=20, monitors=Energy(), checkpoint=Checkpoint(tmp_path / "a.h5", 4))
    assert caught.value.history.step[-1] == 9
    assert caught.value.step == 9
    # The checkpoint of step 8 was not overwritten by the spoilt state.
    fresh = OscillatorStepper(Oscillators())
    resume(fresh, tmp_path / "a.h5")
    assert fresh.steps == 8
    assert "not finite" in caught.value.__notes__[0]


def test_interruption_anywhere_is_orderly(tmp_path):
    stepper = OscillatorStepper(Oscillators())
    witness = Witness(every=5, raises_at=10)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(stepper, steps=20, output=witness, checkpoint=tmp_path / "a.h5")
    assert witness.closed == 1
    assert caught.value.history.step.tolist() == [0]
    assert (tmp_path / "a.h5").exists()


class Interrupted(OscillatorStepper):
    """Gets Ctrl-C in the middle of step 3."""

    def step(self):
        if self.steps == 2:
            os.kill(os.getpid(), signal.SIGINT)
        super().step()


@pytest.fixture
def python_takes_ctrl_c():
    """Python's own handler, which a process that was started in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_takes_ctrl_c")
def test_ctrl_c_waits_for_the_end_of_the_piece():
    stepper = Interrupted(Oscillators())
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(stepper, steps=20, every=5, monitors=Energy())
    assert stepper.steps == 5
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt) as caught:  # also when it comes in the last piece
        run(Interrupted(Oscillators()), steps=4, every=4)
    assert caught.value.history.step.tolist() == [0, 4]


class Closing(Witness):
    """An output that does something when it is closed."""

    def __init__(self, action):
        super().__init__()
        self.close = action


def full():
    raise OSError("the disk is full")


@pytest.mark.usefixtures("python_takes_ctrl_c")
@pytest.mark.parametrize(
    ("action", "error"),
    [(full, OSError), (lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt)],
)
def test_what_ends_a_run_while_files_are_closed_has_its_history(action, error):
    with pytest.raises(error) as caught:
        run(OscillatorStepper(Oscillators()), steps=2, monitors=Energy(), output=Closing(action))
    assert caught.value.history.step.tolist() == [0, 1, 2]


def test_one_name_for_two_monitors_is_refused():
    system = Oscillators()
    with pytest.raises(ValueError, match="'energy' twice"):
        run(
            OscillatorStepper(system),
            steps=1,
            monitors=[Energy(), Functional("energy", system.q * dx)],
        )


def test_a_stepper_that_lies_about_its_steps_is_found_out():
    class Liar(RodStepper):
        def advance(self, n=1):
            self.steps += 1

    with pytest.raises(RuntimeError, match="expected 4"):
        run(Liar(Rod()), steps=4, every=4)


def test_progress_bar_reaches_the_end(capsys):
    run(OscillatorStepper(Oscillators()), steps=7, progress="always")
    assert "7/7" in capsys.readouterr().err
    run(OscillatorStepper(Oscillators()), steps=7)
    assert capsys.readouterr().err == ""
