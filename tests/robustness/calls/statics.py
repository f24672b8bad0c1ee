"""Equilibria and modes of vibration."""

import numpy as np
from firedrake import Function, FunctionSpace, as_vector
from robustness.calls import small

import fdgeom as fg


def _hung(kind, force=None):
    """A clamped beam and one that is joined to its end."""
    loads = [] if force is None else [fg.Load(force=force, at="right")]
    beams = [
        fg.Beam(small.mesh(), small.SECTION, left="clamped"),
        fg.Beam(small.mesh(), small.SECTION, loads=loads),
    ]
    beams[1].reconstruct(position=(1.0, 0.0, 0.0))
    return fg.Assembly(beams, [kind(beams[0].right, beams[1].left)])


def _apart():
    """Its second beam was moved aside."""
    assembly = _hung(fg.Rigid)
    assembly.beams[1].reconstruct(position=(1.0, 0.1, 0.0))
    return assembly


REFUSALS = [
    ("beam", lambda: fg.StaticEquilibrium(3.0), TypeError, "beam must be a fdgeom.Beam, not float"),
    (
        "beam",
        lambda: fg.StaticEquilibrium(small.assembly()),
        ValueError,
        (
            "beam: nothing holds the assembly, so it has no equilibrium of its own; clamp an end of "
            "one of its beams, by left='clamped', or join it to fdgeom.ground"
        ),
    ),
    (
        "beam",
        lambda: fg.StaticEquilibrium([small.clamped()]),
        TypeError,
        "beam must be a fdgeom.Beam, not list",
    ),
    (
        "joints",
        lambda: fg.StaticEquilibrium(_apart()),
        ValueError,
        (
            "the start does not fulfil the conditions of the joints: it is off by 0.1. Set a "
            "configuration and velocities that fulfil them"
        ),
    ),
    (
        "loads",
        lambda: fg.StaticEquilibrium(_hung(fg.Rigid)).follow(0.1),
        ValueError,
        "loads: an assembly without loads has no path to follow; give it loads",
    ),
    (
        "joint",
        lambda: fg.StaticEquilibrium(_hung(fg.Rigid)).force(small.hinge()),
        ValueError,
        "joint must be a joint of this assembly, not <Spherical joint of the right end and "
        "the left end>",
    ),
    (
        "side",
        lambda: fg.StaticEquilibrium(_hung(fg.Rigid)).moment(small.hinge(), "third"),
        ValueError,
        "side must be one of 'first', 'second', not 'third'",
    ),
    (
        "beam",
        lambda: fg.StaticEquilibrium(_hung(fg.Rigid)).stress_at(0.5, small.clamped()),
        ValueError,
        "beam must be one of the beams of this equilibrium",
    ),
    (
        "beams[1] can still move as a rigid body",
        lambda: fg.StaticEquilibrium(_hung(fg.Spherical, (0, 0, 1))).solve(),
        fg.LoadStepFailed,
        (
            "load step 1 from the load factor 0 failed: … The configuration is the one before this "
            "step; beams[1] can still move as a rigid body in 3 independent ways, in joints[0]: "
            "hold that too, such as by clamping an end."
        ),
    ),
    (
        "beam",
        lambda: fg.StaticEquilibrium(small.clamped().motion),
        TypeError,
        "beam must be a fdgeom.Beam, not BeamMotion: give the beam itself",
    ),
    (
        "beam",
        lambda: fg.StaticEquilibrium(small.body()),
        TypeError,
        "beam must be a fdgeom.Beam, not PoissonSystem",
    ),
    (
        "left",
        lambda: fg.StaticEquilibrium(small.beam()),
        ValueError,
        (
            "left, right: nothing holds the beam, so it has no equilibrium of its own; "
            "clamp an end, by left='clamped', or pin or slide both"
        ),
    ),
    (
        "degree",
        lambda: fg.StaticEquilibrium(small.fine()),
        ValueError,
        "degree: the configuration form has beams of degree 1 only",
    ),
    (
        "left",
        lambda: fg.StaticEquilibrium(
            fg.Beam(small.mesh(), small.SECTION, left=lambda t: as_vector([0] * 5 + [t]))
        ),
        ValueError,
        (
            "left: methods in configuration form need the pose of this end, not its "
            "velocity: use fdgeom.GivenPose(position=..., orientation=...)"
        ),
    ),
    (
        "solver_parameters",
        lambda: fg.StaticEquilibrium(small.clamped(), solver_parameters=3),
        TypeError,
        "solver_parameters must be a dict of PETSc options, not 3",
    ),
    (
        "snes_rtoll",
        lambda: fg.StaticEquilibrium(small.clamped(), solver_parameters={"snes_rtoll": 1e-8}),
        ValueError,
        (
            "solver_parameters: PETSc does not know the option 'snes_rtoll'; did you mean "
            "'snes_rtol'?"
        ),
    ),
    (
        "snes_type",
        lambda: fg.StaticEquilibrium(small.clamped(), solver_parameters={"snes_type": "newton"}),
        ValueError,
        "solver_parameters: 'snes_type' cannot be 'newton'; did you mean 'newtontr'? (PETSc: …)",
    ),
    (
        "load",
        lambda: fg.StaticEquilibrium(small.clamped()).solve(
            Function(FunctionSpace(small.mesh(), "R", 0))
        ),
        TypeError,
        "load must be a number, not a Function",
    ),
    (
        "load",
        lambda: fg.StaticEquilibrium(small.clamped()).solve("full"),
        TypeError,
        "load must be a number, not 'full'",
    ),
    (
        "load",
        lambda: fg.StaticEquilibrium(small.clamped()).solve(np.nan),
        ValueError,
        "load must be a finite number, not nan",
    ),
    (
        "steps",
        lambda: fg.StaticEquilibrium(small.clamped()).solve(steps=0),
        ValueError,
        "steps must be a positive whole number, not 0",
    ),
    (
        "halvings",
        lambda: fg.StaticEquilibrium(small.clamped()).solve(halvings=-1),
        ValueError,
        "halvings must be a whole number that is not negative, not -1",
    ),
    (
        "time",
        lambda: fg.StaticEquilibrium(small.clamped()).solve(time="late"),
        TypeError,
        "time must be a number, not 'late'",
    ),
    (
        "step",
        lambda: fg.StaticEquilibrium(small.clamped()).follow(0),
        ValueError,
        "step must not be zero",
    ),
    (
        "step",
        lambda: fg.StaticEquilibrium(small.clamped()).follow("far"),
        TypeError,
        "step must be a number, not 'far'",
    ),
    (
        "steps",
        lambda: fg.StaticEquilibrium(small.clamped()).follow(0.1, steps=1.5),
        ValueError,
        "steps must be a positive whole number, not 1.5",
    ),
    (
        "loads",
        lambda: fg.StaticEquilibrium(fg.Beam(small.mesh(), small.SECTION, left="clamped")).follow(
            0.1
        ),
        ValueError,
        "loads: a beam without loads has no path to follow; give it loads",
    ),
    (
        "the beam can still move as a rigid body",
        lambda: fg.StaticEquilibrium(
            fg.Beam(
                small.mesh(),
                small.SECTION,
                left="pinned",
                loads=fg.Load(force=(0, 0, 1), at="right"),
            )
        ).solve(),
        fg.LoadStepFailed,
        (
            "load step 1 from the load factor 0 failed: SNES stopped with "
            "DIVERGED_LINEAR_SOLVE after 0 iterations (residual norm …). The configuration "
            "is the one before this step; the beam can still move as a rigid body in 3 "
            "independent ways: hold that too, such as by clamping an end."
        ),
    ),
    ("beam", lambda: fg.VibrationModes(3.0), TypeError, "beam must be a fdgeom.Beam, not float"),
    (
        "k",
        lambda: fg.VibrationModes(small.clamped(), 2, load=0.0).eigenvalue(2),
        ValueError,
        "k must be a whole number from 0 to 1, not 2",
    ),
    (
        "number",
        lambda: fg.VibrationModes(small.assembly(), 58),
        ValueError,
        "number must be a whole number from 1 to 55, not 58",
    ),
    (
        "joints",
        lambda: fg.VibrationModes(_apart()),
        ValueError,
        (
            "the start does not fulfil the conditions of the joints: it is off by 0.1. Set a "
            "configuration and velocities that fulfil them"
        ),
    ),
    (
        "number",
        lambda: fg.VibrationModes(small.clamped(), 0),
        ValueError,
        "number must be a whole number from 1 to 22, not 0",
    ),
    (
        "number",
        lambda: fg.VibrationModes(small.clamped(), 1000),
        ValueError,
        "number must be a whole number from 1 to 22, not 1000",
    ),
    (
        "number",
        lambda: fg.VibrationModes(small.clamped(), "all"),
        ValueError,
        "number must be a whole number from 1 to 22, not 'all'",
    ),
    (
        "load",
        lambda: fg.VibrationModes(small.clamped(), 2, load="full"),
        TypeError,
        "load must be a number, not 'full'",
    ),
    (
        "beam",
        lambda: fg.VibrationModes(small.clamped(), 2),
        ValueError,
        (
            "beam: its configuration is not an equilibrium at that load (unbalanced by 1, "
            "forces up to 1): solve for one with fdgeom.StaticEquilibrium"
        ),
    ),
]
