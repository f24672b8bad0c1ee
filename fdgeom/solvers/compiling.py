"""While forms are analysed and compiled: the collector waits, and a line for those who wait."""

import gc
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mpi4py import MPI

#: Seconds of compilation without a word.
PATIENCE = 3.0
_LOOK = 0.25
# Where the time goes when nothing is found in the caches on disk: TSFC with loopy, and the compiler.
_WORK = ("/tsfc/", "/loopy/", "/gem/")
_COMPILER = ("/pyop2/compilation.py", "make_so")

# What for, in this process.
_said: set[str] = set()

#: What says it, at the level INFO: ``logging.getLogger("fdgeom").setLevel("WARNING")`` is silence.
logger = logging.getLogger("fdgeom")


@contextmanager
def compiling(what: str) -> Iterator[None]:
    """While the body runs, say on rank 0 that forms are compiled if that takes longer than 3 s.

    What is found compiled on disk is silent, however long the rest takes: a thread looks four times
    a second whether the body is in a compiler.

    Parameters
    ----------
    what : str
        What it is for.
    """
    quiet = MPI.COMM_WORLD.rank or logger.level > logging.INFO or what in _said
    if quiet or _Watch.running:
        yield
        return
    watch = _Watch(what, threading.get_ident())
    watch.start()
    try:
        yield
    finally:
        watch.stop()


class _Watch(threading.Thread):
    """Counts how long a thread has been compiling."""

    running = False

    def __init__(self, what: str, watched: int) -> None:
        super().__init__(name="fdgeom: compiling", daemon=True)
        self._what, self._watched = what, watched
        self._over = threading.Event()
        _Watch.running = True

    def run(self) -> None:
        spent = 0.0
        while not self._over.wait(_LOOK):
            spent += _LOOK if _compiles(self._watched) else 0.0
            if spent > PATIENCE:
                _said.add(self._what)
                _say(
                    f"fdgeom: compiling the forms of {self._what}, which takes a while; later runs "
                    "find them on disk"
                )
                return

    def stop(self) -> None:
        self._over.set()
        self.join()
        _Watch.running = False


def _compiles(thread: int) -> bool:
    """Whether a thread is in TSFC or in the compiler now."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        file, function = frame.f_code.co_filename, frame.f_code.co_name
        if any(part in file for part in _WORK):
            return True
        if file.endswith(_COMPILER[0]) and function == _COMPILER[1]:
            return True
        frame = frame.f_back
    return False


def _say(text: str) -> None:
    """A line by the logger, on the standard error of the moment where nobody has set it up."""
    if logger.hasHandlers():
        # Where nobody has set a level, the root's would hide it.
        logger.setLevel(logger.level or logging.INFO)
        logger.info(text)
    else:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def paused_collection() -> Iterator[None]:
    """No collection of cycles inside.

    UFL makes tens of thousands of small objects in a fraction of a second, and for each few hundred
    of them the collector would look through all of Firedrake's: a third of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
