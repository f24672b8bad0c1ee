"""Prefix products of poses against a plain loop of 4x4 matrices."""

import numpy as np
import pytest

from fdgeom.lie.arrays import pose_scan, scan, se3


def chain(n, lead=(), seed=0):
    return se3.pose_cay(np.random.default_rng(seed).normal(size=(*lead, n, 6)))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 64, 101])
def test_pose_scan_is_the_plain_loop(n):
    poses = chain(n)
    g, expected = np.eye(4), []
    for relative in se3.pose_matrix(poses):
        g = g @ relative
        expected.append(g)
    # positions of up to a hundred links of size 1: round-off of n additions
    assert np.abs(se3.pose_matrix(pose_scan(poses)) - expected).max() < 1e-13 * max(n, 10)


def test_leading_axes_are_independent_chains():
    x, q = chain(13, lead=(2, 3))
    together = pose_scan((x, q))
    alone = pose_scan((x[1, 2], q[1, 2]))
    assert np.array_equal(together[0][1, 2], alone[0])
    assert np.array_equal(together[1][1, 2], alone[1])


def test_quaternions_of_a_long_chain_keep_length_one():
    x, q = chain(20_000)
    length = np.linalg.norm(pose_scan((x, 1.01 * q))[1], axis=-1)
    assert np.abs(length - 1).max() < 1e-15  # normalized after every product


def test_scan_calls_and_work_grow_as_promised():
    sizes = []

    def add(left, right):
        sizes.append(left[0].shape[-2])
        return (left[0] + right[0],)

    n = 1000
    (total,) = scan(add, (np.arange(n, dtype=float)[:, None],))
    assert np.array_equal(total[:, 0], np.cumsum(np.arange(n)))
    assert len(sizes) <= 2 * np.log2(n)
    assert sum(sizes) < 2 * n


def test_order_of_the_product_is_kept():
    words = np.array([["a"], ["b"], ["c"], ["d"], ["e"]], dtype=object)
    (joined,) = scan(lambda left, right: (left[0] + right[0],), (words,))
    assert joined[:, 0].tolist() == ["a", "ab", "abc", "abcd", "abcde"]


def test_bad_chains_are_refused():
    x, q = chain(4)
    with pytest.raises(ValueError, match="same leading axes"):
        pose_scan((x[:3], q))
    with pytest.raises(ValueError, match="same leading axes"):
        pose_scan((x[0], q[0]))
    with pytest.raises(ValueError, match="quaternion of poses"):
        pose_scan((x, q[:, :3]))
