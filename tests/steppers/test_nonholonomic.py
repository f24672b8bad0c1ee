"""The discrete Lagrange–d'Alembert method: orders, constraints, and what it does not keep."""

from itertools import pairwise

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    TestFunction,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_vector,
    assemble,
    cos,
    dot,
    dx,
    inner,
    sin,
)
from verification.nonholonomic_systems import (
    BALL_VELOCITY,
    PARTICLE_START,
    fields,
    particle,
    particle_rates,
    particle_reference,
    rolling_ball,
)

import fdgeom as fg

END = 2.0
M = fg.NonholonomicMidpoint


def state(system):
    return np.concatenate([system.q.dat.data_ro[0], system.velocity().dat.data_ro[0]])


def put(system, values):
    n = system.q.ufl_shape[0]
    system.q.dat.data_wo[...] = values[:n]
    system.velocity().dat.data_wo[...] = values[n:]


def slopes(errors, steps):
    return np.diff(np.log(errors)) / -np.diff(np.log(steps))


@pytest.fixture(scope="module")
def reference():
    return particle_reference(END)


@pytest.mark.parametrize(
    ("order", "steps"), [(2, (20, 40, 80, 160)), (4, (20, 30, 40, 60)), (6, (10, 15, 20, 25))]
)
def test_order(reference, order, steps, recorded):
    """Against the equations of motion solved for the multiplier; compositions take the method too."""
    system = particle()
    stepper = (M if order == 2 else fg.Composition(M, order))(system, 1.0)
    assert stepper.is_compiled
    errors = []
    for n in steps:
        put(system, PARTICLE_START)
        stepper.dt = END / n
        stepper.advance(n)
        errors.append(np.abs(state(system) - reference).max())
    # The last slope is settled to a tenth, two for the compositions' coarse steps.
    assert slopes(errors, steps)[-1] == pytest.approx(order, abs=0.1 if order == 2 else 0.3)
    name = "NonholonomicMidpoint" + (f" composed to order {order}" if order > 2 else "")
    seen = slopes(errors, steps)[-1]
    recorded.order(
        name, "nonholonomic particle", claimed=order, measured=seen, steps=steps, errors=errors
    )


def test_multiplier_is_the_reaction_in_the_middle_of_the_step():
    errors = []
    for n in (40, 80, 160):
        system = particle()
        M(system, END / n).advance(n)
        middle = particle_reference(END - END / n / 2)
        errors.append(abs(system.multiplier.dat.data_ro[0] - particle_rates(middle)[1]))
    # Of order two; one half of the reaction alone would give one.
    assert slopes(errors, (40, 80, 160))[-1] == pytest.approx(2, abs=0.15)


def test_constraints_at_round_off():
    """At the nodes and, with the mean velocity, in the middle of every step."""
    system = particle()
    stepper = M(system, 0.05)
    for _ in range(200):
        before = system.q.dat.data_ro[0].copy()
        stepper.advance()
        after = system.q.dat.data_ro[0]
        mean, (_, y, _) = (after - before) / 0.05, (after + before) / 2
        # Differences of positions of size one, over 0.05.
        assert abs(mean[2] - y * mean[0]) < 2e-14
        assert system.velocity_defect() < 1e-15


@pytest.mark.parametrize("compiled", [True, False])
def test_symmetry(compiled):
    system = particle()
    start = state(system)
    stepper = M(system, 0.1, compiled=compiled)
    stepper.advance()
    assert np.abs(state(system) - start).max() > 0.02
    stepper.clock = stepper.clock.with_dt(-stepper.dt)
    stepper.advance()
    assert np.abs(state(system) - start).max() < 1e-14


def test_compiled_steps_and_snes_agree(rng):
    starts = np.tile(PARTICLE_START, (11, 1)) + rng.uniform(-0.2, 0.2, (11, 6))
    starts[:, 5] = starts[:, 1] * starts[:, 3]
    results = []
    for compiled in (True, False):
        system = particle(11, starts)
        M(system, 0.05, compiled=compiled).advance(20)
        results.append([f.dat.data_ro.copy() for f in system.functions().values()])
    for one, other in zip(*results, strict=True):
        # Round-off of solves that go to the last digits; the reaction is 20 times less sharp.
        assert one == pytest.approx(other, rel=1e-12, abs=1e-13)


def test_energy_is_kept_to_order_two_only():
    drifts = []
    for n in (40, 80, 160):
        system = particle()
        stepper, start, worst = M(system, END / n), system.energy(), 0.0
        for _ in range(n):
            stepper.advance()
            worst = max(worst, abs(system.energy() - start))
        drifts.append(worst)
    assert drifts[-1] > 1e-6
    assert slopes(drifts, (40, 80, 160))[-1] == pytest.approx(2, abs=0.1)


def test_not_symplectic_on_the_constraint():
    """The sum of areas in (x, p_x) and (y, p_y) changes in a step, for the reduced momenta."""
    system = particle()
    stepper = M(system, 0.1)

    def step(z):
        x, y, a, b = z
        put(system, (x, y, 0.2, a, b, y * a))
        stepper.advance()
        x, y, _, a, b, _ = state(system)
        return np.array([x, y, (1 + y * y) * a, b])

    z = np.array([0.3, 0.5, 0.7, -0.4])
    columns = [(step(z + e) - step(z - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    J = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    # p_x = (1 + y²) ẋ at the start as well.
    momenta = np.eye(4)
    momenta[2, 1], momenta[2, 2] = 2 * z[1] * z[2], 1 + z[1] ** 2
    D = np.column_stack(columns) @ np.linalg.inv(momenta)
    assert np.abs(D.T @ J @ D - J).max() > 1e-3


def test_rolling_ball():
    """The centre of a rolling ball moves on a straight line."""
    system, errors, steps = rolling_ball(), [], (40, 80, 160)
    # The start of the verification problem, given to ten digits; rates are rounded there.
    start = state(system)
    stepper = M(system, 1.0)
    for n in steps:
        put(system, start)
        stepper.dt = 0.4 / n
        stepper.advance(n)
        errors.append(np.abs(system.q.dat.data_ro[0, 3:] - 0.4 * np.array(BALL_VELOCITY)).max())
        assert system.velocity_defect() < 1e-14
    assert errors[-1] < 1e-3
    assert slopes(errors, steps)[-1] == pytest.approx(2, abs=0.1)


# --- fields --------------------------------------------------------------------------------------
def string(cells=6):
    """A string of particles: ż = yẋ at all its points, with tension, in CG1."""
    mesh = UnitIntervalMesh(cells)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=3)
    q, v = Function(space, name="q"), Function(space, name="velocity")
    mult = Function(FunctionSpace(mesh, "CG", 1), name="multiplier")
    (s,) = SpatialCoordinate(mesh)
    q.interpolate(as_vector([0.3 * sin(3 * s), 0.5 + s, 0.2 * cos(3 * s)]))
    v.interpolate(as_vector([sin(3 * s), 0.3 * s * (1 - s), 0 * s]))
    lagrangian = 0.5 * (inner(v, v) - inner(q.dx(0), q.dx(0))) * dx
    system = fg.NonholonomicSystem(
        q, v, lagrangian, lambda mult, v: mult * (v[2] - q[1] * v[0]) * dx, mult
    )
    system.project()
    return system


def test_field_with_constraint():
    """Coupled solves: the constraints in the weak sense, symmetry, order two."""
    system = string()
    start = [f.dat.data_ro.copy() for f in (system.q, system.velocity())]
    results = []
    for n in (10, 20, 40, 80):
        for f, values in zip((system.q, system.velocity()), start, strict=True):
            f.dat.data_wo[...] = values
        stepper = M(system, 0.5 / n)
        assert stepper.is_compiled
        stepper.advance(n)
        assert not stepper.fallbacks
        results.append(np.concatenate([system.q.dat.data_ro, system.velocity().dat.data_ro]))
        assert system.velocity_defect() < 1e-13
    differences = [np.abs(a - b).max() for a, b in pairwise(results)]
    assert slopes(differences, (10, 20, 40))[-1] == pytest.approx(2, abs=0.15)
    # All the way back.
    stepper.clock = stepper.clock.with_dt(-stepper.dt)
    stepper.advance(80)
    assert system.q.dat.data_ro == pytest.approx(start[0], abs=1e-12)


def test_field_with_a_held_end():
    free = string()
    bc = DirichletBC(free.space, Constant((0, 0, 0)), 1)
    (s,) = SpatialCoordinate(free.mesh)
    free.velocity().interpolate(as_vector([0.2 + s, 0.3 * s, 0 * s]))
    lagrangian = 0.5 * (inner(free.velocity(), free.velocity()) - inner(free.q.dx(0), free.q.dx(0)))
    held = fg.NonholonomicSystem(
        free.q,
        free.velocity(),
        lagrangian * dx,
        lambda mult, v: mult * (v[2] - free.q[1] * v[0]) * dx,
        free.multiplier,
        bcs=bc,
    )
    with pytest.raises(ValueError, match=r"^velocity must be zero where bcs hold q"):
        M(held, 0.02)
    held.project()
    start = held.q.dat.data_ro.copy()
    M(held, 0.02).advance(10)
    assert np.abs(held.q.dat.data_ro - start).max(axis=1)[0] == 0
    assert np.abs(held.q.dat.data_ro - start).max(axis=1)[-1] > 0.1


def test_many_copies_that_start_where_the_mass_is_diagonal():
    """More than a thousand unknowns, whose saddle points could be solved by elimination there."""
    mesh = fg.copies(400)
    V, W = VectorFunctionSpace(mesh, "DG", 0, dim=3), FunctionSpace(mesh, "DG", 0)
    q, v, mult = Function(V), Function(V), Function(W)
    v.dat.data_wo[:] = 1.0, 0.5, 0.0
    system = fg.NonholonomicSystem(
        q,
        v,
        0.5 * (dot(v, v) + sin(q[0]) * v[0] * v[1]) * dx,
        lambda r, v: r * (v[2] - q[1] * v[0]) * dx,
        mult,
    )
    M(system, 0.01, compiled=False, solver_parameters={"snes_rtol": 1e-13}).advance(100)
    # 400 particles of energy 5/8, of which the method loses h² or so.
    assert system.energy() == pytest.approx(250, rel=1e-5)


# --- projection and wrong input ------------------------------------------------------------------
def test_projection_is_the_nearest_velocity():
    system = particle()
    put(system, (0.3, 0.5, -0.2, 0.7, -0.4, 1.0))
    with pytest.raises(
        ValueError, match=r"^the start does not fulfil A\(q\) q̇ = 0: it is off by 0.65"
    ):
        M(system, 0.1)
    system.project()
    A, given = np.array([-0.5, 0, 1]), np.array([0.7, -0.4, 1.0])
    expected = given - A * (A @ given) / (A @ A)
    assert system.velocity().dat.data_ro[0] == pytest.approx(expected, abs=1e-15)
    M(system, 0.1).advance()


def made(constraint=None, constraints=1, lagrangian=None, **changes):
    q, v, mult = fields(2, 3, constraints, PARTICLE_START)
    arguments = {
        "q": q,
        "velocity": v,
        "lagrangian": 0.5 * dot(v, v) * dx if lagrangian is None else lagrangian(q, v),
        "constraint": lambda m, u: (constraint or (lambda m, u, q, v: m * u[2] * dx))(m, u, q, v),
        "multiplier": mult,
    }
    return fg.NonholonomicSystem(**{**arguments, **changes})


def skew(m, u, q, v):
    return m * (u[2] - q[1] * u[0]) * dx


def twice(m, u, q, v):
    return (m[0] + 2 * m[1]) * (u[2] - q[1] * u[0]) * dx


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: made(q=3.0), TypeError, "q must be a firedrake Function"),
        (lambda: made(velocity=None), TypeError, "velocity must be a firedrake Function"),
        (lambda: made(lagrangian=lambda q, v: 3.0), TypeError, "lagrangian must be a UFL functional"),
        (
            lambda: made(lagrangian=lambda q, v: dot(v, TestFunction(q.function_space())) * dx),
            ValueError,
            "lagrangian must have 0 arguments",
        ),
        (lambda: made(lagrangian=lambda q, v: q[0] * dx), ValueError, "lagrangian must depend on"),
        (
            lambda: M(made(skew, lagrangian=lambda q, v: v[0] ** 2 * dx), 0.1),
            ValueError,
            "lagrangian: the mass matrix ∂²L/∂q̇² is singular",
        ),
        (lambda: made_with(5), TypeError, "constraint must be a callable"),
        (lambda: made(lambda m, u, q, v: u[2]), TypeError, "constraint must give a UFL form"),
        (lambda: made(lambda m, u, q, v: m * u[7] * dx), ValueError, "constraint: no valid form"),
        (lambda: made(lambda m, u, q, v: m * u[2] ** 2 * dx), ValueError, "constraint must be linear"),
        (lambda: made(lambda m, u, q, v: m * (u[2] - 1) * dx), ValueError, "constraint must be linear"),
        (lambda: made(lambda m, u, q, v: m * q[2] * dx), ValueError, "constraint must be linear"),
        (
            lambda: made(lambda m, u, q, v: m * v[0] * u[2] * dx),
            ValueError,
            "constraint must use its argument, not the velocity itself",
        ),
        (lambda: made(multiplier=1.0), TypeError, "multiplier must be a firedrake Function"),
        (
            lambda: made(multiplier=Function(FunctionSpace(fg.copies(3), "DG", 0))),
            ValueError,
            "multiplier must live on the mesh of q",
        ),
        (lambda: M(made(twice, constraints=2), 0.1), ValueError, "constraint: redundant"),
        (
            lambda: M(made(lambda m, u, q, v: m * (q[0] - 0.3) * u[2] * dx), 0.1),
            ValueError,
            "constraint: its gradient is zero at the start",
        ),
        (lambda: M(fg.HamiltonianSystem(*hamiltonian()), 0.1), TypeError, "system: NonholonomicMid"),
        (lambda: fg.DiscreteLagrangian(particle(), 0.1), TypeError, "system: DiscreteLagrangian n"),
        (lambda: fg.ImplicitMidpoint(particle(), 0.1), TypeError, "system: ImplicitMidpoint needs"),
    ],
)  # fmt: skip
def test_wrong_input(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value).startswith(message)


def made_with(constraint):
    q, v, mult = fields(1, 3, 1, PARTICLE_START)
    return fg.NonholonomicSystem(q, v, 0.5 * dot(v, v) * dx, constraint, mult)


def hamiltonian():
    q, p, _ = fields(1, 3, 1, PARTICLE_START)
    return q, p, 0.5 * dot(p, p) * dx


def test_one_function_twice():
    q, v, mult = fields(1, 3, 1, PARTICLE_START)
    for velocity in (q, Function(VectorFunctionSpace(q.function_space().mesh(), "DG", 0, dim=2))):
        with pytest.raises(ValueError, match=r"^velocity must be a function of its own"):
            fg.NonholonomicSystem(
                q, velocity, 0.5 * dot(v, v) * dx, lambda m, u: m * u[0] * dx, mult
            )


def test_start_that_is_not_finite():
    system = particle()
    system.q.dat.data_wo[0, 1] = np.nan
    with pytest.raises(ValueError, match=r"^q holds values that are not finite"):
        M(system, 0.1)


@pytest.mark.parametrize("compiled", [True, False])
def test_failed_step_leaves_the_state(compiled):
    """A constraint that vanishes in the middle of the step: no reaction follows from it there."""
    q, v, mult = fields(1, 3, 1, (0.5, 0, 0, -1.0, 0.2, 0))
    system = fg.NonholonomicSystem(
        q, v, (0.5 * dot(v, v) - q[2]) * dx, lambda mult, v: mult * q[0] * v[2] * dx, mult
    )
    stepper = M(system, 1.0, compiled=compiled)
    before = state(system)
    with pytest.raises(fg.StepFailed):
        stepper.advance()
    assert state(system) == pytest.approx(before, abs=0)


def test_run_records_energy_and_constraint():
    system = particle()
    history = M(system, 0.1).run(until=1.0, monitors=[fg.Energy(), fg.ConstraintDefect()])
    assert history["energy"].shape == (11,)
    assert history["velocity constraint"].max() < 1e-15
    kinetic = 0.5 * np.sum(np.square(PARTICLE_START[3:]))
    x, y, z = PARTICLE_START[:3]
    potential = 0.5 * (x * x + 2 * y * y + z * z + x * y)
    assert history["energy"][0] == pytest.approx(kinetic + potential, rel=1e-14)
    assert assemble(system.energies()["energy"]) == pytest.approx(history["energy"][-1], rel=1e-14)
