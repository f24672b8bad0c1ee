"""Forms that read the state through views of it: other Functions with the same values."""

import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_vector,
    dot,
    dx,
    inner,
    split,
)

import fdgeom as fg

MESH = UnitIntervalMesh(1)
SCALARS = FunctionSpace(MESH, "DG", 0)
VECTORS = VectorFunctionSpace(MESH, "DG", 0, dim=3)
MESSAGE = "which shares its values with .* but is another Function for derivatives"


def vectors():
    return Function(VECTORS, name="q"), Function(VECTORS, name="p")


def halves():
    whole = Function(SCALARS * SCALARS, name="z")
    return whole, *whole.subfunctions


def area(a, b, factor=1.0):
    return factor * (a[0] * b[1] - a[1] * b[0]) * dx


def pairing(a, b):
    return inner(as_vector(list(a)), as_vector(list(b))) * dx


def energy_of_a_component():
    q, p = vectors()
    fg.HamiltonianSystem(q, p, (dot(p, p) / 2 + q.sub(2) ** 2) * dx)


def energy_of_the_whole():
    z, q, p = halves()
    fg.HamiltonianSystem(q, p, (p**2 / 2 + split(z)[0] ** 2) * dx)


def bracket_of_a_component():
    z = Function(VECTORS, name="z")
    fg.PoissonSystem(z, dot(z, z) * dx, lambda a, b: area(a, b, z.sub(0)), pairing)


def casimir_of_a_component():
    z = Function(VECTORS, name="z")
    fg.PoissonSystem(
        z, dot(z, z) * dx, lambda a, b: area(a, b, z[0]), pairing,
        casimirs={"c": (z[0] + z.sub(1)) * dx},
    )  # fmt: skip


def lagrangian_of_a_component():
    q, v = vectors()
    fg.LagrangianSystem(q, v, (dot(v, v) / 2 - q.sub(2)) * dx)


def lagrangian_of_the_whole():
    z, q, v = halves()
    fg.LagrangianSystem(q, v, (v**2 / 2 - split(z)[0] ** 2) * dx)


def pendulum(**changes):
    q, p = vectors()
    mult = Function(SCALARS, name="multiplier")
    given = {
        "kinetic": lambda q, p: dot(p, p) / 2 * dx,
        "potential": lambda q, p: q[2] * dx,
        "constraint": lambda q, p, nu: nu * (dot(q, q) - 1) * dx,
    } | changes
    fg.ConstrainedSystem(
        q, p, given["kinetic"](q, p), given["potential"](q, p),
        lambda nu: given["constraint"](q, p, nu), mult,
    )  # fmt: skip


def kinetic_of_a_component():
    pendulum(kinetic=lambda q, p: (dot(p, p) / 2 + p.sub(0) ** 2) * dx)


def kinetic_of_a_position():
    pendulum(kinetic=lambda q, p: (1 + q.sub(0) ** 2) * dot(p, p) * dx)


def potential_of_a_component():
    pendulum(potential=lambda q, p: (q[0] + q.sub(2)) * dx)


def potential_of_a_momentum():
    pendulum(potential=lambda q, p: (q[0] + p.sub(2)) * dx)


def constraint_of_a_component():
    pendulum(constraint=lambda q, p, nu: nu * (dot(q, q) - 1 + q.sub(0)) * dx)


def residual_of_a_component():
    q, v = vectors()
    fg.SecondOrderSystem(lambda x, u, a, t, w: (dot(a, w) + q.sub(0) * w[0]) * dx, q, v)


def residual_of_a_component_of_an_argument():
    q, v = vectors()
    fg.SecondOrderSystem(lambda x, u, a, t, w: (dot(a, w) + x.sub(0) * w[0]) * dx, q, v)


def potential_of_a_turn():
    turn = Function(VectorFunctionSpace(MESH, "DG", 0, dim=4), name="orientation")
    turn.assign(Constant((1.0, 0.0, 0.0, 0.0)))
    spin = Function(VECTORS, name="velocity")
    fg.RigidBodies(
        orientation=turn, velocity=spin, inertia=(1, 2, 3), potential=turn.sub(0) * turn[1] * dx
    )


@pytest.mark.parametrize(
    "make",
    [
        energy_of_a_component,
        energy_of_the_whole,
        bracket_of_a_component,
        casimir_of_a_component,
        lagrangian_of_a_component,
        lagrangian_of_the_whole,
        kinetic_of_a_component,
        kinetic_of_a_position,
        potential_of_a_component,
        potential_of_a_momentum,
        constraint_of_a_component,
        residual_of_a_component_of_an_argument,
        potential_of_a_turn,
    ],
)
def test_views_are_refused(make):
    with pytest.raises(ValueError, match=MESSAGE):
        make()


def test_a_view_from_outside():
    with pytest.raises(ValueError, match="must be a function of its arguments alone"):
        residual_of_a_component()


def test_objectives():
    q, p = vectors()
    q.assign(Constant((0.1, 0.2, 0.3)))
    stepper = fg.StormerVerlet(fg.HamiltonianSystem(q, p, (dot(p, p) + dot(q, q)) / 2 * dx), 0.1)
    with pytest.raises(ValueError, match=f"objective .*{MESSAGE}"):
        fg.gradient(stepper, 1, q.sub(2) * dx, [q])


def test_what_stays_allowed():
    """Parts of the state's own Function, components by index, and other Functions of the space."""
    z = Function(SCALARS * SCALARS, name="z")
    q, p = z.subfunctions
    fg.PoissonSystem(z, (p**2 + q**2) / 2 * dx, area, pairing)
    x, y = vectors()
    other = Function(VECTORS).assign(Constant((1.0, 2.0, 3.0)))
    energy = (inner(y, y) / 2 + x[2] * other.sub(1) + dot(as_vector([x[0], x[1], 0]), x)) * dx
    fg.StormerVerlet(fg.HamiltonianSystem(x, y, energy), 0.1).advance(1)
    # q̈ = -(2 q_x, 2 q_y, 2), from rest at the origin.
    assert y.dat.data_ro[0, 2] == pytest.approx(-0.2, rel=1e-12)
