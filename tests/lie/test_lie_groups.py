"""The groups that configurations move on: retraction, tangent, bracket, unit quaternions."""

import mpmath as mp
import numpy as np
import pytest
import ufl
from scipy.linalg import expm

from fdgeom.lie import groups, quaternion

GROUPS = [g.by(r) for g in (groups.SO3, groups.R3xSO3, groups.SE3) for r in ("exp", "cay")]
RNG = np.random.default_rng(8)
COUNT = 12
# zero, tiny, on both sides of the series' end at 2, and large
ANGLES = np.r_[0, 1e-12, 1e-4, 2 - 1e-9, 2 + 1e-9, np.linspace(0.3, 3, COUNT - 5)]
AXES = RNG.normal(size=(COUNT, 3))
AXES /= np.linalg.norm(AXES, axis=1, keepdims=True)
D = np.hstack([ANGLES[:, None] * AXES, RNG.normal(size=(COUNT, 3))])
A, B, C = RNG.normal(size=(3, COUNT, 6))
X = RNG.normal(size=(COUNT, 3))
Q = RNG.normal(size=(COUNT, 4))
Q /= np.linalg.norm(Q, axis=1, keepdims=True)


def configuration(group):
    return (Q,) if group.dimension == 3 else (X, Q)


def cut(group, *arrays):
    return [a[:, : group.dimension] for a in arrays]


@pytest.fixture(params=GROUPS, ids=str)
def group(request):
    return request.param


def test_tangent_values(evaluate):
    """T(0.3, -0.2, 0.5), two entries known to 14 digits."""
    theta = np.array([[0.3, -0.2, 0.5]])
    (tangent,) = evaluate(lambda d: [groups.SO3.tangent(d)], theta)
    assert tangent[0, :1, :2].ravel() == pytest.approx(
        [0.95257673497035, 0.23237122351341], abs=1e-14
    )
    screw = np.hstack([theta, [[0.7, 0.1, -0.4]]])
    for group in (groups.R3xSO3, groups.SE3):
        (whole,) = evaluate(lambda d, group=group: [group.tangent(d)], screw)
        assert whole[0, :3, :3] == pytest.approx(tangent[0], abs=1e-15)


@pytest.mark.parametrize("group", [groups.SO3, groups.R3xSO3, groups.SE3], ids=str)
def test_tangent_is_the_series_in_the_bracket(evaluate, group):
    """T(d) = Σ (-ad_d)^k/(k+1)!, with ad from the bracket, to 40 digits."""
    (d,) = cut(group, D)
    n = group.dimension
    columns = [ufl.as_vector([float(i == j) for i in range(n)]) for j in range(n)]
    ad, tangent = evaluate(
        lambda d: [ufl.as_tensor([group.bracket(d, e) for e in columns]), group.tangent(d)], d
    )
    for matrix, found in zip(ad, tangent, strict=True):
        with mp.workdps(40):
            minus = -mp.matrix(matrix.T.tolist())
            term = total = mp.eye(n)
            for k in range(1, 60):
                term = term * minus / (k + 1)
                total = total + term
            expected = np.array(total.tolist(), dtype=float)
        # ad itself is rounded; entries are of size one.
        assert found == pytest.approx(expected, abs=1e-14)


def motion(group, parts):
    """A faithful matrix of configurations (n, k, k)."""
    q = parts[-1]
    w, v = q[:, 0], q[:, 1:]
    R = np.zeros((len(q), 3, 3))
    for i in range(3):
        e = np.eye(3)[i]
        t = np.cross(v, e)
        R[:, :, i] = e + 2 * (w[:, None] * t + np.cross(v, t))
    if group.dimension == 3:
        return R
    size = 4 if group.name == "SE3" else 7
    matrix = np.tile(np.eye(size), (len(q), 1, 1))
    matrix[:, :3, :3] = R
    matrix[:, -4:-1, -1] = parts[0]
    return matrix


def algebra(group, d):
    """Its matrix at the identity (n, k, k)."""
    hat = np.zeros((len(d), 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        hat[:, j, i], hat[:, i, j] = d[:, k], -d[:, k]
    if group.dimension == 3:
        return hat
    size = 4 if group.name == "SE3" else 7
    matrix = np.zeros((len(d), size, size))
    matrix[:, :3, :3] = hat
    matrix[:, -4:-1, -1] = d[:, 3:]
    return matrix


def test_retraction_is_the_matrix_exponential(evaluate, group):
    """exp itself; cay is (I - d/2)⁻¹(I + d/2) in the rotation, and agrees with exp to O(d³)."""
    (d,) = cut(group, D)
    g = configuration(group)
    moved = evaluate(lambda d, *g: list(group.retract(g, d)), d, *g)
    found, first, step = motion(group, moved), motion(group, g), algebra(group, d)
    if group.retraction == "exp":
        expected = first @ np.array([expm(s) for s in step])
    else:
        one = np.eye(step.shape[1])
        expected = first @ np.linalg.solve(one - step / 2, one + step / 2)
        if group.name == "R3xSO3":
            expected[:, -4:-1, -1] = g[0] + d[:, 3:]
    assert np.abs(found - expected).max() < 1e-14 * 10  # lengths up to 5


@pytest.mark.parametrize("retraction", ["exp", "cay"])
@pytest.mark.parametrize("kind", [groups.SO3, groups.R3xSO3, groups.SE3], ids=str)
def test_two_small_motions(evaluate, kind, retraction):
    """r(a)r(b) = r(a + b + [a, b]/2 + O(3)): eight times less for half the increments."""
    group = kind.by(retraction)
    a, b = cut(group, A, B)
    g = configuration(group)
    gaps = []
    for scale in (1e-1, 5e-2, 2.5e-2):

        def build(a, b, *g):
            at_once = group.retract(g, a + b + 0.5 * group.bracket(a, b))
            return [*group.retract(group.retract(g, a), b), *at_once]

        found = evaluate(build, scale * a, scale * b, *g)
        half = len(found) // 2
        gap = motion(group, found[:half]) - motion(group, found[half:])
        gaps.append(np.abs(gap).max(axis=(1, 2)))
    slopes = np.log2(np.array(gaps[:-1]) / gaps[1:])
    assert np.median(slopes) == pytest.approx(3, abs=0.2)
    assert (slopes > 2.7).all()


def test_tangent_is_the_derivative(evaluate, group):
    """D r(d)·δ = r(d) T(d)δ with the derivative by UFL, at zero as well."""
    d, delta = cut(group, D, A)
    identity = [np.zeros((COUNT, 3)), np.tile([1.0, 0, 0, 0], (COUNT, 1))][-len(group.shapes) :]

    def build(d, delta, *g):
        moved = group.retract(g, d)
        zero = ufl.zero(group.dimension)
        rate = [ufl.derivative(part, d, delta) for part in moved]
        # The velocity of r(d + t δ) in the frame of r(d), from the quaternion's 2 q̄ q̇ = (0, ω).
        spin = quaternion.product(quaternion.conjugate(moved[-1]), rate[-1])
        found = [2 * spin[i] for i in (1, 2, 3)]
        if group.dimension == 6:
            shift = rate[0]
            if group.name == "SE3":
                shift = quaternion.rotate_inverse(moved[-1], shift)
            found += [shift[i] for i in range(3)]
        return [ufl.as_vector(found), ufl.dot(group.tangent(d), delta) + zero]

    found, expected = evaluate(build, d, delta, *identity)
    assert np.isfinite(found).all()
    # Above the series' end the formulas for the derivative lose a digit or two.
    assert np.abs(found - expected).max() < 2e-13


def test_rate_is_the_derivative_at_zero(evaluate, group):
    (v,) = cut(group, A)

    def build(v, zero, *g):
        moved = group.retract(g, zero)
        return [*(ufl.derivative(part, zero, v) for part in moved), *group.rate(g, v)]

    found = evaluate(build, v, 0 * v, *configuration(group))
    half = len(found) // 2
    for rate, expected in zip(found[:half], found[half:], strict=True):
        assert rate == pytest.approx(expected, abs=1e-15 * 10)


def test_third_derivatives_at_zero(evaluate, group):
    """Along a line through zero: finite, and those of the matrix exponential."""
    a, _ = cut(group, A, B)
    identity = [np.zeros((COUNT, 3)), np.tile([1.0, 0, 0, 0], (COUNT, 1))][-len(group.shapes) :]

    def build(a, t, *g):
        s = ufl.variable(t)
        found = [*group.retract(g, s * a), group.tangent(s * a)]
        for _ in range(3):
            found = [ufl.diff(e, s) for e in found]
        return found

    *moved, tangent = evaluate(build, a, np.zeros(COUNT), *identity)
    assert all(np.isfinite(v).all() for v in (*moved, tangent))
    # q = (cos, sin(θ/2)/θ w): third derivative -|w|²w/8; Cayley: three times as much.
    w = a[:, :3]
    length = np.sum(w * w, axis=1, keepdims=True)
    factor = -1 / 8 if group.retraction == "exp" else -3 / 8
    assert moved[-1][:, 1:] == pytest.approx(factor * length * w, abs=1e-12)
    if group.name == "SE3":
        # exp: d³/dt³ of t(I + tω̂/2 + t²ω̂²/6)v = ω̂²v; Cayley: 3!/4 as much.
        bent = np.cross(w, np.cross(w, a[:, 3:]))
        assert moved[0] == pytest.approx(
            bent * (1 if group.retraction == "exp" else 1.5), abs=1e-12
        )


def test_bracket_and_coadjoint(evaluate, group):
    """⟨ad*_v μ, w⟩ = ⟨μ, [v, w]⟩, antisymmetry, Jacobi; the bracket is that of the matrices."""
    v, w, mu = cut(group, A, B, C)

    def build(v, w, mu):
        b = group.bracket
        jacobi = b(v, b(w, mu)) + b(w, b(mu, v)) + b(mu, b(v, w))
        pair = ufl.dot(group.coadjoint(v, mu), w) - ufl.dot(mu, b(v, w))
        return [ufl.as_vector([pair]), jacobi, b(v, w) + b(w, v), b(v, w)]

    *zeros, bracket = evaluate(build, v, w, mu)
    assert all(np.abs(z).max() < 1e-13 for z in zeros)  # sizes up to 20
    V, W = algebra(group, v), algebra(group, w)
    assert np.abs(algebra(group, bracket) - (V @ W - W @ V)).max() < 1e-14 * 10
    assert np.abs(bracket).max() > 1


def test_quaternions_stay_unit(evaluate, group):
    """Ten thousand motions, each from the last; without care the length wanders off by 1e-12."""
    from firedrake import Function, VectorFunctionSpace

    import fdgeom as fg
    from fdgeom.execution import PointwiseUpdate

    mesh = fg.copies(COUNT)
    parts = [Function(VectorFunctionSpace(mesh, "DG", 0, dim=s[0])) for s in group.shapes]
    step = Function(VectorFunctionSpace(mesh, "DG", 0, dim=group.dimension))
    for part, values in zip(parts, configuration(group), strict=True):
        part.dat.data_wo[...] = values
    (step.dat.data_wo[...],) = cut(group, 0.1 * A)
    update = PointwiseUpdate(dict(zip(parts, group.retract(tuple(parts), step), strict=True)))
    for _ in range(10_000):
        update.apply()
    length = np.sum(parts[-1].dat.data_ro ** 2, axis=1)
    assert np.abs(length - 1).max() < 2e-15


def test_wrong_input():
    with pytest.raises(ValueError, match="retraction must be one of"):
        groups.SE3.by("euler")
    with pytest.raises(TypeError, match="tuple of 2 UFL expressions"):
        groups.SE3.retract((ufl.zero(4),), ufl.zero(6))
    with pytest.raises(ValueError, match=r"configuration must have shape \(4,\)"):
        groups.SO3.retract((ufl.zero(3),), ufl.zero(3))
    with pytest.raises(ValueError, match=r"increment must have shape \(6,\)"):
        groups.R3xSO3.retract((ufl.zero(3), ufl.zero(4)), ufl.zero(3))
    assert repr(groups.SE3.by("cay")) == "SE3 by cay"
