"""Counts of the solves that compiled code left to PETSc SNES, by reason."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mpi4py import MPI

from fdgeom.errors import SolveFailed


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
