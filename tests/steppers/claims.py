"""What each stepper claims of itself: the tests take their cases from here.

A new stepper needs an entry: in ``CLAIMS`` if it moves Poisson systems, else in
``TESTED_ELSEWHERE`` with the file that backs its claims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from verification import small_systems

import fdgeom as fg

S, M, D = fg.SymmetricPoissonIntegrator, fg.ImplicitMidpoint, fg.DiscreteGradient


@dataclass(frozen=True)
class Claim:
    """The traits of a stepper class, and how many steps show its order on the beam."""

    stepper: type
    order: int
    symmetric: bool
    symplectic: bool
    conserves: tuple[str, ...] = ()
    steps: tuple[int, ...] = (40, 80, 160, 320)


QUADRATIC = ("quadratic energy", "quadratic Casimirs")

CLAIMS = {
    "PoissonIntegrator": Claim(fg.PoissonIntegrator, 1, False, False, (), (80, 160, 320, 640)),
    "HamelFieldIntegrator": Claim(
        fg.HamelFieldIntegrator, 1, False, False, (), (80, 160, 320, 640)
    ),
    "SymmetricPoissonIntegrator": Claim(S, 2, True, False),
    "ImplicitMidpoint": Claim(M, 2, True, True, QUADRATIC, (40, 80, 160, 320)),
    "DiscreteGradient": Claim(D, 2, True, False, ("energy", "quadratic Casimirs")),
    # Its order is shown on the rigid body.
    "Splitting": Claim(fg.Splitting, 2, True, True, ("quadratic Casimirs",), ()),
    "Composition 4": Claim(fg.Composition(S, 4), 4, True, False, (), (24, 32, 48, 64)),
    "Composition 6": Claim(fg.Composition(S, 6), 6, True, False, (), (24, 32, 48, 64)),
    "Composition 4 of midpoint": Claim(fg.Composition(M, 4), 4, True, True, QUADRATIC, ()),
    "Composition 4 of gradient": Claim(
        fg.Composition(D, 4), 4, True, False, ("energy", "quadratic Casimirs"), ()
    ),
}

#: Exported names that are no methods, or whose claims other files back.
TESTED_ELSEWHERE = {
    "Stepper": "tests/steppers/test_bad_calls.py",
    "DiscreteLagrangian": "tests/steppers/test_discrete_lagrangian.py",
    "NonholonomicMidpoint": "tests/steppers/test_nonholonomic.py",
    "EnergyMomentum": "tests/steppers/test_energy_momentum.py",
    "VariationalIntegrator": "tests/steppers/test_variational.py",
    "RATTLE": "tests/steppers/test_rattle.py",
    "SHAKE": "tests/steppers/test_rattle.py",
    "GaussLegendre": "tests/steppers/test_hamiltonian_steppers.py",
    "GeneratingFunction4": "tests/steppers/test_hamiltonian_steppers.py",
    "RungeKutta4": "tests/steppers/test_hamiltonian_steppers.py",
    "StormerVerlet": "tests/steppers/test_hamiltonian_steppers.py",
    "SymplecticEuler": "tests/steppers/test_hamiltonian_steppers.py",
    "FourthOrderAlpha": "tests/steppers/test_fourth_order.py",
    "HermiteSimpson": "tests/steppers/test_fourth_order.py",
    "GeneralizedAlpha": "tests/steppers/test_generalized_alpha.py",
    "AlphaScheme": "tests/steppers/test_alpha_scheme.py",
    "chung_hulbert": "tests/steppers/test_alpha_scheme.py",
    "general_alpha": "tests/steppers/test_alpha_scheme.py",
    "hamel_alpha": "tests/steppers/test_alpha_scheme.py",
    "hht_alpha": "tests/steppers/test_alpha_scheme.py",
    "newmark": "tests/steppers/test_alpha_scheme.py",
    "three_root": "tests/steppers/test_alpha_scheme.py",
    "two_root": "tests/steppers/test_alpha_scheme.py",
    "wbz_alpha": "tests/steppers/test_alpha_scheme.py",
}


def make(claim: Claim, system_and_pieces, dt: float, **options):
    """The stepper; a splitting gets the pieces of the energy."""
    system, pieces = system_and_pieces
    if claim.stepper is fg.Splitting:
        options["energies"] = pieces
    return claim.stepper(system, dt, **options)


def without_pieces(build: Callable) -> Callable:
    return lambda *values: (build(*values), None)


SMALL = {
    "rigid_body": small_systems.rigid_body,
    "nonseparable": small_systems.nonseparable,
    "lotka_volterra": without_pieces(small_systems.lotka_volterra),
    "pendulum": without_pieces(small_systems.pendulum),
    "henon_heiles": without_pieces(small_systems.henon_heiles),
}
