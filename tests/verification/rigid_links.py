"""Linkages of rigid bars whose mass sits at equally spaced points, by SciPy."""

import itertools

import numpy as np
from scipy.integrate import solve_ivp


def double_pendulum(lengths, masses, cells, spin, until, g=9.81):
    """Elbow and tip (in the plane, the second coordinate up) of two arms let go from the horizontal.

    ``spin``: moment of inertia of the sections per length.
    """
    (l1, l2), (m1, m2) = lengths, masses
    # Points at s = 0, h, ..., l with the weights of the trapezoidal rule.
    first, second = (
        m * length**2 * (1 / 3 + 1 / (6 * n**2)) + spin * length
        for m, length, n in zip(masses, lengths, cells, strict=True)
    )
    coupling = m2 * l1 * l2 / 2

    def slope(t, y):
        a, b, da, db = y
        c, s = coupling * np.cos(a - b), coupling * np.sin(a - b)
        mass = [[first + m2 * l1**2, c], [c, second]]
        force = [
            -s * db**2 - g * np.cos(a) * (m1 / 2 + m2) * l1,
            s * da**2 - g * np.cos(b) * m2 * l2 / 2,
        ]
        return [da, db, *np.linalg.solve(mass, force)]

    a, b, *_ = solve_ivp(slope, (0, until), np.zeros(4), rtol=1e-11, atol=1e-12).y[:, -1]
    elbow = l1 * np.array([np.cos(a), np.sin(a)])
    return elbow, elbow + l2 * np.array([np.cos(b), np.sin(b)])


def four_bar(pivots, cells, mass, spin, times, g=9.81):
    """Crank angles at some times of a linkage let go at rest, gravity against the second axis.

    ``mass`` and ``spin`` (moment of inertia of the sections): per length.
    """
    A, B, C, D = pivots
    links = [np.linalg.norm(b - a) for a, b in ((A, B), (B, C), (C, D))]
    side = np.sign((D - B)[0] * (C - B)[1] - (D - B)[1] * (C - B)[0])

    def points(angle):
        b = A + links[0] * np.array([np.cos(angle), np.sin(angle)])
        along = D - b
        d = np.linalg.norm(along)
        x = (d**2 + links[1] ** 2 - links[2] ** 2) / (2 * d)
        across = np.array([-along[1], along[0]]) / d
        c = b + x * along / d + side * np.sqrt(links[1] ** 2 - x**2) * across
        return [A, b, c, D]

    weights = np.ones(cells + 1)
    weights[[0, -1]] = 0.5

    def lumps(angle):
        """Positions of the point masses, and the angles of the bars."""
        p = points(angle)
        s = np.linspace(0, 1, cells + 1)[:, None]
        places = [(1 - s) * a + s * b for a, b in itertools.pairwise(p)]
        turns = [np.arctan2(*(b - a)[::-1]) for a, b in itertools.pairwise(p)]
        return places, np.array(turns)

    def inertia(angle, e=1e-5):
        (p, a), (q, b) = lumps(angle - e), lumps(angle + e)
        total = 0.0
        for x, y, length, da in zip(p, q, links, b - a, strict=True):
            speed = ((y - x) ** 2).sum(axis=1) / (2 * e) ** 2
            total += mass * length / cells * weights @ speed + spin * length * (da / (2 * e)) ** 2
        return total

    def potential(angle):
        places, _ = lumps(angle)
        heights = (
            mass * length / cells * weights @ x[:, 1]
            for x, length in zip(places, links, strict=True)
        )
        return g * sum(heights)

    def slope(t, y, e=1e-4):
        change, push = (f(y[0] + e) - f(y[0] - e) for f in (inertia, potential))
        return [y[1], -(0.5 * change * y[1] ** 2 + push) / (2 * e) / inertia(y[0])]

    start = [np.arctan2(*(B - A)[::-1]), 0.0]
    found = solve_ivp(slope, (0, times[-1]), start, t_eval=times, rtol=1e-9, atol=1e-9)
    return found.y[0]
