"""Rotations and rigid motions, in UFL and on arrays."""

import numpy as np
from firedrake import as_vector

import fdgeom as fg

REFUSALS = [
    (
        "w",
        lambda: fg.lie.so3.hat(3.0),
        TypeError,
        (
            "w must be a UFL expression of shape (3,), not float; functions of NumPy arrays"
            " are in fdgeom.lie.arrays"
        ),
    ),
    (
        "w",
        lambda: fg.lie.so3.hat(as_vector([1, 2])),
        ValueError,
        "w must have shape (3,), not (2,)",
    ),
    (
        "w",
        lambda: fg.lie.so3.hat("omega"),
        TypeError,
        (
            "w must be a UFL expression of shape (3,), not str; functions of NumPy arrays "
            "are in fdgeom.lie.arrays"
        ),
    ),
    (
        "w",
        lambda: fg.lie.so3.hat([[1, 2], [3]]),
        TypeError,
        "w must be of shape (3,), of numbers or UFL",
    ),
    (
        "q",
        lambda: fg.lie.quaternion.normalize(as_vector([0, 0, 0, 0])),
        ValueError,
        "q must not be the zero quaternion, which is no rotation",
    ),
    (
        "q",
        lambda: fg.lie.quaternion.normalize(as_vector([1, 0, 0])),
        ValueError,
        "q must have shape (4,), not (3,)",
    ),
    (
        "p",
        lambda: fg.lie.quaternion.product(1.0, as_vector([1, 0, 0, 0])),
        TypeError,
        (
            "p must be a UFL expression of shape (4,), not float; functions of NumPy arrays"
            " are in fdgeom.lie.arrays"
        ),
    ),
    (
        "v",
        lambda: fg.lie.quaternion.rotate(as_vector([1, 0, 0, 0]), as_vector([1, 0])),
        ValueError,
        "v must have shape (3,), not (2,)",
    ),
    (
        "rotation",
        lambda: fg.lie.quaternion.from_matrix(as_vector([1, 0, 0])),
        ValueError,
        "rotation must have shape (3, 3), not (3,)",
    ),
    (
        "w",
        lambda: fg.lie.quaternion.exp(as_vector([0, 0, 0, 1])),
        ValueError,
        "w must have shape (3,), not (4,)",
    ),
    (
        "g",
        lambda: fg.lie.se3.pose_compose(3.0, 4.0),
        TypeError,
        "g must be a pair (position, unit quaternion)",
    ),
    (
        "q",
        lambda: fg.lie.arrays.quaternion.normalize(np.zeros(4)),
        ValueError,
        "q must not hold a zero quaternion, which is no rotation, nor NaN",
    ),
    (
        "q",
        lambda: fg.lie.arrays.quaternion.normalize(np.ones(3)),
        ValueError,
        "q must have shape (..., 4), not (3,)",
    ),
    (
        "q",
        lambda: fg.lie.arrays.quaternion.matrix(["a", "b", "c", "d"]),
        TypeError,
        "q must be an array of numbers; UFL's functions are in fdgeom.lie",
    ),
    (
        "w",
        lambda: fg.lie.arrays.so3.hat(np.ones((2, 4))),
        ValueError,
        "w must have shape (..., 3), not (2, 4)",
    ),
    (
        "g",
        lambda: fg.lie.arrays.se3.pose_compose(np.ones(7), np.ones(7)),
        TypeError,
        "g must be a pair (position, unit quaternion)",
    ),
    (
        "retraction",
        lambda: fg.lie.groups.SO3.by("log"),
        ValueError,
        "retraction must be one of 'exp', 'cay', not 'log'",
    ),
    (
        "configuration",
        lambda: fg.lie.groups.SE3.retract((as_vector([1, 0, 0, 0]),), as_vector([0] * 6)),
        TypeError,
        "configuration must be a tuple of 2 UFL expressions of shapes ((3,), (4,)) for SE3",
    ),
    (
        "increment",
        lambda: fg.lie.groups.SO3.retract((as_vector([1, 0, 0, 0]),), as_vector([0] * 6)),
        ValueError,
        "increment must have shape (3,), not (6,)",
    ),
]
