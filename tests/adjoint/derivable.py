"""Every stepper whose steps have derivatives, for a small system of each kind, and runs from any start."""

from __future__ import annotations

import numpy as np
from firedrake import Function, IntervalMesh, as_vector, assemble, cos, dx, inner, sin
from verification import (
    hamiltonian_systems,
    joined,
    nonholonomic_systems,
    rigid_body_systems,
    small_systems,
    spring_systems,
)
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.constrained_systems import chain, lagrangian_pendulum, spherical_pendulum

import fdgeom as fg
from fdgeom.line import without_links
from fdgeom.operations.dependent import MadeOnce

CELLS = 4


def beam(**options):
    return set_smooth(fg.Beam(uneven_mesh(CELLS), SOFT, **options))


def clamped():
    made = beam(left="clamped")
    made.momentum.dat.data_wo[made.velocity.function_space().boundary_nodes(1)] = 0.0
    return made


def moved():
    """Its left end goes up and turns."""
    pose = fg.GivenPose(
        position=lambda t: as_vector([0, 0, 0.1 * t**2]),
        orientation=lambda t: as_vector([cos(t**2 / 2), 0, sin(t**2 / 2), 0]),
    )
    return fg.Beam(IntervalMesh(3, 1.0), SOFT, left=pose)


def split_body(dt):
    system, pieces = small_systems.rigid_body()
    return fg.Splitting(system, dt, energies=pieces)


def of(stepper, build, **options):
    return lambda dt: stepper(build(), dt, **options)


#: dt, ``make(dt)``, and which functions of the state derivatives are taken by.
CASES = {
    "PoissonIntegrator": (0.01, of(fg.PoissonIntegrator, beam), ("strain", "momentum")),
    "PoissonIntegrator, velocity": (0.01, of(fg.PoissonIntegrator, beam), ("velocity",)),
    "PoissonIntegrator, clamped": (0.01, of(fg.PoissonIntegrator, clamped), ("momentum",)),
    "SymmetricPoissonIntegrator": (
        0.01,
        of(fg.SymmetricPoissonIntegrator, beam),
        ("strain", "momentum"),
    ),
    "SymmetricPoissonIntegrator, position": (
        0.01,
        of(fg.SymmetricPoissonIntegrator, beam),
        ("position",),
    ),
    "Composition, beam": (
        0.01,
        of(fg.Composition(fg.SymmetricPoissonIntegrator), beam),
        ("strain",),
    ),
    "HamelFieldIntegrator": (0.01, of(fg.HamelFieldIntegrator, beam), ("momentum",)),
    "ImplicitMidpoint, beam": (0.01, of(fg.ImplicitMidpoint, beam), ("strain", "momentum")),
    "ImplicitMidpoint": (0.1, of(fg.ImplicitMidpoint, hamiltonian_systems.pendulum), ("q", "p")),
    "ImplicitMidpoint, waves": (
        0.1,
        of(fg.ImplicitMidpoint, small_systems.korteweg_de_vries),
        ("state",),
    ),
    "DiscreteGradient, waves": (
        0.1,
        of(fg.DiscreteGradient, small_systems.korteweg_de_vries),
        ("state",),
    ),
    "Splitting": (0.1, split_body, ("state",)),
    "GaussLegendre": (0.1, of(fg.GaussLegendre(2), hamiltonian_systems.pendulum), ("q", "p")),
    "RungeKutta4": (0.1, of(fg.RungeKutta4, hamiltonian_systems.pendulum), ("q", "p")),
    "GeneratingFunction4": (
        0.1,
        of(fg.GeneratingFunction4, hamiltonian_systems.pendulum),
        ("q", "p"),
    ),
    "SymplecticEuler": (0.1, of(fg.SymplecticEuler, hamiltonian_systems.mixed), ("q", "p")),
    "StormerVerlet": (0.1, of(fg.StormerVerlet, hamiltonian_systems.pendulum), ("q", "p")),
    "StormerVerlet, through SNES": (
        0.1,
        of(fg.StormerVerlet, hamiltonian_systems.pendulum, compiled=False),
        ("p",),
    ),
    "StormerVerlet, composed": (
        0.1,
        of(fg.Composition(fg.StormerVerlet), hamiltonian_systems.pendulum),
        ("q", "p"),
    ),
    "StormerVerlet, Blanes & Moan": (
        0.1,
        of(fg.Composition(fg.StormerVerlet, 4, "blanes-moan"), hamiltonian_systems.pendulum),
        ("q",),
    ),
    "RATTLE": (0.05, of(fg.RATTLE, spherical_pendulum), ("q", "p")),
    "RATTLE, chain": (0.01, of(fg.RATTLE, lambda: chain(CELLS)), ("p",)),
    "SHAKE": (0.05, of(fg.SHAKE, spherical_pendulum), ("q", "p")),
    "DiscreteLagrangian": (
        0.05,
        of(fg.DiscreteLagrangian, lagrangian_pendulum),
        ("q", "velocity"),
    ),
    "EnergyMomentum": (0.05, of(fg.EnergyMomentum, clamped), ("position", "momentum")),
    "GeneralizedAlpha": (0.1, of(fg.GeneralizedAlpha, spring_systems.pendulum), ("q", "velocity")),
    "GeneralizedAlpha, consistent": (
        0.1,
        of(fg.GeneralizedAlpha, spring_systems.pendulum, start="consistent"),
        ("q", "velocity"),
    ),
    "GeneralizedAlpha, given pose": (0.05, of(fg.GeneralizedAlpha, moved), ("velocity",)),
    "GeneralizedAlpha, clamped": (0.05, of(fg.GeneralizedAlpha, clamped), ("strain",)),
    "GeneralizedAlpha, top": (
        0.01,
        of(fg.GeneralizedAlpha, rigid_body_systems.heavy_top),
        ("velocity",),
    ),
    "EnergyMomentum, joined": (
        0.01,
        of(fg.EnergyMomentum, lambda: joined.double_pendulum(strain_measure="directors")),
        ("velocity of beam 1",),
    ),
    "GeneralizedAlpha, joined": (
        0.01,
        of(fg.GeneralizedAlpha, joined.double_pendulum),
        ("velocity of beam 0", "velocity of beam 1"),
    ),
    "HermiteSimpson": (0.1, of(fg.HermiteSimpson, spring_systems.pendulum), ("q", "velocity")),
    "FourthOrderAlpha": (
        0.1,
        of(fg.FourthOrderAlpha, spring_systems.oscillator),
        ("q", "velocity"),
    ),
    "VariationalIntegrator": (
        0.01,
        of(fg.VariationalIntegrator, clamped),
        ("position", "momentum"),
    ),
    "VariationalIntegrator, composed": (
        0.01,
        of(fg.Composition(fg.VariationalIntegrator), clamped),
        ("velocity",),
    ),
    "NonholonomicMidpoint": (
        0.05,
        of(fg.NonholonomicMidpoint, nonholonomic_systems.particle),
        ("q", "velocity"),
    ),
}


class Run:
    """A stepper that begins again and again, from a start that is its own or another one.

    ``objective`` is a functional of all that its system moves, on the mesh of the controls.
    """

    def __init__(self, stepper, names=()) -> None:
        self.stepper = stepper
        self.functions = {**stepper.system.functions(), **stepper.system.consistency.followers()}
        self._all = {**self.functions, **stepper.functions()}
        self._start = [np.array(f.dat.data_ro) for f in self._all.values()]
        self._clock = stepper.clock
        #: What derivatives are taken by.
        self.controls = [self.functions[name] for name in names]
        mesh = next(iter(self.controls or self.functions.values())).function_space().mesh()
        self.objective = objective(
            f for f in self.functions.values() if f.function_space().mesh() is mesh
        )

    def again(self) -> None:
        """Stand at the start; nothing was set by hand."""
        for f, values in zip(self._all.values(), self._start, strict=True):
            f.dat.data_wo[...] = values
        self.stepper.take_up(self._clock)

    def value(self, values, pieces, also=None) -> float:
        """The objective after steps in these pieces, the controls holding other values."""
        self.again()
        for f, new in zip(self.controls, values, strict=True):
            f.dat.data_wo[...] = new
        # Starts of differences are off constraints, as those of replays may be.
        with MadeOnce.replayed():
            for steps in pieces:
                self.stepper.advance(steps)
        return assemble(self.objective if also is None else also)

    def difference(self, directions, pieces, step, also=None) -> float:
        """The derivative of that along directions, by differences of fourth order."""
        here = [np.array(f.dat.data_ro) for f in self.controls]

        def at(size):
            moved = [x + size * d for x, d in zip(here, directions, strict=True)]
            return self.value(moved, pieces, also)

        found = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
        for f, values in zip(self.controls, here, strict=True):
            f.dat.data_wo[...] = values
        self.again()
        return found


def objective(functions):
    """Σ ∫ ½ |f|² + f₁, with one quadrature for all."""
    terms = []
    for f in functions:
        first = f[(0,) * len(f.ufl_shape)] if f.ufl_shape else f
        terms.append((0.5 * inner(f, f) + first) * dx(degree=2))
    return without_links("objective", sum(terms[1:], terms[0]))


def directions(functions, rng):
    """Random ones, as arrays."""
    return [rng.uniform(-1, 1, f.dat.data_ro.shape) for f in functions]


def holding(function, values):
    """A Function of its space."""
    made = Function(function.function_space())
    made.dat.data_wo[...] = values
    return made
