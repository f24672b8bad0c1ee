"""Vectors that a user gives as functions, of time and place."""

import inspect
from collections.abc import Callable, Sequence

import ufl
from ufl.classes import Expr, Zero

from fdgeom.lie import quaternion
from fdgeom.messages import reported_as

# Names of the time as the only argument; "_" where it is not used.
_TIME = ("t", "time", "_")


def evaluated(name: str, function: Callable, arguments: Sequence[Expr], size: int) -> Expr:
    """The vector of a user's function; ``ValueError`` with its ``name`` for another value."""
    with reported_as(f"{name}: the function must give a UFL vector of {size}"):
        value = function(*arguments)
        value = ufl.as_vector(list(value)) if isinstance(value, list | tuple) else value
        value = ufl.as_ufl(value)
    if value.ufl_shape != (size,):
        raise ValueError(
            f"{name}: the function must give a vector of {size}, not {value.ufl_shape}"
        )
    return value


def unit_quaternion(name: str, q: Expr) -> Expr:
    """q / |q|; ``ValueError`` with its ``name`` if it is zero in its form."""
    if isinstance(q, Zero):
        raise ValueError(f"{name} is zero; it must be a quaternion, scalar first: (1, 0, 0, 0)")
    return quaternion.normalize(q)


def place_and_time(name: str, function: Callable, s, t) -> tuple:
    """Arguments of a user's function, by their names: the time t, the arc length s, or s, t."""
    parameters = inspect.signature(function).parameters.values()
    free = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p.name for p in parameters if p.kind in free and p.default is inspect.Parameter.empty]
    if len(needed) == 2 and needed[0] not in _TIME and needed[1] != "s":
        return s, t
    if len(needed) == 1 and needed[0] in ("s", *_TIME):
        return (s,) if needed[0] == "s" else (t,)
    raise ValueError(
        f"{name}: the function must take (t), (s) or (s, t), with t for the time and s for the arc "
        f"length, not ({', '.join(needed)})"
    )
