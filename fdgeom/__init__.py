"""Geometric mechanics for Firedrake: beams, mechanical systems and their time integrators.

This file lists the public names. The package is layered; the subpackages in the order of their
imports are `lie` (groups), `operations` (the parts of a step, with their derivatives, and dependent
fields), `compile` and `execution` (operations in compiled code, and by PETSc), `systems` (base
classes of all systems), `sections` and `beams`, `steppers` (time integrators), `adjoint`
(derivatives of steps), `statics`, and `recording` (runs and output). Each imports only those before
it. The modules beside them serve all subpackages.
"""

from fdgeom import analysis, beams, lie, measures, sections, statics, steppers, systems
from fdgeom.adjoint import gradient
from fdgeom.beams import (
    Assembly,
    Beam,
    BodyLoad,
    Contact,
    Cylinder,
    GivenPose,
    Gravity,
    Joint,
    LevelSet,
    Load,
    Plane,
    PointBody,
    Prismatic,
    Revolute,
    Rigid,
    Ring,
    Section,
    SectionLaw,
    Sliding,
    Sphere,
    Spherical,
    ground,
)
from fdgeom.compile.snes_types import ChainLU, ChainNewton, LocalNewton
from fdgeom.errors import LoadStepFailed, StepFailed
from fdgeom.forms import simplify
from fdgeom.line import nodal_values
from fdgeom.operations import Assemble, Flow, Map, Solve
from fdgeom.recording import (
    Casimir,
    Checkpoint,
    ConstraintDefect,
    ContactMonitor,
    CSVFile,
    Energy,
    Functional,
    History,
    Momentum,
    Probe,
    Reactions,
    Snapshots,
    VTKOutput,
    animate,
    plot_energy,
    plot_momentum,
    plot_section,
    plot_shapes,
    plot_solid,
    resume,
    run,
    save,
    save_scene,
    space_axes,
)
from fdgeom.sections import Isotropic, Orthotropic, Ply, TsaiWu, VonMises
from fdgeom.statics import StaticEquilibrium, VibrationModes
from fdgeom.steppers import (
    RATTLE,
    SHAKE,
    AlphaScheme,
    Composition,
    DiscreteGradient,
    DiscreteLagrangian,
    EnergyMomentum,
    FourthOrderAlpha,
    GaussLegendre,
    GeneralizedAlpha,
    GeneratingFunction4,
    HamelFieldIntegrator,
    HermiteSimpson,
    ImplicitMidpoint,
    NonholonomicMidpoint,
    PoissonIntegrator,
    RungeKutta4,
    Splitting,
    Stepper,
    StormerVerlet,
    SymmetricPoissonIntegrator,
    SymplecticEuler,
    VariationalIntegrator,
    chung_hulbert,
    general_alpha,
    hamel_alpha,
    hht_alpha,
    newmark,
    three_root,
    two_root,
    wbz_alpha,
)
from fdgeom.systems import (
    ChaplyginSystem,
    Condition,
    ConstrainedSystem,
    HamiltonianSystem,
    LagrangianSystem,
    Motion,
    NonholonomicSystem,
    PoissonSystem,
    RigidBodies,
    SecondOrderSystem,
    copies,
)

__version__ = "0.1.0"

#: In the form that type checkers read.
__all__ = [
    "Assemble",
    "CSVFile",
    "Casimir",
    "ChainLU",
    "ChainNewton",
    "Checkpoint",
    "ConstraintDefect",
    "ContactMonitor",
    "Energy",
    "Flow",
    "Functional",
    "History",
    "Isotropic",
    "LoadStepFailed",
    "LocalNewton",
    "Map",
    "Momentum",
    "Orthotropic",
    "Ply",
    "Probe",
    "Reactions",
    "Snapshots",
    "Solve",
    "StepFailed",
    "TsaiWu",
    "VTKOutput",
    "VonMises",
    "analysis",
    "animate",
    "gradient",
    "lie",
    "measures",
    "nodal_values",
    "plot_energy",
    "plot_momentum",
    "plot_section",
    "plot_shapes",
    "plot_solid",
    "resume",
    "run",
    "save",
    "save_scene",
    "sections",
    "simplify",
    "space_axes",
]  # fmt: skip
__all__ += beams.__all__
__all__ += statics.__all__
__all__ += steppers.__all__
__all__ += systems.__all__


def __dir__() -> list[str]:
    """The public names, with the subpackages that authors of steppers and systems name."""
    return sorted({*__all__, "beams", "statics", "steppers", "systems", "__version__"})
