"""Steppers: suitable systems, steps, options."""

import copy

import numpy as np
from firedrake import Function, FunctionSpace, dx, grad, inner
from robustness.calls import small

import fdgeom as fg


def half():
    """A functional."""
    return small.scalar() * dx


def renamed():
    """A Function that nothing reads."""
    return Function(small.scalar().function_space(), name="other")


def membrane():
    """Waves on a square."""
    space = FunctionSpace(small.square(), "CG", 1)
    q, p = Function(space), Function(space)
    return fg.HamiltonianSystem(q, p, energy=0.5 * (p**2 + inner(grad(q), grad(q))) * dx)


REFUSALS = [
    (
        "ImplicitMidpoint",
        lambda: copy.copy(fg.ImplicitMidpoint(small.body(), 0.1)),
        TypeError,
        (
            "ImplicitMidpoint cannot be copied or pickled, since its copy would hold the same"
            " Functions: make another ImplicitMidpoint as this one was made (fdgeom.save and"
            " fdgeom.resume carry a state over)"
        ),
    ),
    (
        "dt",
        lambda: fg.ImplicitMidpoint(small.body(), 0.0),
        ValueError,
        "dt must be a positive number, not 0.0",
    ),
    (
        "dt",
        lambda: fg.ImplicitMidpoint(small.body(), -0.1),
        ValueError,
        "dt must be a positive number, not -0.1",
    ),
    (
        "dt",
        lambda: fg.ImplicitMidpoint(small.body(), np.nan),
        ValueError,
        "dt must be a positive number, not nan",
    ),
    (
        "dt",
        lambda: fg.ImplicitMidpoint(small.body(), np.inf),
        ValueError,
        "dt must be a positive number, not inf",
    ),
    (
        "dt",
        lambda: fg.ImplicitMidpoint(small.body(), "0.1 s"),
        TypeError,
        "dt must be a number, not '0.1 s'",
    ),
    (
        "dt",
        lambda: fg.ImplicitMidpoint(small.body(), None),
        TypeError,
        "dt must be a number, not None",
    ),
    (
        "dt",
        lambda: fg.ImplicitMidpoint(0.1, small.body()),
        TypeError,
        "dt must be a number, not a PoissonSystem",
    ),
    (
        "dt",
        lambda: setattr(fg.ImplicitMidpoint(small.body(), 0.1), "dt", 0),
        ValueError,
        "dt must be a positive number, not 0",
    ),
    (
        "configuration",
        lambda: fg.PoissonIntegrator(small.beam(), 0.1, configuration="late"),
        ValueError,
        "configuration must be one of 'old', 'new', 'mean', not 'late'",
    ),
    (
        "compiled",
        lambda: fg.ImplicitMidpoint(small.body(), 0.1, compiled="yes"),
        TypeError,
        "compiled must be True, False or None, not 'yes'",
    ),
    (
        "compiled",
        lambda: fg.ImplicitMidpoint(membrane(), 0.01, compiled=True),
        ValueError,
        (
            "compiled: this stepper cannot be compiled: this term couples more than one node's unknowns: "
            "the integral over the cells of …; leave compiled out, and the steps go through PETSc SNES"
        ),
    ),
    (
        "compiled",
        lambda: fg.HermiteSimpson(small.spring(), 0.01, compiled=True),
        ValueError,
        (
            "compiled: this stepper cannot be compiled: HermiteSimpson is not made of "
            "implicit substeps; leave compiled out, and the steps go through PETSc SNES"
        ),
    ),
    (
        "system",
        lambda: fg.ImplicitMidpoint(small.pendulum(), 0.1),
        TypeError,
        (
            "system: ImplicitMidpoint needs a PoissonSystem (a bracket and an energy), not "
            "ConstrainedSystem; that is moved by RATTLE"
        ),
    ),
    (
        "system",
        lambda: fg.ImplicitMidpoint(small.assembly(), 0.1),
        TypeError,
        (
            "system: ImplicitMidpoint needs a PoissonSystem (a bracket and an energy), not "
            "Assembly; that is moved by GeneralizedAlpha, EnergyMomentum or "
            "VariationalIntegrator"
        ),
    ),
    (
        "system",
        lambda: fg.ImplicitMidpoint(small.vector(), 0.1),
        TypeError,
        (
            "system: ImplicitMidpoint needs a PoissonSystem (a bracket and an energy), not "
            "Function; state a system first, such as PoissonSystem(state, energy, bracket, "
            "pairing)"
        ),
    ),
    (
        "system",
        lambda: fg.ImplicitMidpoint(fg.PoissonSystem, 0.1),
        TypeError,
        (
            "system: ImplicitMidpoint needs a PoissonSystem (a bracket and an energy), not "
            "the class PoissonSystem itself: make one"
        ),
    ),
    (
        "system",
        lambda: fg.PoissonIntegrator(None, 0.1),
        TypeError,
        ("system: PoissonIntegrator needs a PoissonSystem (a bracket and an energy), not NoneType"),
    ),
    (
        "system",
        lambda: fg.SymmetricPoissonIntegrator(small.spring(), 0.1),
        TypeError,
        (
            "system: SymmetricPoissonIntegrator needs a PoissonSystem (a bracket and an "
            "energy), not SecondOrderSystem; that is moved by GeneralizedAlpha"
        ),
    ),
    (
        "system",
        lambda: fg.HamelFieldIntegrator(small.top(), 0.1),
        TypeError,
        (
            "system: HamelFieldIntegrator needs a PoissonSystem (a bracket and an energy), "
            "not RigidBodies; that is moved by GeneralizedAlpha"
        ),
    ),
    (
        "system",
        lambda: fg.DiscreteGradient(small.link(), 0.1),
        TypeError,
        (
            "system: DiscreteGradient needs a PoissonSystem (a bracket and an energy), not "
            "LagrangianSystem; that is moved by DiscreteLagrangian"
        ),
    ),
    (
        "system",
        lambda: fg.Splitting(small.spring(), 0.1, energies=[1, 2]),
        TypeError,
        (
            "system: Splitting needs a PoissonSystem, not SecondOrderSystem; that is moved "
            "by GeneralizedAlpha"
        ),
    ),
    (
        "system",
        lambda: fg.GaussLegendre(2)(small.beam(), 0.1),
        ValueError,
        (
            "system: GaussLegendre2 moves the state alone, but ['orientation', 'position', "
            "'velocity'] of this Beam move too; use Composition(ImplicitMidpoint, order=4) "
            "instead"
        ),
    ),
    (
        "system",
        lambda: fg.GaussLegendre(2)(small.spring(), 0.1),
        TypeError,
        (
            "system: GaussLegendre2 needs a PoissonSystem (a bracket and an energy), not "
            "SecondOrderSystem; that is moved by GeneralizedAlpha"
        ),
    ),
    (
        "system",
        lambda: fg.RungeKutta4(small.beam(), 0.1),
        ValueError,
        (
            "system: RungeKutta4 moves the state alone, but ['orientation', 'position', "
            "'velocity'] of this Beam move too; use Composition(ImplicitMidpoint, order=4) "
            "instead"
        ),
    ),
    (
        "system",
        lambda: fg.RungeKutta4(small.pendulum(), 0.1),
        TypeError,
        (
            "system: RungeKutta4 needs a PoissonSystem (a bracket and an energy), not "
            "ConstrainedSystem; that is moved by RATTLE"
        ),
    ),
    (
        "system",
        lambda: fg.StormerVerlet(small.body(), 0.1),
        TypeError,
        (
            "system: StormerVerlet needs a HamiltonianSystem(q, p, energy), not "
            "PoissonSystem; that is moved by ImplicitMidpoint, DiscreteGradient or "
            "GaussLegendre(2)"
        ),
    ),
    (
        "system",
        lambda: fg.StormerVerlet(small.mixed(), 0.1),
        ValueError,
        (
            "system: StormerVerlet is explicit and needs a separable energy T(p) + V(q), "
            "but this one has terms that hold both q and p; use ImplicitMidpoint, "
            "GaussLegendre(stages) or SymplecticEuler instead"
        ),
    ),
    (
        "system",
        lambda: fg.SymplecticEuler(small.beam(), 0.1),
        TypeError,
        (
            "system: SymplecticEuler needs a HamiltonianSystem(q, p, energy), not Beam; "
            "that is moved by SymmetricPoissonIntegrator, GeneralizedAlpha, EnergyMomentum "
            "or VariationalIntegrator"
        ),
    ),
    (
        "system",
        lambda: fg.GeneratingFunction4(small.body(), 0.1),
        TypeError,
        (
            "system: GeneratingFunction4 needs a HamiltonianSystem(q, p, energy), not "
            "PoissonSystem; that is moved by ImplicitMidpoint, DiscreteGradient or "
            "GaussLegendre(2)"
        ),
    ),
    (
        "system",
        lambda: fg.RATTLE(small.oscillator(), 0.1),
        TypeError,
        (
            "system: RATTLE needs a ConstrainedSystem, not HamiltonianSystem; that is moved"
            " by StormerVerlet, ImplicitMidpoint or GaussLegendre(2)"
        ),
    ),
    (
        "system",
        lambda: fg.RATTLE(small.link(), 0.1),
        TypeError,
        (
            "system: RATTLE needs a ConstrainedSystem, not LagrangianSystem; that is moved "
            "by DiscreteLagrangian"
        ),
    ),
    (
        "system",
        lambda: fg.SHAKE(small.skate(), 0.1),
        TypeError,
        (
            "system: SHAKE needs a ConstrainedSystem, not NonholonomicSystem; that is moved"
            " by NonholonomicMidpoint"
        ),
    ),
    (
        "system",
        lambda: fg.DiscreteLagrangian(small.pendulum(), 0.1),
        TypeError,
        (
            "system: DiscreteLagrangian needs a LagrangianSystem, not ConstrainedSystem; "
            "that is moved by RATTLE"
        ),
    ),
    (
        "system",
        lambda: fg.NonholonomicMidpoint(small.pendulum(), 0.1),
        TypeError,
        (
            "system: NonholonomicMidpoint needs a NonholonomicSystem, not "
            "ConstrainedSystem; that is moved by RATTLE"
        ),
    ),
    (
        "system",
        lambda: fg.GeneralizedAlpha(small.body(), 0.1),
        TypeError,
        (
            "system: GeneralizedAlpha needs a second-order motion such as a "
            "SecondOrderSystem, RigidBodies, a Beam or an Assembly, not PoissonSystem; that"
            " is moved by ImplicitMidpoint, DiscreteGradient or GaussLegendre(2)"
        ),
    ),
    (
        "system",
        lambda: fg.GeneralizedAlpha(small.oscillator(), 0.1),
        TypeError,
        (
            "system: GeneralizedAlpha needs a second-order motion such as a "
            "SecondOrderSystem, RigidBodies, a Beam or an Assembly, not HamiltonianSystem; "
            "that is moved by StormerVerlet, ImplicitMidpoint or GaussLegendre(2)"
        ),
    ),
    (
        "system",
        lambda: fg.HermiteSimpson(small.top(), 0.1),
        TypeError,
        (
            "system: HermiteSimpson needs a SecondOrderSystem, not RigidBodies; that is "
            "moved by GeneralizedAlpha"
        ),
    ),
    (
        "system",
        lambda: fg.HermiteSimpson(small.beam(), 0.1),
        TypeError,
        (
            "system: HermiteSimpson needs a SecondOrderSystem, not Beam; that is moved by "
            "SymmetricPoissonIntegrator, GeneralizedAlpha, EnergyMomentum or "
            "VariationalIntegrator"
        ),
    ),
    (
        "system",
        lambda: fg.FourthOrderAlpha(small.pendulum(), 0.1),
        TypeError,
        (
            "system: FourthOrderAlpha needs a SecondOrderSystem, not ConstrainedSystem; "
            "that is moved by RATTLE"
        ),
    ),
    (
        "system",
        lambda: fg.FourthOrderAlpha(small.spring(), 0.1),
        ValueError,
        (
            "system: the residual is not linear in q with a constant matrix; the order "
            "would be two; use HermiteSimpson, of order four for any system"
        ),
    ),
    (
        "system",
        lambda: fg.EnergyMomentum(small.body(), 0.1),
        TypeError,
        (
            "system: EnergyMomentum needs a fdgeom.Beam or Assembly, not PoissonSystem; "
            "that is moved by ImplicitMidpoint, DiscreteGradient or GaussLegendre(2)"
        ),
    ),
    (
        "system",
        lambda: fg.EnergyMomentum(small.spring(), 0.1),
        TypeError,
        (
            "system: EnergyMomentum needs a fdgeom.Beam or Assembly, not SecondOrderSystem;"
            " that is moved by GeneralizedAlpha"
        ),
    ),
    (
        "strain_measure",
        lambda: fg.EnergyMomentum(small.assembly(), 0.1),
        ValueError,
        (
            "system: EnergyMomentum needs strains that are quadratic in the directors: make"
            ' the beams of an assembly with strain_measure="directors"'
        ),
    ),
    (
        "system",
        lambda: fg.VariationalIntegrator(small.pendulum(), 0.1),
        TypeError,
        (
            "system: VariationalIntegrator needs a fdgeom.Beam or Assembly, not "
            "ConstrainedSystem; that is moved by RATTLE"
        ),
    ),
    (
        "system",
        lambda: fg.VariationalIntegrator(small.damped(), 0.1),
        ValueError,
        (
            "system: VariationalIntegrator moves beams without damping, whose explicit "
            "steps would be bounded by it too; take GeneralizedAlpha or EnergyMomentum"
        ),
    ),
    (
        "degree",
        lambda: fg.GeneralizedAlpha(small.fine(), 0.1),
        ValueError,
        "degree: the configuration form has beams of degree 1 only",
    ),
    (
        "first",
        lambda: fg.SymplecticEuler(small.oscillator(), 0.1, first="v"),
        ValueError,
        "first must be one of 'q', 'p', not 'v'",
    ),
    (
        "points",
        lambda: fg.DiscreteGradient(small.body(), 0.1, points=0),
        ValueError,
        "points must be a whole number from 1 to 64, not 0",
    ),
    (
        "points",
        lambda: fg.DiscreteGradient(small.body(), 0.1, points="all"),
        ValueError,
        "points must be a whole number from 1 to 64, not 'all'",
    ),
    (
        "energies",
        lambda: fg.Splitting(small.body(), 0.1, energies=3.0),
        TypeError,
        "energies must be a list of functionals, not 3.0",
    ),
    (
        "energies",
        lambda: fg.Splitting(small.body(), 0.1, energies=[small.body().energy_form()]),
        ValueError,
        "energies must be two functionals or more, that sum to the energy",
    ),
    (
        "energies",
        lambda: fg.Splitting(small.body(), 0.1, energies=[small.body().energy_form()] * 2),
        ValueError,
        "energies must sum to the energy of the system, at every state and for the values that "
        "coefficients have now: they are off by 1 of their size",
    ),
    (
        "energy",
        lambda: fg.Splitting(small.body(), 0.1, energies=[1.0, 2.0]),
        TypeError,
        "energy must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "quadrature",
        lambda: fg.DiscreteLagrangian(small.link(), 0.1, quadrature="simpson"),
        ValueError,
        "quadrature must be one of 'midpoint', 'trapezoidal', not 'simpson'",
    ),
    (
        "scheme",
        lambda: fg.GeneralizedAlpha(small.spring(), 0.1, scheme="hamel"),
        TypeError,
        "scheme must be an AlphaScheme such as hamel_alpha(0.8), not 'hamel'",
    ),
    (
        "scheme",
        lambda: fg.GeneralizedAlpha(small.spring(), 0.1, fg.hamel_alpha),
        TypeError,
        "scheme must be an AlphaScheme such as hamel_alpha(0.8), not a function",
    ),
    (
        "start",
        lambda: fg.GeneralizedAlpha(small.spring(), 0.1, start="rest"),
        ValueError,
        "start must be one of 'default', 'consistent', not 'rest'",
    ),
    (
        "scheme",
        lambda: fg.GeneralizedAlpha(small.assembly(), 0.01, fg.hamel_alpha(1.0)),
        ValueError,
        (
            "scheme: hamel_alpha(1) does not damp the highest frequencies (rho_inf = 1), "
            "and a multiplier then grows without bound; take hamel_alpha(rho_inf) with "
            "rho_inf <= 0.95"
        ),
    ),
    (
        "start",
        lambda: fg.GeneralizedAlpha(small.beam(), 0.01, start="consistent"),
        ValueError,
        (
            "start must be 'default' for beams; a consistent start needs the rate of the "
            "acceleration, which the stiff directions of a beam make huge"
        ),
    ),
    (
        "kappa",
        lambda: fg.FourthOrderAlpha(small.spring(), 0.1, kappa="one"),
        TypeError,
        "kappa must be a number, not 'one'",
    ),
    (
        "kappa",
        lambda: fg.FourthOrderAlpha(small.spring(), 0.1, kappa=np.nan),
        ValueError,
        "kappa must be a finite number, not nan",
    ),
    (
        "stages",
        lambda: fg.GaussLegendre(5),
        ValueError,
        "stages must be one of 1, 2, 3, 4, not 5",
    ),
    (
        "stages",
        lambda: fg.GaussLegendre(2.0),
        ValueError,
        "stages must be one of 1, 2, 3, 4, not 2.0",
    ),
    (
        "stepper_class",
        lambda: fg.Composition(fg.ImplicitMidpoint(small.body(), 0.1)),
        TypeError,
        "stepper_class must be a stepper class, such as SymmetricPoissonIntegrator",
    ),
    (
        "stepper_class",
        lambda: fg.Composition(fg.RungeKutta4),
        ValueError,
        (
            "stepper_class must be symmetric and of order 2; RungeKutta4 is not symmetric "
            "and of order 4"
        ),
    ),
    (
        "stepper_class",
        lambda: fg.Composition(fg.PoissonIntegrator),
        ValueError,
        (
            "stepper_class must be symmetric and of order 2; PoissonIntegrator is not "
            "symmetric and of order 1"
        ),
    ),
    (
        "stepper_class",
        lambda: fg.Composition(fg.GaussLegendre),
        TypeError,
        "stepper_class must be a stepper class, such as SymmetricPoissonIntegrator",
    ),
    (
        "order",
        lambda: fg.Composition(fg.ImplicitMidpoint, order=5),
        ValueError,
        "order must be one of 4, 6, 8, not 5",
    ),
    (
        "order",
        lambda: fg.Composition(fg.ImplicitMidpoint, order="high"),
        ValueError,
        "order must be one of 4, 6, 8, not 'high'",
    ),
    (
        "scheme",
        lambda: fg.Composition(fg.ImplicitMidpoint, order=4, scheme="kahan-li"),
        ValueError,
        "scheme must be one of ('suzuki', 'yoshida', 'blanes-moan') for order 4, not 'kahan-li'",
    ),
    (
        "scheme",
        lambda: fg.Composition(fg.ImplicitMidpoint, scheme="blanes-moan")(small.body(), 0.1),
        ValueError,
        (
            "scheme: 'blanes-moan' needs a method of two flows, half of the first, the "
            "second and again half of the first, and ImplicitMidpoint of this PoissonSystem"
            " is not; use scheme='suzuki'"
        ),
    ),
    (
        "steps",
        lambda: small.stepper().advance(-1),
        ValueError,
        "steps must be a whole number that is not negative, not -1",
    ),
    (
        "steps",
        lambda: small.stepper().advance(1.5),
        ValueError,
        "steps must be a whole number that is not negative, not 1.5",
    ),
    (
        "steps",
        lambda: small.stepper().advance("ten"),
        ValueError,
        "steps must be a whole number that is not negative, not 'ten'",
    ),
    (
        "steps",
        lambda: small.stepper().advance(True),
        ValueError,
        "steps must be a whole number that is not negative, not True",
    ),
    (
        "stepper",
        lambda: fg.gradient(None, 2, half(), [small.scalar()]),
        TypeError,
        "stepper must be a stepper of fdgeom, not None",
    ),
    (
        "steps",
        lambda: fg.gradient(fg.StormerVerlet(small.oscillator(), 0.1), 0, half(), [small.scalar()]),
        ValueError,
        "steps must be a positive whole number, not 0",
    ),
    (
        "objective",
        lambda: fg.gradient(fg.StormerVerlet(small.oscillator(), 0.1), 2, 3.0, [small.scalar()]),
        TypeError,
        "objective must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "wrt",
        lambda: fg.gradient(fg.StormerVerlet(small.oscillator(), 0.1), 2, half(), small.scalar()),
        TypeError,
        "wrt must be a list of Functions, not …",
    ),
    (
        "wrt",
        lambda: fg.gradient(fg.StormerVerlet(small.oscillator(), 0.1), 2, half(), [1.0]),
        TypeError,
        "wrt must be Functions, not 1.0; a number is a Function of a Real space",
    ),
    (
        "wrt",
        lambda: fg.gradient(fg.StormerVerlet(small.oscillator(), 0.1), 2, half(), [renamed()]),
        ValueError,
        "wrt: neither the steps of StormerVerlet nor the objective read other",
    ),
    (
        "GeneralizedAlpha",
        lambda: fg.gradient(
            fg.GeneralizedAlpha(small.beam(), 0.1, halvings=1), 2, half(), [small.scalar()]
        ),
        NotImplementedError,
        "gradients through GeneralizedAlpha.advance() of a BeamMotion are not available: a step may be cut "
        "in halves: take halvings=0. Call it inside 'with "
        "firedrake.adjoint.stop_annotating():' (its result then counts as given data), and take "
        "its gradient by finite differences of whole runs",
    ),
    (
        "Dt",
        lambda: setattr(fg.StormerVerlet(small.oscillator(), 0.1), "Dt", 0.2),
        AttributeError,
        "StormerVerlet.Dt does not exist; dt and t may be set",
    ),
    (
        "time",
        lambda: setattr(fg.StormerVerlet(small.oscillator(), 0.1), "time", 7.0),
        AttributeError,
        "StormerVerlet.time does not exist; dt and t may be set",
    ),
    (
        "system",
        lambda: setattr(fg.StormerVerlet(small.oscillator(), 0.1), "system", 1),
        AttributeError,
        "StormerVerlet.system cannot be changed: make another stepper; dt and t may be set",
    ),
    (
        "points",
        lambda: setattr(fg.DiscreteGradient(small.body(), 0.1), "points", 12),
        AttributeError,
        "DiscreteGradient.points cannot be changed: make another stepper; dt and t may be set",
    ),
    (
        "dt",
        lambda: fg.StormerVerlet(small.oscillator(), True),
        TypeError,
        "dt must be a number, not True",
    ),
    (
        "dt",
        lambda: fg.StormerVerlet(small.oscillator(), np.bool_(True)),
        TypeError,
        "dt must be a number, not …True…",
    ),
    (
        "dt",
        lambda: fg.StormerVerlet(small.oscillator(), "0.1"),
        TypeError,
        "dt must be a number, not '0.1'",
    ),
    (
        "t0",
        lambda: fg.StormerVerlet(small.oscillator(), 0.1, t0=False),
        TypeError,
        "t0 must be a number, not False",
    ),
    (
        "points",
        lambda: fg.DiscreteGradient(small.body(), 0.1, points=True),
        ValueError,
        "points must be a whole number from 1 to 64, not True",
    ),
    (
        "points",
        lambda: fg.DiscreteGradient(small.body(), 0.1, points=500),
        ValueError,
        "points must be a whole number from 1 to 64, not 500",
    ),
    (
        "order",
        lambda: fg.Composition(fg.StormerVerlet, order=4.0),
        ValueError,
        "order must be one of 4, 6, 8, not 4.0",
    ),
    (
        "compiled",
        lambda: fg.StormerVerlet(small.oscillator(), 0.1, compiled=half()),
        TypeError,
        "compiled must be True, False or None, not a UFL form",
    ),
    (
        "configuration",
        lambda: fg.DiscreteGradient(small.body(), 0.1, configuration=np.eye(2)),
        ValueError,
        "configuration must be one of 'old', 'new', 'mean', not an array of shape (2, 2)",
    ),
    (
        "halvings",
        lambda: fg.GeneralizedAlpha(small.beam(), 0.1, halvings=half()),
        ValueError,
        "halvings must be a whole number that is not negative, not a UFL form",
    ),
    (
        "scheme",
        lambda: fg.Composition(fg.StormerVerlet, scheme=np.eye(2)),
        ValueError,
        "scheme must be one of …",
    ),
]
