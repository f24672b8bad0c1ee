"""Progress bar of a run, and number of steps between its updates."""

import sys
import time

from firedrake import ProgressBar


class Progress:
    """Firedrake's progress bar on rank 0, drawn at most ten times a second."""

    def __init__(self, total: int, wanted: bool | str, comm) -> None:
        self.total = total
        self._bar = None
        self._drawn = -float("inf")
        if comm.rank == 0 and (wanted == "always" or (wanted and sys.stderr.isatty())):
            self._bar = ProgressBar("steps", max=total, comm=comm, file=sys.stderr)

    def show(self, done: int) -> None:
        """Move the bar to `done` steps."""
        now = time.perf_counter()
        if self._bar is not None and (now - self._drawn > 0.1 or done == self.total):
            self._bar.goto(done)
            self._drawn = now

    def close(self) -> None:
        """End the line of the bar."""
        if self._bar is not None:
            self._bar.finish()
            self._bar = None


class Pace:
    """Number of steps that a stepper takes at once, on all ranks alike: about a second of work, measured by
    the context manager, or, if it is not bounded, all that are wanted.
    """

    # Compiled steppers fuse steps; the bound keeps the bar moving and Ctrl-C heard.

    def __init__(self, comm, seconds: float = 1.0, *, bounded: bool = True) -> None:
        self.comm = comm
        self.seconds = seconds
        self.limit = 100 if bounded else None

    def piece(self, most: int) -> int:
        """Number of steps to take at once, at most `most`."""
        self._steps = most if self.limit is None else min(most, self.limit)
        return self._steps

    def __enter__(self) -> "Pace":
        self._start = time.perf_counter()
        return self

    def __exit__(self, exc_type: type | None, *exc_info: object) -> None:
        if exc_type is not None or self.limit is None:
            return
        elapsed = max(time.perf_counter() - self._start, 1e-9)
        # Grow by no more than a factor of ten: a short piece is timed badly.
        limit = int(min(self._steps * self.seconds / elapsed, 10 * self.limit))
        self.limit = max(1, limit)
        if self.comm.size > 1:
            self.limit = self.comm.bcast(self.limit)
