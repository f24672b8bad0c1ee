"""Points of a path of equilibria on pyadjoint's tape, where solves at their load begin."""

from collections.abc import Sequence

import numpy as np
from firedrake import Function

from fdgeom.lie.arrays import quaternion


class TapedPoint:
    """A point that `StaticEquilibrium.follow` has reached, from which solves stay on its branch."""

    # If the path begins with another configuration, the point moves with it, node by node.
    def __init__(self, poses: Sequence[Function], carried: Sequence[Function]) -> None:
        self._poses, self._carried = poses, carried
        self._begun = _values(poses)

    def reach(self) -> None:
        """Save the present configuration, and restore that at the start of the path."""
        self._reached, self._with = _values(self._poses), _values(self._carried)
        _put(self._poses, self._begun)

    def stand(self) -> None:
        """Go from a configuration at the start of the path to the point."""
        now = _values(self._poses)
        moved = list(self._reached)
        for k in range(0, len(now), 2):
            if not np.array_equal(now[k], self._begun[k]):
                moved[k] = self._reached[k] + (now[k] - self._begun[k])
            if not np.array_equal(now[k + 1], self._begun[k + 1]):
                turn = quaternion.product(now[k + 1], quaternion.conjugate(self._begun[k + 1]))
                moved[k + 1] = quaternion.normalize(quaternion.product(turn, self._reached[k + 1]))
        _put(self._poses, moved)
        _put(self._carried, self._with)


def _values(functions: Sequence[Function]) -> list[np.ndarray]:
    return [np.array(f.dat.data_ro_with_halos) for f in functions]


def _put(functions: Sequence[Function], values: Sequence[np.ndarray]) -> None:
    for f, array in zip(functions, values, strict=True):
        f.dat.data_wo_with_halos[...] = array
