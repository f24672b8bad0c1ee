"""Functionals that are given as Casimirs and are none are warned of; those that are pass in silence."""

import warnings

import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    PeriodicIntervalMesh,
    VectorFunctionSpace,
    as_vector,
    cross,
    dot,
    dx,
    ln,
)

import fdgeom as fg


def state(*values):
    z = Function(VectorFunctionSpace(fg.copies(1), "DG", 0, dim=len(values)))
    return z.interpolate(as_vector(values))


def free_body(**casimirs):
    """Euler's equations, whose bracket has the functions of |m|² as Casimirs and no others."""
    m = state(1.0, 0.2, -0.4)
    inverse = as_vector([1.0, 0.5, 0.25])
    energy = 0.5 * sum(inverse[k] * m[k] ** 2 for k in range(3)) * dx
    return fg.PoissonSystem(
        m,
        energy,
        lambda a, b: -dot(m, cross(a, b)) * dx,
        lambda a, b: dot(a, b) * dx,
        casimirs={name: form(m) for name, form in casimirs.items()},
    )


def populations(casimir):
    """Three species of Lotka and Volterra, ẋ = x (y - z) and so on: xyz is a Casimir."""
    x = state(1.0, 2.0, 0.5)

    def bracket(a, b):
        pairs = ((0, 1), (1, 2), (2, 0))
        return sum(x[i] * x[j] * (a[i] * b[j] - a[j] * b[i]) for i, j in pairs) * dx

    return fg.PoissonSystem(
        x,
        (x[0] + x[1] + x[2]) * dx,
        bracket,
        lambda a, b: dot(a, b) * dx,
        casimirs={"product": casimir(x)},
    )


@pytest.mark.parametrize(
    "form",
    [
        lambda m: m[0] ** 2 * dx,
        lambda m: (dot(m, m) + Constant(0.05) * m[2]) * dx,
        # Right at the start alone, where its derivative is that of |m|²/2.
        lambda m: (1.0 * m[0] + 0.2 * m[1] - 0.4 * m[2]) * dx,
    ],
)
def test_what_is_no_casimir_is_warned_of(form):
    with pytest.warns(UserWarning, match=r"casimirs\['C'\] is not a Casimir of the bracket"):
        fg.ImplicitMidpoint(free_body(C=form), 0.01).advance(1)


def test_what_is_no_casimir_of_populations_is_warned_of():
    with pytest.warns(UserWarning, match=r"casimirs\['product'\] is not a Casimir"):
        fg.ImplicitMidpoint(populations(lambda x: x[0] * x[1] * dx), 0.01).advance(1)


def test_casimirs_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system = free_body(norm=lambda m: dot(m, m) * dx, power=lambda m: dot(m, m) ** 3 * dx)
        fg.ImplicitMidpoint(system, 0.01).advance(1)
        for casimir in (
            lambda x: x[0] * x[1] * x[2] * dx,
            lambda x: (ln(x[0]) + ln(x[1]) + ln(x[2])) * dx,  # not defined for all signs
        ):
            fg.ImplicitMidpoint(populations(casimir), 0.01).advance(1)


def test_what_a_mesh_keeps_about_is_not_warned_of():
    """Burgers' equation with linear elements keeps ∫u exactly and ∫√u only about."""
    V = FunctionSpace(PeriodicIntervalMesh(8, 1.0), "CG", 1)
    u = Function(V).assign(1.0)
    system = fg.PoissonSystem(
        u,
        u**3 / 6 * dx,
        lambda a, b: u * (b * a.dx(0) - a * b.dx(0)) / 3 * dx,
        lambda a, b: a * b * dx,
        casimirs={"root": u**0.5 * dx},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.ImplicitMidpoint(system, 0.01).advance(1)
