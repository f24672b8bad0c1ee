"""The UFL functions against their NumPy twins, and derivatives against 60-digit differences."""

import mpmath as mp
import numpy as np
import pytest
import ufl

from fdgeom import lie
from fdgeom.lie import arrays, quaternion, se3, so3

RNG = np.random.default_rng(3)
AXIS = RNG.normal(size=(40, 3))
AXIS /= np.linalg.norm(AXIS, axis=1, keepdims=True)
# none, tiny, both sides of the switches (2 for so(3), 4 for the half angle), up to nearly 2 pi
ANGLES = np.r_[0, 1e-150, 1e-9, 1e-3, 2 - 1e-9, 2, 2 + 1e-9, np.linspace(0.1, 3.1, 33)]
X = np.hstack([ANGLES[:, None] * AXIS, RNG.normal(size=(40, 3))])
Y, A = RNG.normal(size=(2, 40, 6))


def everything(quaternion, se3, so3, join, halves):
    """All functions, of one twin or the other, as build(x, y, a) for `evaluate`."""

    def build(x, y, a):
        (w, v), (u, _), (m, _) = halves(x), halves(y), halves(a)
        q, r = quaternion.exp(w), quaternion.cay(u)
        g, h = se3.pose_exp(x), se3.pose_cay(y)
        products = {
            "algebra": join(so3.bracket(w, u), so3.coadjoint(w, m), so3.vee(so3.hat(w))),
            "se3": join(se3.bracket(x, y), se3.coadjoint(x, a), se3.vee(se3.hat(x))),
            "quaternions": join(quaternion.product(q, r), quaternion.conjugate(q), q, r),
            "vectors": join(quaternion.rotate(q, v), quaternion.rotate_inverse(q, v)),
            "quaternion logs": join(quaternion.log(q), quaternion.cay_inverse(r)),
            "quaternion signs": join(quaternion.principal(-r), quaternion.normalize(3 * r)),
            "from matrix": quaternion.from_matrix(quaternion.matrix(r)),
            "poses": join(*g, *h, *se3.pose_compose(g, h), *se3.pose_inverse(g)),
            "pose logs": join(se3.pose_log(g), se3.pose_cay_inverse(h)),
            "pose matrix": join(*se3.pose_from_matrix(se3.pose_matrix(h))),
            "actions": join(se3.pose_adjoint_action(g, y), se3.pose_coadjoint_action(g, a)),
            "so3 logs": join(so3.log(so3.exp(w)), so3.cay_inverse(so3.cay(u))),
            "se3 logs": join(se3.log(se3.exp(x)), se3.cay_inverse(se3.cay(y))),
        }
        matrices = {
            "quaternion.matrix": quaternion.matrix(q),
            "so3.Ad": so3.Ad(so3.exp(w)),
            "se3.ad": se3.ad(x),
            "se3.Ad": se3.Ad(se3.exp(x)),
            "se3.Ad_dual": se3.Ad_dual(se3.cay(y)),
        }
        for group, z in ((so3, w), (se3, x)):
            for name in ("hat", "exp", "cay", "dexp", "dexp_inverse", "dcay", "dcay_inverse"):
                matrices[f"{len(matrices)} {name}"] = getattr(group, name)(z)
        return products | matrices

    return build


def test_twins_agree(evaluate):
    symbolic = everything(quaternion, se3, so3, lie.join, lie.halves)
    numeric = everything(
        arrays.quaternion,
        arrays.se3,
        arrays.so3,
        lambda *parts: np.concatenate(parts, axis=-1),
        lambda x: np.split(x, 2, axis=-1),
    )(X, Y, A)
    values = evaluate(lambda *f: list(symbolic(*f).values()), X, Y, A)
    for (name, expected), value in zip(numeric.items(), values, strict=True):
        assert value.shape == expected.shape, name
        # logs near half a turn and inverses of tangents amplify round-off about tenfold
        assert np.abs(value - expected).max() < 1e-13 * 10, name


def test_bad_operands_are_refused():
    with pytest.raises(ValueError, match=r"w must have shape \(3,\)"):
        so3.exp(ufl.as_vector([1, 2]))
    with pytest.raises(TypeError, match="UFL expression"):
        se3.exp("abcdef")
    with pytest.raises(TypeError, match="g must be a pair"):
        se3.pose_log(ufl.Identity(4))
    with pytest.raises(ValueError, match="quaternion of g"):
        se3.pose_log((ufl.zero(3), ufl.zero(3)))
    assert so3.hat([0, 0, 1]).ufl_shape == (3, 3)  # sequences will do


# --- derivatives ----------------------------------------------------------------------------

# zero, tiny, both sides of the switches, in the middle, nearly half a turn; x(t) = START + t Y
START_ANGLES = np.array([0, 0, 1e-9, 1.0, 2 - 1e-9, 2 + 1e-9, 3.0, 4 - 1e-9, 4 + 1e-9])
COUNT = len(START_ANGLES)
START = np.hstack([START_ANGLES[:, None] * AXIS[:COUNT], X[:COUNT, 3:]])
START[0, 3:] = 0
DIRECTION = Y[:COUNT]


def mp_matrix_exp_and_tangent(x):
    """exp (4x4), dexp (6x6) and its inverse from the power series of their definitions."""
    w, v = x[:3], x[3:]
    hat = mp.matrix(
        [[0, -w[2], w[1], v[0]], [w[2], 0, -w[0], v[1]], [-w[1], w[0], 0, v[2]]] + [[0] * 4]
    )
    ad = mp.zeros(6)
    for i in range(3):
        for j in range(3):
            ad[i, j] = ad[i + 3, j + 3] = hat[i, j]
    shift = [[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]]
    for i in range(3):
        for j in range(3):
            ad[i + 3, j] = shift[i][j]
    exponential, tangent = mp.eye(4), mp.eye(6)
    power4, power6 = mp.eye(4), mp.eye(6)
    for k in range(1, 70):  # |ad| < 7: 7^70 / 70! = 1e-41
        power4, power6 = power4 * hat / k, -power6 * ad / (k + 1)
        exponential, tangent = exponential + power4, tangent + power6
    return exponential, tangent


def mp_functions(x):
    exponential, tangent = mp_matrix_exp_and_tangent(x)
    half = mp.sqrt(sum(c * c for c in x[:3])) / 2
    factor = mp.mpf(1) / 2 if half == 0 else mp.sin(half) / (2 * half)
    unit = [mp.cos(half)] + [factor * c for c in x[:3]]
    length = 1 / mp.sqrt(1 + half * half)
    cayley = [length] + [length * c / 2 for c in x[:3]]
    flat = [*exponential[:3, :], *tangent, *(tangent**-1), *unit, *cayley, *x]
    return mp.matrix(flat)


def ufl_functions(x):
    w = ufl.as_vector([x[0], x[1], x[2]])
    exponential = se3.exp(x)
    return [
        ufl.as_tensor([[exponential[i, j] for j in range(4)] for i in range(3)]),
        se3.dexp(x),
        se3.dexp_inverse(x),
        quaternion.exp(w),
        quaternion.cay(w),
        se3.pose_log(se3.pose_exp(x)),
    ]


@pytest.fixture(scope="module")
def differences():
    """Value and three derivatives at t = 0 of mp_functions(START + t DIRECTION)."""
    h = mp.mpf(10) ** -8  # central differences: truncated at h² = 1e-16 relative, rounded at 1e-30
    rows = []
    with mp.workdps(60):
        for x, y in zip(START, DIRECTION, strict=True):
            at = {
                k: mp_functions(
                    [mp.mpf(float(a)) + k * h * mp.mpf(float(b)) for a, b in zip(x, y, strict=True)]
                )
                for k in (-2, -1, 0, 1, 2)
            }
            first = (at[1] - at[-1]) / (2 * h)
            second = (at[1] - 2 * at[0] + at[-1]) / h**2
            third = (at[2] - 2 * at[1] + 2 * at[-1] - at[-2]) / (2 * h**3)
            rows.append([[float(c) for c in d] for d in (at[0], first, second, third)])
    return np.array(rows)


@pytest.mark.parametrize("order", range(4))
def test_derivatives_along_a_line(evaluate, differences, order):
    def build(start, direction, t):
        variable = ufl.variable(t)
        expressions = ufl_functions(start + variable * direction)
        for _ in range(order):
            expressions = [ufl.diff(e, variable) for e in expressions]
        return expressions

    values = evaluate(build, START, DIRECTION, np.zeros(COUNT))
    stacked = np.hstack([v.reshape(COUNT, -1) for v in values])
    expected = differences[:, order]
    assert np.isfinite(stacked).all()
    # third derivatives are of size 100; closed forms lose two digits more above the switch
    tolerance = [1e-13, 1e-13, 1e-12, 1e-11][order] * (1 + np.abs(expected).max(axis=1))
    assert (np.abs(stacked - expected).max(axis=1) < tolerance).all()


def test_gateaux_derivatives_at_zero(evaluate):
    """`derivative`, as in a Jacobian, where the naive square root would be NaN."""

    def build(x, y):
        exponential = [*se3.pose_exp(x), so3.log(so3.exp(ufl.as_vector([x[0], x[1], x[2]])))]
        first = [ufl.derivative(e, x, y) for e in exponential]
        return first + [ufl.derivative(e, x, y) for e in first]

    values = evaluate(build, np.zeros((40, 6)), Y)
    w, v = Y[:, :3], Y[:, 3:]
    zero = np.zeros((40, 1))
    expected = [v, np.hstack([zero, w / 2]), w]
    # exp(t y) = 1 + t y + t² y²/2: the second derivative of the translation is w × v
    expected += [np.cross(w, v), np.hstack([-np.sum(w * w, 1, keepdims=True) / 4, 0 * w]), 0 * w]
    for value, reference in zip(values, expected, strict=True):
        assert np.abs(value - reference).max() < 1e-14 * 10  # sizes up to 10
