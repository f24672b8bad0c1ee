"""The time loop: steps, samples, output, restart files, progress, and what happens when a run ends early."""

import math
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import numpy as np
from firedrake import COMM_SELF, ProgressBar
from pyadjoint import annotate_tape, stop_annotating

from fdgeom.errors import NotFinite
from fdgeom.execution.options import OUTPUT
from fdgeom.interrupt import INT, TERM, delayed
from fdgeom.messages import format_value
from fdgeom.validation import present_number, whole

from .checkpoint import Checkpoint, check_stepper, prepare
from .history import CSVFile, History
from .monitors import bound, joint_sample
from .units import check_units


def run(
    stepper,
    until: float | None = None,
    *,
    steps: int | None = None,
    monitors=(),
    every: int = 1,
    keep: int = 1,
    output=(),
    csv: str | os.PathLike | CSVFile | None = None,
    checkpoint: str | os.PathLike | Checkpoint | None = None,
    progress: bool | str = True,
    units: str | Mapping[str, str] | None = None,
) -> History:
    """Advance `stepper` in time while sampling monitors and writing output.

    Monitors are sampled and outputs written at the start, after every `every` steps counted from
    the start of this run, and at the end. Between these the stepper advances by one call (of
    about a second at most).

    Parameters
    ----------
    stepper : stepper
        Has `system`, `t`, `dt`, `steps`, `advance(n)` and `solver_stats()`, and perhaps `prepare()`.
    until : float, optional
        Time to reach, later than `stepper.t`. If it is not a whole number of steps away (to a
        millionth of a step), the run ends with the first step beyond it.
    steps : int, optional
        Number of steps to take. Exactly one of `until` and `steps` is given.
    monitors : monitor, 0-form, (name, form) pair, or a sequence of these
        Quantities to sample, see `fdgeom.recording.monitors`.
    every : int
        Number of steps between two samples (without monitors only the first and last times are
        recorded).
    keep : int
        Every `keep`-th sample and the last one are stored in the history; 0: none. All samples are
        checked for NaN and infinity and written to the table `csv`.
    output : output or sequence of outputs
        Objects with `every`, `open(stepper)`, `write(stepper)`, `close()`: `VTKOutput`,
        `Snapshots`, or your own.
    csv : path-like or CSVFile, optional
        Table of the samples, each row on disk as soon as it is taken.
    checkpoint : path-like or Checkpoint, optional
        Restart file, written every `checkpoint.every` steps, at the end, and when the run stops
        early, if the state is finite.
    progress : bool or "always"
        True: a bar on a terminal; "always": also elsewhere; False: none.
    units : "SI" or dict of str to str, optional
        Your units, such as ``{"time": "ms", "energy": "mJ"}``; the history prints them and its
        plots show them. They convert nothing.

    Returns
    -------
    History
        The samples.

    Raises
    ------
    ValueError, TypeError
        At the start, naming the argument.
    StepFailed
        When a step fails, or when a monitor is NaN or infinite.

    Notes
    -----
    Before the first sample, fields that depend on values set by hand are computed, as before a step,
    by ``stepper.prepare()``.

    While pyadjoint records, the steps between two samples or outputs are one block on its tape; samples
    and outputs are not recorded there. The first sample then has those fields as they are.

    Whatever exception ends the run, files are closed, the last checkpoint is written, and the
    samples up to then are attached to the exception as `exc.history`. Ctrl-C stops between two
    steps, and so does SIGTERM, which batch systems send (by SystemExit, status 143). A second Ctrl-C
    stops at once; the state is then the one before the interrupted step.
    """
    check_stepper(stepper)
    until = None if until is None else present_number("until", until)
    total = _number_of_steps(stepper, until, steps)
    every = whole("every", every, least=1)
    keep = whole("keep", keep, least=0)
    if not isinstance(progress, bool | str) or progress not in (True, False, "always"):
        raise ValueError(f"progress must be True, False or 'always', got {format_value(progress)}")
    outputs = _outputs(output)
    if csv is not None and not isinstance(csv, CSVFile):
        csv = CSVFile(csv)
    if checkpoint is not None:
        checkpoint = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        # Opened first: the others empty the files of their names.
        outputs.insert(0, checkpoint)
    _check_files([*outputs, *([csv] if csv is not None else [])])

    comm = stepper.system.mesh.comm
    prepare(stepper)
    with stop_annotating():
        monitors = bound(monitors, stepper.system)
        sample = joint_sample(monitors)
        check_units(units, sample)

    first = stepper.steps
    # Nothing to sample: leave the stepper its large pieces.
    sampled = every if sample else sys.maxsize
    written = [item.every or sys.maxsize for item in outputs]
    stepwise = [monitor for monitor in monitors if hasattr(monitor, "step")]

    history = History()
    history.conserved, history.units = tuple(getattr(stepper, "conserves", ())), units
    # Compiled steppers fuse steps; the limit keeps the bar moving and Ctrl-C heard. On pyadjoint's tape
    # pieces are blocks, which do not depend on how fast they go.
    limit = sys.maxsize if annotate_tape() else 100
    files = _opened(stepper, outputs, csv, sample, stepwise)
    with _attached(history), delayed(comm, INT, TERM) as signals, files:
        start = time.perf_counter()
        shown = comm.rank == 0 and (progress == "always" or (progress and sys.stderr.isatty()))
        bar = _Bar("steps", max=total, comm=COMM_SELF, file=sys.stderr if shown else None)
        try:
            while True:
                step = stepper.steps
                done = step - first
                total = bar.max = _total(stepper, until, done, total)
                with stop_annotating(), OUTPUT:
                    if _is_due(done, total, sampled):
                        keeping = keep > 0 and _is_due(done, total, every * keep)
                        _sample(monitors, stepper, history if keeping else None, csv)
                    for interval, item in zip(written, outputs, strict=True):
                        # The file that the run was resumed from holds its first state already.
                        if _is_due(done, total, interval) and (item is not checkpoint or done):
                            item.write(stepper)
                bar.goto(done)
                signals.check()
                if done < total:  # an output may have set Δt
                    total = bar.max = _total(stepper, until, done, total)
                if done == total:
                    break
                most = min(total - done, *(n - done % n for n in (sampled, *written)))
                piece, begin = 1 if stepwise else min(most, limit), time.perf_counter()
                stepper.advance(piece)
                if limit < sys.maxsize:
                    limit = _steps_in_a_second(comm, piece, time.perf_counter() - begin, limit)
                with stop_annotating():
                    for monitor in stepwise:
                        monitor.step()
                if stepper.steps != step + piece:
                    raise RuntimeError(
                        f"{type(stepper).__name__}.advance({piece}) led from step {step} to "
                        f"{stepper.steps}; expected {step + piece}"
                    )
        except BaseException as exc:
            if checkpoint is not None and stepper.steps > first:
                try:
                    with stop_annotating():
                        checkpoint.write(stepper, as_it_is=True)
                except Exception as second:
                    # The first exception is the one to report; the previous checkpoint is still there.
                    exc.add_note(f"no last checkpoint was written: {second}")
            raise
        finally:
            bar.finish()
            history.wall_time = time.perf_counter() - start
            history.stats = dict(stepper.solver_stats())
    return history


def _is_due(done: int, total: int, every: int) -> bool:
    """Whether a sample or an output is due: at the start, at each `every`-th step and at the end."""
    return done % every == 0 or done == total


def _number_of_steps(stepper, until: float | None, steps: int | None) -> int:
    if (until is None) == (steps is None):
        raise ValueError("give exactly one of until (a time) and steps (a number)")
    if until is None:
        return whole("steps", steps, least=1)
    if not math.isfinite((until - stepper.t) / stepper.dt):
        raise ValueError(f"until must be a finite time, got {until}")
    total = _steps_until(stepper, until)
    if total < 1:
        raise ValueError(
            f"until = {until} must lie ahead of the stepper's time {stepper.t} (dt = {stepper.dt})"
        )
    return total


def _total(stepper, until: float | None, done: int, total: int) -> int:
    """The number of steps of a run; steps, samples and outputs may have changed Δt."""
    return total if until is None else done + max(_steps_until(stepper, until), 0)


def _steps_until(stepper, until: float) -> int:
    """The number of steps to a time by the present Δt."""
    t, dt = stepper.t, stepper.dt
    # A millionth of a step is none, nor is the round-off of the times.
    round_off = 4 * sys.float_info.epsilon * max(abs(until), abs(t)) / abs(dt)
    return math.ceil((until - t) / dt - max(1e-6, round_off))


def _outputs(output) -> list:
    outputs = list(output) if isinstance(output, list | tuple) else [output]
    for item in outputs:
        missing = [n for n in ("every", "open", "write", "close") if not hasattr(item, n)]
        if missing or isinstance(item, type):
            raise TypeError(
                f"output must be an output object or a sequence of them, such as VTKOutput(path); "
                f"got {format_value(item)}"
            )
        whole(f"every of the output {type(item).__name__}", item.every, least=1)
    return outputs


def _check_files(outputs: list) -> None:
    """ValueError if two outputs would write to one file."""
    taken: set[int | str] = set()
    for item in outputs:
        keys: set[int | str] = {id(item)}
        name = type(item).__name__
        path = getattr(item, "path", None)
        if isinstance(path, str | os.PathLike):
            keys, name = keys | {os.path.realpath(path)}, f"path = '{path}'"
        if taken & keys:
            raise ValueError(f"{name} is given to two outputs of this run; give each its own")
        taken |= keys


@contextmanager
def _attached(history: History) -> Iterator[None]:
    """Context whose exceptions have the history, also those of closing files and of late signals."""
    try:
        yield
    except BaseException as exc:
        exc.history = history  # type: ignore[attr-defined]
        raise


@contextmanager
def _opened(
    stepper, outputs: list, csv: CSVFile | None, sample: dict, stepwise: list
) -> Iterator[None]:
    """Context with open files; an error of closing one is a note to an error that comes first."""
    problems: list[Exception] = []

    def close(item) -> None:
        try:
            item.close()
        except Exception as error:
            problems.append(error)

    try:
        with ExitStack() as files:
            with stop_annotating():
                for item in outputs:
                    item.open(stepper)
                    files.callback(close, item)
                if csv is not None:
                    goes_on = csv.open(stepper.system.mesh.comm, sample, stepper.steps)
                    files.callback(close, csv)
                    if goes_on and stepwise:
                        warnings.warn(
                            f"csv = '{csv.path}' has rows of an earlier run, and "
                            f"{', '.join(type(monitor).__name__ for monitor in stepwise)} begins anew: "
                            "what it sums over steps counts from the start of this run",
                            stacklevel=4,
                        )
            yield
    except BaseException as exc:
        for problem in problems:
            exc.add_note(f"an output could not be closed: {problem}")
        raise
    if problems:
        raise problems[0]


def _sample(monitors: list, stepper, history: History | None, csv: CSVFile | None) -> None:
    sample = joint_sample(monitors)
    if history is not None:
        history.append(stepper.t, stepper.steps, sample)
    if csv is not None:
        csv.write(stepper.t, stepper.steps, sample)
    # Recorded first, so that the history shows what happened.
    for name, value in sample.items():
        if not np.all(np.isfinite(value)):
            wrong = f"the monitor '{name}' is not finite ({value})"
            raise NotFinite(wrong, t=stepper.t, step=stepper.steps)


class _Bar(ProgressBar):
    """Firedrake's progress bar, drawn at most ten times a second, and never without a file."""

    _drawn = -math.inf

    def goto(self, index: int) -> None:
        """Move the bar to a number of steps."""
        now = time.perf_counter()
        if self.file and (now - self._drawn > 0.1 or index == self.max):
            super().goto(index)
            self._drawn = now


def _steps_in_a_second(comm, steps: int, elapsed: float, limit: int) -> int:
    """The number of steps to take at once, the same on all ranks, from the time of the last ones."""
    # Grow by no more than a factor of ten: a short piece is timed badly.
    found = max(1, int(min(steps / max(elapsed, 1e-9), 10 * limit)))
    return comm.bcast(found) if comm.size > 1 else found
