"""PETSc's errors in one sentence, without its stack of C functions."""

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from petsc4py import PETSc

# The values that PETSc accepts for options with these endings.
_TYPES = {
    "snes_type": PETSc.SNES.Type,
    "ksp_type": PETSc.KSP.Type,
    "pc_type": PETSc.PC.Type,
    "mat_type": PETSc.Mat.Type,
    "snes_linesearch_type": PETSc.SNESLineSearch.Type,
}


def reason(error: Exception) -> str:
    """The reason of a PETSc error: the last line of its text."""
    line = (str(error).strip().splitlines() or [""])[-1]
    return re.sub(r"^\[\d+\]\s*", "", line).rstrip(".")


@contextmanager
def refusing(options: Mapping) -> Iterator[None]:
    """Context that turns PETSc's error about one of these options into a ``ValueError`` that names it."""
    try:
        yield
    except (PETSc.Error, ValueError) as error:
        why = reason(error)
        words = set(re.findall(r"[^\s',]+", why))
        named = [(k, v) for k, v in options.items() if str(v) in words]
        if not named:
            raise ValueError(f"solver_parameters: PETSc refuses them: {why}") from error
        key, value = named[-1]
        raise ValueError(
            f"solver_parameters: {key!r} cannot be {value!r}{_hint(key, value)} (PETSc: {why})"
        ) from error


def _hint(key: str, value) -> str:
    kind = next((types for end, types in _TYPES.items() if key.endswith(end)), None)
    names = [v for k, v in vars(kind).items() if k.isupper()] if kind else []
    near = difflib.get_close_matches(str(value), names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def divergence(reason: int) -> str | int:
    """PETSc's name of a divergence reason of a SNES."""
    return _DIVERGENCES.get(reason, reason)


_DIVERGENCES = {
    value: name
    for name, value in vars(PETSc.SNES.ConvergedReason).items()
    if isinstance(value, int) and value < 0
}
