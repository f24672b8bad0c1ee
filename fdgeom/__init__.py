"""fdgeom: geometric mechanics for Firedrake."""

from fdgeom import lie, measures
from fdgeom.errors import StepFailed
from fdgeom.recording import (
    Casimir,
    Checkpoint,
    CSVFile,
    Energy,
    Functional,
    History,
    Momentum,
    Probe,
    Snapshots,
    VTKOutput,
    animate,
    plot_energy,
    plot_momentum,
    plot_shapes,
    resume,
    run,
    save,
)
from fdgeom.solvers import LocalNewton
from fdgeom.steppers import (
    Composition,
    DiscreteGradient,
    HamelFieldIntegrator,
    ImplicitMidpoint,
    PoissonIntegrator,
    Splitting,
    SymmetricPoissonIntegrator,
)
from fdgeom.systems import Beam, HamiltonianSystem, PoissonSystem, Section, copies

__version__ = "0.1.0"

__all__ = [
    "Beam",
    "CSVFile",
    "Casimir",
    "Checkpoint",
    "Composition",
    "DiscreteGradient",
    "Energy",
    "Functional",
    "HamelFieldIntegrator",
    "HamiltonianSystem",
    "History",
    "ImplicitMidpoint",
    "LocalNewton",
    "Momentum",
    "PoissonIntegrator",
    "PoissonSystem",
    "Probe",
    "Section",
    "Snapshots",
    "Splitting",
    "StepFailed",
    "SymmetricPoissonIntegrator",
    "VTKOutput",
    "animate",
    "copies",
    "lie",
    "measures",
    "plot_energy",
    "plot_momentum",
    "plot_shapes",
    "resume",
    "run",
    "save",
]
