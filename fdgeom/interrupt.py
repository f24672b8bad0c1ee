"""Handling of Ctrl-C and SIGTERM, which wait for the end of a step."""

import os
import signal
import threading

# Not from `signal`, whose enumerations would take as long as a step of a small system.
from _signal import getsignal
from _signal import signal as set_handler

from mpi4py import MPI

INT, TERM = int(signal.SIGINT), int(signal.SIGTERM)
#: Only these handlers are replaced; one that the user has set stays.
_USUAL = {INT: signal.default_int_handler, TERM: int(signal.SIG_DFL)}

_outermost: "delayed | None" = None


class delayed:
    """Context in which SIGINT, or SIGTERM too, waits for `check`, which raises on all ranks."""

    # SIGINT raises KeyboardInterrupt; a second one does so at once, wherever the program is, except
    # inside of `shielded`. SIGTERM raises SystemExit(143), the usual status. A signal that is still
    # pending raises at the end, unless another exception ends the context. Contexts may be nested;
    # only the outermost handles signals, only in the main thread, and only in place of Python's own
    # handlers.
    def __init__(self, comm, *signals: int) -> None:
        self.comm, self._signals = comm, signals
        #: The signal that asks to stop, 0 if none does.
        self._asked = 0
        self._shields = 0
        self._raised = False
        #: Who takes the signals: itself if it is the outermost, nobody in other threads.
        self._taker: delayed | None = None
        self._replaced: list[int] = []

    def __enter__(self) -> "delayed":
        global _outermost
        if threading.current_thread() is threading.main_thread():
            if _outermost is None:
                _outermost = self
                for number in self._signals:
                    if getsignal(number) == _USUAL[number]:
                        set_handler(number, self._note)
                        self._replaced.append(number)
            self._taker = _outermost
        return self

    def __exit__(self, kind, *exc_info: object) -> None:
        global _outermost
        if self._taker is self:
            for number in self._replaced:
                set_handler(number, _USUAL[number])
            _outermost = self._taker = None  # no cycle is left for the collector
            if kind is None:
                self._raise_if(self._asked)

    def _note(self, number: int, frame) -> None:
        again, self._asked = self._asked and number == INT, max(self._asked, number)
        if again and not self._shields and not self._raised:
            # Once: what clears up after it is not to be cut too.
            self._raised = True
            raise KeyboardInterrupt
        if not again and number == INT and self.comm.rank == 0:
            # A handler must not print: it may have interrupted a print.
            os.write(2, b"\nstopping after this step; again to stop at once\n")

    def check(self) -> None:
        """Raise KeyboardInterrupt or SystemExit on all ranks if any rank was asked to stop."""
        self._raise_if(0 if self._taker is None else self._taker._asked)

    def _raise_if(self, asked: int) -> None:
        if self.comm.size > 1:
            asked = self.comm.allreduce(asked, op=MPI.MAX)
        if asked == TERM:
            raise SystemExit(128 + TERM)
        if asked:
            raise KeyboardInterrupt


class shielded:
    """Context that a signal of `delayed` does not interrupt."""

    def __enter__(self) -> None:
        self._taker = _outermost
        if self._taker is not None:
            self._taker._shields += 1

    def __exit__(self, *exc_info: object) -> None:
        if self._taker is not None:
            self._taker._shields -= 1
