"""PETSc's messages: its errors in one sentence, how solves ended, and its profile ``-log_view``."""

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import ContextDecorator, contextmanager
from functools import cached_property

import petsctools
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


_REASONS = {
    value: name
    for name, value in vars(PETSc.SNES.ConvergedReason).items()
    if isinstance(value, int) and "VERGED_" in name
}


def divergence(reason: int) -> str | int:
    """PETSc's name of a divergence reason of a SNES."""
    return _REASONS.get(reason, reason)


_REASON = "snes_converged_reason"


def set_from_options(snes: PETSc.SNES, options: Mapping, prefix: str, default: str) -> bool:
    """Set up a SNES; True if ``-snes_converged_reason`` is left to :func:`show_reason`."""
    # PETSc shows every attempt, also one that fails and is repeated in a healthy run.
    with refusing(options):
        petsctools.attach_options(
            snes, options, options_prefix=prefix or None, default_prefix=default
        )
        manager = petsctools.get_options(snes)
        given = manager.parameters.get(_REASON, False)
        shows = given is None or given in ("", True, "True", "true", "1")
        if shows:
            manager.parameters[_REASON] = ":/dev/null"
        petsctools.set_from_options(snes)
    if shows:
        manager.parameters[_REASON] = given
        with manager.inserted_options():
            pass  # puts the user's own option back where the command line has it
    return shows


def show_reason(snes: PETSc.SNES) -> None:
    """Print how a solve ended, as PETSc does."""
    reason = snes.getConvergedReason()
    ended = "converged" if reason > 0 else "did not converge"
    PETSc.Viewer.STDOUT(snes.comm).printfASCII(
        f"  Nonlinear {snes.getOptionsPrefix()} solve {ended} due to {divergence(reason)} "
        f"iterations {snes.getIterationNumber()}\n"
    )


class Logged(ContextDecorator):
    """Context, or decorator, of work that ``-log_view`` shows as a stage and as an event."""

    def __init__(self, work: str) -> None:
        self._name = f"fdgeom: {work}"

    @cached_property
    def _log(self) -> tuple[PETSc.Log.Stage, PETSc.Log.Event]:
        return PETSc.Log.Stage(self._name), PETSc.Log.Event(self._name)

    def __enter__(self) -> None:
        stage, event = self._log
        stage.push()
        event.begin()

    def __exit__(self, *error) -> None:
        stage, event = self._log
        event.end()
        stage.pop()


#: What ``-log_view`` shows of fdgeom.
COMPILED_STEPS, SNES_STEPS = Logged("compiled steps"), Logged("SNES steps")
STATICS, REVERSE_SWEEP, OUTPUT = Logged("statics"), Logged("reverse sweep"), Logged("output")
