"""Maps from one state to the next, a file for each family."""

from fdgeom.steppers.composition import Composition
from fdgeom.steppers.discrete_gradient import DiscreteGradient
from fdgeom.steppers.splitting import Splitting
from fdgeom.steppers.stepper import Stepper
from fdgeom.steppers.sweep import (
    HamelFieldIntegrator,
    ImplicitMidpoint,
    PoissonIntegrator,
    SymmetricPoissonIntegrator,
)

__all__ = [
    "Composition",
    "DiscreteGradient",
    "HamelFieldIntegrator",
    "ImplicitMidpoint",
    "PoissonIntegrator",
    "Splitting",
    "Stepper",
    "SymmetricPoissonIntegrator",
]
