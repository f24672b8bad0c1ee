"""Constrained systems: what is refused, projection, independence of the constraints."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_vector,
    cos,
    dot,
    dx,
    sin,
)
from verification.constrained_systems import (
    DOUBLE,
    PAPER,
    chain,
    double_pendulum,
    functions,
    sphere,
    spherical_pendulum,
)

import fdgeom as fg

q, p, mult = functions(*PAPER)
pair = Function(VectorFunctionSpace(q.function_space().mesh(), "DG", 0, dim=2))
elsewhere = functions(*PAPER)[2]
T, V = 0.5 * dot(p, p) * dx, q[2] * dx
x = Function(q.function_space() * mult.function_space())


def make(**changes):
    arguments = {
        "q": q,
        "p": p,
        "kinetic": T,
        "potential": V,
        "constraint": sphere(q),
        "multiplier": mult,
    }
    return fg.ConstrainedSystem(**(arguments | changes))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"q": 1.0}, TypeError, "q must be a firedrake Function"),
        ({"p": q}, ValueError, "q and p must be two functions"),
        ({"p": mult}, ValueError, "p must be in the function space of q"),
        ({"kinetic": dot(p, p)}, TypeError, "kinetic must be a UFL functional"),
        (
            {"kinetic": (1 + q[0] ** 2) * dot(p, p) * dx},
            ValueError,
            "kinetic depends on the position",
        ),
        (
            {"kinetic": Constant(1.0) * dx(q.function_space().mesh())},
            ValueError,
            "kinetic must dep",
        ),
        ({"potential": q[2]}, TypeError, "potential must be a UFL functional"),
        ({"potential": p[2] * dx}, ValueError, "potential depends on the momentum"),
        ({"constraint": dot(q, q) * dx}, TypeError, "constraint must be a callable"),
        ({"constraint": lambda m: m * dot(q, q)}, TypeError, "constraint must give a UFL form"),
        (
            {"constraint": lambda m: dot(q, q) * dx},
            ValueError,
            "constraint must be linear in the m",
        ),
        ({"constraint": lambda m: m**2 * dot(q, q) * dx}, ValueError, "constraint must be linear"),
        ({"constraint": lambda m: (m + 1) * q[0] * dx}, ValueError, "constraint must be linear"),
        ({"constraint": lambda m: m * dot(q, p) * dx}, ValueError, "constraint depends on the mo"),
        (
            {"constraint": lambda m: m * Constant(1.0) * dx},
            ValueError,
            "constraint does not depend",
        ),
        (
            {"constraint": lambda m: m[1] * q[0] * dx},
            ValueError,
            "constraint: no valid form of a m",
        ),
        ({"constraint": lambda m: m * mult * q[0] * dx}, ValueError, "constraint must use its arg"),
        (
            {"multiplier": pair},
            ValueError,
            "constraint: no valid form of a multiplier of shape (2,",
        ),
        ({"multiplier": 0.0}, TypeError, "multiplier must be a firedrake Function"),
        ({"multiplier": p}, ValueError, "multiplier must be a function of its own"),
        ({"multiplier": x}, ValueError, "multiplier must not be of a mixed space"),
        ({"multiplier": elsewhere}, ValueError, "multiplier must live on the mesh of q"),
        ({"bcs": [3]}, TypeError, "bcs must be DirichletBC objects"),
    ],
)
def test_bad_argument(changes, error, message):
    with pytest.raises(error) as caught:
        make(**changes)
    assert str(caught.value).startswith(message)


def test_the_reason_names_the_way_out():
    with pytest.raises(ValueError, match="LagrangianSystem with DiscreteLagrangian"):
        make(kinetic=(1 + q[0] ** 2) * dot(p, p) * dx)


def test_more_constraints_than_coordinates():
    many = Function(VectorFunctionSpace(q.function_space().mesh(), "DG", 0, dim=4))
    with pytest.raises(ValueError, match="more constraints than"):
        make(multiplier=many, constraint=lambda m: dot(m, as_vector([*q, 1])) * dx)


def test_another_system_is_refused():
    free = fg.HamiltonianSystem(q, p, T + V)
    with pytest.raises(TypeError, match="system: RATTLE needs a ConstrainedSystem"):
        fg.RATTLE(free, 0.1)
    with pytest.raises(TypeError, match="system: ImplicitMidpoint needs a PoissonSystem"):
        fg.ImplicitMidpoint(make(), 0.1)
    with pytest.raises(TypeError, match="ConstraintDefect"):
        fg.ConstraintDefect().bind(free)


# --- the start -----------------------------------------------------------------------------------
def test_inconsistent_start_and_projection():
    system = spherical_pendulum(((1.2, 0.1, -0.4), (0.3, -0.2, 0.9)))
    start = np.array(system.q.dat.data_ro[0]), np.array(system.p.dat.data_ro[0])
    for cls in (fg.RATTLE, fg.SHAKE):
        with pytest.raises(ValueError, match=r"g\(q\) = 0: it is off by 0.61.*system.project\(\)"):
            cls(system, 0.1)
    system.project()
    place = start[0] / np.linalg.norm(start[0])
    assert system.q.dat.data_ro[0] == pytest.approx(place, abs=1e-15)
    motion = start[1] - (start[1] @ place) * place
    assert system.p.dat.data_ro[0] == pytest.approx(motion, abs=1e-15)
    fg.RATTLE(system, 0.1).advance()
    system.p.dat.data_wo[...] += 1e-6 * system.q.dat.data_ro
    with pytest.raises(ValueError, match=r"Dg\(q\) q̇ = 0: it is off by .*system.project\(\)"):
        fg.RATTLE(system, 0.1)


def test_defects_are_means_on_the_present_mesh():
    """Of a deviation that is the same everywhere, on a mesh that is stretched."""
    mesh = UnitIntervalMesh(3)
    space = FunctionSpace(mesh, "DG", 0)
    q, p, mult = Function(space).assign(1.1), Function(space).assign(0.2), Function(space)
    system = fg.ConstrainedSystem(q, p, p**2 / 2 * dx, q * dx, lambda k: k * (q - 1) * dx, mult)
    for _ in range(2):
        assert system.constraint_defect() == pytest.approx(0.1, rel=1e-12)
        assert system.velocity_defect() == pytest.approx(0.2, rel=1e-12)
        mesh.coordinates.dat.data_wo[...] *= 5.0


def test_projection_weighs_the_masses():
    """The momentum changes along the rows of Dg only, as an impulse of the rods does."""
    system = double_pendulum((DOUBLE[0], (1.0, 0.4, 0.3, -0.5, 0.2, 0.8)))
    before = np.array(system.p.dat.data_ro[0])
    system.project()
    assert system.velocity_defect() < 1e-14
    a, b = np.split(np.array(DOUBLE[0]), 2)
    rows = np.array([[*a, 0, 0, 0], [*(a - b), *(b - a)]])
    change = system.p.dat.data_ro[0] - before
    left = change - rows.T @ np.linalg.lstsq(rows.T, change, rcond=None)[0]
    assert np.abs(change).max() > 0.1
    assert np.abs(left).max() < 1e-14


def test_no_projection():
    system = spherical_pendulum()
    system.q.dat.data_wo[...] = 0.0
    with pytest.raises(ValueError, match="project: no consistent state was found"):
        system.project()


def test_a_failed_projection_leaves_the_state():
    """Also where the momentum is held: it would be zero there after a projection."""
    system = chain(4)
    system.q.dat.data_wo[...] = 0.0
    system.p.dat.data_wo[...] = 1.0
    with pytest.raises(ValueError, match="project: no consistent state was found"):
        system.project()
    assert np.all(system.q.dat.data_ro == 0.0)
    assert np.all(system.p.dat.data_ro == 1.0)


def test_start_that_is_not_finite():
    system = spherical_pendulum()
    system.p.dat.data_wo[0, 1] = np.nan
    with pytest.raises(ValueError, match="p holds values that are not finite"):
        fg.RATTLE(system, 0.1)


def two_constraints(first, second):
    q, p, mult = functions((0.6, 0.0, -0.8), (0.0, 0.0, 0.0), constraints=2)
    return fg.ConstrainedSystem(
        q,
        p,
        0.5 * dot(p, p) * dx,
        q[2] * dx,
        lambda m: (m[0] * first(q) + m[1] * second(q)) * dx,
        mult,
    )


def test_zero_gradient():
    system = two_constraints(lambda q: dot(q, q) - 1, lambda q: (dot(q, q) - 1) ** 2)
    with pytest.raises(ValueError, match="constraint: its gradient is zero at the start"):
        fg.RATTLE(system, 0.1)


@pytest.mark.parametrize("second", [lambda q: 2 * dot(q, q) - 2, lambda q: dot(q, q) ** 2 - 1])
def test_redundant_constraints(second):
    system = two_constraints(lambda q: dot(q, q) - 1, second)
    with pytest.raises(ValueError, match=r"redundant or contradictory .* rank 1 of 2"):
        fg.RATTLE(system, 0.1)


def test_contradictory_constraints():
    system = two_constraints(lambda q: dot(q, q) - 1, lambda q: dot(q, q) - 4)
    with pytest.raises(ValueError, match=r"does not fulfil g\(q\) = 0"):
        fg.RATTLE(system, 0.1)


def test_scales_do_not_matter():
    """One constraint a million times larger than the other, both independent."""
    system = double_pendulum(scale=1e6)
    fg.RATTLE(system, 0.01).advance()


# --- fields --------------------------------------------------------------------------------------
def test_taut_chain_between_two_fixed_ends():
    """As long as the distance of its ends: one constraint follows from the others."""
    system = chain(6)
    both = fg.ConstrainedSystem(
        system.q,
        system.p,
        0.5 * dot(system.p, system.p) * dx(scheme="KMV", degree=1),
        system.q[1] * dx,
        lambda m: m * (dot(system.q.dx(0), system.q.dx(0)) - 1) * dx,
        system.multiplier,
        measure=dx(scheme="KMV", degree=1),
        bcs=[DirichletBC(system.space, 0, "on_boundary")],
    )
    with pytest.raises(ValueError, match="rank 5 of 6"):
        fg.RATTLE(both, 0.1)


def test_multiplier_of_a_too_large_space():
    """Constant in each cell, the stretch has fewer values than CG1 multipliers has nodes."""
    system = chain(4)
    r = system.q
    nodes = Function(FunctionSpace(system.mesh, "CG", 1))
    mu = dx(scheme="KMV", degree=1)
    wrong = fg.ConstrainedSystem(
        r, system.p, 0.5 * dot(system.p, system.p) * mu, r[1] * mu,
        lambda m: m * (dot(r.dx(0), r.dx(0)) - 1) * dx, nodes, measure=mu,
        bcs=[DirichletBC(system.space, 0, 1)],
    )  # fmt: skip
    with pytest.raises(ValueError, match="rank 4 of 5"):
        fg.RATTLE(wrong, 0.1)


def test_mass_that_is_not_pointwise():
    mesh = UnitIntervalMesh(4)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    r, s = Function(space), Function(space)
    density = Function(FunctionSpace(mesh, "CG", 1)).assign(1.0)
    density.dat.data_wo[2] = 2.0
    mult = Function(FunctionSpace(mesh, "DG", 0))
    with pytest.raises(ValueError, match="kinetic: δT/δp is no pointwise expression"):
        fg.ConstrainedSystem(
            r, s, 0.5 / density * dot(s, s) * dx, r[1] * dx,
            lambda m: m * dot(r.dx(0), r.dx(0)) * dx, mult,
        )  # fmt: skip


def test_boundary_conditions():
    system = chain(4)
    for bc, message in (
        (DirichletBC(system.space, (1.0, 0.0), 1), "bcs must be zero"),
        (DirichletBC(system.constraint.space, 0, 1), "bcs: a DirichletBC must be on the space"),
    ):
        with pytest.raises(ValueError, match=message):
            fg.ConstrainedSystem(
                system.q, system.p, 0.5 * dot(system.p, system.p) * dx, system.q[1] * dx,
                lambda m: m * dot(system.q, system.q) * dx, system.multiplier, bcs=bc,
            )  # fmt: skip
    system.p.dat.data_wo[...] = 0.1
    with pytest.raises(ValueError, match="p must be zero where bcs hold q"):
        fg.RATTLE(system, 0.1)


def test_one_component_held():
    """A bead whose chain's end slides on a vertical line: only x is held."""
    system = chain(4, angle=0.7)
    slides = fg.ConstrainedSystem(
        system.q, system.p, 0.5 * dot(system.p, system.p) * dx(scheme="KMV", degree=1),
        9.81 * system.q[1] * dx(scheme="KMV", degree=1),
        lambda m: m * (dot(system.q.dx(0), system.q.dx(0)) - 1) * dx, system.multiplier,
        measure=dx(scheme="KMV", degree=1), bcs=DirichletBC(system.space.sub(0), 0, 1),
    )  # fmt: skip
    first = slides.energy()
    fg.RATTLE(slides, 1e-3).advance(20)
    end = system.q.dat.data_ro[system.space.boundary_nodes(1)[0]]
    assert end[0] == 0.0
    # Falling: of the order of ½·9.81·0.02², as the rest of the chain.
    assert -3e-3 < end[1] < -1e-3
    assert slides.energy() == pytest.approx(first, abs=1e-5)


def test_nodes_that_are_held_and_do_not_couple():
    """Pendulums at the nodes of CG1, the first and last of which are held: they stay, others move."""
    mesh = UnitIntervalMesh(4)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=3)
    r, s, mult = Function(space), Function(space), Function(FunctionSpace(mesh, "CG", 1))
    r.dat.data_wo[...] = (0.6, 0.0, -0.8)
    mu = dx(scheme="KMV", degree=1)
    system = fg.ConstrainedSystem(
        r, s, 0.5 * dot(s, s) * mu, 9.8 * r[2] * mu, lambda m: m * (dot(r, r) - 1) * mu, mult,
        measure=mu, bcs=DirichletBC(space, 0, "on_boundary"),
    )  # fmt: skip
    with pytest.raises(ValueError, match="rank 3 of 5|its gradient is zero"):
        # Where a node is held its constraint has nothing to act on.
        fg.RATTLE(system, 0.01)


def test_a_kinetic_energy_that_moves_what_is_held():
    """p₀ = 0 is not q̇₀ = 0 where T couples p₀ and p₁; in velocities q₀ stays at the node."""
    mesh = UnitIntervalMesh(2)
    space, mu = VectorFunctionSpace(mesh, "CG", 1, dim=3), dx(scheme="KMV", degree=1)
    r, s, mult = Function(space), Function(space), Function(FunctionSpace(mesh, "CG", 1))
    s.interpolate(as_vector([0.0, 1.0, 0.0]))
    bc, coupling = DirichletBC(space.sub(0), 0, 1), Constant(1.0)
    plane = {"constraint": lambda m: m * r[2] * mu, "multiplier": mult, "bcs": bc}

    def system():
        kinetic = (dot(s, s) + s[0] ** 2 + 2 * coupling * s[0] * s[1]) / 2 * mu
        return fg.ConstrainedSystem(r, s, kinetic, 1e-12 * r[1] * mu, measure=mu, **plane)

    with pytest.raises(ValueError, match="bcs: with this kinetic energy p = 0 does not hold q"):
        system()
    coupling.assign(0.0)
    stepper = fg.RATTLE(system(), 0.1)
    coupling.assign(1.0)
    with pytest.raises(ValueError, match="bcs: with this kinetic energy p = 0 does not hold q"):
        stepper.advance()
    lagrangian = (s[0] ** 2 / 2 - s[0] * s[1] + s[1] ** 2 + s[2] ** 2 / 2 - 1e-12 * r[1]) * mu
    same = fg.LagrangianSystem(r, s, lagrangian, **plane)
    fg.DiscreteLagrangian(same, 0.1, quadrature="trapezoidal").advance(10)
    np.testing.assert_allclose(r.dat.data_ro[bc.nodes], [[0.0, 1.0, 0.0]], atol=1e-11)


@pytest.mark.parametrize("described_by", ["momentum", "velocity", "velocity, free", "residual"])
def test_energy_error_vanishes_with_the_step(described_by):
    """An energy and a constraint that are no polynomials, on CG1: of order two in the step."""
    mesh = IntervalMesh(2, 2.0)
    (place,) = SpatialCoordinate(mesh)
    space, mu = VectorFunctionSpace(mesh, "CG", 1, dim=2), dx(scheme="KMV", degree=1)
    r, s, mult = Function(space), Function(space), Function(FunctionSpace(mesh, "DG", 0))
    curve = {"constraint": lambda m: m * (r[1] - sin(r[0])) * dx, "multiplier": mult}
    kinetic, potential = dot(s, s) / 2, -cos(r[0])

    def pulled_back(q, v, a, t, w):
        return (dot(a, w) + sin(q[0]) * w[0]) * dx

    deviations = []
    for dt in (0.04, 0.02, 0.01):
        r.interpolate(as_vector([1.5 * place, sin(1.5 * place)]))
        s.assign(0.0)
        if described_by == "momentum":
            system = fg.ConstrainedSystem(r, s, kinetic * mu, potential * dx, measure=mu, **curve)
            method = fg.RATTLE
        elif described_by == "residual":
            energy, method = (kinetic + potential) * dx, fg.GeneralizedAlpha
            system = fg.SecondOrderSystem(pulled_back, r, s, energy=energy)
        else:
            given = {} if "free" in described_by else curve
            system = fg.LagrangianSystem(r, s, (kinetic - potential) * dx, **given)
            method = fg.DiscreteLagrangian
        if described_by != "residual":
            system.project()
        stepper = method(system, dt)
        first, largest = system.energy(), 0.0
        for _ in range(round(2 / dt)):
            stepper.advance()
            largest = max(largest, abs(system.energy() - first))
        deviations.append(largest)
    np.testing.assert_allclose(np.log2(np.divide(deviations[:-1], deviations[1:])), 2, atol=0.2)
