"""Ends of a rod in configuration form: free, clamped, pinned, sliding or with a given pose.

`held_nodes` imposes them on poses, `bracket` on strain and momentum.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import ufl
from ufl.algorithms import expand_derivatives
from ufl.classes import Zero
from ufl.core.expr import Expr

from fdgeom.beams.rod.variation import spin
from fdgeom.lie import join, quaternion
from fdgeom.messages import format_value, is_function
from fdgeom.validation import evaluated, instance

_AXES = {0: 0, 1: 1, 2: 2, "x": 0, "y": 1, "z": 2}


class Sliding:
    """An end that moves freely along one axis of space and not across it.

    Parameters
    ----------
    along : {"x", "y", "z"} or {0, 1, 2}
        Axis of the space frame.
    turning : bool
        Whether the end may turn; otherwise it keeps its orientation.
    """

    def __init__(self, along: str | int, *, turning: bool = True) -> None:
        if not isinstance(along, str | int) or isinstance(along, bool) or along not in _AXES:
            raise ValueError(
                f"along must be 'x', 'y' or 'z' (or 0, 1, 2), not {format_value(along)}"
            )
        instance("turning", turning, bool, "True or False")
        self.along, self.turning = _AXES[along], turning

    @property
    def components(self) -> tuple[int, ...]:
        """The held components of (rotation in the body frame, translation in space)."""
        across = tuple(3 + k for k in range(3) if k != self.along)
        return across if self.turning else (0, 1, 2, *across)

    def __repr__(self) -> str:
        return f"Sliding({'xyz'[self.along]!r}, turning={self.turning})"


class GivenPose:
    """An end whose pose is prescribed in time.

    Parameters
    ----------
    position : callable, optional
        ``position(t)`` returns a UFL vector of 3 in space; without it the end is free to move.
    orientation : callable, optional
        ``orientation(t)`` returns a quaternion (4, scalar first; it is normalized); without it the
        end is free to turn.

    Raises
    ------
    TypeError, ValueError
        If neither is given, or one is not a function of the time with such a value.
    """

    def __init__(
        self, *, position: Callable | None = None, orientation: Callable | None = None
    ) -> None:
        if position is None and orientation is None:
            raise ValueError("GivenPose: give position, orientation, or both")
        for name, value in (("position", position), ("orientation", orientation)):
            if value is not None and not is_function(value):
                raise TypeError(f"{name} must be a function of the time t giving a UFL vector")
        self._position, self._orientation = position, orientation

    @property
    def components(self) -> tuple[int, ...]:
        """The held components of (rotation in the body frame, translation in space)."""
        rotation = () if self._orientation is None else (0, 1, 2)
        return rotation + (() if self._position is None else (3, 4, 5))

    def pose(self, t: Expr) -> tuple[Any, Any]:
        """Position and unit quaternion at the time t; None where they are free."""
        x = None if self._position is None else evaluated("position", self._position, (t,), 3)
        if self._orientation is None:
            return x, None
        turned = evaluated("orientation", self._orientation, (t,), 4)
        return x, unit_quaternion("orientation", turned)

    def body_velocity(self, t: Expr) -> Expr:
        """The velocity (6) of the motion, all in the body frame; both parts must be given."""
        if len(self.components) < 6:
            raise ValueError("GivenPose: the body velocity needs position and orientation")
        t = ufl.variable(t)
        x, q = self.pose(t)
        x_rate, q_rate = (expand_derivatives(ufl.diff(part, t)) for part in (x, q))
        return join(spin(q, q_rate), quaternion.rotate_inverse(q, x_rate))

    def __repr__(self) -> str:
        given = [n for n in ("position", "orientation") if getattr(self, f"_{n}") is not None]
        return f"<given {' and '.join(given)}>"


#: The held components of (rotation in the body frame, translation in space).
HELD = {"free": (), "clamped": (0, 1, 2, 3, 4, 5), "pinned": (3, 4, 5)}


def held_components(name: str, kind: str | Sliding | GivenPose) -> np.ndarray:
    """The held components of (rotation in the body frame, translation in space) of a kind of end."""
    if isinstance(kind, Sliding | GivenPose):
        return np.array(kind.components, dtype=int)
    if kind not in HELD:
        raise ValueError(
            f"{name}: methods in configuration form need the pose of this end, not its velocity: use "
            "fdgeom.GivenPose(position=..., orientation=...)"
        )
    return np.array(HELD[kind], dtype=int)


def unit_quaternion(name: str, q: Expr) -> Expr:
    """q / |q|; ``ValueError`` with its ``name`` if it is zero in its form."""
    if isinstance(q, Zero):
        raise ValueError(f"{name} is zero; it must be a quaternion, scalar first: (1, 0, 0, 0)")
    return quaternion.normalize(q)
