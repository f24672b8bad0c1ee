"""Masses and springs as second-order systems, one a cell, and their runs as arrays."""

from __future__ import annotations

import numpy as np
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    VectorFunctionSpace,
    as_vector,
    dot,
    dx,
    inner,
    sin,
)

import fdgeom as fg


def oscillator(omega=np.pi, q=1.0, v=1.0):
    """q̈ = -ω²q; with ω = π and q = v = 1 the state at t = 1 is its negative."""
    space = FunctionSpace(fg.copies(1), "DG", 0)
    stiffness = Constant(omega**2)
    return fg.SecondOrderSystem(
        lambda q, v, a, t, test: (a + stiffness * q) * test * dx,
        Function(space).assign(q),
        Function(space).assign(v),
    )


def pendulum(q=1.0, v=1.0):
    """q̈ = -sin q."""
    space = FunctionSpace(fg.copies(1), "DG", 0)
    return fg.SecondOrderSystem(
        lambda q, v, a, t, test: (a + sin(q)) * test * dx,
        Function(space).assign(q),
        Function(space).assign(v),
    )


def matrices(M, K, q, v, C=None, force=None):
    """M q̈ + C q̇ + K q = force(t), a vector expression."""
    n = len(q)
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=n)
    state = Function(space), Function(space)
    for f, values in zip(state, (q, v), strict=True):
        f.dat.data_wo[...] = np.reshape(values, f.dat.data_ro.shape)
    M, K = Constant(M), Constant(K)
    C = None if C is None else Constant(C)

    def residual(q, v, a, t, test):
        balance = dot(M, a) + dot(K, q)
        if C is not None:
            balance += dot(C, v)
        if force is not None:
            balance -= force(t)
        return inner(balance, test) * dx

    return fg.SecondOrderSystem(residual, *state)


def linear(reference):
    """An :class:`alpha_references.Linear` of four masses, its load as UFL."""

    def force(t):
        amplitudes, frequencies = (3.0, -2.0, 1.0, 4.0), (1.0, 2.3, 0.4, 5.0)
        return as_vector(
            [b * sin(w * t + 0.3) for b, w in zip(amplitudes, frequencies, strict=True)]
        )

    r = reference
    return matrices(r.M, r.K, r.q, r.v, C=r.C, force=force)


def state(system) -> np.ndarray:
    """q, v and the true acceleration of the first copy."""
    parts = (system.q, system.v, system.acceleration)
    return np.array([np.atleast_1d(f.dat.data_ro[0]) for f in parts])


def follow(stepper, steps: int) -> np.ndarray:
    """The states at the nodes 0, 1, ..., shape (steps + 1, 3, n)."""
    rows = [state(stepper.system)]
    for _ in range(steps):
        stepper.advance()
        rows.append(state(stepper.system))
    return np.array(rows)
