"""Other Chaplygin systems, the inverse problem by itself, UFL from SymPy, and wrong input."""

import numpy as np
import pytest
import sympy as sp
from chaplygin_systems import HALF, d, disk, knife_edge, particle, phi, psi, t, theta, x, y, z
from firedrake import Function, FunctionSpace, VectorFunctionSpace, as_vector

import fdgeom as fg
from fdgeom.systems.chaplygin.inverse import lagrangian_with_forces, legendre_transform
from fdgeom.systems.chaplygin.jets import Jets, is_zero, shortest
from fdgeom.systems.chaplygin.translate import as_ufl

m, r, roll, spin, k = sp.symbols("m r roll spin k", positive=True)


# --- disk, particle, knife edge --------------------------------------------------------------------
def test_vertical_disk():
    """Its forces vanish, so it is a free motion as it stands: L' = L̃."""
    system = disk()
    assert system.forces == {theta: 0, phi: 0}
    assert system.failing_conditions() == ()
    expected = HALF * (roll + m * r**2) * d(theta) ** 2 + HALF * spin * d(phi) ** 2
    assert sp.simplify(system.lagrangian() - expected) == 0
    a, b = system.momenta
    assert sp.simplify(system.hamiltonian() - a**2 / (roll + m * r**2) / 2 - b**2 / spin / 2) == 0
    assert system.accelerations == {theta: 0, phi: 0}


def test_disk_drives_in_a_circle():
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=2)
    q, p = Function(space), Function(space)
    p.dat.data_wo[...] = (3.0, 2.0)
    values = {"m": 1.0, "r": 0.5, "roll": 0.25, "spin": 0.5}
    system = disk()
    motion = system.hamiltonian_system(q, p, **values)
    speed = VectorFunctionSpace(motion.mesh, "DG", 0, dim=2)
    fg.ImplicitMidpoint(motion, 0.1).advance(10)
    # θ̇ = 3/(1/4 + 1/4) and φ̇ = 2/(1/2), constant: the midpoint rule is exact.
    assert q.dat.data_ro[0] == pytest.approx((6.0, 4.0), rel=1e-14)
    forward = Function(speed)
    forward.interpolate(as_vector([system.as_ufl(d(u), q, p, **values) for u in (x, y)]))
    assert forward.dat.data_ro[0] == pytest.approx(
        (0.5 * 6 * np.cos(4), 0.5 * 6 * np.sin(4)), rel=1e-14
    )


def test_particle():
    """Its equations as in the textbooks, (1 + y²)ẍ = -yẋẏ and ÿ = 0, and the conditions fail."""
    system = particle()
    assert sp.simplify(system.accelerations[x] + y * d(x) * d(y) / (1 + y**2)) == 0
    assert system.accelerations[y] == 0
    assert sp.simplify(system.forces[x] - y * d(x) * d(y)) == 0
    assert sp.simplify(system.forces[y] + y * d(x) ** 2) == 0
    failing = {(c.number, c.pair): c.defect for c in system.failing_conditions()}
    assert set(failing) == {(2, ("x", "x")), (2, ("x", "y")), (3, ("x", "y"))}
    # By hand: twice ∂Φ_x/∂ẋ; ∂Φ_x/∂ẏ + ∂Φ_y/∂ẋ.
    assert sp.simplify(failing[2, ("x", "x")] - 2 * y * d(y)) == 0
    assert sp.simplify(failing[2, ("x", "y")] + y * d(x)) == 0
    with pytest.raises(ValueError, match=r"condition 2 for x and x: .*condition 3 for x and y"):
        system.hamiltonian()


def test_particle_with_a_potential():
    """Accelerations against the equations solved for the reaction."""
    potential = HALF * (x**2 + 2 * y**2 + x * y)
    found = particle(potential).accelerations
    point = {d(x): 0.7, d(y): -0.4, x: 0.3, y: 0.5}
    A, force = np.array([-0.5, 0, 1]), -np.array([0.3 + 0.25, 1.0 + 0.15, 0.0])
    expected = force + A * (0.7 * -0.4 - A @ force) / (A @ A)
    got = [float(e.xreplace(point)) for e in found.values()]
    assert got == pytest.approx(expected[:2], rel=1e-13)


def test_knife_edge():
    """ẋ/cosφ is constant, as the conditions that fail do not say."""
    system = knife_edge()
    assert {(c.number, c.pair) for c in system.failing_conditions()} == {
        (2, ("x", "x")),
        (2, ("x", "phi")),
        (3, ("x", "phi")),
    }
    speed = d(x) / sp.cos(phi)
    change = d(speed).doit().subs({d(q, 2): a for q, a in system.accelerations.items()})
    assert sp.simplify(change) == 0


# --- the inverse problem by itself ---------------------------------------------------------------
@pytest.mark.parametrize(
    "lagrangian",
    [
        lambda q, u, v, w: HALF * (1 + q**2) * v**2 + q * u * w**2 + v * w * u**3,
        lambda q, u, v, w: v**2 * w**2 / 4 + sp.cos(q) * v * w + sp.exp(u) * w**3 - q * u**2,
        lambda q, u, v, w: sp.sin(q) * v**2 + u**2 * v - sp.cosh(u),
    ],
)
def test_forces_of_a_known_lagrangian(lagrangian):
    """Φ_σ = -E_σ(Λ) gives back a Lagrangian with the same equations, masses that move included."""
    jets = Jets([x, y])
    known = lagrangian(*jets.q, *jets.v)
    forces = [-jets.euler(known, n) for n in range(2)]
    found = lagrangian_with_forces(jets, sp.Integer(0), forces, {})
    assert not found.has(*jets.a)
    for n in range(2):
        assert is_zero(jets.euler(found, n) + forces[n])
    # It differs by a total derivative at the most: not in the masses.
    for a in jets.v:
        for b in jets.v:
            assert is_zero(sp.diff(found - known, a, b))


def test_singular_forces_need_a_base():
    """Rays from zero meet the singularity of 1/q²; from one they do not."""
    jets = Jets([x])
    (q,), (v,) = jets.q, jets.v
    known = v**2 / 2 + 1 / q
    forces = [-jets.euler(known, 0)]
    with pytest.raises(ValueError, match=r"choose another base point by base="):
        lagrangian_with_forces(jets, sp.Integer(0), forces, {})
    found = lagrangian_with_forces(jets, sp.Integer(0), forces, {q: sp.Integer(1)})
    assert is_zero(found - known + 1)


def test_legendre_transform():
    """Velocities that are no linear functions of the momenta; and a degenerate Lagrangian."""
    jets = Jets([x])
    (v,), p = jets.v, sp.Symbol("p", positive=True)
    energy, (velocity,) = legendre_transform(jets, sp.exp(v), [p])
    assert is_zero(velocity - sp.log(p))
    assert is_zero(energy - (p * sp.log(p) - p))
    with pytest.raises(ValueError, match=r"^the Lagrangian is degenerate"):
        legendre_transform(jets, jets.q[0] * v, [p])
    with pytest.raises(ValueError, match=r"finds 2 solutions of p = .* for the velocities"):
        legendre_transform(jets, v**3, [p])


def test_zero():
    a, b = sp.symbols("a b")
    assert is_zero(sp.sin(a + b) - sp.sin(a) * sp.cos(b) - sp.cos(a) * sp.sin(b))
    assert is_zero(sp.sqrt((a + b) ** 2) ** 2 - a**2 - 2 * a * b - b**2)
    assert not is_zero(sp.sin(a) - a + a**3 / 6)
    assert not is_zero(sp.Float("1e-40") * a)
    assert shortest((a + b) ** 2 - a**2 - b**2, [a]) == 2 * a * b


# --- UFL -------------------------------------------------------------------------------------------
def test_ufl_from_sympy():
    """Every function at two points, against SymPy's numbers."""
    a, b = sp.symbols("a b")
    expressions = [
        sp.sin(a) * sp.cos(b) + sp.tan(a) / sp.sqrt(b),
        sp.asin(a / 3) + sp.acos(b / 4) - sp.atan(a * b) + sp.atan2(a, b),
        sp.sinh(a) + sp.cosh(b) * sp.tanh(a) + sp.exp(-a * b) + sp.log(b),
        sp.Abs(a - b) ** 3 + a**b + b ** sp.Rational(-3, 2) + a**-2 + 2**a,
        sp.Max(a, b, 1) - sp.Min(a, b) + sp.sign(a - b) + sp.erf(a),
        sp.cot(a) + sp.sec(b) * sp.csc(a) + sp.pi * a - sp.E**2 + sp.Rational(1, 3),
    ]
    space = FunctionSpace(fg.copies(2), "DG", 0)
    one, two = Function(space), Function(space)
    points = np.array([(0.4, 1.3), (1.2, 0.7)])
    one.dat.data_wo[...], two.dat.data_wo[...] = points.T
    values = Function(VectorFunctionSpace(space.mesh(), "DG", 0, dim=len(expressions)))
    values.interpolate(as_vector([as_ufl(e, {a: one, b: two}) for e in expressions]))
    expected = [[float(e.subs({a: s, b: u})) for e in expressions] for s, u in points]
    assert values.dat.data_ro == pytest.approx(np.array(expected), rel=1e-13)


def test_what_ufl_has_not():
    a = sp.Symbol("a")
    with pytest.raises(ValueError, match=r"^there is no UFL for zeta"):
        as_ufl(sp.zeta(a), {a: 1.0})
    with pytest.raises(ValueError, match=r"^no value was given for a, b"):
        as_ufl(a + sp.Symbol("b"), {})


# --- wrong input -----------------------------------------------------------------------------------
C = fg.ChaplyginSystem
FREE = HALF * (d(x) ** 2 + d(y) ** 2 + d(z) ** 2)
GIVEN = {z: y * d(x)}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: C(FREE, x, GIVEN), TypeError, "coordinates must be a list"),
        (lambda: C(FREE, [], GIVEN), ValueError, "coordinates must not be empty"),
        (lambda: C(FREE, [x, x], GIVEN), ValueError, "coordinates must have different"),
        (
            lambda: C(FREE - x * sp.Symbol("p_x", real=True), [x, y], GIVEN),
            ValueError,
            "the parameter p_x has the name of the momentum of x; rename it",
        ),
        (
            lambda: C(FREE - x * sp.Symbol("x", real=True, nonzero=True), [x, y], GIVEN),
            ValueError,
            "lagrangian: the parameter x has the name of a coordinate; rename it",
        ),
        (
            lambda: C(FREE, [x, sp.Function("x", real=True)(t)], GIVEN),
            ValueError,
            "coordinates must have different names",
        ),
        (
            lambda: C(FREE, [x, sp.Symbol("y")], GIVEN),
            TypeError,
            "coordinates must be functions of",
        ),
        (
            lambda: C(FREE, [x, sp.Function("y")(sp.Symbol("s"))], GIVEN),
            ValueError,
            "coordinates must be functions of one time",
        ),
        (lambda: C(FREE, [x, y], y * d(x)), TypeError, "velocities must be a dict"),
        (lambda: C(FREE, [x, y], {x: d(y)}), ValueError, "velocities: x(t) is an independent"),
        (lambda: C(FREE, [x, y], {"z": d(y)}), TypeError, "velocities: its keys must be functions"),
        (
            lambda: C(FREE, [x, y], {z: d(x, 2)}),
            ValueError,
            "velocities[z(t)] must not contain acc",
        ),
        (
            lambda: C(FREE, [x, y], {z: z * d(x)}),
            ValueError,
            "velocities[z(t)] must not contain z(t)",
        ),
        (lambda: C(FREE + z, [x, y], GIVEN), ValueError, "lagrangian must not contain z(t)"),
        (lambda: C(FREE + d(x, 2), [x, y], GIVEN), ValueError, "lagrangian must not contain accel"),
        (
            lambda: C(FREE, [x, y], {}),
            ValueError,
            "lagrangian must not contain Derivative(z(t), t)",
        ),
        (lambda: C("x(", [x, y], GIVEN), TypeError, "lagrangian must be a SymPy expression"),
        (lambda: C(sp.eye(2), [x, y], GIVEN), TypeError, "lagrangian must be a scalar"),
        (
            lambda: particle().equation(z),
            ValueError,
            "coordinate must be one of x(t), y(t), not z(t)",
        ),
        (lambda: particle().adding([1]), TypeError, "terms must be a dict by coordinate"),
        (lambda: particle().adding({z: 0}), ValueError, "coordinate must be one of"),
        (lambda: particle().adding({x: d(x)}), ValueError, "terms[x(t)] does not vanish along"),
        (
            lambda: particle().adding({x: particle().equation(y) ** 2}),
            ValueError,
            "terms[x(t)] must be of first degree in the accelerations",
        ),
        (
            lambda: particle().adding({x: particle().equation(x)}),
            ValueError,
            "terms: with them the equations no longer determine the accelerations",
        ),
        (
            lambda: C(HALF * (d(x) ** 2 + d(z) ** 2), [x, y], {z: d(x)}).accelerations,
            ValueError,
            "the equations do not determine the accelerations",
        ),
        (lambda: disk().lagrangian(base={psi: 1}), ValueError, "coordinate must be one of"),
        (lambda: driven(), ValueError, "H' or the expression depends on time"),
        (lambda: disk().canonical(d(theta, 2)), ValueError, "expression must not contain accel"),
        (lambda: disk().canonical(z), ValueError, "expression must not contain z(t)"),
        (lambda: disk_on(3), ValueError, "q must be a vector of 2, not of shape (3,)"),
        (lambda: disk().hamiltonian_system(1.0, 2.0), TypeError, "q must be a UFL expression"),
    ],
)
def test_wrong_input(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value).startswith(message)


def disk_on(dim):
    q = Function(VectorFunctionSpace(fg.copies(1), "DG", 0, dim=dim))
    return disk().hamiltonian_system(q, q.copy(), m=1, r=1, roll=1, spin=1)


def driven():
    """A drive along z, given in time."""
    system = C(HALF * (d(x) ** 2 + d(z) ** 2) - x * sp.cos(t), [x], {z: d(x)})
    q = Function(FunctionSpace(fg.copies(1), "DG", 0))
    return system.hamiltonian_system(q, q.copy())


def test_one_coordinate():
    """A scalar q: a bead on a moving wire, ż = sin(x)ẋ in place of a constraint on z."""
    system = C(HALF * k * (d(x) ** 2 + d(z) ** 2), [x], {z: sp.sin(x) * d(x)})
    (p,) = system.momenta
    assert sp.simplify(system.hamiltonian() - p**2 / (2 * k * (1 + sp.sin(x) ** 2))) == 0
    q = Function(FunctionSpace(fg.copies(1), "DG", 0)).assign(0.5)
    momentum = Function(q.function_space()).assign(2.0)
    motion = system.hamiltonian_system(q, momentum, k=0.5)
    assert motion.energy() == pytest.approx(4 / (1 + np.sin(0.5) ** 2), rel=1e-14)
