"""Conversion of numbers that a user gives to floats and arrays of floats."""

import math
import operator
from numbers import Real

import numpy as np

from fdgeom.taping import refuse_recorded
from fdgeom.words import shown


def real_array(value, refusal: str = "not an array of real numbers") -> np.ndarray:
    """A new array of floats; ``TypeError`` with the given text if the value is none."""
    refuse_recorded(refusal.split(" must ")[0], value)
    # NumPy by itself takes the real part of complex numbers with a warning, and reads text as
    # numbers.
    try:
        found = np.array(value)
        if found.dtype.kind in "iufO":
            return found.astype(float)
    except (TypeError, ValueError):
        pass
    raise TypeError(refusal)


def number(name: str, value) -> float:
    """Return a finite number as a float; raise an error that names it otherwise."""
    found = _real(name, value)
    if not math.isfinite(found):
        raise ValueError(f"{name} must be finite, not {shown(value)}")
    return found


def not_negative(name: str, value) -> float:
    """A number that is not negative, or an error that names it."""
    found = _real(name, value)
    if not (math.isfinite(found) and found >= 0):
        raise ValueError(f"{name} must be a finite number that is not negative, not {shown(value)}")
    return found


def positive_integer(name: str, value: object) -> int:
    """Return `value` as int; raise ValueError that names the argument unless it is an integer >= 1."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {shown(value)}")
    return number


def _real(name: str, value) -> float:
    refuse_recorded(name, value)
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {shown(value)}")
    return float(value)
