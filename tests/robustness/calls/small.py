"""What the wrong calls need to be made with: one small system of each kind, made once."""

from __future__ import annotations

from functools import cache

import numpy as np
import sympy
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    UnitSquareMesh,
    VectorFunctionSpace,
    cross,
    dot,
    dx,
    sin,
)
from sympy.physics.mechanics import dynamicsymbols
from verification.beams import INERTIA, STIFFNESS

import fdgeom as fg

#: A material, and a section of a beam.
MATERIAL = {"density": 1000.0, "youngs_modulus": 1e7, "poisson_ratio": 0.3}
SECTION = fg.Section(STIFFNESS, INERTIA)
#: A quarter turn about z.
TURNED = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))


@cache
def mesh():
    """Four cells on [0, 1]."""
    return IntervalMesh(4, 1.0)


@cache
def square():
    return UnitSquareMesh(1, 1)


def scalar(degree=0):
    """A number in each of two cells (at their nodes for degree 1)."""
    family = "CG" if degree else "DG"
    return Function(FunctionSpace(fg.copies(2), family, degree))


def vector(dim=3):
    """A vector in each of two cells."""
    return Function(VectorFunctionSpace(_pair(), "DG", 0, dim=dim))


@cache
def _pair():
    return fg.copies(2)


def number():
    """A number in each of the cells in which :func:`vector` is."""
    return Function(FunctionSpace(_pair(), "DG", 0))


# --- beams ---------------------------------------------------------------------------------------
@cache
def beam():
    """Free at both ends."""
    return fg.Beam(mesh(), SECTION)


@cache
def clamped():
    """With a load."""
    return fg.Beam(mesh(), SECTION, left="clamped", loads=fg.Load(force=(0, 0, 1), at="right"))


@cache
def damped():
    return fg.Beam(mesh(), SECTION, left="clamped", damping=0.1)


@cache
def fine():
    """Of degree two."""
    return fg.Beam(mesh(), SECTION, degree=2)


@cache
def two():
    """Two beams end to end."""
    beams = fg.Beam(mesh(), SECTION), fg.Beam(mesh(), SECTION)
    beams[1].reconstruct(position=(1.0, 0.0, 0.0))
    return beams


@cache
def hinge():
    """What joins them."""
    return fg.Spherical(two()[0].right, two()[1].left)


@cache
def assembly():
    """Both, joined."""
    return fg.Assembly(list(two()), hinge())


# --- other systems -------------------------------------------------------------------------------
@cache
def body():
    """A free rigid body: a Poisson system."""
    m = vector()
    m.assign(1.0)
    return fg.PoissonSystem(
        m,
        (m[0] ** 2 / 4 + m[1] ** 2 / 2 + 3 * m[2] ** 2 / 4) * dx,
        lambda a, b: -dot(m, cross(a, b)) * dx,
        lambda a, b: dot(a, b) * dx,
        casimirs={"norm": dot(m, m) * dx},
    )


@cache
def oscillator():
    """A Hamiltonian system."""
    q, p = number(), number()
    return fg.HamiltonianSystem(q, p, 0.5 * (q**2 + p**2) * dx)


@cache
def mixed():
    """A Hamiltonian system whose energy is no T(p) + V(q)."""
    q, p = number(), number()
    return fg.HamiltonianSystem(q, p, 0.5 * (1 + q**2) * p**2 * dx)


def unit_sphere(q):
    return lambda mult: mult * (dot(q, q) - 1) * dx


@cache
def pendulum():
    """A constrained system: a mass point on a sphere."""
    q, p, mult = vector(), vector(), number()
    q.dat.data_wo[...] = [0.0, 0.0, -1.0]
    return fg.ConstrainedSystem(q, p, 0.5 * dot(p, p) * dx, q[2] * dx, unit_sphere(q), mult)


@cache
def link():
    """The same, stated by its Lagrangian."""
    q, v, mult = vector(), vector(), number()
    q.dat.data_wo[...] = [0.0, 0.0, -1.0]
    return fg.LagrangianSystem(
        q, v, (0.5 * dot(v, v) - q[2]) * dx, constraint=unit_sphere(q), multiplier=mult
    )


@cache
def skate():
    """A nonholonomic system."""
    q, v, mult = vector(), vector(), number()
    return fg.NonholonomicSystem(
        q, v, 0.5 * dot(v, v) * dx, lambda mult, v: mult * (v[2] - q[1] * v[0]) * dx, mult
    )


@cache
def spring():
    """A second-order system."""
    return fg.SecondOrderSystem(
        lambda q, v, a, t, w: (a + sin(q)) * w * dx, number().assign(1.0), number()
    )


@cache
def top():
    """A rigid body that turns about a fixed point."""
    q = vector(4)
    q.dat.data_wo[...] = [1.0, 0.0, 0.0, 0.0]
    return fg.RigidBodies(q, vector(3).assign(1.0), inertia=[1.0, 2.0, 3.0])


# --- for Chaplygin's systems ---------------------------------------------------------------------
x, y = dynamicsymbols("x y")
t = dynamicsymbols._t
LAGRANGIAN = (x.diff(t) ** 2 + y.diff(t) ** 2) / 2


@cache
def rolling():
    """A Chaplygin system."""
    return fg.ChaplyginSystem(LAGRANGIAN, [x], {y: sympy.sin(x) * x.diff(t)})


# --- runs ----------------------------------------------------------------------------------------
@cache
def stepper():
    return fg.ImplicitMidpoint(body(), 0.1)


@cache
def history():
    """Of one step."""
    return fg.ImplicitMidpoint(body(), 0.1).run(steps=1, monitors=fg.Energy())
