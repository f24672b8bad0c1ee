"""Canonical systems: the bracket, separability, other energies, and what is refused."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_vector,
    assemble,
    cos,
    dx,
    exp,
    inner,
)
from ufl import i
from verification.hamiltonian_systems import canonical, double_pendulum, mixed, pendulum, ring_wave

import fdgeom as fg


@pytest.mark.parametrize(
    ("energy", "separable"),
    [
        (lambda q, p: 0.5 * p**2 + 0.5 * q**2, True),
        (lambda q, p: exp(p) - cos(q) * Constant(2.0), True),
        (lambda q, p: (0.5 * p**2 + q) * 3 - q**4, True),
        (lambda q, p: 0.5 * p**2 + p, True),
        (lambda q, p: 0.5 * p**2 + 1e-3 * p * q, False),
        (lambda q, p: 0.5 * p**2 / (1 + q**2), False),
        (lambda q, p: (p - q) ** 2, False),
    ],
)
def test_separable(energy, separable):
    assert canonical((0.3, 0.4), energy).is_separable is separable


def test_separable_fields():
    assert ring_wave().is_separable
    assert not mixed().is_separable
    assert not double_pendulum().is_separable


@pytest.mark.parametrize("build", [mixed, double_pendulum, pendulum, ring_wave])
def test_motion_is_the_bracket_with_the_energy(build, rng):
    """dh(z)[(-w_p, w_q)] = {w, h}(z), with δh/δz from a solve."""
    from fdgeom.systems.poisson.checks import riesz

    system = build()
    w = Function(system.space)
    for part in w.subfunctions:
        part.dat.data_wo[...] = rng.uniform(-1, 1, part.dat.data_ro.shape)
    w_q, w_p = w.subfunctions
    slope = Function(system.space)
    riesz(system, system.forms.energy_derivative(system.test), slope).solve()
    expected = assemble(system.bracket(w, slope))
    assert assemble(system.motion((w_q, w_p))) == pytest.approx(expected, rel=1e-12)


def test_bracket_of_coordinates():
    """{q, p} = 1: the bracket of the projections on q and p."""
    system = pendulum()
    one, zero = Constant(1.0), Constant(0.0)
    assert assemble(system.bracket((one, zero), (zero, one))) == pytest.approx(1.0, abs=1e-15)
    assert assemble(system.bracket((zero, one), (one, zero))) == pytest.approx(-1.0, abs=1e-15)
    assert system.antisymmetry_defect() < 1e-15


@pytest.mark.parametrize(
    ("product", "mass"),
    [
        (lambda m, motion, rest: m[0] * (motion(0) + rest(0)) / m[1], 2.0),
        (lambda m, motion, rest: m[i] * (motion(i) + rest(i)) / m[1], 3.0),
    ],
)
def test_parts_of_an_energy_with_a_field_before_the_bracket(product, mass):
    """m (½p² + gz) and m (½v² - gz) with a field m, z = 1 and p = v = 3."""
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=2)
    q, p, m = Function(space).assign(1.0), Function(space).assign(3.0), Function(space)
    m.interpolate(as_vector([2.0, 1.0]))
    for cls, gravity in ((fg.HamiltonianSystem, 9.81), (fg.LagrangianSystem, -9.81)):
        terms = product(m, lambda k: 0.5 * p[0] * p[k], lambda k, g=gravity: g * q[k])
        system = cls(q, p, terms * dx)
        assert system.kinetic_energy() == pytest.approx(4.5 * mass, rel=1e-14)
        assert system.potential_energy() == pytest.approx(9.81 * mass, rel=1e-14)


def test_other_energy_moves_the_same_functions():
    system = pendulum()
    free = system.substeps.with_energy(0.5 * system.p**2 * dx)
    assert free.parts == system.parts
    system.p.dat.data_wo[...] = 0.5
    fg.StormerVerlet(free, 0.1).advance(10)
    assert system.q.dat.data_ro[0] == pytest.approx(2.5, abs=1e-14)


def test_splitting():
    """T(p) and V(q) in turn, each by the midpoint rule, is Störmer–Verlet."""
    ends = []
    for cls in (fg.StormerVerlet, fg.Splitting):
        system = pendulum()
        pieces = [-cos(system.q) * dx, 0.5 * system.p**2 * dx]
        options = {"energies": pieces} if cls is fg.Splitting else {}
        cls(system, 0.1, **options).advance(20)
        ends.append((system.q.dat.data_ro[0], system.p.dat.data_ro[0]))
    assert ends[0] == pytest.approx(ends[1], abs=1e-13)
    assert ends[0][0] < 1.0


def test_measure():
    """With a lumped measure of the pairing, δh/δq of a lumped energy is pointwise."""
    lumped = dx(scheme="KMV", degree=1)
    system = ring_wave()
    q, p = system.q, system.p
    assert system.gradient((q, p)) is None
    pointwise = fg.HamiltonianSystem(q, p, (0.5 * p**2 + 0.25 * q**4) * lumped, measure=lumped)
    found = [
        Function(q.function_space()).interpolate(part).dat.data_ro
        for part in pointwise.gradient((q, p))
    ]
    assert found[0] == pytest.approx(np.array(q.dat.data_ro) ** 3, abs=1e-15)
    assert found[1] == pytest.approx(np.array(p.dat.data_ro), abs=1e-15)


@pytest.fixture(scope="module")
def pair():
    space = FunctionSpace(fg.copies(2), "DG", 0)
    return Function(space), Function(space)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda q, p: fg.HamiltonianSystem(1.0, p, p * dx), TypeError, "q must be a firedrake Fu"),
        (lambda q, p: fg.HamiltonianSystem(q, "p", q * dx), TypeError, "p must be a firedrake Fu"),
        (lambda q, p: fg.HamiltonianSystem(q, q, q * dx), ValueError, "q and p must be two func"),
        (lambda q, p: fg.HamiltonianSystem(q, p, p**2), TypeError, "energy must be a UFL funct"),
        (lambda q, p: fg.HamiltonianSystem(q, p, 3.0), TypeError, "energy must be a UFL functi"),
        (
            lambda q, p: fg.HamiltonianSystem(q, p, inner(q, p) * dx, names=("q", "q")),
            ValueError,
            "names must be 2 different names",
        ),
    ],
)
def test_refused(pair, make, error, message):
    with pytest.raises(error) as caught:
        make(*pair)
    assert str(caught.value).startswith(message)


def test_mixed_spaces_are_refused():
    line = UnitIntervalMesh(2)
    space = FunctionSpace(line, "CG", 1) * FunctionSpace(line, "DG", 0)
    q, p = Function(space), Function(space)
    with pytest.raises(ValueError, match="q must not be of a mixed space"):
        fg.HamiltonianSystem(q, p, inner(p, p) * dx)
