"""Progress bar of a run, and number of steps between its updates."""

import sys
import time
from collections.abc import Callable

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
    """Takes as many steps at once as are about a second of work, on all ranks alike, or, if it is not
    bounded, all that are wanted.
    """

    # Compiled steppers fuse steps; the bound keeps the bar moving and Ctrl-C heard.
    def __init__(self, comm, *, bounded: bool) -> None:
        self.comm = comm
        self.limit = 100 if bounded else None

    def run(self, most: int, advance: Callable[[int], None]) -> int:
        """Take at most ``most`` steps by ``advance``; returns their number."""
        if self.limit is None:
            advance(most)
            return most
        steps, start = min(most, self.limit), time.perf_counter()
        advance(steps)
        elapsed = max(time.perf_counter() - start, 1e-9)
        # Grow by no more than a factor of ten: a short piece is timed badly.
        self.limit = max(1, int(min(steps / elapsed, 10 * self.limit)))
        if self.comm.size > 1:
            self.limit = self.comm.bcast(self.limit)
        return steps
