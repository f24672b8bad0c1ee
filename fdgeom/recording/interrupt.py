"""Ctrl-C between steps: the state that is saved is never half a step."""

from __future__ import annotations

import signal
import sys
import threading

from mpi4py import MPI


class DelayedInterrupt:
    """Hold SIGINT back until `check`, which raises KeyboardInterrupt on all ranks together.

    A second Ctrl-C stops at once. Only Python's own handler is replaced, and only in the main
    thread; a handler that the user has set stays.
    """

    def __init__(self, comm) -> None:
        self.comm = comm
        self.pending = False
        self._replaced = False

    def __enter__(self) -> DelayedInterrupt:
        self._replaced = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._replaced:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, signum, frame) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True
        if self.comm.rank == 0:
            print("\nstopping after this piece; again to stop at once", file=sys.stderr)

    def check(self) -> None:
        """Raise KeyboardInterrupt on all ranks if any rank was asked to stop."""
        pending = self.pending
        if self.comm.size > 1:
            pending = self.comm.allreduce(pending, op=MPI.LOR)
        if pending:
            raise KeyboardInterrupt
