"""Time integrators, one file per family.

A method states the operations of a step; the system gives their forms. Forms of one kind of system
belong to :mod:`fdgeom.systems` and :mod:`fdgeom.beams`, runs with output to
:mod:`fdgeom.recording`.

- `stepper`: `advance`, and what happens when a step fails; `method`: what an author of a method defines;
- `compiled`: steps in compiled code;
- `sweep`: `PoissonIntegrator`, its symmetric form and `Splitting`; `partitioned`, `runge_kutta`,
  `generating_function`, `discrete_gradient`: Poisson and Hamiltonian systems;
- `rattle`, `discrete_lagrangian` (`holonomic`): constrained systems;
- `composition`: methods of high order from others;
- `alpha_scheme`, `generalized_alpha`, `fourth_order` (`motion_stepper`): methods with accelerations, for
  any :class:`fdgeom.systems.motion.motion.Motion`;
- `energy_momentum`, `variational`: beams and assemblies in configuration form, with exact balances.
"""

from fdgeom.steppers.alpha_scheme import (
    AlphaScheme,
    chung_hulbert,
    general_alpha,
    hamel_alpha,
    hht_alpha,
    newmark,
    three_root,
    two_root,
    wbz_alpha,
)
from fdgeom.steppers.composition import Composition
from fdgeom.steppers.discrete_gradient import DiscreteGradient
from fdgeom.steppers.discrete_lagrangian import DiscreteLagrangian, NonholonomicMidpoint
from fdgeom.steppers.energy_momentum import EnergyMomentum
from fdgeom.steppers.fourth_order import FourthOrderAlpha, HermiteSimpson
from fdgeom.steppers.generalized_alpha import GeneralizedAlpha
from fdgeom.steppers.generating_function import GeneratingFunction4
from fdgeom.steppers.partitioned import StormerVerlet, SymplecticEuler
from fdgeom.steppers.rattle import RATTLE, SHAKE
from fdgeom.steppers.runge_kutta import GaussLegendre, RungeKutta4
from fdgeom.steppers.stepper import Stepper
from fdgeom.steppers.sweep import (
    HamelFieldIntegrator,
    ImplicitMidpoint,
    PoissonIntegrator,
    Splitting,
    SymmetricPoissonIntegrator,
)
from fdgeom.steppers.variational import VariationalIntegrator

__all__ = [
    "RATTLE",
    "SHAKE",
    "AlphaScheme",
    "Composition",
    "DiscreteGradient",
    "DiscreteLagrangian",
    "EnergyMomentum",
    "FourthOrderAlpha",
    "GaussLegendre",
    "GeneralizedAlpha",
    "GeneratingFunction4",
    "HamelFieldIntegrator",
    "HermiteSimpson",
    "ImplicitMidpoint",
    "NonholonomicMidpoint",
    "PoissonIntegrator",
    "RungeKutta4",
    "Splitting",
    "Stepper",
    "StormerVerlet",
    "SymmetricPoissonIntegrator",
    "SymplecticEuler",
    "VariationalIntegrator",
    "chung_hulbert",
    "general_alpha",
    "hamel_alpha",
    "hht_alpha",
    "newmark",
    "three_root",
    "two_root",
    "wbz_alpha",
]
