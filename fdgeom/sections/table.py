"""Sections from the tables of other programs, and sections as JSON files."""

import json
import os
from pathlib import Path

import numpy as np

from fdgeom.messages import brief
from fdgeom.validation import array, choice

#: The beam's axis of each program among (x, y, z); all have forces before moments.
CONVENTIONS = {"gxbeam": 0, "vabs": 0, "anba": 2, "becas": 2, "beamdyn": 2}
_FORMAT = "fdgeom section"


def from_convention(name: str, matrix, convention: str, axis: int) -> np.ndarray:
    """A 6×6 in fdgeom's order and axes from one in that of another program."""
    choice("convention", convention, CONVENTIONS)
    given = array(name, matrix, (6, 6))
    # The axes turn cyclically until the other program's beam axis is `axis`, so right-handed axes
    # stay right-handed.
    turn = (axis - CONVENTIONS[convention]) % 3
    # Entry k of the result's rotations is entry (k - turn) of the other's moments, and so on.
    order = [(k - turn) % 3 for k in range(3)]
    where = [3 + k for k in order] + order
    return given[np.ix_(where, where)]


def to_convention(matrix: np.ndarray, convention: str, axis: int) -> np.ndarray:
    """The inverse of :func:`from_convention`."""
    numbers = np.arange(36.0).reshape(6, 6)
    placed = from_convention("matrix", numbers, convention, axis).astype(int)
    found = np.empty(36)
    found[placed.ravel()] = np.ravel(matrix)
    return found.reshape(6, 6)


def as_json(section) -> str:
    """The matrices of a section, or of all stations of one that changes along a beam, as JSON."""
    data = {"format": _FORMAT, "version": 1, "axis": section.axis, "order": "rotation first"}
    if section.is_constant:
        data |= {"stiffness": section.stiffness.tolist(), "inertia": section.inertia.tolist()}
    elif hasattr(section.stiffness, "stations"):
        data["stations"] = [
            {"s": s, "stiffness": K.tolist(), "inertia": M.tolist()}
            for s, K, M in zip(
                section.stiffness.stations.tolist(),
                section.stiffness.matrices,
                section.inertia.matrices,
                strict=True,
            )
        ]
    else:
        raise ValueError("a section given by UFL expressions cannot be written as numbers")
    return json.dumps(data, indent=1)


def read_json(path: str | os.PathLike) -> dict:
    """The dict that :func:`as_json` has made; ``ValueError`` if the file is no section."""
    try:
        data = json.loads(Path(path).read_text())
        if data["format"] != _FORMAT or data["version"] != 1:
            raise KeyError("format")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise not_a_section(path, error) from None
    return data


def not_a_section(path: str | os.PathLike, error: Exception) -> ValueError:
    """The error for a file without a section, with the reason."""
    return ValueError(f"path = '{path}' is not a section written by fdgeom: {brief(error)}")
