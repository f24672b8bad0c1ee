"""Guards for pyadjoint's tape: changes of Functions are recorded or refused."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from firedrake import Function
from pyadjoint import AdjFloat
from pyadjoint.tape import annotate_tape, stop_annotating

_Method = TypeVar("_Method", bound=Callable)

#: What puts "steps", "changes" and "fields" on the tape, set by fdgeom.adjoint, which is imported later.
recorders: dict[str, Callable] = {}


def record(name: str, do: Callable[[], None], operations: Callable[[], Sequence], system) -> None:
    """Do something that changes a system, and record its ``operations()`` on the tape."""
    if annotate_tape():
        recorders["changes"](name, do, operations(), system)
    else:
        do()


def refuse_annotation(
    what: str, instead: str = "and take its gradient by finite differences of whole runs"
) -> None:
    """Raise ``NotImplementedError`` while pyadjoint records, which would not record ``what``."""
    if annotate_tape():
        raise NotImplementedError(
            f"{what} is not recorded by pyadjoint: its result would not be on the tape, and gradients "
            "would be wrong without a warning. Call it inside 'with firedrake.adjoint.stop_annotating():' "
            f"(its result then counts as given data), {instead}"
        )


def refuse_recorded(name: str, value) -> None:
    """Raise ``NotImplementedError`` if pyadjoint records and would lose a number that it follows."""
    # To be called wherever a float, an integer or an array is made of a user's value.
    if annotate_tape() and _is_followed(value):
        raise NotImplementedError(
            f"{name} is a number that pyadjoint follows, but counts as given data here: gradients by it "
            "are not available, and would be wrong without a warning. Give float(...) of it, whose gradient "
            "is zero, or a Function of a Real space where a Function is taken"
        )


def _is_followed(value) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(map(_is_followed, value.flat))
    if isinstance(value, list | tuple):
        return any(map(_is_followed, value))
    if isinstance(value, Function):
        return value.ufl_element().family() == "Real"
    return isinstance(value, AdjFloat)


def not_taped(method: _Method) -> _Method:
    """Decorator of a method that changes Functions and is refused while pyadjoint records."""
    # Every method of fdgeom that changes a Function has it, unless it is on the tape; under
    # stop_annotating() all work.

    @wraps(method)
    def guarded(*args, **kwargs) -> Any:
        if annotate_tape():
            refuse_annotation(_name(method, args))
        return method(*args, **kwargs)

    return cast(_Method, guarded)


class OffTape:
    """Base of classes whose constructors are off the tape and refuse numbers that pyadjoint follows."""

    #: Whether the constructor is done.
    _is_made = False

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        if "__init__" not in vars(cls):
            return
        build = vars(cls)["__init__"]
        names = list(inspect.signature(build).parameters)[1:]

        @wraps(build)
        def unrecorded(self, *args, **kwargs) -> None:
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                refuse_recorded(name, value)
            with stop_annotating():
                build(self, *args, **kwargs)
            # A base class is not the last to build.
            if type(self).__init__ is unrecorded:
                self._is_made = True

        setattr(unrecorded, "__signature__", _signature(build, super(cls, cls).__init__))  # noqa: B010
        setattr(cls, "__init__", unrecorded)  # noqa: B010


def _signature(build: Callable, base: Callable) -> inspect.Signature:
    """The signature of a constructor, with the keywords of its base class in place of ``**options``."""
    own = inspect.signature(build)
    named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    if len(named) < len(own.parameters):
        others = inspect.signature(base).parameters.values()
        named += [p for p in others if p.kind is p.KEYWORD_ONLY and p.name not in own.parameters]
    return own.replace(parameters=named)


def _name(method: Callable, args: tuple) -> str:
    if "." not in method.__qualname__:
        return f"fdgeom.{method.__name__}()"
    owner = type(args[0]).__name__
    return f"{owner}()" if method.__name__ == "__init__" else f"{owner}.{method.__name__}()"
