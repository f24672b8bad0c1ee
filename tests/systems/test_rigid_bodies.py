"""Rigid bodies: what is refused, forces against potentials, energies, momenta, projection."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    TestFunction,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_matrix,
    as_vector,
    assemble,
    cos,
    dot,
    dx,
)
from verification.numpy_bodies import ARM, INERTIA, MASS, SPIN
from verification.rigid_body_systems import STILL, free_body, heavy_top, matrices, rows

import fdgeom as fg
from fdgeom.lie import groups, quaternion

mesh = fg.copies(2)
q, x, v = rows(mesh, STILL, "q"), rows(mesh, [0, 1, 0], "x"), rows(mesh, np.zeros(6), "v")
mult, spin = rows(mesh, np.zeros(3), "mult"), rows(mesh, np.zeros(3), "spin")
chain = Function(VectorFunctionSpace(mesh, "CG", 1, dim=4))
elsewhere = rows(fg.copies(2), np.zeros(6), "elsewhere")
tensor = as_matrix(INERTIA)


def joint(mult):
    return dot(mult, quaternion.rotate(q, as_vector(ARM)) - x) * dx


def make(**changes):
    arguments = {"orientation": q, "velocity": v, "position": x, "inertia": INERTIA, "mass": MASS}
    return fg.RigidBodies(**(arguments | changes))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"orientation": STILL}, TypeError, "orientation must be a firedrake Function"),
        ({"orientation": chain}, ValueError, "orientation must be of a DG0 space"),
        ({"orientation": spin}, ValueError, "orientation must have 4 components"),
        ({"velocity": spin}, ValueError, "velocity must have 6 components"),
        ({"velocity": elsewhere}, ValueError, "velocity must live on the mesh of orientation"),
        ({"group": groups.SE3, "position": None}, ValueError, "position is needed on SE3"),
        ({"group": groups.SO3}, ValueError, "position: SO3 has none"),
        ({"group": "SE3"}, TypeError, "group must be fg.lie.groups.SO3"),
        ({"inertia": [1.0, 2.0, 0.0]}, ValueError, "inertia must be positive definite"),
        ({"inertia": np.ones((3, 3))}, ValueError, "inertia must be positive definite"),
        ({"inertia": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}, ValueError, "inertia must be symmetric"),
        ({"inertia": [1.0, np.nan, 1.0]}, ValueError, "inertia must be a finite 3×3"),
        ({"inertia": np.eye(2)}, ValueError, "inertia must be a finite 3×3"),
        ({"inertia": "heavy"}, TypeError, "inertia must be a finite 3×3"),
        ({"inertia": tensor[0, 0]}, ValueError, r"inertia must have the shape \(3, 3\)"),
        ({"inertia": x[1] * tensor - tensor}, ValueError, "inertia must be positive definite"),
        ({"mass": None}, ValueError, "mass is needed"),
        ({"mass": 0.0}, ValueError, "mass must be a positive number"),
        ({"mass": x[0]}, ValueError, "mass must be positive"),
        ({"mass": "15"}, TypeError, "mass must be a number"),
        ({"position": None, "velocity": spin}, ValueError, "mass: bodies about a fixed point"),
        ({"potential": x[2]}, TypeError, "potential must be a UFL functional"),
        ({"potential": v[0] * x[2] * dx}, ValueError, "potential depends on the velocity"),
        ({"potential": Constant(1.0) * dx(mesh)}, ValueError, "potential does not depend on"),
        ({"force": v}, TypeError, r"force must be a callable of \(x, q, v, t\)"),
        ({"force": lambda v, t: v}, ValueError, r"force: no valid expression of \(x, q, v, t\)"),
        ({"force": lambda x, q, v, t: x}, ValueError, r"force must give a vector of shape \(6,\)"),
        ({"constraint": joint}, ValueError, "give constraint and multiplier together"),
        ({"constraint": lambda m: m[0] * v[0] * dx, "multiplier": mult}, ValueError, "holonomic"),
        ({"constraint": lambda m: m[0] * dx, "multiplier": mult}, ValueError, "does not depend on"),
        ({"constraint": joint, "multiplier": elsewhere}, ValueError, "multiplier must live on"),
    ],
)
def test_refused(changes, error, message):
    with pytest.raises(error, match=message):
        make(**changes)


def test_refused_starts():
    """Off the constraint, its rate not zero, redundant, quaternions that are none, not finite."""
    alpha = fg.GeneralizedAlpha
    top = heavy_top()
    top.position.dat.data_wo[0, 2] = 0.1
    with pytest.raises(ValueError, match=r"does not fulfil g\(q\) = 0: it is off by 0.1"):
        alpha(top, 1e-3)
    top = heavy_top()
    top.v.dat.data_wo[0, 5] += 1
    with pytest.raises(ValueError, match="does not fulfil Dg"):
        alpha(top, 1e-3)
    top = heavy_top()
    top.orientation.dat.data_wo[...] *= 1.1
    with pytest.raises(ValueError, match="orientation must hold unit quaternions"):
        alpha(top, 1e-3)
    top = free_body(spin=(1.0, np.inf, 1.0))
    with pytest.raises(ValueError, match="velocity holds values that are not finite"):
        alpha(top, 1e-3)
    v.dat.data_wo[...] = 0.0
    x.dat.data_wo[...] = ARM
    four = rows(mesh, np.zeros(4), "four")

    def twice(m):
        return joint(as_vector([m[0], m[1], m[2]])) + m[3] * (dot(x, x) - 1) * dx

    with pytest.raises(ValueError, match="redundant or contradictory"):
        alpha(make(constraint=twice, multiplier=four), 1e-3)


# --- what moves them -----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["SO3", "R3xSO3", "SE3"])
def test_balance_against_numpy(kind, rng):
    """M v̇ - ad*_v(Mv) - f and Bᵀλ at random states, and the potential's force as a force."""
    from verification import numpy_bodies

    model = {
        "SO3": numpy_bodies.TopSO3,
        "R3xSO3": numpy_bodies.TopR3xSO3,
        "SE3": numpy_bodies.TopSE3,
    }[kind]()
    count = 4
    top = heavy_top(kind, count)
    parts = [*top.configuration, top.v, top.acceleration]
    if kind != "SO3":
        parts.append(top.multiplier)
    for part in parts:
        part.dat.data_wo[...] = rng.normal(size=part.dat.data_ro.shape)
    top.orientation.interpolate(quaternion.normalize(top.orientation))
    test = TestFunction(top.space)
    form = top.balance(top.configuration, top.v, top.acceleration, top.time, test)
    if kind != "SO3":
        form += top.constraint.slope(top.multiplier, test)
    found = assemble(form).dat.data_ro
    turn = np.r_[3:6, 0:3] if kind != "SO3" else np.r_[0:3]
    for k, R in enumerate(matrices(top)):
        v, a = top.v.dat.data_ro[k][turn], top.acceleration.dat.data_ro[k][turn]
        g = (None if kind == "SO3" else top.position.dat.data_ro[k], R)
        expected = model.M @ a - model.force(g, v)
        if kind != "SO3":
            expected = expected + model.B(g).T @ top.multiplier.dat.data_ro[k]
            # Forces in the frame of the velocity: the weight is turned on SE(3).
            weight = MASS * numpy_bodies.GRAVITY
            force = np.concatenate([np.zeros(3), weight if kind == "R3xSO3" else R.T @ weight])
            assert model.force(g, 0 * v)[turn] == pytest.approx(force, abs=1e-12)
        # Entries of size 100.
        assert found[k] == pytest.approx(expected[turn], abs=1e-12)


def test_force_and_potential_agree():
    """The weight as a force, damped and in time: other bodies in other cells."""
    start = {"inertia": np.diag(INERTIA), "mass": MASS, "potential": None}
    ends = []
    for force in (None, lambda x, q, v, t: as_vector([0, 0, 0, 0, 0, -MASS * 9.81])):
        more = {} if force is None else start | {"force": force}
        top = heavy_top(n=2, spin=[SPIN, [1, 2, 3]], **more)
        fg.GeneralizedAlpha(top, 2e-3).advance(20)
        ends.append(np.array(top.v.dat.data_ro))
    # Twenty steps of round-off in velocities of 150.
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


def test_force_in_time_and_damping():
    """JΩ̇ = cos t - cΩ about one axis: Ω = (c cos t + sin t - c e^{-ct})/(1 + c²) for J = 1."""
    c, errors = 0.3, []
    for steps in (20, 40, 80):
        body = free_body(
            spin=np.zeros(3),
            force=lambda q, v, t: as_vector([0, 0, cos(t)]) - c * v,
            inertia=[2.0, 3.0, 1.0],
        )
        fg.GeneralizedAlpha(body, 2 / steps).advance(steps)
        exact = (c * np.cos(2) + np.sin(2) - c * np.exp(-2 * c)) / (1 + c * c)
        errors.append(abs(body.v.dat.data_ro[0, 2] - exact))
        assert np.abs(body.v.dat.data_ro[0, :2]).max() < 1e-14
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes == pytest.approx(2, abs=0.1)


def test_bodies_that_differ():
    """Inertia and mass as fields: each body moves as it does alone."""
    count = 3
    scale = np.array([1.0, 2.0, 0.5])
    mesh = fg.copies(count)
    q, x = rows(mesh, np.tile(STILL, (count, 1)), "q"), rows(mesh, np.zeros((count, 3)), "x")
    start = np.array([0.3, -1.0, 0.5, 1.0, 2.0, 0.0])
    v, factor = rows(mesh, start, "v"), Function(FunctionSpace(mesh, "DG", 0))
    factor.dat.data_wo[...] = scale

    def pull(x, q, v, t):
        return as_vector([0, 0.1, 0, 1, 0, -2])

    J = factor * as_matrix([[2, 0.1, 0], [0.1, 3, 0], [0, 0, 1]])
    many = fg.RigidBodies(q, v, x, inertia=J, mass=factor, force=pull)
    fg.GeneralizedAlpha(many, 0.05).advance(10)
    for k, s in enumerate(scale):
        one = fg.copies(1)
        q1, x1, v1 = rows(one, STILL, "q"), rows(one, np.zeros(3), "x"), rows(one, start, "v")
        J1 = s * np.array([[2, 0.1, 0], [0.1, 3, 0], [0, 0, 1]])
        single = fg.RigidBodies(q1, v1, x1, inertia=J1, mass=s, force=pull)
        fg.GeneralizedAlpha(single, 0.05).advance(10)
        assert v.dat.data_ro[k] == pytest.approx(v1.dat.data_ro[0], abs=1e-13)
        assert x.dat.data_ro[k] == pytest.approx(x1.dat.data_ro[0], abs=1e-13)


# --- what is measured ----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["SO3", "R3xSO3", "SE3"])
def test_energies_and_momenta(kind, rng):
    top = heavy_top(kind, 3)
    for part in (*top.configuration, top.v):
        part.dat.data_wo[...] = rng.normal(size=part.dat.data_ro.shape)
    top.orientation.interpolate(quaternion.normalize(top.orientation))
    kinetic, potential, linear, angular = 0.0, 0.0, np.zeros(3), np.zeros(3)
    for k, R in enumerate(matrices(top)):
        v = top.v.dat.data_ro[k]
        if kind == "SO3":
            J = INERTIA + MASS * (np.eye(3) - np.outer(ARM, ARM))
            kinetic += v @ J @ v / 2
            potential += MASS * 9.81 * (R @ ARM)[2]
            angular += R @ J @ v
            continue
        place, drift = top.position.dat.data_ro[k], v[3:] if kind == "R3xSO3" else R @ v[3:]
        kinetic += v[:3] @ INERTIA @ v[:3] / 2 + MASS * drift @ drift / 2
        potential += MASS * 9.81 * place[2]
        linear += MASS * drift
        angular += R @ INERTIA @ v[:3] + MASS * np.cross(place, drift)
    assert top.kinetic_energy() == pytest.approx(kinetic, rel=1e-13)
    assert top.potential_energy() == pytest.approx(potential, rel=1e-13)
    assert top.energy() == pytest.approx(kinetic + potential, rel=1e-13)
    found = {name: [assemble(f) for f in forms] for name, forms in top.momenta().items()}
    assert found["angular_momentum"] == pytest.approx(angular, abs=1e-12)
    assert ("linear_momentum" in found) == (kind != "SO3")
    if kind != "SO3":
        assert found["linear_momentum"] == pytest.approx(linear, abs=1e-12)


def test_run_records_and_writes(tmp_path):
    top = heavy_top(n=2)
    history = fg.GeneralizedAlpha(top, 1e-3).run(
        until=0.02,
        monitors=[fg.Energy(), fg.Momentum(), fg.ConstraintDefect()],
        output=fg.VTKOutput(tmp_path / "top.pvd", every=10),
        every=5,
        progress=False,
    )
    assert history["constraint"].max() < 1e-14
    assert history["energy"] == pytest.approx(
        history["kinetic_energy"] + history["potential_energy"], rel=1e-14
    )
    assert history["angular_momentum"].shape == (5, 3)
    assert (tmp_path / "top.pvd").exists()


# --- projection ----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["R3xSO3", "SE3"])
def test_projection(kind, rng):
    """To the joint, moving least in the metric of the masses; what is there stays."""
    top = heavy_top(kind, 3)
    before = [np.array(f.dat.data_ro) for f in (*top.configuration, top.v)]
    top.project()
    for f, values in zip((*top.configuration, top.v), before, strict=True):
        assert f.dat.data_ro == pytest.approx(values, abs=1e-13 * 150)
    top.position.dat.data_wo[...] += 0.1 * rng.normal(size=(3, 3))
    top.v.dat.data_wo[...] += rng.normal(size=(3, 6))
    moved = np.array(top.v.dat.data_ro)
    top.project()
    assert top.constraint_defect() < 1e-14
    assert top.velocity_defect() < 1e-12
    # The momentum changed by a multiple of B: M(w - v) does no work on velocities with B w = 0.
    M = np.concatenate([np.diag(INERTIA), np.full(3, MASS)])
    sign = 1 if kind == "R3xSO3" else -1
    for k, R in enumerate(matrices(top)):
        turn = rng.normal(size=3)
        drift = np.cross(turn, ARM)
        free = np.concatenate([turn, R @ drift if sign == 1 else drift])
        assert (M * (top.v.dat.data_ro[k] - moved[k])) @ free == pytest.approx(0, abs=1e-11)
    fg.GeneralizedAlpha(top, 1e-3).advance()


def test_projection_that_fails():
    """A rod of length 1 from a point at distance 3, whose other end is held: there is none."""
    v.dat.data_wo[...] = 0.0
    x.dat.data_wo[...] = 0.0
    two = Function(VectorFunctionSpace(mesh, "DG", 0, dim=2))

    def impossible(m):
        tip = x + quaternion.rotate(q, as_vector([1.0, 0, 0]))
        return (m[0] * dot(x, x) + m[1] * (dot(tip, tip) - 9)) * dx

    with pytest.raises(ValueError, match="project: no consistent state"):
        make(constraint=impossible, multiplier=two).project()


def test_needs_one_value_in_a_cell():
    on = UnitIntervalMesh(2)
    q = Function(VectorFunctionSpace(on, "DG", 1, dim=4))
    with pytest.raises(ValueError, match="orientation must be of a DG0 space"):
        fg.RigidBodies(q, q, inertia=[1, 1, 1])
    assert free_body().constraint_defect() == 0.0


def test_inertia_and_mass_follow_the_constants_in_them():
    size, weight = Constant(1.0), Constant(MASS)
    motion = np.array([0.3, -0.2, 0.5, 1.0, 2.0, -1.0])
    moving = rows(mesh, motion, "moving")
    bodies = make(velocity=moving, inertia=size * tensor, mass=weight)
    for factor, mass in ((1.0, MASS), (3.0, 0.7)):
        size.assign(factor)
        weight.assign(mass)
        spin, push = motion[:3], motion[3:]
        one = 0.5 * factor * spin @ np.array(INERTIA) @ spin + 0.5 * mass * push @ push
        assert bodies.kinetic_energy() == pytest.approx(2 * one, rel=1e-13)
    size.assign(-1.0)
    with pytest.raises(ValueError, match="positive definite"):
        bodies.kinetic_energy()


def test_a_mass_that_becomes_negative():
    """A field is checked again where it has changed, as a Constant is."""
    weight = Function(FunctionSpace(mesh, "DG", 0)).assign(2.0)
    bodies = make(inertia=tensor, mass=weight)
    stepper = fg.GeneralizedAlpha(bodies, 0.1)
    stepper.advance(1)
    weight.assign(-1.0)
    with pytest.raises(ValueError, match="mass must be positive and finite"):
        stepper.advance(1)
