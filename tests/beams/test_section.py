"""Stiffness and inertia of sections against the formulas of the textbooks."""

import numpy as np
import pytest
import ufl
from firedrake import IntervalMesh, SpatialCoordinate, as_matrix, as_vector

import fdgeom as fg

STEEL = {"density": 7800.0, "youngs_modulus": 2.1e11, "poisson_ratio": 0.3}
G = 2.1e11 / 2.6


def check(section, stiffness, inertia):
    # Products of a few numbers: round-off.
    assert section.stiffness == pytest.approx(np.diag(stiffness), rel=1e-14)
    assert section.inertia == pytest.approx(np.diag(inertia), rel=1e-14)


def test_the_papers_section():
    """D₁ = ρ diag(I, 2I, I, A, A, A), D₂ = diag(EI, 2GI, EI, GA, EA, GA)."""
    a, rho, E, nu = 0.1, 1000.0, 1e7, 0.35
    section = fg.Section.rectangle(
        a,
        a,
        density=rho,
        youngs_modulus=E,
        poisson_ratio=nu,
        torsion_constant=a**4 / 6,
        shear_factor=1.0,
        axis=1,
    )
    moment, area, shear = a**4 / 12, a**2, E / 2 / (1 + nu)
    check(
        section,
        [E * moment, 2 * shear * moment, E * moment, shear * area, E * area, shear * area],
        [rho * moment, 2 * rho * moment, rho * moment] + [rho * area] * 3,
    )
    assert section.is_constant
    assert section.axis == 1


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rectangle(axis):
    """Bending about a transverse axis is about the side across it."""
    width, height, rho, E = 0.2, 0.05, STEEL["density"], STEEL["youngs_modulus"]
    first, second = (k for k in range(3) if k != axis)
    about_first, about_second = width * height**3 / 12, height * width**3 / 12
    stiffness, inertia = np.zeros(6), np.zeros(6)
    stiffness[[axis, first, second]] = G * 3.3e-6, E * about_first, E * about_second
    stiffness[[3 + axis, 3 + first, 3 + second]] = E * 0.01, 0.8 * G * 0.01, 0.9 * G * 0.01
    inertia[[axis, first, second]] = about_first + about_second, about_first, about_second
    inertia[3:] = 0.01
    section = fg.Section.rectangle(
        width, height, axis=axis, shear_factor=(0.8, 0.9), torsion_constant=3.3e-6, **STEEL
    )
    check(section, stiffness, rho * inertia)


def test_circle_and_tube():
    r, inner, E, rho = 0.03, 0.02, STEEL["youngs_modulus"], STEEL["density"]
    for section, area, moment in (
        (fg.Section.circle(r, shear_factor=0.9, **STEEL), np.pi * r**2, np.pi * r**4 / 4),
        (
            fg.Section.tube(r, inner, shear_factor=0.9, **STEEL),
            np.pi * (r**2 - inner**2),
            np.pi * (r**4 - inner**4) / 4,
        ),
    ):
        # The torsion constant of a round section is its polar moment.
        check(
            section,
            [2 * G * moment, E * moment, E * moment, E * area, 0.9 * G * area, 0.9 * G * area],
            rho * np.array([2 * moment, moment, moment, area, area, area]),
        )


def test_full_matrices_are_kept(rng):
    A = rng.normal(size=(6, 6))
    matrix = A @ A.T + np.eye(6)
    section = fg.Section(matrix.tolist(), 2 * matrix, axis=2)
    assert np.array_equal(section.stiffness, (matrix + matrix.T) / 2)
    assert section.inertia == pytest.approx(2 * matrix, rel=1e-15)
    matrix[0, 0] = 99.0
    assert section.stiffness[0, 0] != 99.0


def test_varying_section_is_an_expression():
    (s,) = SpatialCoordinate(IntervalMesh(2, 1.0))
    section = fg.Section.circle(0.1 + 0.1 * s, **STEEL)
    assert isinstance(section.stiffness, ufl.core.expr.Expr)
    assert section.stiffness.ufl_shape == (6, 6)
    assert not section.is_constant
    assert repr(section) == "Section(circle of varying size, axis 0)"


def spoiled(i, j, value):
    matrix = np.eye(6)
    matrix[i, j] = value
    return matrix


I6 = np.eye(6)
WIRE = np.diag([1e-9] * 3 + [1.0] * 3)
PROPERTIES = {"area": 1.0, "second_moments": (1.0, 1.0), **STEEL}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fg.Section(-I6, I6), ValueError, "stiffness must be positive definite"),
        (lambda: fg.Section(I6, spoiled(2, 2, 0.0)), ValueError, "inertia must be positive def"),
        (lambda: fg.Section(spoiled(0, 1, 2.5) + spoiled(1, 0, 2.5), I6), ValueError, "stiffness"),
        (lambda: fg.Section(spoiled(0, 1, 0.1), I6), ValueError, "stiffness must be symmetric"),
        # Of a wire in SI units, beside the stiffness of stretch.
        (
            lambda: fg.Section(WIRE @ spoiled(0, 1, 0.5) @ WIRE, I6),
            ValueError,
            "stiffness must be sy",
        ),
        (
            lambda: fg.Section(WIRE @ (spoiled(0, 1, 2) + spoiled(1, 0, 2) - I6) @ WIRE, I6),
            ValueError,
            "stiffness must be positive definite",
        ),
        (lambda: fg.Section(I6, spoiled(0, 0, np.nan)), ValueError, "inertia must be a 6×6 array"),
        (lambda: fg.Section(np.eye(3), I6), ValueError, "stiffness must be a 6×6 array"),
        (lambda: fg.Section(I6, np.ones(6)), ValueError, "inertia must be a 6×6 array"),
        (lambda: fg.Section("stiff", I6), TypeError, "stiffness must be a 6×6 array"),
        (lambda: fg.Section(I6, None), (TypeError, ValueError), "inertia must"),
        (lambda: fg.Section(as_matrix(np.eye(3).tolist()), I6), ValueError, "stiffness must have"),
        (lambda: fg.Section(I6, as_vector([1.0] * 6)), ValueError, "inertia must have shape"),
        (lambda: fg.Section(I6, I6, axis=3), ValueError, "axis (the material axis"),
        (lambda: fg.Section(I6, I6, axis=True), ValueError, "axis (the material axis"),
        (lambda: fg.Section.circle(0.1, axis=-1, **STEEL), ValueError, "axis (the material axis"),
        (lambda: fg.Section.circle(-0.1, **STEEL), ValueError, "radius must be a positive"),
        (lambda: fg.Section.circle("thick", **STEEL), TypeError, "radius must be a number"),
        (lambda: fg.Section.rectangle(0, 1, **STEEL), ValueError, "width must be a positive"),
        (lambda: fg.Section.rectangle(1, np.inf, **STEEL), ValueError, "height must be a pos"),
        (lambda: fg.Section.tube(0.1, 0.1, **STEEL), ValueError, "inner_radius must be smaller"),
        (lambda: fg.Section.tube(0.1, -0.1, **STEEL), ValueError, "inner_radius must be a pos"),
        (lambda: fg.Section.circle(1, **{**STEEL, "density": -1.0}), ValueError, "density must"),
        (lambda: fg.Section.circle(1, **{**STEEL, "youngs_modulus": 0}), ValueError, "youngs_mod"),
        (lambda: fg.Section.circle(1, **{**STEEL, "poisson_ratio": 0.7}), ValueError, "poisson_r"),
        (lambda: fg.Section.circle(1, **{**STEEL, "poisson_ratio": -1}), ValueError, "poisson_r"),
        (
            lambda: fg.Section.circle(1, **{**STEEL, "poisson_ratio": "0.3"}),
            TypeError,
            "poisson_ratio",
        ),
        (lambda: fg.Section.circle(1, shear_factor=0.0, **STEEL), ValueError, "shear_factor must"),
        (lambda: fg.Section.circle(1, shear_factor=(1, 1, 1), **STEEL), ValueError, "shear_fact"),
        (
            lambda: fg.Section.circle(1, torsion_constant=-1, **STEEL),
            ValueError,
            "torsion_constant must",
        ),
        (
            lambda: fg.Section.from_properties(**{**PROPERTIES, "second_moments": (1.0,)}),
            ValueError,
            "second_moments must be two",
        ),
        (
            lambda: fg.Section.from_properties(**{**PROPERTIES, "second_moments": 1.0}),
            ValueError,
            "second_moments must be two",
        ),
        (
            lambda: fg.Section.from_properties(**{**PROPERTIES, "area": -2.0}),
            ValueError,
            "area must be",
        ),
    ],
)
def test_bad_section(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value).startswith(message)
