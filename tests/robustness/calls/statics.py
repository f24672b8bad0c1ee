"""Equilibria and modes of vibration."""

import numpy as np
from firedrake import as_vector
from robustness.calls import small

import fdgeom as fg

REFUSALS = [
    ("beam", lambda: fg.StaticEquilibrium(3.0), TypeError, "beam must be a fdgeom.Beam, not float"),
    (
        "beam",
        lambda: fg.StaticEquilibrium(small.assembly()),
        TypeError,
        (
            "beam must be a fdgeom.Beam, not Assembly: statics and modes are of one beam, "
            "by itself; an assembly comes to rest by GeneralizedAlpha with damping"
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
            "left: a velocity is given there; in configuration form the pose must be: use "
            "fdgeom.GivenPose(position=..., orientation=...)"
        ),
    ),
    (
        "solver_parameters",
        lambda: fg.StaticEquilibrium(small.clamped(), solver_parameters=3),
        TypeError,
        "solver_parameters must be a dict of PETSc options, not int",
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
        lambda: fg.StaticEquilibrium(small.clamped()).solve("full"),
        ValueError,
        "load must be a finite number, not 'full'",
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
        "steps must be a whole number of at least 1, not 0",
    ),
    (
        "halvings",
        lambda: fg.StaticEquilibrium(small.clamped()).solve(halvings=-1),
        ValueError,
        "halvings must be a whole number of at least 0, not -1",
    ),
    (
        "time",
        lambda: fg.StaticEquilibrium(small.clamped()).solve(time="late"),
        ValueError,
        "time must be a finite number, not 'late'",
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
        ValueError,
        "step must be a finite number, not 'far'",
    ),
    (
        "steps",
        lambda: fg.StaticEquilibrium(small.clamped()).follow(0.1, steps=1.5),
        ValueError,
        "steps must be a whole number of at least 1, not 1.5",
    ),
    (
        "loads",
        lambda: fg.StaticEquilibrium(fg.Beam(small.mesh(), small.SECTION, left="clamped")).follow(
            0.1
        ),
        ValueError,
        "loads: a beam without loads has no path to follow",
    ),
    (
        "turn about its left end",
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
            "is the one before this step; the beam can still turn about its left end: hold "
            "that too, such as by clamping an end."
        ),
    ),
    ("beam", lambda: fg.VibrationModes(3.0), TypeError, "beam must be a fdgeom.Beam, not float"),
    (
        "beam",
        lambda: fg.VibrationModes(small.assembly()),
        TypeError,
        (
            "beam must be a fdgeom.Beam, not Assembly: statics and modes are of one beam, "
            "by itself; an assembly comes to rest by GeneralizedAlpha with damping"
        ),
    ),
    (
        "number",
        lambda: fg.VibrationModes(small.clamped(), 0),
        ValueError,
        "number must be a whole number from 1 to 22 for this beam, not 0",
    ),
    (
        "number",
        lambda: fg.VibrationModes(small.clamped(), 1000),
        ValueError,
        "number must be a whole number from 1 to 22 for this beam, not 1000",
    ),
    (
        "number",
        lambda: fg.VibrationModes(small.clamped(), "all"),
        ValueError,
        "number must be a whole number from 1 to 22 for this beam, not 'all'",
    ),
    (
        "load",
        lambda: fg.VibrationModes(small.clamped(), 2, load="full"),
        ValueError,
        "load must be a finite number, not 'full'",
    ),
    (
        "beam",
        lambda: fg.VibrationModes(small.clamped(), 2),
        ValueError,
        (
            "beam: its configuration is no equilibrium at that load (unbalanced by 1, "
            "forces up to 1): solve for one with fdgeom.StaticEquilibrium"
        ),
    ),
]
