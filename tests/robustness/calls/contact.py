"""Contact of beams with obstacles, and friction."""

import numpy as np
from firedrake import Constant, as_vector
from robustness.calls import small

import fdgeom as fg

FLOOR = fg.Plane((0, 0, 0), (0, 0, 1))
ROUND = fg.Section.circle(0.01, **small.MATERIAL)


def touch(*obstacles, **options):
    return fg.Contact(*(obstacles or (FLOOR,)), **({"stiffness": 1.0} | options))


def beam(contact, z=1.0, section=ROUND):
    """A clamped beam at a height."""
    made = fg.Beam(small.mesh(), section, loads=contact, left="clamped")
    made.reconstruct(position=(0, 0, z))
    return made


def rough():
    return beam(touch(friction=0.3, slip=0.1))


def rising(t):
    return as_vector([0, 0, t - 1])


NUMBER = " must be a positive number, not "
EXPRESSION = " must be a number or a UFL expression, not "
VECTOR = " must be a vector of 3 finite numbers, not "
INSIDE = (
    "loads: the axis of the beam is inside <Plane> at the arc length 0, 0.3 below the surface; move "
    "the beam out, such as by beam.reconstruct(position=..., orientation=...)"
)
UNDETERMINED = (
    "loads: <contact with Plane, with friction>: at rest nothing slips, so friction is undetermined; "
    "take friction=0, or let the beam come to rest in time with damping"
)
NO_SLOPE = (
    "function must depend on x: the body is where it is negative, and its slope in x is the direction "
    "out of it"
)
NO_RADIUS = (
    "radius: the section has none, or the beams have different ones; give Contact a radius, that of "
    "a round tube by which the rod touches (sections made by Section.circle and Section.tube have "
    "one), or each beam its own Contact"
)
WANTED = "obstacles must be a fdgeom.Plane, Sphere, Cylinder, Ring or LevelSet, not "

REFUSALS = [
    (
        "obstacles",
        lambda: fg.Contact(stiffness=1.0),
        ValueError,
        "obstacles: give at least one, such as fdgeom.Plane(point, normal)",
    ),
    ("obstacles", lambda: touch("floor"), TypeError, WANTED + "'floor'"),
    ("obstacles", lambda: touch([FLOOR]), TypeError, WANTED + "[<Plane>]"),
    ("obstacles", lambda: touch(fg.Plane), TypeError, WANTED + "the class Plane"),
    ("stiffness", lambda: touch(stiffness=0), ValueError, "stiffness" + NUMBER + "0"),
    ("stiffness", lambda: touch(stiffness=np.nan), ValueError, "stiffness" + NUMBER + "nan"),
    ("stiffness", lambda: touch(stiffness="k"), TypeError, "stiffness" + EXPRESSION + "'k'"),
    (
        "stiffness",
        lambda: touch(stiffness=np.ones(2)),
        TypeError,
        "stiffness" + EXPRESSION + "array([1., 1.])",
    ),
    (
        "stiffness",
        lambda: touch(stiffness=Constant(-1.0)),
        ValueError,
        "stiffness" + NUMBER + "-1.0",
    ),
    ("radius", lambda: touch(radius=-0.1), ValueError, "radius" + NUMBER + "-0.1"),
    ("radius", lambda: touch(radius="r"), TypeError, "radius" + EXPRESSION + "'r'"),
    ("radius", lambda: beam(touch(), section=small.SECTION).rod, ValueError, NO_RADIUS),
    (
        "radius",
        lambda: beam(touch(fg.Cylinder((0, 0, 0), (1, 0, 0), 0.01, inside=True))).rod,
        ValueError,
        "loads: a rod of radius 0.01 does not fit into <Cylinder, inside> of radius 0.01; give Contact "
        "a smaller radius, or the obstacle a larger one",
    ),
    ("rounding", lambda: touch(rounding=0), ValueError, "rounding" + NUMBER + "0"),
    (
        "friction",
        lambda: touch(friction=-0.1),
        ValueError,
        "friction must be a number that is not negative, not -0.1",
    ),
    (
        "slip",
        lambda: touch(friction=0.1),
        ValueError,
        "slip: with friction give the speed below which it is rounded off, such as 1 % of the speeds "
        "that matter",
    ),
    ("slip", lambda: touch(friction=0.1, slip=0), ValueError, "slip" + NUMBER + "0"),
    (
        "normal",
        lambda: fg.Plane((0, 0, 0), (0, 0, 0)),
        ValueError,
        "normal must not be zero: it is a direction",
    ),
    (
        "normal",
        lambda: fg.Plane((0, 0, 0), rising),
        TypeError,
        "normal must be a vector of 3, not a function: it does not turn in time",
    ),
    ("point", lambda: fg.Plane((0, 0), (0, 0, 1)), ValueError, "point" + VECTOR + "(0, 0)"),
    (
        "point",
        lambda: fg.Plane(lambda t: t, (0, 0, 1)),
        ValueError,
        "point: the function must give a vector of 3, not ()",
    ),
    (
        "inside",
        lambda: fg.Plane((0, 0, 0), (0, 0, 1), inside=1),
        TypeError,
        "inside must be True or False, not 1",
    ),
    ("radius", lambda: fg.Sphere((0, 0, 0), 0), ValueError, "radius" + NUMBER + "0"),
    (
        "centre",
        lambda: fg.Sphere((0, 0, np.inf), 1.0),
        ValueError,
        "centre" + VECTOR + "(0, 0, inf)",
    ),
    (
        "axis",
        lambda: fg.Cylinder((0, 0, 0), (0, 0, 0), 1.0),
        ValueError,
        "axis must not be zero: it is a direction",
    ),
    (
        "spin",
        lambda: fg.Cylinder((0, 0, 0), (0, 0, 1), 1.0, spin="fast"),
        TypeError,
        "spin" + EXPRESSION + "'fast'",
    ),
    (
        "spin",
        lambda: fg.Cylinder((0, 0, 0), (0, 0, 1), 1.0, spin=rising),
        ValueError,
        "spin: the function must give a scalar, not one of shape (3,)",
    ),
    (
        "thickness",
        lambda: fg.Ring((0, 0, 0), (0, 0, 1), 1.0, 2.0),
        ValueError,
        "thickness must be below 2, twice the radius of the ring, not 2: a thicker wire leaves no hole",
    ),
    (
        "function",
        lambda: fg.LevelSet(3.0),
        TypeError,
        "function must be a function of x and t, not 3.0",
    ),
    (
        "function",
        lambda: fg.LevelSet(lambda x: x),
        ValueError,
        "function must give a UFL scalar, not one of shape (3,)",
    ),
    ("function", lambda: fg.LevelSet(lambda x: 1.0), ValueError, NO_SLOPE),
    ("function", lambda: fg.LevelSet(lambda x, t: t), ValueError, NO_SLOPE),
    (
        "velocity",
        lambda: fg.LevelSet(lambda x: x[0], velocity=(0, 0, 1)),
        TypeError,
        "velocity must be a function of x and t, not (0, 0, 1)",
    ),
    (
        "obstacles",
        lambda: fg.Contact(
            fg.LevelSet(lambda x, t: x[2] - t), stiffness=1.0, friction=0.1, slip=0.1
        ),
        ValueError,
        "obstacles: friction needs the velocity of a surface that moves: give "
        "fdgeom.LevelSet(function, velocity=lambda x, t: ...)",
    ),
    ("loads", lambda: fg.EnergyMomentum(beam(touch(), z=-0.3), 0.1), ValueError, INSIDE),
    ("loads", lambda: fg.ImplicitMidpoint(beam(touch(), z=-0.3), 0.1), ValueError, INSIDE),
    ("loads", lambda: fg.StaticEquilibrium(beam(touch(), z=-0.3)), ValueError, INSIDE),
    ("loads", lambda: fg.StaticEquilibrium(rough()), ValueError, UNDETERMINED),
    ("loads", lambda: fg.VibrationModes(rough(), 2), ValueError, UNDETERMINED),
    (
        "loads",
        lambda: fg.VibrationModes(beam(touch(fg.Sphere(rising, 0.1))), 2),
        ValueError,
        "loads: <contact with Sphere> has an obstacle that moves in time, so there is no equilibrium to "
        "vibrate about; give the obstacle a fixed place",
    ),
    (
        "system",
        lambda: fg.VariationalIntegrator(rough(), 0.1),
        ValueError,
        "system: a load that depends on the velocity has no place in VariationalIntegrator, whose forces "
        "are those of a configuration; take GeneralizedAlpha or EnergyMomentum",
    ),
    (
        "ContactMonitor",
        lambda: fg.ContactMonitor().bind(beam([])),
        TypeError,
        "ContactMonitor() needs a beam or an assembly with a fdgeom.Contact among its loads, and Beam "
        "has none",
    ),
]
