"""The variational integrator: what it keeps, its order, and another implementation in NumPy."""

import numpy as np
import pytest
from firedrake import UnitSquareMesh, as_vector, cos, sin
from verification.beams import STIFFNESS, papers_beam, set_smooth, uneven_mesh
from verification.numpy_rods import cay, rotation, vee
from verification.rod_cases import (
    FORCE,
    GRAVITY,
    INERTIAS,
    SEPARATE,
    forth_and_back,
    gap,
    moving,
    relative,
    state,
    twin,
)
from ways import check_way

import fdgeom as fg

EnergyMomentum, VariationalIntegrator = fg.EnergyMomentum, fg.VariationalIntegrator
DT = 0.02


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("inertia", "left"),
    [("separate", "free"), ("separate", "pinned"), ("coupled", "clamped"), ("coupled", "pinned")],
)
def test_against_numpy(inertia, left, compiled):
    gravity = GRAVITY if inertia == "separate" else None
    loads = [fg.Load(force=FORCE, at="right")]
    loads += [fg.Gravity(gravity)] if gravity else []
    beam = moving(INERTIAS[inertia], left=left, loads=loads)
    rod, expected = twin(beam, force=FORCE, gravity=gravity)
    stepper = VariationalIntegrator(beam, DT, compiled=compiled)
    stepper.advance(3)
    check_way(stepper, compiled)
    for _ in range(3):
        expected = rod.variational_step(*expected, DT)
    # Both solve to round-off.
    assert gap(state(beam), expected) < 1e-13


def test_energy_with_a_pin_and_a_centre_of_mass_elsewhere():
    """The velocity at the pin is zero, and the kinetic energy that of the motion: its band is O(Δt²)."""
    bands = []
    for dt in (0.02, 0.01, 0.005):
        load = fg.Load(force=FORCE, at="right")
        beam = moving(INERTIAS["coupled"], left="pinned", loads=load)
        stepper = VariationalIntegrator(beam, dt)
        start, found = stepper.system.energy(), []
        for _ in range(20):
            stepper.advance(round(0.04 / dt))
            found.append(stepper.system.energy() - start)
            assert np.array_equal(state(beam)[2][0, 3:], np.zeros(3))
        bands.append(np.abs(found).max())
    assert np.log2(np.array(bands[:-1]) / bands[1:]) == pytest.approx([2, 2], abs=0.15)


def test_momenta_of_a_free_beam(recorded):
    """Twenty thousand steps at nearly the bound for the fastest wave (2.1e-4)."""
    beam = papers_beam(100, end_weight=0.5)
    stepper = VariationalIntegrator(beam, 1e-4)
    energy, linear, angular = beam.energy(), beam.linear_momentum(), beam.angular_momentum()
    stepper.advance(20000)
    # Round-off of the steps adds up at random, to 1e-13 or so.
    assert relative(beam.linear_momentum(), linear) < 1e-11
    assert relative(beam.angular_momentum(), angular) < 1e-11
    assert beam.energy() == pytest.approx(energy, rel=5e-3)
    assert np.abs(beam.position.dat.data_ro).max() > 1
    for trait, off in (
        ("linear momentum", relative(beam.linear_momentum(), linear)),
        ("angular momentum", relative(beam.angular_momentum(), angular)),
    ):
        words = "a free beam of 100 cells, 20000 steps"
        recorded.defect(
            "VariationalIntegrator", trait, words, claimed=True, measured=off, bound=1e-11
        )


def test_momenta_with_coupled_inertia():
    beam = moving(INERTIAS["coupled"], 8)
    stepper = VariationalIntegrator(beam, 0.01)
    linear, angular = beam.linear_momentum(), beam.angular_momentum()
    stepper.advance(2000)
    assert relative(beam.linear_momentum(), linear) < 1e-12
    assert relative(beam.angular_momentum(), angular) < 1e-12


def test_energy_band():
    """The energy stays in a band without a trend, whose width falls as Δt²."""
    bands = []
    for dt in (0.04, 0.02, 0.01):
        beam = moving(SEPARATE, 8)
        stepper = VariationalIntegrator(beam, dt)
        start, found = beam.energy(), []
        for _ in range(200):
            stepper.advance(round(0.4 / dt))
            found.append(beam.energy() - start)
        first, last = np.abs(found[:100]).max(), np.abs(found[100:]).max()
        # Sampled at the same times; chance decides which half meets the higher peak.
        assert last < 1.3 * first
        bands.append(max(first, last))
    assert np.log2(np.array(bands[:-1]) / bands[1:]) == pytest.approx([2, 2], abs=0.3)


def test_order(recorded):
    beam = moving(SEPARATE)
    x, q, v = (np.array(f.dat.data_ro) for f in (beam.position, beam.orientation, beam.velocity))
    ends = []
    for steps in (40, 80, 160, 1280):
        for f, value in ((beam.position, x), (beam.orientation, q), (beam.velocity, v)):
            f.dat.data_wo[...] = value
        VariationalIntegrator(beam, 0.8 / steps).advance(steps)
        ends.append(state(beam))
    errors = [gap(end, ends[-1]) for end in ends[:-1]]
    # The reference is off by 1/64 of the last error.
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([2, 2], abs=0.15)
    seen = np.log2(errors[-2] / errors[-1])
    recorded.order(
        "VariationalIntegrator", "free beam, pose", claimed=2, measured=seen,
        steps=(40, 80, 160), errors=errors,
    )  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("inertia", ["separate", "coupled"])
def test_symmetric(inertia, compiled, recorded):
    stepper = VariationalIntegrator(moving(INERTIAS[inertia]), DT, compiled=compiled)
    back, moved = forth_and_back(stepper, 3)
    assert moved > 0.01
    assert back < 1e-13  # round-off
    words = f"a beam, {inertia} inertia, {'compiled' if compiled else 'through SNES'}"
    recorded.defect(
        "VariationalIntegrator", "symmetric", words, claimed=True, measured=back, bound=1e-13
    )


@pytest.mark.parametrize("inertia", ["separate", "coupled"])
def test_symplectic(inertia):
    """dS is kept, ω = ⟨δμ₂, ξ₁⟩ - ⟨δμ₁, ξ₂⟩ + ⟨μ, [ξ₁, ξ₂]⟩ for velocities ξ = g⁻¹δg."""
    beam = moving(INERTIAS[inertia], 2)
    stepper = VariationalIntegrator(beam, 0.1)
    group = Group(beam, inertia == "separate")
    base = group.read()
    size, eps = 12 * len(base[0]), 1e-4
    columns = []
    for j in range(size):
        ends = []
        for sign in (1, -1):
            d = np.zeros(size)
            d[j] = sign * eps
            group.write(base, d)
            stepper.advance(3)
            ends.append(group.read())
        columns.append((ends[0], ends[1]))
    group.write(base, np.zeros(size))
    stepper.advance(3)
    end = group.read()
    tangent = np.array([(group.log(end, a) - group.log(end, b)) / (2 * eps) for a, b in columns]).T
    before, after = group.form(base), group.form(end)
    # Central differences: O(eps²) and round-off over eps.
    assert tangent.T @ after @ tangent == pytest.approx(before, abs=1e-6 * np.abs(before).max())
    assert np.abs(tangent - np.eye(size)).max() > 0.1


class Group:
    """States of a beam as (x, R, μ), in coordinates (ξ, δμ) about one of them."""

    def __init__(self, beam, separate):
        self.beam, self.separate, self.M = beam, separate, beam.section.inertia
        lengths = np.diff(np.sort(beam.mesh.coordinates.dat.data_ro))
        weights = (np.append(lengths, 0) + np.append(0, lengths)) / 2
        place = np.argsort(np.argsort(beam.mesh.coordinates.dat.data_ro))
        self.weights = weights[place]

    def read(self):
        x, q, v = (np.array(f.dat.data_ro) for f in
                   (self.beam.position, self.beam.orientation, self.beam.velocity))  # fmt: skip
        R = rotation(q)
        if self.separate:
            v[:, 3:] = np.einsum("nij,nj->ni", R, v[:, 3:])
        return x, R, self.weights[:, None] * (v @ self.M), q

    def write(self, base, d):
        x, R, mu, q = base
        xi, dmu = d.reshape(2, -1, 6)
        shift = xi[:, 3:] if self.separate else np.einsum("nij,nj->ni", R, xi[:, 3:])
        half = np.concatenate([np.ones((len(x), 1)), xi[:, :3] / 2], axis=1)
        w, u = q[:, :1], q[:, 1:]
        turned = np.concatenate([
            w - np.sum(u * half[:, 1:], 1, keepdims=True),
            w * half[:, 1:] + u + np.cross(u, half[:, 1:])], axis=1)  # fmt: skip
        turned /= np.linalg.norm(turned, axis=1)[:, None]
        v = (mu + dmu) / self.weights[:, None] @ np.linalg.inv(self.M)
        if self.separate:
            v[:, 3:] = np.einsum("nji,nj->ni", rotation(turned), v[:, 3:])
        self.beam.position.dat.data_wo[...] = x + shift
        self.beam.orientation.dat.data_wo[...] = turned
        self.beam.velocity.dat.data_wo[...] = v

    def log(self, base, other):
        relative = np.einsum("nki,nkj->nij", base[1], other[1])
        shift = other[0] - base[0]
        if not self.separate:
            shift = np.einsum("nji,nj->ni", base[1], shift)
        return np.concatenate([
            np.concatenate([vee(relative - np.swapaxes(relative, 1, 2)) / 2, shift], axis=1),
            other[2] - base[2]]).ravel()  # fmt: skip

    def form(self, at):
        n, mu = len(at[0]), at[2]
        omega = np.zeros((2, n, 6, 2, n, 6))
        for i in range(n):
            for a in range(6):
                omega[0, i, a, 1, i, a], omega[1, i, a, 0, i, a] = 1, -1
                for b in range(6):
                    (w1, v1), (w2, v2) = np.eye(6)[a].reshape(2, 3), np.eye(6)[b].reshape(2, 3)
                    turn, shift = np.cross(w1, w2), np.cross(w1, v2) - np.cross(w2, v1)
                    bracket = np.append(turn, 0 * shift if self.separate else shift)
                    omega[0, i, a, 0, i, b] = mu[i] @ bracket
        return omega.reshape(12 * n, 12 * n)


def test_rotations_of_the_test():
    w = np.array([0.1, -0.2, 0.3])
    q = np.append(1.0, w / 2)
    assert rotation(q / np.linalg.norm(q)) == pytest.approx(cay(w), abs=1e-15)


def test_same_solution_as_the_other_methods():
    """With the mesh and the steps refined together, all go to one motion."""
    gaps = {"energy-momentum": [], "symmetric Poisson": []}
    for cells, steps in ((8, 80), (16, 160), (32, 320)):
        ends = []
        for method in (VariationalIntegrator, EnergyMomentum, fg.SymmetricPoissonIntegrator):
            beam = set_smooth(fg.Beam(uneven_mesh(cells), fg.Section(STIFFNESS, SEPARATE)))
            method(beam, 0.8 / steps).advance(steps)
            ends.append(state(beam)[:2])
        for name, other in zip(gaps, ends[1:], strict=True):
            gaps[name].append(gap(ends[0], other))
    for name, found in gaps.items():
        rates = np.log2(np.array(found[:-1]) / found[1:])
        # Second order in the cells and the steps, not yet in its limit.
        assert rates == pytest.approx([2, 2], abs=0.4), name


def test_loads_that_change_in_time():
    beam = moving(
        SEPARATE, loads=fg.Load(force=lambda t: as_vector([0, sin(t), cos(t)]), at="left")
    )
    stepper = VariationalIntegrator(beam, 0.01)
    assert stepper.is_compiled
    linear = beam.linear_momentum()
    stepper.advance(20)
    # The impulse by the trapezoidal rule over the steps.
    t = 0.01 * np.arange(21)
    impulse = [0, np.trapezoid(np.sin(t), t), np.trapezoid(np.cos(t), t)]
    assert beam.linear_momentum() == pytest.approx(linear + impulse, abs=1e-13)


@pytest.mark.parametrize("compiled", [True, False])
def test_unstable_steps(compiled):
    """Beyond the bound of the step the motion grows until a step fails; the last good state is kept."""
    beam = moving(SEPARATE, 8)
    stepper = VariationalIntegrator(beam, 0.25, compiled=compiled)
    with pytest.raises(fg.StepFailed) as caught:
        stepper.advance(3000)
    assert 1 < caught.value.step == stepper.steps < 3000
    assert stepper.t == pytest.approx(0.25 * stepper.steps)
    assert all(np.isfinite(f.dat.data_ro).all() for f in stepper.system.functions().values())
    done, left = stepper.steps, state(beam)
    again = moving(SEPARATE, 8)
    VariationalIntegrator(again, 0.25, compiled=compiled).advance(done)
    for a, b in zip(state(again), left, strict=True):
        assert np.array_equal(a, b)


def test_steps_in_pieces_and_state_set_by_hand():
    beam, other = moving(SEPARATE), moving(SEPARATE)
    stepper, whole = VariationalIntegrator(beam, DT), VariationalIntegrator(other, DT)
    for _ in range(4):
        stepper.advance(2)
    whole.advance(8)
    assert gap(state(beam), state(other)) == 0.0
    beam.velocity.assign(0.0)
    beam.position.interpolate(2 * beam.position)
    stepper.advance()
    other.velocity.assign(0.0)
    other.position.interpolate(2 * other.position)
    VariationalIntegrator(other, DT).advance()
    assert gap(state(beam), state(other)) == 0.0


def test_damped_beam_is_refused():
    with pytest.raises(ValueError, match="without damping"):
        VariationalIntegrator(moving(SEPARATE, damping=0.1), DT)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: UnitSquareMesh(1, 1), TypeError, "needs a fdgeom.Beam"),
        (lambda: a_beam(left=fg.GivenPose(position=lambda t: as_vector([t, 0, 0]))), ValueError,
         "holds nodes but does not move them"),
        (lambda: a_beam("coupled", left=fg.Sliding("x")), ValueError, "a Sliding end needs"),
        (lambda: set_smooth(a_beam(left="pinned")), ValueError, "left end is pinned, but starts"),
    ],
)  # fmt: skip
def test_wrong_start(make, error, message):
    with pytest.raises(error, match=message):
        VariationalIntegrator(make(), DT)


def a_beam(inertia="separate", **options):
    return fg.Beam(uneven_mesh(3), fg.Section(STIFFNESS, INERTIAS[inertia]), **options)


def test_sliding_end():
    beam = moving(SEPARATE, left=fg.Sliding("y", turning=False))
    stepper = VariationalIntegrator(beam, DT)
    stepper.advance(50)
    x, R, V = state(beam)
    assert x[0, [0, 2]] == pytest.approx([0, 0], abs=1e-15)
    assert abs(x[0, 1]) > 1e-3
    assert R[0] == pytest.approx(np.eye(3), abs=1e-15)
    assert V[0, [0, 1, 2, 3, 5]] == pytest.approx(np.zeros(5), abs=1e-15)


def test_options():
    with pytest.raises(ValueError, match="snes_rtoll"):
        VariationalIntegrator(a_beam(), DT, solver_parameters={"increment_snes_rtoll": 1e-8})
    stepper = VariationalIntegrator(moving(SEPARATE), DT, compiled=False)
    stepper.advance(2)
    stats = stepper.solver_stats()
    # Two kicks (linear) and a drift in each step.
    assert stats["solves"] == 6
    assert 4 + 2 * 2 <= stats["newton_iterations"] <= 4 + 2 * 4


def test_traits():
    V = VariationalIntegrator
    assert (V.order, V.symmetric, V.symplectic) == (2, True, True)
    joints = ("constraint", "velocity constraint")
    assert V.conserves == ("linear momentum", "angular momentum", *joints)
