"""Numbers that a user gives, as arrays of floats."""

from __future__ import annotations

import numpy as np

from fdgeom.words import shown


def real_array(value, name: str = "the value") -> np.ndarray:
    """A new array of floats.

    NumPy by itself takes the real part of complex numbers with a warning, and reads text as numbers.

    Raises
    ------
    TypeError
        If the entries are complex, text or anything else than real numbers.
    ValueError
        If the rows are of different lengths.
    """
    found = np.array(value)
    if found.dtype.kind not in "iufO":
        raise TypeError(f"{name} must be real numbers, not {shown(value)}")
    return found.astype(float)
