"""A wrong call of a stepper says which stepper it was, and what that takes."""

from __future__ import annotations

import difflib
import inspect
from abc import ABCMeta
from functools import cache

from pyadjoint.tape import stop_annotating


class StepperType(ABCMeta):
    """The type of stepper classes: checks the names of arguments before any work is done.

    Most steppers hand options on to the class that they derive from; Python's own message would
    name that one, which the caller has never heard of. What a stepper assembles and solves when it
    is made is not for pyadjoint's tape.
    """

    def __call__(cls, *args, **options):
        if not inspect.isabstract(cls):
            _check(cls, args, options)
        with stop_annotating():
            return super().__call__(*args, **options)


def _check(cls: type, args: tuple, options: dict) -> None:
    """Raise ``TypeError`` if the arguments are too few, too many, or have other names."""
    positional, keywords = takes(cls)
    made = f"it is made by {cls.__name__}({', '.join((*positional, *(f'{k}=' for k in keywords)))})"
    for name in options:
        if name not in positional + keywords:
            near = difflib.get_close_matches(name, positional + keywords, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{cls.__name__} has no argument {name!r}{hint} ({made})")
    if len(args) > len(positional):
        raise TypeError(f"{cls.__name__} takes the options by their names: {made}")
    for name in ("system", "dt"):
        if name not in positional[: len(args)] and name not in options:
            raise TypeError(f"{cls.__name__}: {name} is missing; {made}")


@cache
def takes(cls: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the arguments that a stepper takes by position, and by name only."""
    positional: list[str] = []
    keywords: list[str] = []
    method = getattr(cls, "_stepper_class", None)
    for base in (*cls.__mro__, *(method.__mro__ if method else ())):
        if "__init__" not in vars(base) or base is object:
            continue
        first = not positional
        kinds = {p.kind for p in _parameters(base)}
        for p in _parameters(base):
            if p.kind is p.POSITIONAL_OR_KEYWORD and first:
                positional.append(p.name)
            elif p.kind is p.KEYWORD_ONLY and p.name not in keywords:
                keywords.append(p.name)
        if inspect.Parameter.VAR_KEYWORD not in kinds and not method:
            break
    return tuple(positional), tuple(keywords)


def _parameters(cls: type) -> list[inspect.Parameter]:
    return list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
