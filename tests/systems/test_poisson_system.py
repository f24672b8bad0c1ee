"""A Poisson system from its energy, bracket and pairing: is the structure what it should be?"""

import numpy as np
import pytest
from firedrake import Function, as_vector, cross, dot, dx, inner, sqrt
from verification import small_systems

import fdgeom as fg

SYSTEMS = {
    "rigid_body": lambda: small_systems.rigid_body()[0],
    "lotka_volterra": small_systems.lotka_volterra,
    "pendulum": small_systems.pendulum,
    "henon_heiles": small_systems.henon_heiles,
    "wave": small_systems.wave,
    "korteweg_de_vries": small_systems.korteweg_de_vries,
}
# Name, degree of the energy, whether δh/δz is a pointwise expression, value of the energy.
FACTS = [
    ("rigid_body", 2, True, 0.6471252793138),
    ("lotka_volterra", None, True, 3.2274112778),
    ("pendulum", None, True, -np.cos(2.0)),
    ("henon_heiles", 3, True, 0.1353333333),
    ("wave", 2, False, None),
    ("korteweg_de_vries", 3, False, None),
]


@pytest.fixture(scope="module")
def systems():
    return {name: make() for name, make in SYSTEMS.items()}


@pytest.mark.parametrize("name", SYSTEMS)
def test_bracket_is_a_poisson_bracket(systems, name):
    system = systems[name]
    # Round-off of a handful of products.
    assert system.antisymmetry_defect() < 1e-14
    assert system.jacobi_defect(samples=3) < 1e-13


@pytest.mark.parametrize(("name", "degree", "pointwise", "energy"), FACTS)
def test_energy_and_its_derivative(systems, name, degree, pointwise, energy):
    system = systems[name]
    assert system.forms.energy_degree == degree
    assert (system.gradient(system.parts) is not None) is pointwise
    if energy is not None:
        # Ten digits are given.
        assert system.energy() == pytest.approx(energy, abs=6e-11)


def test_pointwise_gradient_is_the_derivative(systems):
    """Lotka–Volterra: δh/δz = (1 - 1/u, 1 - 2/v)."""
    system = systems["lotka_volterra"]
    (gradient,) = system.gradient(system.parts)
    value = Function(system.space).interpolate(gradient).dat.data_ro[0]
    assert value == pytest.approx([0.75, 0.0], abs=1e-15)


def test_looking_for_a_gradient_leaves_the_state_alone():
    system = small_systems.pendulum((0.7, 0.2))
    system.gradient(system.parts)
    assert np.array_equal(system.state.dat.data_ro, [[0.7, 0.2]])


def oscillator(gradient):
    z = small_systems.states((0.3, 0.4))
    energy = 1.5 * inner(z, z) * dx
    return z, fg.PoissonSystem(
        z, energy, small_systems.canonical, small_systems.pairing, gradient=gradient
    )


def test_given_gradient_is_used():
    seen = []
    z, system = oscillator(lambda z: seen.append(z) or 3 * z)
    seen.clear()
    (gradient,) = system.gradient((z,))
    assert seen == [z]
    assert Function(system.space).interpolate(gradient).dat.data_ro[0] == pytest.approx([0.9, 1.2])


@pytest.mark.parametrize("wrong", [lambda z: z, lambda z: 3 * z + as_vector([0, 1e-6 * z[0] ** 2])])
def test_wrong_gradient_is_refused(wrong):
    """Also one that is right to six digits."""
    with pytest.raises(ValueError, match="^gradient: it is not the δh/δz of the energy"):
        oscillator(wrong)
    with pytest.raises(TypeError, match="^gradient must be a callable"):
        oscillator(3.0)


def test_gradient_near_the_end_of_its_domain():
    """The test looks at states near by, and nearer where the energy is not defined."""
    z = small_systems.states((0.99, 0.4))
    system = fg.PoissonSystem(
        z, -sqrt(1 - z[0] ** 2) * dx, small_systems.canonical, small_systems.pairing,
        gradient=lambda z: as_vector([z[0] / sqrt(1 - z[0] ** 2), 0]),
    )  # fmt: skip
    assert system.gradient((z,)) is not None
    assert system.forms.density_gradient is not None


def test_wave_stage_makes_the_gradient_an_unknown(systems):
    system = systems["wave"]
    assert len(system.substeps.stage((0, 1)).unknown.function_space()) == 4
    assert len(systems["rigid_body"].substeps.stage((0,)).unknown.function_space()) == 1


def test_wrong_bracket_is_found():
    """{f, g} = F·(∇f×∇g) satisfies Jacobi only if F·curl F = 0; here it is 2."""
    y = small_systems.states((0.3, -0.4, 0.5))
    F = as_vector([-y[1], y[0], 1.0])
    system = fg.PoissonSystem(
        y, inner(y, y) * dx, lambda a, b: dot(F, cross(a, b)) * dx, small_systems.pairing
    )
    assert system.antisymmetry_defect() < 1e-14
    assert system.jacobi_defect() > 0.1
    system = fg.PoissonSystem(
        y,
        inner(y, y) * dx,
        lambda a, b: (dot(y, cross(a, b)) + 0.3 * a[0] * b[0]) * dx,
        small_systems.pairing,
    )
    assert system.antisymmetry_defect() > 0.1


def test_forms_at_another_state():
    """bracket(a, b, at) and energy_form(at), against numbers."""
    from firedrake import assemble

    system, _ = small_systems.rigid_body()
    a, b, y = (Function(system.space) for _ in range(3))
    values = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0], [0.2, 0.4, -0.6]])
    for f, value in zip((a, b, y), values, strict=True):
        f.dat.data_wo[0] = value
    expected = -values[2] @ np.cross(values[0], values[1])
    assert assemble(system.bracket(a, b, at=y)) == pytest.approx(expected, rel=1e-14)
    expected = 0.5 * np.sum(values[2] ** 2 / small_systems.INERTIA)
    assert assemble(system.energy_form(at=y)) == pytest.approx(expected, rel=1e-14)
    assert system.energies()["energy"] == system.energy_form()
    assert assemble(system.casimirs()["norm"]) == pytest.approx(1.0, rel=1e-14)


def test_copies_are_independent_unit_cells():
    system, _ = small_systems.rigid_body(np.eye(3))
    assert system.energy() == pytest.approx(sum(0.5 / i for i in small_systems.INERTIA))
    with pytest.raises(ValueError, match=r"^n must be"):
        fg.copies(0)
    with pytest.raises(ValueError, match=r"^n must be"):
        fg.copies(2.0)
