"""PETSc in place of compiled code: where code cannot be compiled, and where a compiled solve fails."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mpi4py import MPI

from fdgeom.errors import CannotCompile, NoCompiler, SolveFailed


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


class Fallbacks(dict):
    """Maps each reason to the number of solves that PETSc SNES took over; warns at the first of them."""

    def __init__(self, comm: MPI.Comm, what: str, *, required: bool) -> None:
        super().__init__()
        self._comm, self._what, self._required = comm, what, required

    @contextmanager
    def through_petsc(self, why: str, remedy: str = "") -> Iterator[None]:
        """Context for such a solve; raises ``SolveFailed`` instead if compiled code is required."""
        if self._required:
            raise SolveFailed(
                f"the compiled solve stopped with {why}, and compiled=True excludes PETSc SNES: leave "
                "compiled out, so that SNES tries",
                remedy=remedy or None,
            )
        yield
        is_first = not self
        self[why] = self.get(why, 0) + 1
        if is_first and self._comm.rank == 0:
            warnings.warn(
                f"{self._what} went through PETSc SNES, which takes longer: the compiled solve "
                f"stopped with {why}. This warning appears once; fallbacks and "
                "solver_stats() count such solves",
                stacklevel=7,
            )
