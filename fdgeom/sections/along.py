"""Matrices that change along a beam, interpolated between stations."""

import numpy as np


class MatrixAlong:
    """A matrix as a function of the arc length: linear between stations, constant beyond them."""

    # A mean of symmetric positive definite matrices is symmetric positive definite, so checks at
    # the stations are enough.
    def __init__(self, stations: np.ndarray, matrices: np.ndarray) -> None:
        self.stations, self.matrices = stations, matrices

    def __call__(self, s) -> np.ndarray:
        """The matrix at an arc length, (6, 6), or at some, (..., 6, 6)."""
        s = np.clip(np.asarray(s, dtype=float), self.stations[0], self.stations[-1])
        k = np.clip(np.searchsorted(self.stations, s) - 1, 0, len(self.stations) - 2)
        left, right = self.stations[k], self.stations[k + 1]
        part = ((s - left) / (right - left))[..., None, None]
        return (1 - part) * self.matrices[k] + part * self.matrices[k + 1]
