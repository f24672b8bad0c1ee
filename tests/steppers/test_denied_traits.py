"""What steppers say they are not: each denial has a case that shows it.

Symplectic maps keep the loop integral ∮ p·dq over every closed loop of starts (Poincaré). Over a loop
that is smooth and periodic the trapezoidal rule of the derivative's Fourier series is spectrally
accurate, so thirty starts tell round-off from a method that is not symplectic. Sweeps and their
compositions are in ``test_symmetry`` and ``test_poisson_maps``, nonholonomic steps in
``test_nonholonomic``, RK4 in ``test_symplectic``.
"""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, dot, dx, sin
from verification.beams import along, arc, set_smooth
from verification.constrained_systems import ROTATING, spherical_pendulum
from verification.numpy_beam import rotation
from verification.rod_cases import SEPARATE, moving

import fdgeom as fg

ANGLES = 2 * np.pi * np.arange(30) / 30


def derivative(values):
    """d/dφ of samples at ``ANGLES`` along the first axis, by their Fourier series."""
    n = len(values)
    orders = np.fft.fftfreq(n, 1 / n).reshape(-1, *[1] * (values.ndim - 1))
    return np.fft.ifft(1j * orders * np.fft.fft(values, axis=0), axis=0).real


def loop_integral(p, q):
    """∮ p·dq of rows of p and q."""
    return np.sum(p * derivative(q)) * 2 * np.pi / len(p)


# --- one degree of freedom: ∮ v dq is an area -------------------------------------------------------
def pendulums():
    """q̈ = -sin q from a circle of starts round (0.8, 0.3), radius one half."""
    space = FunctionSpace(fg.copies(len(ANGLES)), "DG", 0)
    q, v = Function(space), Function(space)
    q.dat.data_wo[...] = 0.8 + 0.5 * np.cos(ANGLES)
    v.dat.data_wo[...] = 0.3 - 0.5 * np.sin(ANGLES)
    return fg.SecondOrderSystem(lambda q, v, a, t, test: (a + sin(q)) * test * dx, q, v)


def area(system):
    return loop_integral(system.v.dat.data_ro, system.q.dat.data_ro)


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda s: fg.GeneralizedAlpha(s, 0.3), 1e-4),
        (lambda s: fg.GeneralizedAlpha(s, 0.3, fg.hamel_alpha(1.0)), 1e-6),
        (lambda s: fg.HermiteSimpson(s, 0.3), 1e-9),
    ],
)
def test_area_of_a_loop_of_pendulums_changes(make, least):
    system = pendulums()
    before = area(system)
    assert before == pytest.approx(np.pi / 4, abs=1e-14)  # the circle's
    make(system).advance(3)
    assert abs(area(system) - before) > least


def test_generalized_alpha_is_not_symmetric():
    """Forth, the velocity turned round, back: not to the start."""
    system = pendulums()
    q, v = np.array(system.q.dat.data_ro), np.array(system.v.dat.data_ro)
    stepper = fg.GeneralizedAlpha(system, 0.1)
    for _ in range(2):
        stepper.advance(5)
        system.v.dat.data_wo[...] *= -1
    # Round-off of ten steps is 1e-15; the multi-step memory leaves some h⁴.
    assert np.abs(system.q.dat.data_ro - q).max() > 1e-6
    assert np.abs(system.v.dat.data_ro - v).max() > 1e-6


# --- beams: ∮ Σ w μ·(g⁻¹dg) over the nodes -----------------------------------------------------------
@pytest.fixture(scope="module")
def short_beam():
    return moving(SEPARATE, 2)


def loops(beam, cls, dt, steps):
    """∮ of momenta over a loop of starts of a beam of two cells, before and after some steps.

    Also by how much each of the beams has turned (entries of rotation matrices) and shifted at least.
    """
    rows = {"before": [], "after": []}
    stepper = cls(beam, dt)
    for angle in ANGLES:
        set_smooth(beam)
        beam.velocity.dat.data_wo[:, 1] += 0.3 * np.sin(angle)
        beam.velocity.dat.data_wo[:, 5] += 0.4 * np.cos(angle)
        beam.momentum.interpolate(dot(beam.inertia, beam.velocity))
        beam.position.dat.data_wo[-1] += 0.1 * np.array([np.cos(angle), 0.5, np.sin(angle)])
        beam.position.dat.data_wo[0, 2] += 0.05 * np.cos(angle)
        beam.project()
        rows["before"].append(snapshot(beam))
        stepper.advance(steps)
        rows["after"].append(snapshot(beam))
    h = np.diff(arc(beam.momentum))
    weights = np.array([h[0], h[0] + h[1], h[1]]) / 2
    least = [
        min(np.abs(a[k] - b[k]).max() for a, b in zip(rows["before"], rows["after"], strict=True))
        for k in (1, 0)
    ]
    return *(integral(weights, rows[key]) for key in ("before", "after")), *least


def snapshot(beam):
    return along(beam.position), rotation(along(beam.orientation)), along(beam.momentum)


def integral(weights, rows):
    x, R, mu = (np.array(part) for part in zip(*rows, strict=True))
    turned = np.einsum("anji,anjk->anik", R, derivative(R))
    theta = np.stack([turned[..., 2, 1], turned[..., 0, 2], turned[..., 1, 0]], axis=-1)
    shift = np.einsum("anji,anj->ani", R, derivative(x))
    return np.einsum("n,ank,ank->", weights, mu, np.concatenate([theta, shift], -1)) * (
        2 * np.pi / len(x)
    )


@pytest.mark.parametrize(
    ("cls", "symplectic"),
    [(fg.VariationalIntegrator, True), (fg.EnergyMomentum, False), (fg.GeneralizedAlpha, False)],
)
def test_loop_of_beams(short_beam, cls, symplectic, recorded):
    before, after, turned, shifted = loops(short_beam, cls, 0.05, 3)
    assert abs(before) > 1e-2
    # Three steps of 0.05 with spins and speeds of some tenths: a stepper that does nothing fails here.
    assert turned > 0.05
    assert shifted > 0.02
    # Thirty starts resolve the loop: what a symplectic method leaves is round-off.
    assert abs(after - before) < 1e-12 if symplectic else abs(after - before) > 1e-8
    recorded.defect(
        cls.__name__, "symplectic", "a loop of starts of a beam", claimed=symplectic,
        measured=abs(after - before), bound=1e-12 if symplectic else 1e-8,
    )  # fmt: skip


# --- SHAKE ---------------------------------------------------------------------------------------------
def test_shake_is_not_symmetric():
    """The positions come back, being those of RATTLE; the momentum along the constraint does not."""
    system = spherical_pendulum(ROTATING, gravity=1.0)
    q, p = np.array(system.q.dat.data_ro), np.array(system.p.dat.data_ro)
    stepper = fg.SHAKE(system, 0.1)
    for _ in range(2):
        stepper.advance()
        system.p.dat.data_wo[...] *= -1
    assert np.abs(system.q.dat.data_ro - q).max() < 1e-14
    apart = system.p.dat.data_ro - p
    assert np.linalg.norm(apart) > 1e-5
    assert np.linalg.norm(np.cross(apart, q)) < 1e-14
