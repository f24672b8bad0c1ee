"""The NumPy twin of `fdgeom.lie`: the same names for arrays, vectorised over leading axes.

Vectors have shapes (..., 3) and (..., 6), quaternions (..., 4), rotations (..., 3, 3), motions
(..., 4, 4) and poses are pairs (..., 3), (..., 4). Leading axes broadcast. `scan` and `pose_scan`
give the prefix products g₀, g₀g₁, g₀g₁g₂, ... of a chain.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fdgeom.lie import numpy_operations
from fdgeom.lie.quaternion import Quaternions
from fdgeom.lie.se3 import Motions, pair
from fdgeom.lie.so3 import Rotations

__all__ = ["pose_scan", "quaternion", "scan", "se3", "so3"]

Chain = tuple[NDArray, ...]

quaternion: Quaternions = Quaternions(numpy_operations)
so3 = Rotations(numpy_operations, quaternion)
se3 = Motions(numpy_operations, quaternion, so3)


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
    x, q = pair(numpy_operations, poses, "poses")
    if x.ndim < 2 or x.shape[:-1] != q.shape[:-1]:
        raise ValueError(
            "poses must be positions (..., n, 3) and quaternions (..., n, 4) with the same "
            f"leading axes, not {x.shape} and {q.shape}"
        )

    def compose(left: Chain, right: Chain) -> Chain:
        position, orientation = se3.pose_compose((left[0], left[1]), (right[0], right[1]))
        return position, quaternion.normalize(orientation)

    positions, orientations = scan(compose, (x, quaternion.normalize(q)))
    return positions, orientations
