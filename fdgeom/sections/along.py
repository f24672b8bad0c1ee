"""Matrices that change along a beam, interpolated between stations."""

from __future__ import annotations

import numpy as np


class MatrixAlong:
    """A matrix as a function of the arc length: linear between stations, constant beyond them.

    A mean of symmetric positive definite matrices is one, so that no place between is worse than
    the stations.

    Parameters
    ----------
    stations : (n,) ndarray
        Increasing arc lengths.
    matrices : (n, 6, 6) ndarray
    """

    def __init__(self, stations: np.ndarray, matrices: np.ndarray) -> None:
        self.stations, self.matrices = stations, matrices

    def __call__(self, s) -> np.ndarray:
        """The matrix at an arc length, (6, 6), or at some, (..., 6, 6)."""
        s = np.clip(np.asarray(s, dtype=float), self.stations[0], self.stations[-1])
        k = np.clip(np.searchsorted(self.stations, s) - 1, 0, len(self.stations) - 2)
        left, right = self.stations[k], self.stations[k + 1]
        part = ((s - left) / (right - left))[..., None, None]
        return (1 - part) * self.matrices[k] + part * self.matrices[k + 1]


def check_stations(stations) -> tuple[np.ndarray, list]:
    """Arc lengths and sections of (s, section) pairs, in order.

    Raises
    ------
    TypeError, ValueError
        If they are no such pairs, fewer than two, of different axes, or two are at one place.
    """
    from fdgeom.beams.section import Section

    try:
        pairs = sorted(((float(s), section) for s, section in stations), key=lambda pair: pair[0])
    except (TypeError, ValueError):
        raise TypeError(f"stations must be pairs (s, section), not {stations!r}") from None
    for _, section in pairs:
        if not isinstance(section, Section):
            raise TypeError(f"stations: {section!r} is no fdgeom.Section")
        if not section.is_constant:
            raise ValueError("stations: a section varies along the beam itself")
    places = np.array([s for s, _ in pairs])
    if len(pairs) < 2 or not np.all(np.isfinite(places)) or np.any(np.diff(places) <= 0):
        raise ValueError("stations must be two or more, at different finite arc lengths")
    if len({section.axis for _, section in pairs}) > 1:
        raise ValueError("stations: all sections must have the same axis")
    return places, [section for _, section in pairs]
