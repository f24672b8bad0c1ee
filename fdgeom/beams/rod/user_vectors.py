"""Vectors that a user gives as functions, of time and place."""

import inspect
from collections.abc import Callable, Sequence

import ufl
from ufl.classes import Expr, Zero

from fdgeom.lie import quaternion
from fdgeom.words import blamed


def evaluated(name: str, function: Callable, arguments: Sequence[Expr], size: int) -> Expr:
    """The vector; ``ValueError``, which calls the function ``name``, if it gives something else."""
    with blamed(f"{name}: the function must give a UFL vector of {size}"):
        value = function(*arguments)
        value = ufl.as_vector(list(value)) if isinstance(value, list | tuple) else value
        value = ufl.as_ufl(value)
    if value.ufl_shape != (size,):
        raise ValueError(
            f"{name}: the function must give a vector of {size}, not {value.ufl_shape}"
        )
    return value


def unit_quaternion(name: str, q: Expr) -> Expr:
    """q / |q|; ``ValueError``, which calls it ``name``, if it is zero for certain."""
    if isinstance(q, Zero):
        raise ValueError(f"{name} is zero; it must be a quaternion, scalar first: (1, 0, 0, 0)")
    return quaternion.normalize(q)


def number_of_arguments(function: Callable) -> int:
    """How many arguments must be given to a function."""
    parameters = inspect.signature(function).parameters.values()
    free = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in free and p.default is inspect.Parameter.empty for p in parameters)
