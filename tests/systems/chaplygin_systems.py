"""Chaplygin systems for the tests."""

from __future__ import annotations

import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

import fdgeom as fg

psi, theta, phi, x, y, z = dynamicsymbols("psi theta phi x y z")
t = dynamicsymbols._t
HALF = sp.Rational(1, 2)
MOMENT = sp.Rational(2, 5)


def d(f, n=1):
    """The derivative in time."""
    return f.diff(t, n)


def ball(mass=1, radius=1, moment=MOMENT, potential=0):
    """A homogeneous ball that rolls on a plane, in Euler's angles: (11) and (12) of the paper."""
    turning = d(theta) ** 2 + d(phi) ** 2 + d(psi) ** 2 + 2 * d(phi) * d(psi) * sp.cos(theta)
    lagrangian = HALF * mass * (d(x) ** 2 + d(y) ** 2) + HALF * moment * turning - potential
    return fg.ChaplyginSystem(
        lagrangian,
        [psi, theta, phi],
        {
            x: -radius * (d(phi) * sp.sin(theta) * sp.cos(psi) - d(theta) * sp.sin(psi)),
            y: -radius * (d(phi) * sp.sin(theta) * sp.sin(psi) + d(theta) * sp.cos(psi)),
        },
    )


def with_added_terms(system, mass=1, radius=1, moment=MOMENT):
    """The terms of the paper, with its second misprint corrected: E_psi in both."""
    term = -mass * radius**2 / moment * system.equation(psi)
    return system.adding({psi: term, phi: term * sp.cos(theta)})


def disk():
    """A vertical disk that rolls, turned by phi and rolled by theta."""
    m, r, roll, spin = sp.symbols("m r roll spin", positive=True)
    kinetic = m * (d(x) ** 2 + d(y) ** 2) + roll * d(theta) ** 2 + spin * d(phi) ** 2
    return fg.ChaplyginSystem(
        HALF * kinetic,
        [theta, phi],
        {x: r * sp.cos(phi) * d(theta), y: r * sp.sin(phi) * d(theta)},
    )


def particle(potential=0):
    """The particle with ż = yẋ."""
    kinetic = HALF * (d(x) ** 2 + d(y) ** 2 + d(z) ** 2)
    return fg.ChaplyginSystem(kinetic - potential, [x, y], {z: y * d(x)})


def knife_edge():
    """A knife edge on a plane: it moves along itself only."""
    kinetic = HALF * (d(x) ** 2 + d(y) ** 2 + d(phi) ** 2)
    return fg.ChaplyginSystem(kinetic, [x, phi], {y: d(x) * sp.tan(phi)})
