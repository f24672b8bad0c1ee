"""Prefix products of a chain: g₀, g₀g₁, g₀g₁g₂, ... in O(log n) vectorised products."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fdgeom.lie.arrays.in_numpy import quaternion, se3
from fdgeom.lie.arrays.operands import pair

Chain = tuple[NDArray, ...]


def scan(compose: Callable[[Chain, Chain], Chain], chain: Chain) -> Chain:
    """All products g₀ g₁ ... gᵢ of a chain, from left to right.

    Neighbours are multiplied in pairs and the half as long chain is scanned in the same way,
    which gives every second product; one more multiplication gives the others. In all, fewer
    than 2n products in 2 log₂ n calls.

    Parameters
    ----------
    compose
        Associative product of two chains of one length, element by element.
    chain
        Arrays (..., n, m), one for each part of an element, with n along the last axis but one.

    Returns
    -------
    tuple of numpy.ndarray
        The n products, in arrays of the same shapes.
    """
    n = chain[0].shape[-2]
    if n < 2:
        return tuple(np.array(part) for part in chain)
    first = tuple(part[..., 0 : n - 1 : 2, :] for part in chain)
    second = tuple(part[..., 1:n:2, :] for part in chain)
    odd = scan(compose, compose(first, second))
    products = tuple(np.empty_like(part) for part in chain)
    for product, part, pairs in zip(products, chain, odd, strict=True):
        product[..., 0, :] = part[..., 0, :]
        product[..., 1::2, :] = pairs
    if n > 2:
        left = tuple(pairs[..., : (n - 1) // 2, :] for pairs in odd)
        even = compose(left, tuple(part[..., 2::2, :] for part in chain))
        for product, part in zip(products, even, strict=True):
            product[..., 2::2, :] = part
    return products


def pose_scan(poses: tuple[ArrayLike, ArrayLike]) -> tuple[NDArray, NDArray]:
    """Cumulative products g₀ g₁ ... gᵢ of a chain of relative poses.

    Parameters
    ----------
    poses
        Positions (..., n, 3) and unit quaternions (..., n, 4), such as the motions from one node
        of a beam to the next; to start elsewhere than at the identity, put the first node's pose
        in front.

    Returns
    -------
    positions, quaternions : numpy.ndarray
        The n products, in arrays of the same shapes; the quaternions have length 1 to round-off.

    Raises
    ------
    ValueError
        If positions and quaternions are not as many, or have no axis to go along.
    """
    x, q = pair(poses, "poses")
    if x.ndim < 2 or x.shape[:-1] != q.shape[:-1]:
        raise ValueError(
            "poses must be positions (..., n, 3) and quaternions (..., n, 4) with the same "
            f"leading axes, not {x.shape} and {q.shape}"
        )

    def compose(left: Chain, right: Chain) -> Chain:
        position, orientation = se3.pose_compose(left, right)
        return position, quaternion.normalize(orientation)

    return scan(compose, (x, quaternion.normalize(q)))
