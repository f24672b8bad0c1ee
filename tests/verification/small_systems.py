"""Small Poisson systems with known solutions, one a cell."""

from __future__ import annotations

import numpy as np
from firedrake import (
    Function,
    FunctionSpace,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    cos,
    cross,
    dot,
    dx,
    inner,
    ln,
    sin,
    split,
    sqrt,
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


START = (np.cos(1.1), 0.0, np.sin(1.1))


def rigid_body(values=START, inertia=INERTIA):
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


def periodic_state(cells, parts, profiles, length=2 * np.pi):
    """A CG1 state on a circle; ``profiles(x)`` gives an expression for each part."""
    mesh = PeriodicIntervalMesh(cells, length)
    V = FunctionSpace(mesh, "CG", 1)
    z = Function(V * V if parts == 2 else V, name="z")
    (x,) = SpatialCoordinate(mesh)
    for part, expression in zip(z.subfunctions, profiles(x), strict=True):
        part.interpolate(expression)
    return z


def wave(cells=8):
    """u_tt = u_xx: h = ∫ ½p² + ½u_x², whose derivative by u is no pointwise expression."""
    z = periodic_state(cells, 2, lambda x: (sin(x), cos(2 * x)))
    u, p = split(z)

    def bracket(a, b):
        (a_u, a_p), (b_u, b_p) = split(a), split(b)
        return (a_u * b_p - a_p * b_u) * dx

    return fg.PoissonSystem(z, (0.5 * p**2 + 0.5 * u.dx(0) ** 2) * dx, bracket, pairing)


def korteweg_de_vries(cells=16):
    """u_t = ∂_x δh/δu with h = ∫ u³/6 - ½u_x²."""
    u = periodic_state(cells, 1, lambda x: (1 + 0.5 * cos(x),))
    return fg.PoissonSystem(
        u,
        (u**3 / 6 - 0.5 * u.dx(0) ** 2) * dx,
        lambda a, b: 0.5 * (a * b.dx(0) - b * a.dx(0)) * dx,
        pairing,
        casimirs={"mass": u * dx},
    )


def blow_up(values=(1.0, 1.0)):
    """h = q²p: q' = q² has no midpoint step once 2 dt q > 1."""
    z = states(values)
    return fg.PoissonSystem(z, z[0] ** 2 * z[1] * dx, canonical, pairing)


def nonseparable(values=((0.4, -0.3), (0.2, 0.5))):
    """Canonical (q, p) in R²×R², as two parts, whose energy mixes q and p; two pieces of it."""
    values = np.asarray(values, dtype=float).reshape(2, -1, 2)
    space = VectorFunctionSpace(fg.copies(values.shape[1]), "DG", 0, dim=2)
    z = Function(space * space, name="z")
    for part, start in zip(z.subfunctions, values, strict=True):
        part.dat.data_wo[...] = start
    q, p = split(z)
    pieces = [
        0.5 * (1 + q[0] ** 2) * dot(p, p) * dx,
        (0.5 * dot(q, q) + 0.25 * q[1] ** 4 + q[0] * p[1] ** 3) * dx,
    ]

    def bracket(a, b):
        (a_q, a_p), (b_q, b_p) = split(a), split(b)
        return (dot(a_q, b_p) - dot(a_p, b_q)) * dx

    return fg.PoissonSystem(z, pieces[0] + pieces[1], bracket, pairing, names=("q", "p")), pieces


def kepler(eccentricity=0.6):
    """h = ½|p|² - 1/|q| as the parts p and q, at the pericentre; the period is 2π."""
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=2)
    z = Function(space * space, name="z")
    momentum, position = z.subfunctions
    position.dat.data_wo[...] = (1 - eccentricity, 0.0)
    momentum.dat.data_wo[...] = (0.0, np.sqrt((1 + eccentricity) / (1 - eccentricity)))
    p, q = split(z)

    def bracket(a, b):
        (a_p, a_q), (b_p, b_q) = split(a), split(b)
        return (dot(a_q, b_p) - dot(a_p, b_q)) * dx

    energy = (0.5 * dot(p, p) - 1 / sqrt(dot(q, q))) * dx
    return fg.PoissonSystem(z, energy, bracket, pairing, names=("p", "q"))
