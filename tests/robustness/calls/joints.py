"""Joints, bodies at nodes, and assemblies of beams."""

import numpy as np
from firedrake import as_vector
from robustness.calls import small

import fdgeom as fg

REFUSALS = [
    (
        "first",
        lambda: fg.Spherical(small.beam(), small.beam().right),
        TypeError,
        (
            "first must be a place such as beam.left, beam.right, beam.at(s) or "
            "fdgeom.ground, not a Beam"
        ),
    ),
    (
        "second",
        lambda: fg.Spherical(fg.ground, "left"),
        TypeError,
        (
            "second must be a place such as beam.left, beam.right, beam.at(s) or "
            "fdgeom.ground, not 'left'"
        ),
    ),
    (
        "ground",
        lambda: fg.Spherical(fg.ground, fg.ground),
        ValueError,
        "Spherical: the ground cannot be joined to itself; give a beam",
    ),
    (
        "itself",
        lambda: fg.Spherical(small.beam().left, small.beam().left),
        ValueError,
        "Spherical: the left end cannot be joined to itself; give another place",
    ),
    (
        "rest",
        lambda: fg.Revolute(fg.ground, small.beam().left, axis=(0, 0, 1), stiffness=1, rest=4),
        ValueError,
        (
            "rest must be an angle between -pi and pi, not 4.0; the angle of a Revolute joint with a "
            "spring stays within half a turn"
        ),
    ),
    (
        "axis",
        lambda: fg.Revolute(fg.ground, small.beam().left),
        ValueError,
        "Revolute: axis is missing: give a vector of 3 in the space frame",
    ),
    (
        "axis",
        lambda: fg.Revolute(fg.ground, small.beam().left, axis=(0, 0, 0)),
        ValueError,
        "axis must be a vector of 3 finite numbers, not all zero, not (0, 0, 0)",
    ),
    (
        "axis",
        lambda: fg.Revolute(fg.ground, small.beam().left, axis="z"),
        TypeError,
        "axis must be a vector of 3 finite numbers, not all zero, not 'z'",
    ),
    (
        "axis",
        lambda: fg.Prismatic(fg.ground, small.beam().left, axis=(1, 0)),
        ValueError,
        "axis must be a vector of 3 finite numbers, not all zero, not (1, 0)",
    ),
    (
        "axis",
        lambda: fg.Prismatic(fg.ground, small.beam().left, axis=(1, 0, np.nan)),
        ValueError,
        "axis must be a vector of 3 finite numbers, not all zero, not (1, 0, nan)",
    ),
    (
        "stiffness",
        lambda: fg.Revolute(fg.ground, small.beam().left, axis=(0, 0, 1), stiffness=-1.0),
        ValueError,
        "stiffness must be a number that is not negative, not -1.0",
    ),
    (
        "stiffness",
        lambda: fg.Revolute(fg.ground, small.beam().left, axis=(0, 0, 1), stiffness="soft"),
        TypeError,
        "stiffness must be a number, not 'soft'",
    ),
    (
        "damping",
        lambda: fg.Revolute(fg.ground, small.beam().left, axis=(0, 0, 1), damping=np.inf),
        ValueError,
        "damping must be a number that is not negative, not inf",
    ),
    (
        "damping",
        lambda: fg.Spherical(fg.ground, small.beam().left, damping=None),
        TypeError,
        "damping must be a number, not None",
    ),
    (
        "rest",
        lambda: fg.Revolute(fg.ground, small.beam().left, axis=(0, 0, 1), rest="open"),
        TypeError,
        "rest must be a number, not 'open'",
    ),
    (
        "rest",
        lambda: fg.Prismatic(fg.ground, small.beam().left, axis=(0, 0, 1), rest=np.nan),
        ValueError,
        "rest must be a finite number, not nan",
    ),
    (
        "at",
        lambda: fg.PointBody("tip", mass=1.0),
        TypeError,
        (
            "at must be a place such as beam.left, beam.right, beam.at(s) or fdgeom.ground,"
            " not 'tip'"
        ),
    ),
    (
        "at",
        lambda: fg.PointBody(fg.ground, mass=1.0),
        ValueError,
        "at: a body on the ground does not move; give a node of a beam",
    ),
    (
        "mass",
        lambda: fg.PointBody(small.beam().right),
        TypeError,
        "PointBody.__init__() missing 1 required keyword-only argument: 'mass'",
    ),
    (
        "mass",
        lambda: fg.PointBody(small.beam().right, mass=-1.0),
        ValueError,
        "mass must be a number that is not negative, not -1.0",
    ),
    (
        "mass",
        lambda: fg.PointBody(small.beam().right, mass="heavy"),
        TypeError,
        "mass must be a number, not 'heavy'",
    ),
    (
        "mass",
        lambda: fg.PointBody(small.beam().right, mass=np.nan),
        ValueError,
        "mass must be a number that is not negative, not nan",
    ),
    (
        "inertia",
        lambda: fg.PointBody(small.beam().right, mass=1.0, inertia=np.eye(2)),
        ValueError,
        (
            "inertia must be a symmetric 3×3 matrix of finite numbers, or its diagonal, not "
            "an array of shape (2, 2)"
        ),
    ),
    (
        "inertia",
        lambda: fg.PointBody(small.beam().right, mass=1.0, inertia=(1, 1, -1)),
        ValueError,
        "inertia must be positive semidefinite",
    ),
    (
        "inertia",
        lambda: fg.PointBody(small.beam().right, mass=1.0, inertia=(1, 1, 5)),
        ValueError,
        "inertia: each principal moment must be at most the sum of the other two (the sum "
        "for a thin plate)",
    ),
    (
        "inertia",
        lambda: fg.PointBody(small.beam().right, mass=1.0, inertia="round"),
        TypeError,
        ("inertia must be a symmetric 3×3 matrix of finite numbers, or its diagonal, not 'round'"),
    ),
    (
        "offset",
        lambda: fg.PointBody(small.beam().right, mass=1.0, offset=1.0),
        ValueError,
        "offset must be a vector of 3 finite numbers, not 1.0",
    ),
    (
        "offset",
        lambda: fg.PointBody(small.beam().right, mass=1.0, offset="up"),
        TypeError,
        "offset must be a vector of 3 finite numbers, not 'up'",
    ),
    ("beams", lambda: fg.Assembly([]), ValueError, "beams must not be empty"),
    (
        "beams",
        lambda: fg.Assembly([small.beam(), small.beam()]),
        ValueError,
        "beams must be different from one another",
    ),
    (
        "beams",
        lambda: fg.Assembly([small.body()]),
        TypeError,
        "beams must be a sequence of Beam, not a PoissonSystem",
    ),
    (
        "beams",
        lambda: fg.Assembly([small.fine()]),
        ValueError,
        "beams must be of degree 1, as the configuration form needs",
    ),
    (
        "beams",
        lambda: fg.Assembly(
            [small.beam(), fg.Beam(small.mesh(), small.SECTION, strain_measure="se3")]
        ),
        ValueError,
        "beams must have one strain measure, not 'simo-reissner' and 'se3'",
    ),
    (
        "joints",
        lambda: fg.Assembly([small.beam()], ["hinge"]),
        TypeError,
        "joints must be a sequence of Joint, not 'hinge'",
    ),
    (
        "joints",
        lambda: fg.Assembly(small.two(), fg.Spherical),
        TypeError,
        "joints must be a sequence of Joint, not the class Spherical",
    ),
    (
        "joints",
        lambda: fg.Assembly(small.two(), fg.Spherical(small.two()[0].left, small.two()[1].left)),
        ValueError,
        (
            "joints: <Spherical joint of the left end and the left end>: the nodes do not "
            "meet, they are 1 apart; move a beam there first, such as by "
            "beam.reconstruct(position=..., orientation=...)"
        ),
    ),
    (
        "joints",
        lambda: fg.Assembly(
            small.two(), fg.Prismatic(small.two()[0].left, small.two()[1].left, axis=(0, 0, 1))
        ),
        ValueError,
        (
            "joints: <Prismatic joint of the left end and the left end>: the nodes are not "
            "on one line along its axis (off by 1); move a beam, or turn the axis"
        ),
    ),
    (
        "joints",
        lambda: fg.Assembly(
            small.two(), [small.hinge(), fg.Rigid(small.two()[0].right, small.two()[1].left)]
        ),
        ValueError,
        (
            "joints: <Rigid joint of the right end and the left end> is over-constrained: "
            "other joints or supports already connect the same nodes. Leave it out, or "
            "replace them all by one joint"
        ),
    ),
    (
        "beams",
        lambda: fg.Assembly([small.beam()], small.hinge()),
        ValueError,
        "joints, bodies: the right end: its beam is not in the assembly; add it to beams=[...]",
    ),
    (
        "bodies",
        lambda: fg.Assembly(small.two(), small.hinge(), bodies=3.0),
        TypeError,
        "bodies must be a sequence of PointBody, not 3.0",
    ),
    (
        "bodies",
        lambda: fg.Assembly(
            small.two(), small.hinge(), bodies=fg.PointBody(small.beam().left, mass=1.0)
        ),
        ValueError,
        "joints, bodies: the left end: its beam is not in the assembly; add it to beams=[...]",
    ),
    (
        "loads",
        lambda: fg.Assembly(small.two(), small.hinge(), loads=fg.Load(force=(0, 0, 1))),
        TypeError,
        (
            "loads: <dead force along the rod> acts on one beam; give it to that beam. Loads "
            "of an Assembly act on all beams, such as Gravity"
        ),
    ),
    (
        "loads",
        lambda: fg.Assembly(small.two(), small.hinge(), loads=9.81),
        TypeError,
        "loads must be fdgeom.Load or fdgeom.Gravity, or several, not 9.81",
    ),
    (
        "left",
        lambda: fg.Assembly(
            [fg.Beam(small.mesh(), small.SECTION, left=lambda t: as_vector([0] * 5 + [t]))]
        ),
        ValueError,
        (
            "left: methods in configuration form need the pose of this end, not its "
            "velocity: use fdgeom.GivenPose(position=..., orientation=...)"
        ),
    ),
    (
        "joint",
        lambda: small.assembly().force(fg.Spherical(fg.ground, small.beam().left)),
        ValueError,
        "joint must be a joint of this assembly, not <Spherical joint of the ground and the "
        "left end>",
    ),
    (
        "joint",
        lambda: small.assembly().force("hinge"),
        ValueError,
        "joint must be a joint of this assembly, not 'hinge'",
    ),
    (
        "at",
        lambda: fg.Assembly(small.two(), fg.Spherical(small.two()[0].at(0.4), small.two()[1].left)),
        ValueError,
        "at: the mesh of the beam has no node at 0.4; the nearest is at 0.5",
    ),
    (
        "ground",
        lambda: fg.Rigid(fg.ground, fg.ground),
        ValueError,
        "Rigid: the ground cannot be joined to itself; give a beam",
    ),
]
