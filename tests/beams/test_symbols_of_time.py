"""The time in functions of a user's is a symbol: what cannot follow it is refused."""

import math

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    IntervalMesh,
    VectorFunctionSpace,
    as_vector,
    cos,
    dx,
    sin,
)
from verification.beams import SOFT, along

import fdgeom as fg

ONE = fg.copies(1)
V = VectorFunctionSpace(ONE, "DG", 0, dim=1)


def rod(**options):
    return fg.Beam(IntervalMesh(2, 1.0), SOFT, **options)


def forced(residual, **options):
    return fg.SecondOrderSystem(residual, Function(V), Function(V), **options)


def oscillator(q, v, a, t, w):
    return (a[0] + q[0]) * w[0] * dx


def bodies(force):
    q = Function(VectorFunctionSpace(ONE, "DG", 0, dim=4))
    q.dat.data_wo[:, 0] = 1.0
    v = Function(VectorFunctionSpace(ONE, "DG", 0, dim=3))
    return fg.RigidBodies(q, v, inertia=[1, 1, 1], force=force)


class Own(fg.BodyLoad):
    def work(self, rod, g, v, t, virtual):
        return math.exp(t) * virtual[3]


CASES = {
    "residual": lambda: forced(lambda q, v, a, t, w: (a[0] + q[0] - math.cos(2 * t)) * w[0] * dx),
    "bcs": lambda: forced(oscillator, bcs=lambda t: [DirichletBC(V, [math.sin(t)], 1)]),
    "force": lambda: bodies(lambda q, v, t: as_vector([math.sin(t), 0, 0])),
    "load": lambda: rod(loads=fg.Load(force=lambda t: as_vector([0, 0, math.sin(t)]))).rod,
    "load in place": lambda: (
        rod(loads=fg.Load(moment=lambda s, t: as_vector([0, 0, float(2 * t) * s]))).rod
    ),
    "field": lambda: rod(loads=fg.Gravity(lambda t: (0, 0, np.float64(t)))).rod,
    "own": lambda: rod(loads=Own()).rod,
    "position": lambda: fg.GeneralizedAlpha(
        rod(left=fg.GivenPose(position=lambda t: as_vector([0, 0, math.sin(2 * t)]))), 1e-3
    ),
    "orientation": lambda: fg.GeneralizedAlpha(
        rod(left=fg.GivenPose(orientation=lambda t: as_vector([1, 0, 0, math.tan(t)]))), 1e-3
    ),
    "velocity": lambda: rod(left=lambda t: as_vector([0, 0, 0, 0, 0, math.sin(t)])),
    "reference_strain": lambda: rod(
        reference_strain=lambda t: as_vector([math.sin(t), 0, 0, 0, 0, 0])
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    with pytest.raises(TypeError, match=r"the time t is a symbol, not a number: use UFL's funct"):
        CASES[name]()


def test_the_clock_is_a_number():
    """Outside of such functions a beam's time may be read, and in them other Constants."""
    size = Constant(2.0)
    beam = rod(loads=fg.Load(force=lambda t: as_vector([0, 0, float(size) * sin(t)])))
    stepper = fg.GeneralizedAlpha(beam, 1e-3)
    stepper.advance(2)
    assert float(beam.time) == 2e-3
    assert math.sin(beam.time) == math.sin(2e-3)


def test_the_same_by_ufl():
    """q'' + q = cos 2t from rest has q = (cos t - cos 2t)/3."""
    q, v = Function(V), Function(V)
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (a[0] + q[0] - cos(2 * t)) * w[0] * dx, q, v
    )
    fg.GeneralizedAlpha(system, 0.01).advance(300)
    # The method is of order 2; 300 steps of 0.01 leave some 1e-3.
    assert q.dat.data_ro[0] == pytest.approx((math.cos(3) - math.cos(6)) / 3, abs=2e-3)


# --- what a function's one argument is ------------------------------------------------------------
def clamped(load):
    return fg.Beam(IntervalMesh(6, 0.5), SOFT, left="clamped", loads=load)


@pytest.mark.parametrize(
    "force",
    [
        lambda s: as_vector([0, 0, 1e-3 * s]),
        lambda s, t: as_vector([0, 0, 1e-3 * s]),
        lambda x, t: as_vector([0, 0, 1e-3 * x]),
    ],
    ids=["s", "s, t", "x, t"],
)
def test_of_place(force):
    """∫ 1e-3 s ds over 0.5 is 1.25e-4; the trapezoidal rule is exact for it."""
    equilibrium = fg.StaticEquilibrium(clamped(fg.Load(force=force)))
    equilibrium.solve()
    assert equilibrium.reactions()["left"][1][2] == pytest.approx(-1.25e-4, rel=1e-9)


@pytest.mark.parametrize(
    "force",
    [lambda t: (0, 0, 1e-3 * t), lambda time: (0, 0, 1e-3 * time), lambda _: (0, 0, 1e-3)],
    ids=["t", "time", "_"],
)
def test_of_time(force):
    beam = clamped(fg.Load(force=force))
    equilibrium = fg.StaticEquilibrium(beam)
    equilibrium.solve(time=1.0)
    assert equilibrium.reactions()["left"][1][2] == pytest.approx(-5e-4, rel=1e-9)


def test_strain_of_place():
    """A curvature that grows with the arc length."""
    beam = rod(reference_strain=lambda s: as_vector([0, 0, 3 * s, 0, 0, 0]))
    assert along(beam.reference_strain)[:, 2] == pytest.approx([0.75, 2.25])


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: as_vector([0, 0, x]), "(x)"),
        (lambda t, s: as_vector([0, 0, s]), "(t, s)"),
        (lambda: (0, 0, 1), "()"),
        (lambda s, t, x: (0, 0, x), "(s, t, x)"),
    ],
)
def test_other_arguments(function, named):
    end = f"with t for the time and s for the arc length, not {named}"
    with pytest.raises(ValueError, match="^force: the function must take") as caught:
        fg.Load(force=function)
    assert str(caught.value).endswith(end)
    with pytest.raises(ValueError, match="^reference_strain: the function must take") as caught:
        rod(reference_strain=function)
    assert str(caught.value).endswith(end)
