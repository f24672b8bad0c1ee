"""The fallback when compilation fails."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fdgeom.errors import CannotCompile, NoCompiler


@contextmanager
def falling_back(
    keep: Callable[[str], None], comm, *, required: bool, what: str, instead: str
) -> Iterator[None]:
    """Context of a compilation: passes the reason of a failure to ``keep``; raises only if ``required``."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        known = isinstance(error, CannotCompile | NoCompiler)
        why = str(error) if known else f"{type(error).__name__}: {error}"
        keep(why)
        if required:
            raise ValueError(
                f"compiled: {what} cannot be compiled: {why}; leave compiled out, and {instead}"
            ) from error
        if not isinstance(error, CannotCompile) and comm.rank == 0:
            warnings.warn(f"{instead}, and are slower: {why}", stacklevel=5)
