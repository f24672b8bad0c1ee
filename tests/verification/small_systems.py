"""Small Poisson systems with known solutions, one a cell."""

from __future__ import annotations

import numpy as np
from firedrake import (
    Function,
    VectorFunctionSpace,
    as_vector,
    cos,
    cross,
    dot,
    dx,
    inner,
    ln,
)

import fdgeom as fg

INERTIA = (2.0, 1.0, 2.0 / 3.0)


def pairing(a, b):
    return inner(a, b) * dx


def canonical(a, b):
    """{f, g} = a_q·b_p - a_p·b_q on (q, p) in R^2n, a cell each."""
    n = a.ufl_shape[0] // 2
    q, p = range(n), range(n, 2 * n)
    return sum(a[i] * b[j] - a[j] * b[i] for i, j in zip(q, p, strict=True)) * dx


def states(values):
    """A DG0 function with the rows of ``values`` in its cells."""
    values = np.atleast_2d(np.asarray(values, dtype=float))
    space = VectorFunctionSpace(fg.copies(len(values)), "DG", 0, dim=values.shape[1])
    z = Function(space, name="z")
    z.dat.data_wo[...] = values
    return z


def rigid_body(values=(np.cos(1.1), 0.0, np.sin(1.1)), inertia=INERTIA):
    """Free rigid body on so(3)*, and the three pieces of its energy."""
    y = states(values)
    pieces = [0.5 / moment * y[i] ** 2 * dx for i, moment in enumerate(inertia)]
    system = fg.PoissonSystem(
        y,
        sum(pieces[1:], pieces[0]),
        lambda a, b: -dot(y, cross(a, b)) * dx,
        pairing,
        casimirs={"norm": dot(y, y) * dx},
    )
    return system, pieces


def lotka_volterra(values=(4.0, 2.0)):
    """u' = u(v-2), v' = v(1-u): {f, g} = uv(f_u g_v - f_v g_u), h = ln u - u + 2 ln v - v ."""
    z = states(values)
    u, v = z[0], z[1]
    return fg.PoissonSystem(
        z,
        (u - ln(u) + v - 2 * ln(v)) * dx,
        lambda a, b: u * v * (a[0] * b[1] - a[1] * b[0]) * dx,
        pairing,
    )


def pendulum(values=(2.0, 0.0)):
    """h = p²/2 - cos q."""
    z = states(values)
    return fg.PoissonSystem(z, (0.5 * z[1] ** 2 - cos(z[0])) * dx, canonical, pairing)


def henon_heiles(values=(0.2, 0.2, 0.3, 0.3)):
    """h = ½|p|² + ½|q|² + q₁²q₂ - q₂³/3."""
    z = states(values)
    q, p = as_vector([z[0], z[1]]), as_vector([z[2], z[3]])
    energy = 0.5 * dot(p, p) + 0.5 * dot(q, q) + q[0] ** 2 * q[1] - q[1] ** 3 / 3
    return fg.PoissonSystem(z, energy * dx, canonical, pairing)
