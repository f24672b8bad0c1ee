"""Loads: forces, moments, gravity, damping."""

import math

import numpy as np
from firedrake import as_vector, dot
from robustness.calls import small

import fdgeom as fg


def load(work=None, potential=None):
    """A load of the user's own on a beam."""
    methods = {name: f for name, f in (("work", work), ("potential", potential)) if f is not None}
    made = type("Wind", (fg.BodyLoad,), methods)()
    return fg.Beam(small.mesh(), small.SECTION, loads=made)


def force(virtual):
    return as_vector([virtual[3], virtual[4], virtual[5]])


REFUSALS = [
    ("force", lambda: fg.Load(), ValueError, "Load: give force, moment, or both"),
    (
        "force",
        lambda: fg.Load(force=(0, 1)),
        ValueError,
        "force must be a vector of 3 finite numbers, not (0, 1)",
    ),
    (
        "force",
        lambda: fg.Load(force="up"),
        TypeError,
        "force must be a vector of 3 finite numbers, not 'up'",
    ),
    (
        "force",
        lambda: fg.Load(force=(0, 0, np.inf)),
        ValueError,
        "force must be a vector of 3 finite numbers, not (0, 0, inf)",
    ),
    (
        "force",
        lambda: fg.Load(force=3.0),
        ValueError,
        "force must be a vector of 3 finite numbers, not 3.0",
    ),
    (
        "force",
        lambda: fg.Load(force=as_vector([0, 1])),
        ValueError,
        "force must be a vector of 3, not of shape (2,)",
    ),
    (
        "force",
        lambda: fg.Load(force=lambda a, b, c: as_vector([a, b, c])),
        ValueError,
        "force: the function must take (t), (s) or (s, t), with t for the time and s for the arc "
        "length, not (a, b, c)",
    ),
    (
        "force",
        lambda: fg.Load(force=lambda x: as_vector([0, 0, x])),
        ValueError,
        "force: the function must take (t), (s) or (s, t), with t for the time and s for the arc "
        "length, not (x)",
    ),
    (
        "reference_strain",
        lambda: fg.Beam(
            small.mesh(), small.SECTION, reference_strain=lambda x: as_vector([x, 0, 0, 0, 0, 0])
        ),
        ValueError,
        "reference_strain: the function must take (t), (s) or (s, t), with t for the time and s for "
        "the arc length, not (x)",
    ),
    (
        "force",
        lambda: fg.Beam(
            small.mesh(), small.SECTION, loads=fg.Load(force=lambda t: (0, 0, math.sin(t)))
        ).rod.external_work(None, None),
        TypeError,
        "force: the function must give a UFL vector of 3: the time t is a symbol, not a number: use "
        "UFL's functions, such as sin(t), cos(t) and conditional(lt(t, 1), t, 1), not those of math "
        "and NumPy",
    ),
    (
        "force",
        lambda: fg.Beam(
            small.mesh(), small.SECTION, loads=fg.Load(force=lambda t: as_vector([t, 0]))
        ).rod.external_work(None, None),
        ValueError,
        "force: the function must give a vector of 3, not (2,)",
    ),
    (
        "moment",
        lambda: fg.Load(moment=(1, 2, 3, 4)),
        ValueError,
        "moment must be a vector of 3 finite numbers, not (1, 2, 3, 4)",
    ),
    (
        "moment",
        lambda: fg.Load(moment={"z": 1}),
        TypeError,
        "moment must be a vector of 3 finite numbers, not {'z': 1}",
    ),
    (
        "frame",
        lambda: fg.Load(force=(0, 0, 1), frame="global"),
        ValueError,
        "frame must be 'space' (a dead load) or 'body' (a follower load), not 'global'",
    ),
    (
        "frame",
        lambda: fg.Load(force=(0, 0, 1), frame=None),
        ValueError,
        "frame must be 'space' (a dead load) or 'body' (a follower load), not None",
    ),
    (
        "acceleration",
        lambda: fg.Gravity(9.81),
        ValueError,
        "acceleration must be a vector of 3 finite numbers, not 9.81",
    ),
    (
        "acceleration",
        lambda: fg.Gravity((0, -9.81)),
        ValueError,
        "acceleration must be a vector of 3 finite numbers, not (0, -9.81)",
    ),
    (
        "acceleration",
        lambda: fg.Gravity("down"),
        TypeError,
        "acceleration must be a vector of 3 finite numbers, not 'down'",
    ),
    (
        "loads",
        lambda: fg.Beam(small.mesh(), small.SECTION, loads=(0, 0, 1)),
        TypeError,
        "loads must be fdgeom.Load or fdgeom.Gravity, or several, not 0",
    ),
    (
        "loads",
        lambda: fg.Beam(small.mesh(), small.SECTION, loads="gravity"),
        TypeError,
        "loads must be fdgeom.Load or fdgeom.Gravity, or several, not 'gravity'",
    ),
    (
        "loads",
        lambda: fg.Beam(small.mesh(), small.SECTION, loads=fg.Load),
        TypeError,
        "loads must be fdgeom.Load or fdgeom.Gravity, or several, not the class Load",
    ),
    (
        "loads",
        lambda: fg.Beam(small.mesh(), small.SECTION, loads=[fg.Gravity((0, 0, -9.81)), None]),
        TypeError,
        "loads must be fdgeom.Load or fdgeom.Gravity, or several, not None",
    ),
    (
        "at",
        lambda: fg.StaticEquilibrium(
            fg.Beam(
                small.mesh(), small.SECTION, left="clamped", loads=fg.Load(force=(0, 0, 1), at=0.3)
            )
        ),
        ValueError,
        "at: the mesh of the beam has no node at 0.3; the nearest is at 0.25",
    ),
    (
        "at",
        lambda: fg.StaticEquilibrium(
            fg.Beam(
                small.mesh(), small.SECTION, left="clamped", loads=fg.Load(force=(0, 0, 1), at=2.0)
            )
        ),
        ValueError,
        "at: the mesh of the beam has no node at 2.0; the nearest is at 1",
    ),
    (
        "at",
        lambda: fg.StaticEquilibrium(
            fg.Beam(
                small.mesh(),
                small.SECTION,
                left="clamped",
                loads=fg.Load(force=(0, 0, 1), at="tip"),
            )
        ),
        ValueError,
        "at must be 'left', 'right' or the arc length of a node, not 'tip'",
    ),
    (
        "damping",
        lambda: fg.Beam(small.mesh(), small.SECTION, damping=-1.0).rod,
        ValueError,
        "damping must be a number that is not negative, not -1.0",
    ),
    (
        "damping",
        lambda: fg.Beam(small.mesh(), small.SECTION, damping=np.eye(3)).rod,
        ValueError,
        "damping must be a time or a 6×6 matrix, not of shape (3, 3)",
    ),
    (
        "damping",
        lambda: fg.Beam(small.mesh(), small.SECTION, damping=-np.eye(6)).rod,
        ValueError,
        "damping must be symmetric and positive semidefinite everywhere",
    ),
    (
        "damping",
        lambda: fg.SymmetricPoissonIntegrator(small.damped(), 0.01),
        ValueError,
        (
            "damping: steppers on strain and momentum do not support it (their bracket is "
            "antisymmetric); take a method in configuration form, such as GeneralizedAlpha"
        ),
    ),
    (
        "time",
        lambda: fg.SymmetricPoissonIntegrator(
            fg.Beam(
                small.mesh(),
                small.SECTION,
                loads=fg.Load(force=lambda t: as_vector([t, 0, 0]), at="right"),
            ),
            0.01,
        ),
        ValueError,
        (
            "<dead force at 'right'> depends on the time, and steppers on strain and "
            "momentum evaluate it at the end of a step only; change a Constant between "
            "steps, or take GeneralizedAlpha"
        ),
    ),
    (
        "loads",
        lambda: load().rod,
        ValueError,
        "loads: Wind must have a method work or potential",
    ),
    (
        "loads",
        lambda: load(work=lambda self, rod, g, v, t, virtual: force(virtual)).rod,
        ValueError,
        "loads: the work of Wind must be a scalar, not of shape (3,)",
    ),
    (
        "loads",
        lambda: load(work=lambda self, rod, g, v, t, virtual: None).rod,
        ValueError,
        "loads: the work of Wind gives no UFL expression: …",
    ),
    (
        "loads",
        lambda: load(work=lambda self, g, virtual: virtual[3]).rod,
        ValueError,
        "loads: the work of Wind gives no UFL expression: …",
    ),
    (
        "loads",
        lambda: (
            load(work=lambda self, rod, g, v, t, virtual: dot(force(virtual), force(virtual))).rod
        ),
        ValueError,
        "loads: the work of Wind must be linear in the virtual displacement",
    ),
    (
        "loads",
        lambda: load(potential=lambda self, rod, g, t: g[0]).rod,
        ValueError,
        "loads: the potential of Wind must be a scalar, not of shape (3,)",
    ),
    (
        "at",
        lambda: load(potential=lambda self, rod, g, t: rod.place("tip") * g[0][2]).rod,
        ValueError,
        (
            "loads: the potential of Wind gives no UFL expression: at must be 'left', 'right' or the "
            "arc length of a node, not 'tip'"
        ),
    ),
    (
        "system",
        lambda: fg.VariationalIntegrator(
            load(work=lambda self, rod, g, v, t, virtual: -v[3] * virtual[3]), 0.01
        ),
        ValueError,
        (
            "system: a load that depends on the velocity has no place in VariationalIntegrator, "
            "whose forces are those of a configuration; take GeneralizedAlpha or EnergyMomentum"
        ),
    ),
    (
        "time",
        lambda: fg.ImplicitMidpoint(
            load(work=lambda self, rod, g, v, t, virtual: t * virtual[3]), 0.01
        ),
        ValueError,
        (
            "<Wind> depends on the time, and steppers on strain and momentum evaluate it at "
            "the end of a step only; change a Constant between steps, or take "
            "GeneralizedAlpha"
        ),
    ),
    (
        "force",
        lambda: fg.Load(force=int),
        TypeError,
        "force must be a vector of 3 finite numbers, not the class int",
    ),
]
