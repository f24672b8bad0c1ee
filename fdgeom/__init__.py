"""fdgeom: geometric mechanics for Firedrake."""

from fdgeom import lie, measures
from fdgeom.errors import StepFailed
from fdgeom.steppers import (
    Composition,
    DiscreteGradient,
    HamelFieldIntegrator,
    ImplicitMidpoint,
    PoissonIntegrator,
    Splitting,
    SymmetricPoissonIntegrator,
)
from fdgeom.systems import Beam, PoissonSystem, Section, copies

__version__ = "0.1.0"

__all__ = [
    "Beam",
    "Composition",
    "DiscreteGradient",
    "HamelFieldIntegrator",
    "ImplicitMidpoint",
    "PoissonIntegrator",
    "PoissonSystem",
    "Section",
    "Splitting",
    "StepFailed",
    "SymmetricPoissonIntegrator",
    "copies",
    "lie",
    "measures",
]
