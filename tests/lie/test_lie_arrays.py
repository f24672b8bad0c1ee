"""The NumPy twin against numpy.linalg, scipy.linalg.expm, complex steps and the group's laws."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from fdgeom.lie.arrays import quaternion, se3, so3

ROUND_OFF = 1e-13  # a few hundred operations on numbers of size 1 to 10
RNG = np.random.default_rng(7)
X, Y, Z, A = RNG.normal(size=(4, 200, 6))
# all sizes of rotation: none, tiny, around the switch of the coefficients, nearly half a turn
X[:, :3] *= (np.r_[0, 1e-9, 1e-4, 2 - 1e-9, 2 + 1e-9, np.linspace(0.1, 3.1, 195)])[
    :, None
] / np.linalg.norm(X[:, :3], axis=1, keepdims=True)
ALGEBRAS = [pytest.param(so3, 3, id="so3"), pytest.param(se3, 6, id="se3")]


def close(a, b, tolerance=ROUND_OFF):
    assert np.shape(a) == np.shape(b)
    assert np.abs(np.asarray(a) - b).max() < tolerance


def apply(matrix, vector):
    return np.einsum("...ij,...j->...i", matrix, vector)


@pytest.mark.parametrize(("lie", "n"), ALGEBRAS)
def test_algebra(lie, n):
    x, y, z, a = X[:, :n], Y[:, :n], Z[:, :n], A[:, :n]
    close(lie.vee(lie.hat(x)), x)
    commutator = lie.hat(x) @ lie.hat(y) - lie.hat(y) @ lie.hat(x)
    close(lie.hat(lie.bracket(x, y)), commutator)
    close(lie.bracket(x, y), -lie.bracket(y, x))
    jacobi = (
        lie.bracket(x, lie.bracket(y, z))
        + lie.bracket(y, lie.bracket(z, x))
        + lie.bracket(z, lie.bracket(x, y))
    )
    close(jacobi, np.zeros_like(x))
    duality = np.sum(lie.coadjoint(x, a) * y, -1) - np.sum(a * lie.bracket(x, y), -1)
    close(duality, np.zeros(len(x)))


def test_coadjoint_as_printed():
    (w, v), (m, n) = np.split(X, 2, axis=1), np.split(A, 2, axis=1)
    expected = np.hstack([np.cross(m, w) + np.cross(n, v), np.cross(n, w)])
    close(se3.coadjoint(X, A), expected)
    close(apply(se3.ad(X), Y), se3.bracket(X, Y))


@pytest.mark.parametrize(("lie", "n"), ALGEBRAS)
def test_cayley_map(lie, n):
    x = X[:, :n]
    half = lie.hat(x) / 2
    identity = np.eye(half.shape[-1])
    close(lie.cay(x), np.linalg.solve(identity - half, identity + half))
    close(lie.cay(-x), np.linalg.inv(lie.cay(x)))
    close(lie.cay_inverse(lie.cay(x)), x)


@pytest.mark.parametrize(("lie", "n"), ALGEBRAS)
def test_exponential(lie, n):
    x = X[:, :n]
    close(lie.exp(x), np.array([expm(m) for m in lie.hat(x)]))
    # the angle is known to round-off in the quaternion, the translation is at most 20 times x
    close(lie.log(lie.exp(x)), x, 1e-12)


@pytest.mark.parametrize("turn", [np.pi - 1e-9, np.pi])
def test_logarithm_at_half_a_turn(turn):
    axis = Y[:, :3] / np.linalg.norm(Y[:, :3], axis=1, keepdims=True)
    w = so3.log(so3.exp(turn * axis))
    close(np.abs(np.sum(w * axis, -1)), np.full(len(w), turn))  # at pi the sign is free


@pytest.mark.parametrize(("lie", "n"), ALGEBRAS)
@pytest.mark.parametrize("name", ["cay", "exp"])
def test_tangent_maps_are_left_trivialised_derivatives(lie, n, name):
    x, y = X[:, :n], Y[:, :n]
    f, tangent = getattr(lie, name), getattr(lie, f"d{name}")
    step = 1e-30  # complex: no cancellation
    derivative = np.imag(f(x + 1j * step * y)) / step
    close(lie.hat(apply(tangent(x), y)), np.linalg.solve(f(x), derivative), 1e-12)
    inverse = getattr(lie, f"d{name}_inverse")
    # d exp⁻¹ reaches 10 near half a turn
    close(inverse(x) @ tangent(x), np.broadcast_to(np.eye(n), (len(x), n, n)), 1e-12)


def test_tangent_of_exp_is_the_integral_of_the_adjoint():
    # dexp(x) = ∫₀¹ Ad(exp(-τ x)) dτ; 20 Gauss points are exact to round-off for angles below pi
    points, weights = np.polynomial.legendre.leggauss(20)
    tau, weights = 0.5 * (points + 1), 0.5 * weights
    close(
        se3.dexp(X), np.einsum("k,nkij->nij", weights, se3.Ad(se3.exp(-tau[:, None] * X[:, None])))
    )


def test_published_tangent_values():
    tangent = so3.dexp([0.3, -0.2, 0.5])
    close(tangent[0, :2], [0.95257673497035, 0.23237122351341], 1e-14)


def test_adjoint_actions():
    g, h = se3.exp(X), se3.cay(Y)
    close(se3.Ad(g @ h), se3.Ad(g) @ se3.Ad(h), 1e-12)
    close(se3.hat(apply(se3.Ad(g), Z)), g @ se3.hat(Z) @ np.linalg.inv(g), 1e-12)
    close(
        so3.hat(apply(so3.Ad(g[:, :3, :3]), Z[:, :3])),
        (g @ se3.hat(Z) @ np.linalg.inv(g))[:, :3, :3],
    )
    close(se3.Ad_dual(g), np.linalg.inv(se3.Ad(g)).transpose(0, 2, 1), 1e-12)
    close(se3.Ad(g), np.array([expm(m) for m in se3.ad(X)]), 1e-12)
    # the dual of ad is minus the generator of the coadjoint action
    step = 1e-30
    generator = np.imag(apply(se3.Ad_dual(se3.exp(1j * step * Y)), A)) / step
    close(generator, -se3.coadjoint(Y, A))


def test_quaternions():
    p, q = quaternion.normalize(RNG.normal(size=(2, 200, 4)))
    v = Y[:, :3]
    close(quaternion.matrix(q), Rotation.from_quat(q[:, [1, 2, 3, 0]]).as_matrix())
    close(quaternion.matrix(quaternion.product(p, q)), quaternion.matrix(p) @ quaternion.matrix(q))
    close(quaternion.rotate(q, v), apply(quaternion.matrix(q), v))
    close(quaternion.rotate_inverse(q, quaternion.rotate(q, v)), v)
    one = np.broadcast_to([1.0, 0, 0, 0], q.shape)
    close(quaternion.product(q, quaternion.conjugate(q)), one)
    close(quaternion.from_matrix(quaternion.matrix(q)), quaternion.principal(q))
    w = X[:, :3]
    close(quaternion.matrix(quaternion.cay(w)), so3.cay(w))
    close(quaternion.cay_inverse(quaternion.cay(w)), w)
    close(quaternion.matrix(quaternion.exp(w)), so3.exp(w))
    twice = 1.99 * w  # up to nearly two half turns the quaternion keeps the angle
    close(quaternion.log(quaternion.exp(twice)), twice, 1e-12)
    close(quaternion.log(one), np.zeros_like(w))


def test_every_half_turn_has_a_quaternion():
    q = np.vstack(
        [np.eye(4)[1:], quaternion.normalize([[0, 1, 1, 0], [0, 1, -2, 3], [0, 0, 1, -1]])]
    )
    r = quaternion.matrix(q)
    close(quaternion.matrix(quaternion.from_matrix(r)), r)


def test_poses_are_their_matrices():
    g, h = se3.pose_exp(X), se3.pose_cay(Y)
    matrix = se3.pose_matrix
    close(matrix(g), se3.exp(X))
    close(matrix(h), se3.cay(Y))
    close(matrix(se3.pose_compose(g, h)), matrix(g) @ matrix(h))
    close(matrix(se3.pose_inverse(g)), np.linalg.inv(matrix(g)))
    close(matrix(se3.pose_from_matrix(matrix(h))), matrix(h))
    close(se3.pose_log(g), X, 1e-12)
    close(se3.pose_cay_inverse(h), Y)
    close(se3.pose_adjoint_action(g, Z), apply(se3.Ad(matrix(g)), Z))
    close(se3.pose_coadjoint_action(g, A), apply(se3.Ad_dual(matrix(g)), A))


def test_leading_axes_broadcast():
    w = Y[:6, :3].reshape(2, 3, 3)
    assert so3.dexp(w).shape == (2, 3, 3, 3)
    assert quaternion.rotate(quaternion.exp(w), [1.0, 0, 0]).shape == (2, 3, 3)
    assert se3.Ad(se3.exp(Y[0])).shape == (6, 6)
    one, many = se3.pose_exp(Y[0]), se3.pose_exp(Y[:5])
    close(se3.pose_compose(one, many)[0][3], se3.pose_compose(one, se3.pose_exp(Y[3]))[0])


def test_bad_operands_are_refused():
    with pytest.raises(ValueError, match="w must have shape"):
        so3.cay([1.0, 2.0])
    with pytest.raises(ValueError, match="g must have shape"):
        se3.Ad(np.eye(3))
    with pytest.raises(TypeError, match="x must be an array of numbers"):
        se3.exp(["a"] * 6)
    with pytest.raises(TypeError, match="g must be a pair"):
        se3.pose_inverse(np.eye(4))
