"""pyadjoint's tape: nothing of fdgeom is on it, and nothing goes past it unseen."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from pyadjoint.tape import annotate_tape, stop_annotating


def refuse_annotation(what: str) -> None:
    """Raise ``NotImplementedError`` while pyadjoint records.

    Parameters
    ----------
    what : str
        What would change a Function unseen.
    """
    if annotate_tape():
        raise NotImplementedError(
            f"{what} is not recorded by pyadjoint: it would leave no trace on the tape, and gradients "
            "would be wrong without a word. Call it inside 'with firedrake.adjoint.stop_annotating():' "
            "(its result then counts as given data), and take the gradient of what it does by finite "
            "differences of whole runs"
        )


def not_taped(method: Callable) -> Callable:
    """A method that changes Functions, refused while pyadjoint records.

    Everything of fdgeom that changes a Function is, in all its ways of doing so; under
    ``stop_annotating()`` all works.
    """

    @wraps(method)
    def guarded(*args, **kwargs):
        if annotate_tape():
            refuse_annotation(_name(method, args))
        return method(*args, **kwargs)

    return guarded


def off_the_tape(method: Callable) -> Callable:
    """A method that changes nothing of the user's, whatever it assembles and solves: unrecorded."""

    @wraps(method)
    def unrecorded(*args, **kwargs):
        with stop_annotating():
            return method(*args, **kwargs)

    return unrecorded


def _name(method: Callable, args: tuple) -> str:
    if "." not in method.__qualname__:
        return f"fdgeom.{method.__name__}()"
    owner = type(args[0]).__name__
    return f"{owner}()" if method.__name__ == "__init__" else f"{owner}.{method.__name__}()"
