"""One small case of every stepper, or more: with loads in time, joints, given ends, compiled or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from firedrake import DirichletBC, Function, FunctionSpace, as_vector, cos, dot, dx, inner, sin
from test_energy_momentum_joints import pendulum as joined_pendulum
from test_variational_joints import flying
from verification import hamiltonian_systems, nonholonomic_systems, small_systems, spring_systems
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.constrained_systems import chain, lagrangian_pendulum, spherical_pendulum
from verification.rod_cases import SEPARATE, moving

import fdgeom as fg

#: Where the clocks begin.
T0 = 0.7


def bracket_beam(**options):
    return set_smooth(fg.Beam(uneven_mesh(8), SOFT, **options))


def turned_beam():
    """Its left end is turned in a prescribed way."""
    beam = bracket_beam(left=lambda t: as_vector([0.3 * sin(t), 0.1, 0, 0, 0.2 * t, 0]))
    velocity = [0.3 * np.sin(T0), 0.1, 0, 0, 0.2 * T0, 0]
    node = beam.velocity.function_space().boundary_nodes(1)
    beam.momentum.dat.data_wo[node] = np.asarray(beam.section.inertia) @ velocity
    return beam


def pushed_beam(measure="simo-reissner", **options):
    """A load that changes in time."""
    load = fg.Load(force=lambda t: as_vector([sin(t), 0, cos(2 * t)]), at="right")
    return moving(SEPARATE, loads=load, strain_measure=measure, **options)


def lifted_beam():
    """Its left end is moved in a prescribed way."""
    lift = fg.GivenPose(
        position=lambda t: as_vector([0 * t, 0.1 * sin(t - T0) ** 2, 0]),
        orientation=lambda t: as_vector([cos(0.2 * (t - T0) ** 2), 0, 0, sin(0.2 * (t - T0) ** 2)]),
    )
    return moving(SEPARATE, left=lift)


def springs():
    """Two masses with damping and a force in time."""
    return spring_systems.matrices(
        np.diag([1.0, 2.0]),
        [[30.0, -5.0], [-5.0, 12.0]],
        (1.0, -0.5),
        (0.3, 2.0),
        C=0.1 * np.eye(2),
        force=lambda t: as_vector([sin(3 * t), cos(t)]),
    )


def hard_springs(**options):
    """A nonlinear field that is held, and pushed in time."""
    mesh = uneven_mesh(6)
    space = FunctionSpace(mesh, "CG", 1)
    q, v = Function(space), Function(space)
    v.interpolate(mesh.coordinates[0])
    return fg.SecondOrderSystem(
        lambda q, v, a, t, w: (a * w + (1 + q**2) * inner(q.dx(0), w.dx(0)) - sin(t) * w) * dx,
        q,
        v,
        bcs=lambda t: DirichletBC(space, 0.1 * sin(t - T0) ** 2, 1),
    )


def ramped_springs():
    """Linear, undamped, its force linear in time."""
    return spring_systems.matrices(
        np.diag([1.0, 2.0]),
        [[30.0, -5.0], [-5.0, 12.0]],
        (1.0, -0.5),
        (0.3, 2.0),
        force=lambda t: as_vector([t, 1 - t]),
    )


def held_particle():
    """On the unit circle, pushed in time."""
    q, v, multiplier = (
        Function(f.function_space()) for f in nonholonomic_systems.fields(1, 2, 1, np.zeros(4))
    )
    q.dat.data_wo[...], v.dat.data_wo[...] = (1, 0), (0, 1)
    return fg.SecondOrderSystem(
        lambda q, v, a, t, w: (dot(a, w) - sin(t) * w[0]) * dx,
        q,
        v,
        constraint=lambda mult: mult * (dot(q, q) - 1) * dx,
        multiplier=multiplier,
    )


def split_body(dt, **options):
    system, pieces = small_systems.rigid_body()
    return fg.Splitting(system, dt, energies=pieces, **options)


def of(stepper: Callable, build: Callable, **fixed) -> Callable:
    """``make(dt, **options)`` of a stepper for a fresh system."""
    return lambda dt, **options: stepper(build(), dt, **fixed, **options)


BEAM = 0.01
#: dt, and ``make(dt, **options)``; ``compiled`` is an option of those that can be.
CASES: dict[str, tuple[float, Callable]] = {
    "PoissonIntegrator": (BEAM, of(fg.PoissonIntegrator, bracket_beam)),
    "PoissonIntegrator, turned": (BEAM, of(fg.PoissonIntegrator, turned_beam)),
    "HamelFieldIntegrator": (BEAM, of(fg.HamelFieldIntegrator, bracket_beam)),
    "SymmetricPoissonIntegrator": (BEAM, of(fg.SymmetricPoissonIntegrator, bracket_beam)),
    "Composition": (BEAM, of(fg.Composition(fg.SymmetricPoissonIntegrator), bracket_beam)),
    "ImplicitMidpoint": (BEAM, of(fg.ImplicitMidpoint, bracket_beam)),
    "ImplicitMidpoint, small": (0.1, of(fg.ImplicitMidpoint, small_systems.pendulum)),
    "ImplicitMidpoint, waves": (0.1, of(fg.ImplicitMidpoint, small_systems.korteweg_de_vries)),
    "DiscreteGradient": (0.1, of(fg.DiscreteGradient, small_systems.korteweg_de_vries)),
    "DiscreteGradient, small": (0.1, of(fg.DiscreteGradient, small_systems.pendulum)),
    "Splitting": (0.1, split_body),
    "GaussLegendre": (0.1, of(fg.GaussLegendre(2), small_systems.korteweg_de_vries)),
    "GaussLegendre, small": (0.1, of(fg.GaussLegendre(2), hamiltonian_systems.pendulum)),
    "RungeKutta4": (0.05, of(fg.RungeKutta4, small_systems.wave)),
    "RungeKutta4, small": (0.1, of(fg.RungeKutta4, hamiltonian_systems.pendulum)),
    "GeneratingFunction4": (0.1, of(fg.GeneratingFunction4, hamiltonian_systems.pendulum)),
    "SymplecticEuler": (0.1, of(fg.SymplecticEuler, hamiltonian_systems.pendulum)),
    "StormerVerlet": (0.1, of(fg.StormerVerlet, hamiltonian_systems.pendulum)),
    "RATTLE": (0.05, of(fg.RATTLE, spherical_pendulum)),
    "RATTLE, chain": (0.01, of(fg.RATTLE, lambda: chain(6))),
    "SHAKE": (0.05, of(fg.SHAKE, spherical_pendulum)),
    "SHAKE, chain": (0.01, of(fg.SHAKE, lambda: chain(6))),
    "DiscreteLagrangian": (0.05, of(fg.DiscreteLagrangian, lagrangian_pendulum)),
    "NonholonomicMidpoint": (0.05, of(fg.NonholonomicMidpoint, nonholonomic_systems.particle)),
    "GeneralizedAlpha": (0.05, of(fg.GeneralizedAlpha, springs)),
    "GeneralizedAlpha, small": (0.05, of(fg.GeneralizedAlpha, spring_systems.pendulum)),
    "GeneralizedAlpha, field": (0.05, of(fg.GeneralizedAlpha, hard_springs)),
    "GeneralizedAlpha, held": (
        0.05,
        of(fg.GeneralizedAlpha, held_particle, start="consistent"),
    ),
    "GeneralizedAlpha, beam": (0.02, of(fg.GeneralizedAlpha, pushed_beam)),
    "GeneralizedAlpha, lifted": (0.02, of(fg.GeneralizedAlpha, lifted_beam)),
    "GeneralizedAlpha, joints": (0.02, of(fg.GeneralizedAlpha, joined_pendulum)),
    "HermiteSimpson": (0.05, of(fg.HermiteSimpson, springs)),
    "HermiteSimpson, field": (0.05, of(fg.HermiteSimpson, hard_springs)),
    "FourthOrderAlpha": (0.05, of(fg.FourthOrderAlpha, ramped_springs)),
    "EnergyMomentum": (0.02, of(fg.EnergyMomentum, pushed_beam)),
    "EnergyMomentum, lifted": (0.02, of(fg.EnergyMomentum, lifted_beam)),
    "EnergyMomentum, joints": (0.02, of(fg.EnergyMomentum, joined_pendulum)),
    "VariationalIntegrator": (4e-3, of(fg.VariationalIntegrator, lambda: moving(SEPARATE))),
    "VariationalIntegrator, pushed": (4e-3, of(fg.VariationalIntegrator, pushed_beam)),
    "VariationalIntegrator, joints": (4e-3, of(fg.VariationalIntegrator, flying)),
}


def values(stepper) -> dict[str, np.ndarray]:
    """All that a step changes: of the system, of its beams, and what the method carries."""
    found = {**stepper.system.functions(), **stepper.functions()}
    for k, beam in enumerate(getattr(stepper.system, "beams", ())):
        found |= {f"{name} of beam {k}": f for name, f in beam.functions().items()}
    return {
        f"{name}[{i}]": np.array(part.dat.data_ro)
        for name, f in found.items()
        for i, part in enumerate(f.subfunctions)
    }


def differing(one: dict, other: dict) -> list[str]:
    """Names of what is not the same to the last bit."""
    assert one.keys() == other.keys()
    return [name for name in one if not np.array_equal(one[name], other[name])]
