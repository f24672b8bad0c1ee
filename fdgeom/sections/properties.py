"""Centres and axes of a section from its 6×6 matrices, changes of reference point and of convention.

A section's own axes are the beam's axis and the two transverse ones, right-handed, in this order;
in them a strain is (twist, two curvatures, stretch, two shears).
"""

from typing import NamedTuple

import numpy as np

from fdgeom.validation import array, choice

#: The beam's axis of each program among (x, y, z); all have forces before moments.
CONVENTIONS = {"gxbeam": 0, "vabs": 0, "anba": 2, "becas": 2, "beamdyn": 2}


class Centres(NamedTuple):
    """Centres of one section, (2,), or of some, (..., 2), along the transverse axes."""

    shear: np.ndarray
    tension: np.ndarray
    mass: np.ndarray


def transverse(axis: int) -> tuple[int, int]:
    """The two material axes across the beam, in increasing order."""
    first, second = (k for k in range(3) if k != axis)
    return first, second


def section_axes(axis: int) -> np.ndarray:
    """P (3, 3): its columns are the section's own axes in the body frame."""
    return np.eye(3)[:, [axis, *transverse(axis)]]


def to_body(axis: int) -> np.ndarray:
    """T (6, 6) from a section's own axes to the body frame."""
    # Curvature and moment are axial vectors: they change sign where the axes are left-handed, for
    # axis=1.
    P = section_axes(axis)
    T = np.zeros((6, 6))
    T[:3, :3], T[3:, 3:] = np.linalg.det(P) * P, P
    return T


def shifted(c) -> np.ndarray:
    """X (6, 6), the strain at c from that at the reference: K about c is XᵀKX about the reference."""
    X = np.eye(6, dtype=np.result_type(float, *c))
    X[3, 1:3] = c[1], -c[0]
    X[4, 0], X[5, 0] = -c[1], c[0]
    return X


def tension_centre(S: np.ndarray) -> np.ndarray:
    """Tension centre, where an axial force does not bend, from compliances (..., 6, 6)."""
    found = np.linalg.solve(S[..., 1:3, 1:3], -S[..., 1:3, 3, None])[..., 0]
    return np.stack([-found[..., 1], found[..., 0]], axis=-1)


def shear_centre(S: np.ndarray) -> np.ndarray:
    """Shear centre, where a transverse force does not twist, from compliances (..., 6, 6)."""
    # Where bending twists, that is so in the cross-section where its moment vanishes.
    return np.stack([-S[..., 0, 5], S[..., 0, 4]], axis=-1) / S[..., 0, 0, None]


def mass_centre(M: np.ndarray) -> np.ndarray:
    """Centre of mass from inertias (..., 6, 6) in the section's own axes."""
    return np.stack([-M[..., 2, 3], M[..., 1, 3]], axis=-1) / M[..., 3, 3, None]


def centres(S: np.ndarray, M: np.ndarray) -> Centres:
    """All centres from compliances and inertias (..., 6, 6) in the section's own axes."""
    return Centres(shear_centre(S), tension_centre(S), mass_centre(M))


def principal_bending(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stiffnesses (2,) and directions (2, 2) of bending alone, the stiffest first."""
    compliances, vectors = np.linalg.eigh(S[1:3, 1:3])
    # Of the two senses of each, the one along an axis rather than against it.
    sense = np.sign(vectors[np.abs(vectors).argmax(axis=0), [0, 1]])
    return 1 / compliances, (vectors * sense).T


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
