"""Vectors that a user gives as functions, of time and place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ufl
from ufl.core.expr import Expr


def evaluated(name: str, function: Callable, arguments: Sequence[Expr], size: int) -> Expr:
    """The vector; ``ValueError``, which calls the function ``name``, if it gives something else."""
    try:
        value = function(*arguments)
        value = ufl.as_vector(list(value)) if isinstance(value, list | tuple) else value
        value = ufl.as_ufl(value)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"{name}: the function must give a UFL vector of {size}: {error}"
        ) from error
    if value.ufl_shape != (size,):
        raise ValueError(
            f"{name}: the function must give a vector of {size}, not {value.ufl_shape}"
        )
    return value
