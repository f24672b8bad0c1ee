"""Small displacements of space frames of Timoshenko beams: a program of its own in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.linalg import eigh

# Four Gauss points on [0, 1]: exact for products of cubics.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_POINTS, _WEIGHTS = (_POINTS + 1) / 2, _WEIGHTS / 2


def bending(length, EI, GA, mass, rotary):
    """Stiffness and consistent mass of one element in a plane: (v, θ) at both ends, θ = v' - γ.

    The deflection is the cubic v = Σ aₖ sᵏ with which EI θ'' + GA γ = 0: γ = -6 a₃ EI/GA.
    """

    def fields(s):
        deflection = np.array([1.0, s, s**2, s**3])
        rotation = np.array([0.0, 1.0, 2 * s, 3 * s**2 + 6 * EI / GA])
        curvature = np.array([0.0, 0.0, 2.0, 6 * s])
        shear = np.array([0.0, 0.0, 0.0, -6 * EI / GA])
        return deflection, rotation, curvature, shear

    ends = [fields(s)[:2] for s in (0.0, length)]
    to_cubic = np.linalg.inv(np.vstack([row for end in ends for row in end]))
    K, M = np.zeros((4, 4)), np.zeros((4, 4))
    for s, weight in zip(_POINTS * length, _WEIGHTS * length, strict=True):
        v, theta, curvature, shear = (f @ to_cubic for f in fields(s))
        K += weight * (EI * np.outer(curvature, curvature) + GA * np.outer(shear, shear))
        M += weight * (mass * np.outer(v, v) + rotary * np.outer(theta, theta))
    return K, M


def element(length, stiffness, inertia):
    """12×12 stiffness and mass; (rotation, translation) at both ends in the axes of the beam (0 along).

    ``stiffness``: GJ, EI₁, EI₂, EA, GA₁, GA₂, as ``inertia``: the diagonals of a section.
    """
    K, M = np.zeros((12, 12)), np.zeros((12, 12))
    for k in (0, 3):
        dofs = np.ix_([k, 6 + k], [k, 6 + k])
        K[dofs] += stiffness[k] / length * np.array([[1, -1], [-1, 1]])
        M[dofs] += inertia[k] * length / 6 * np.array([[2, 1], [1, 2]])
    # A turn about the third axis lifts the second, one about the second lowers the third.
    for turn, shift, sign in ((2, 4, 1.0), (1, 5, -1.0)):
        dofs = [shift, turn, 6 + shift, 6 + turn]
        signs = np.array([1.0, sign, 1.0, sign])
        k, m = bending(length, stiffness[turn], stiffness[shift], inertia[shift], inertia[turn])
        K[np.ix_(dofs, dofs)] += signs[:, None] * k * signs
        M[np.ix_(dofs, dofs)] += signs[:, None] * m * signs
    return K, M


class LinearFrame:
    """Straight members between points in space, welded where they meet.

    Parameters
    ----------
    points : (n, 3) array
        The corners.
    members : sequence of (int, int, (3, 3) array)
        From which corner to which, and the axes of the section as columns, the first along.
    stiffness, inertia : arrays of 6
        Of all sections.
    cells : int
        Elements a member.
    fixed : sequence of int
        Corners that are clamped.
    """

    def __init__(self, points, members, stiffness, inertia, cells, fixed):
        self.corners = len(points)
        size = 6 * (len(points) + len(members) * (cells - 1))
        self.K, self.M = np.zeros((size, size)), np.zeros((size, size))
        self.nodes, new = [], len(points)
        for first, last, axes in members:
            length = np.linalg.norm(points[last] - points[first]) / cells
            nodes = [first, *range(new, new + cells - 1), last]
            new += cells - 1
            self.nodes.append(nodes)
            turn = np.kron(np.eye(4), axes)
            k, m = (turn @ part @ turn.T for part in element(length, stiffness, inertia))
            for a, b in itertools.pairwise(nodes):
                dofs = np.concatenate([6 * a + np.arange(6), 6 * b + np.arange(6)])
                self.K[np.ix_(dofs, dofs)] += k
                self.M[np.ix_(dofs, dofs)] += m
        self.free = np.setdiff1d(np.arange(size), [6 * f + k for f in fixed for k in range(6)])

    def sag(self, gravity, forces):
        """Displacements (nodes, 6: rotation, translation in space) under weight and forces."""
        field = np.tile(np.concatenate([np.zeros(3), gravity]), len(self.K) // 6)
        load = self.M @ field
        for corner, force in forces.items():
            load[6 * corner + 3 : 6 * corner + 6] += force
        found = np.zeros(len(self.K))
        free = self.free
        found[free] = np.linalg.solve(self.K[np.ix_(free, free)], load[free])
        return found.reshape(-1, 6)

    def frequencies(self, number):
        """The lowest, in radians per time."""
        free = np.ix_(self.free, self.free)
        values = eigh(
            self.K[free], self.M[free], eigvals_only=True, subset_by_index=(0, number - 1)
        )
        return np.sqrt(values)
