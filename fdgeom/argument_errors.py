"""Errors for wrong calls of a class, which name that class and its arguments."""

import difflib
import inspect
from abc import ABCMeta
from functools import cache

from pyadjoint.tape import stop_annotating

from fdgeom.taping import refuse_recorded


class NotCopied:
    """Base of classes with Functions of the user, which a copy would share silently."""

    def __reduce_ex__(self, protocol):
        name = type(self).__name__
        raise TypeError(
            f"{name} cannot be copied or pickled, since its copy would hold the same Functions: make "
            f"another {name} as this one was made (fdgeom.save and fdgeom.resume carry a state over)"
        )


class CheckedCall(ABCMeta):
    """The type of classes that check the names of arguments before any work is done."""

    # Classes pass arguments on to their base classes; Python's own message would name one of these,
    # which the caller does not know. Assembly and solves inside a constructor stay off pyadjoint's
    # tape.
    def __call__(cls, *args, **options):
        if not inspect.isabstract(cls):
            _check(cls, args, options)
            for name, value in (*zip(takes(cls)[0], args, strict=False), *options.items()):
                refuse_recorded(name, value)
        with stop_annotating():
            made = super().__call__(*args, **options)
        made.__dict__["_is_made"] = True
        return made


def _check(cls: type, args: tuple, options: dict) -> None:
    """Raise ``TypeError`` if the arguments are too few, too many, or have other names."""
    positional, keywords, required = takes(cls)
    made = f"it is made by {cls.__name__}({', '.join((*positional, *(f'{k}=' for k in keywords)))})"
    given = positional[: len(args)]
    for name in options:
        if name not in positional + keywords:
            free = [k for k in positional + keywords if k not in given and k not in options]
            near = difflib.get_close_matches(name, free, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{cls.__name__} has no argument {name!r}{hint} ({made})")
    if len(args) > len(positional):
        raise TypeError(f"{cls.__name__} takes the options by their names: {made}")
    for name in required:
        if name not in given and name not in options:
            raise TypeError(f"{cls.__name__}: {name} is missing; {made}")


@cache
def takes(cls: type) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Names of the arguments of a class: by position, by name only, and required ones."""
    positional: list[str] = []
    keywords: list[str] = []
    required: list[str] = []
    # A composition hands on to the method that it composes, too.
    method = getattr(cls, "_stepper_class", None)
    for base in (*cls.__mro__, *(method.__mro__ if method else ())):
        if "__init__" not in vars(base) or base is object:
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        new = [p for p in parameters if p.name not in positional + keywords]
        found = [p.name for p in new if p.kind is p.POSITIONAL_OR_KEYWORD]
        keywords += [p.name for p in new if p.kind is p.KEYWORD_ONLY]
        if not positional:
            positional += found
        required += [
            p.name for p in new if p.default is p.empty and p.name in positional + keywords
        ]
        if all(p.kind is not p.VAR_KEYWORD for p in parameters) and not method:
            break
    return tuple(positional), tuple(keywords), tuple(required)
