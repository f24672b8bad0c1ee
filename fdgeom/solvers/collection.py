"""Python's collector of cycles, out of the way while forms are analysed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
