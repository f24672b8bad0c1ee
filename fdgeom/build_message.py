"""A message for long compilations."""

import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from mpi4py import MPI

from fdgeom.compat import frame_of

#: Seconds of compilation without a message.
PATIENCE = 3.0
_LOOK = 0.25
# Without cached kernels the time is spent in TSFC with loopy, and in the compiler.
_WORK = ("/tsfc/", "/loopy/", "/gem/")
_COMPILER = ("/pyop2/compilation.py", "make_so")

# Objects that have had their message in this process, and whether a thread watches for the next.
_said: set[str] = set()
_watching = threading.Lock()

#: Messages have the level INFO: ``logging.getLogger("fdgeom").setLevel("WARNING")`` silences them.
logger = logging.getLogger("fdgeom")


@contextmanager
def compiling(what: str) -> Iterator[None]:
    """Print one line on rank 0 if the body spends more than 3 s in a compiler on the forms of ``what``."""
    # Only time inside a compiler counts: kernels found on disk cause no message.
    quiet = MPI.COMM_WORLD.rank or logger.level > logging.INFO or what in _said
    if quiet or not _watching.acquire(blocking=False):
        yield
        return
    over = threading.Event()
    watch = threading.Thread(
        target=_watch,
        args=(what, threading.get_ident(), over),
        name="fdgeom: compiling",
        daemon=True,
    )
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()
        _watching.release()


def _watch(what: str, thread: int, over: threading.Event) -> None:
    """Measure how long another thread has been compiling, until that is over, or print the line."""
    spent = 0.0
    while spent <= PATIENCE:
        if over.wait(_LOOK):
            return
        spent += _LOOK if _compiles(thread) else 0.0
    _said.add(what)
    _say(
        f"fdgeom: compiling the forms of {what}, which takes a while; later runs find them on disk"
    )


def _compiles(thread: int) -> bool:
    """Whether a thread is in TSFC or in the compiler now."""
    for frame, _ in traceback.walk_stack(frame_of(thread)):
        file, function = frame.f_code.co_filename, frame.f_code.co_name
        if any(part in file for part in _WORK):
            return True
        if file.endswith(_COMPILER[0]) and function == _COMPILER[1]:
            return True
    return False


def _say(text: str) -> None:
    """Log a line, or print it to standard error if no logging handler is set up."""
    if logger.hasHandlers():
        # If no level is set, that of the root logger (WARNING) would hide the line.
        logger.setLevel(logger.level or logging.INFO)
        logger.info(text)
    else:
        print(text, file=sys.stderr, flush=True)
