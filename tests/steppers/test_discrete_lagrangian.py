"""Discrete Lagrangians: known methods come out, and the double pendulum in angles."""

import numpy as np
import pytest
from firedrake import (
    Function,
    FunctionSpace,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    assemble,
    cos,
    dot,
    dx,
    grad,
    inner,
    sin,
)
from verification.constrained_systems import (
    ROTATING,
    functions,
    lagrangian_pendulum,
    spherical_pendulum,
)
from ways import check_way

import fdgeom as fg

D = fg.DiscreteLagrangian
QUADRATURES = ("midpoint", "trapezoidal")


def angles(values=(np.pi / 4, np.pi / 2), rates=(0.0, np.pi / 8)):
    """The plane double pendulum l = (2, 3), m = (1, 2): its mass matrix depends on the angles."""
    q, v, _ = functions(values, rates)
    l1, l2, m1, m2, g = 2, 3, 1, 2, 9.80665
    return fg.LagrangianSystem(
        q,
        v,
        (
            0.5 * (m1 + m2) * l1**2 * v[0] ** 2
            + 0.5 * m2 * l2**2 * v[1] ** 2
            + m2 * l1 * l2 * v[0] * v[1] * cos(q[0] - q[1])
            + (m1 + m2) * g * l1 * cos(q[0])
            + m2 * g * l2 * cos(q[1])
        )
        * dx,
    )


def state(system):
    return np.concatenate([np.array(f.dat.data_ro) for f in (system.q, system.velocity())], axis=1)


def test_traits():
    assert (D.order, D.symmetric, D.symplectic) == (2, True, True)
    assert D.conserves == fg.RATTLE.conserves


@pytest.mark.parametrize("quadrature", QUADRATURES)
def test_double_pendulum(quadrature, recorded):
    errors = []
    for dt in (0.02, 0.01, 0.005):
        system = angles()
        assert system.energy() == pytest.approx(-40.2181791754, abs=1e-9)
        stepper = D(system, dt, quadrature=quadrature)
        assert stepper.is_compiled
        stepper.advance(round(10 / dt))
        errors.append(np.linalg.norm(system.q.dat.data_ro[0] - [0.87467888, 0.55850350]))
    if quadrature == "midpoint":
        # Published for the midpoint rule, three digits.
        assert errors[:2] == pytest.approx([3.09e-2, 7.55e-3], rel=3e-3)
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes[-1] == pytest.approx(2, abs=0.2)
    words = f"double pendulum, {quadrature}"
    recorded.order(
        "DiscreteLagrangian", words, claimed=2, measured=slopes[-1],
        steps=(500, 1000, 2000), errors=errors,
    )  # fmt: skip


@pytest.mark.parametrize("quadrature", QUADRATURES)
def test_symplectic_and_symmetric(quadrature):
    """MᵀJM = J in (q, p = ∂L/∂q̇), by fourth-order differences; a step back undoes a step."""
    q, v = np.array([0.4, -0.7]), np.array([0.3, 0.5])
    size, dt = 1e-3, 0.1
    shifts = size * np.concatenate([k * np.eye(4) for k in (1, -1, 2, -2)])
    points = np.concatenate([q, v]) + shifts
    system = angles(points[:, :2], points[:, 2:])
    stepper = D(system, dt, quadrature=quadrature)

    def canonical():
        """(q, p) of all copies; the mass matrix is written down again here."""
        z = state(system)
        q, v = z[:, :2], z[:, 2:]
        mixed = 12 * np.cos(q[:, 0] - q[:, 1])
        p = np.stack([12 * v[:, 0] + mixed * v[:, 1], mixed * v[:, 0] + 18 * v[:, 1]], axis=1)
        return np.concatenate([q, p], axis=1)

    def jacobian(values):
        one, two, three, four = values.reshape(4, 4, 4)
        return ((8 * (one - two) - (three - four)) / (12 * size)).T

    before = jacobian(canonical())
    stepper.advance()
    after = jacobian(canonical())
    M = after @ np.linalg.inv(before)
    J = np.kron([[0, 1], [-1, 0]], np.eye(2))
    # size⁴ times fifth derivatives, some 1e-10, and round-off/size.
    assert np.abs(M.T @ J @ M - J).max() < 1e-9
    stepper._step(0.0, -dt)
    assert state(system) == pytest.approx(points, abs=1e-13)


def test_trapezoidal_with_constraint_is_rattle():
    one, other = spherical_pendulum(ROTATING, 1.0), lagrangian_pendulum(ROTATING, 1.0)
    fg.RATTLE(one, 0.05).advance(100)
    D(other, 0.05, quadrature="trapezoidal").advance(100)
    assert state(other)[:, :3] == pytest.approx(one.q.dat.data_ro, abs=1e-13)
    assert state(other)[:, 3:] == pytest.approx(one.p.dat.data_ro, abs=1e-13)
    assert other.multiplier.dat.data_ro == pytest.approx(one.multiplier.dat.data_ro, abs=1e-11)
    assert other.energy() == pytest.approx(one.energy(), abs=1e-13)


@pytest.mark.parametrize("compiled", [True, False])
def test_midpoint_with_constraint(compiled):
    """Order, both constraints, angular momentum."""
    reference, results = np.array([0.792797374, -0.276479285, -0.543168049]), []
    for dt in (0.1, 0.05, 0.025):
        system = lagrangian_pendulum(ROTATING, 1.0)
        stepper = D(system, dt, compiled=compiled)
        stepper.advance(round(10 / dt))
        check_way(stepper, compiled)
        q, v = np.split(state(system)[0], 2)
        results.append(np.linalg.norm(q - reference))
        assert max(system.constraint_defect(), system.velocity_defect()) <= 1e-14
        assert q[0] * v[1] - q[1] * v[0] == pytest.approx(0.6731767878463, abs=1e-12)
    slopes = np.log2(np.array(results[:-1]) / results[1:])
    assert slopes == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("dt", [1e-3, 1e-4])
@pytest.mark.parametrize("quadrature", QUADRATURES)
def test_round_off_of_small_steps_ends_the_iteration(quadrature, dt):
    """The condition over the step rounds by ε/dt, and no update makes that less."""
    ends = []
    for compiled in (True, False):
        system = lagrangian_pendulum(ROTATING, 1.0)
        stepper = D(system, dt, quadrature=quadrature, compiled=compiled)
        stepper.advance(50)
        check_way(stepper, compiled)
        assert system.constraint_defect() < 1e-15
        ends.append(state(system))
    # Roundings of fifty steps, and of a velocity over one of them.
    assert ends[0][:, :3] == pytest.approx(ends[1][:, :3], abs=50 * 2.3e-16)
    assert ends[0][:, 3:] == pytest.approx(ends[1][:, 3:], abs=50 * 2.3e-16 / dt)


@pytest.mark.parametrize(("quadrature", "same"), [("midpoint", "I"), ("trapezoidal", "V")])
def test_field(quadrature, same):
    """A nonlinear wave equation in CG1: the midpoint rule, or Verlet, of its Hamiltonian."""
    mesh = PeriodicIntervalMesh(12, 2.0)
    space = FunctionSpace(mesh, "CG", 1)
    q, v = Function(space), Function(space)
    (x,) = SpatialCoordinate(mesh)

    def start():
        q.interpolate(sin(np.pi * x))
        v.interpolate(0.3 * cos(np.pi * x))

    potential = (0.5 * q.dx(0) ** 2 + 0.25 * q**4) * dx
    kinetic = 0.5 * v**2 * dx
    results = []
    for stepper in (
        D(fg.LagrangianSystem(q, v, kinetic - potential), 0.02, quadrature=quadrature),
        {"I": fg.ImplicitMidpoint, "V": fg.StormerVerlet}[same](
            fg.HamiltonianSystem(q, v, kinetic + potential), 0.02
        ),
    ):
        start()
        stepper.advance(20)
        results.append([np.array(q.dat.data_ro), np.array(v.dat.data_ro)])
    # Solves to round-off, twenty of them.
    np.testing.assert_allclose(*results, atol=1e-12)


def test_sphere_valued_field():
    """|q| = 1 at every node with a lumped multiplier in CG1, neighbours coupled by an energy."""
    mesh = PeriodicIntervalMesh(10, 1.0)
    space, scalars = VectorFunctionSpace(mesh, "CG", 1, dim=3), FunctionSpace(mesh, "CG", 1)
    q, v, mult = Function(space), Function(space), Function(scalars)
    angle = np.linspace(0, 2 * np.pi, 10, endpoint=False)
    mu = dx(scheme="KMV", degree=1)
    start = np.stack([np.cos(angle), np.sin(angle), 0.4 * np.cos(2 * angle)], axis=1)
    q.dat.data_wo[...] = start / np.linalg.norm(start, axis=1)[:, None]
    system = fg.LagrangianSystem(
        q,
        v,
        0.5 * dot(v, v) * mu - 0.5 * inner(grad(q), grad(q)) * dx,
        constraint=lambda m: 0.5 * m * (dot(q, q) - 1) * mu,
        multiplier=mult,
    )
    first = system.energy()
    D(system, 0.005, quadrature="trapezoidal").advance(20)
    assert max(system.constraint_defect(), system.velocity_defect()) < 1e-13
    assert np.linalg.norm(q.dat.data_ro, axis=1) == pytest.approx(1, abs=1e-13)
    # It has started to move, and its energy has not.
    assert assemble(0.5 * dot(v, v) * mu) > 0.01 * first
    assert system.energy() == pytest.approx(first, rel=1e-2)


def of_two_parts():
    space = FunctionSpace(fg.copies(1), "DG", 0)
    q, v = Function(space * space), Function(space * space)
    return fg.LagrangianSystem(q, v, inner(v, v) / 2 * dx)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: D(angles(), 0.1, quadrature="simpson"), ValueError, "quadrature must be one of"),
        (lambda: D(spherical_pendulum(), 0.1), TypeError, "system: DiscreteLagrangian needs a L"),
        (lambda: fg.LagrangianSystem(1, 2, 3), TypeError, "q must be a firedrake Function"),
        (lambda: of_two_parts(), ValueError, "q must not be of a mixed space: take one vector"),
    ],
)
def test_bad_argument(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_bad_lagrangian():
    q, v, mult = functions([0.1, 0.2], [0.0, 0.0])
    for arguments, message in (
        ((q, q, 0.5 * q[0] ** 2 * dx), "velocity must be a function of its own"),
        ((q, mult, 0.5 * mult**2 * dx), "velocity must be a function of its own, in the space"),
        ((q, v, 0.5 * q[0] ** 2 * dx), "lagrangian must depend on the velocity"),
    ):
        with pytest.raises(ValueError, match=message):
            fg.LagrangianSystem(*arguments)
    with pytest.raises(ValueError, match="give constraint and multiplier together"):
        fg.LagrangianSystem(q, v, v[0] ** 2 * dx, multiplier=mult)
    with pytest.raises(ValueError, match="mass matrix .* is singular at the start: its rank is 1"):
        D(fg.LagrangianSystem(q, v, v[0] ** 2 * dx - q[1] ** 2 * dx), 0.1)
    q.dat.data_wo[0, 0] = np.nan
    with pytest.raises(ValueError, match="q holds values that are not finite"):
        D(fg.LagrangianSystem(q, v, (v[0] ** 2 + v[1] ** 2) * dx), 0.1)
