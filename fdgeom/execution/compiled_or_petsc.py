"""Compiled code or PETSc: what the user's options select, code that cannot be compiled, solves that fail."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from mpi4py import MPI
from petsc4py import PETSc

from fdgeom.errors import CannotCompile, NoCompiler, SolveFailed
from fdgeom.execution.options import COMPILED, TOLERANCES
from fdgeom.validation import instance

# Options that only show what PETSc SNES does.
_SHOWS = re.compile(r".*(view|reason|monitor)")
# Of these options users have been warned.
_warned: set[str] = set()


def wants_compiled(user: dict, prefix: str, argument: bool | None) -> bool:
    """Whether steps may run in compiled code; removes ``fdgeom_compiled`` from ``user``."""
    if argument is not None:
        instance("compiled", argument, bool, "True, False or None")
    database = PETSc.Options()
    choice = argument
    if COMPILED in user:
        choice = str(user.pop(COMPILED)).lower() not in ("0", "false", "no", "off")
    if prefix and database.hasName(prefix + COMPILED):
        choice = database.getBool(prefix + COMPILED)
    return not asking_for_snes(user, prefix) if choice is None else choice


def asking_for_snes(user: Mapping, prefix: str) -> list[str]:
    """The options of a stepper that compiled steps do not support."""
    keys = list(user)
    if prefix:
        keys += [k for k in PETSc.Options().getAll() if k.startswith(prefix)]
    return [k for k in keys if not k.endswith((*TOLERANCES, COMPILED))]


def only_shows(user: Mapping, prefix: str, argument: bool | None) -> bool:
    """Whether options that show iterations are the only reason why steps are not compiled."""
    chosen = COMPILED in user or (prefix and PETSc.Options().hasName(prefix + COMPILED))
    asked = asking_for_snes(user, prefix)
    return argument is None and not chosen and bool(asked) and all(map(_SHOWS.match, asked))


def warn_of_shown(why: str, comm) -> None:
    """Warn once, on rank 0, that an option that shows iterations costs time."""
    if comm.rank == 0 and why not in _warned:
        _warned.add(why)
        warnings.warn(
            f"{why}, which takes longer than compiled code; this warning appears once", stacklevel=4
        )


def who_asked_for_snes(user: Mapping, prefix: str) -> str:
    """A sentence that names the option or argument that made :func:`wants_compiled` False."""
    options = asking_for_snes(user, prefix)
    name = f"the option {options[0]!r}" if options else "compiled=False"
    return f"{name} asks for PETSc SNES"


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
