"""Check of the relative rotation of the two ends of a cell, which a step must not turn too far."""

import numpy as np
import ufl
from firedrake import Function
from mpi4py import MPI
from ufl.core.expr import Expr

from fdgeom.measures import end_values
from fdgeom.solvers import SolveFailed
from fdgeom.solvers.compiled import describe

# p̄ q as a matrix that is applied to the products of the components of p and of those of q.
_CONJUGATE_PRODUCT = np.zeros((4, 16))
for _row, _signs in enumerate(
    (
        {"00": 1, "11": 1, "22": 1, "33": 1},
        {"01": 1, "10": -1, "23": -1, "32": 1},
        {"02": 1, "20": -1, "31": -1, "13": 1},
        {"03": 1, "30": -1, "12": -1, "21": 1},
    )
):
    for _pair, _sign in _signs.items():
        _CONJUGATE_PRODUCT[_row, int(_pair, 4)] = _sign


class Turns:
    """The relative rotation of the two ends of each cell, and its change in a step."""

    #: Cosine of half of 90 degrees: farther, a cell of finite length says little about a rod.
    least = float(np.sqrt(0.5))

    # A step that changes it by more than 90 degrees has found another branch of solutions, or folds
    # the cell. `soft`: the strain measure softens where the rotation itself exceeds 90 degrees.
    def __init__(
        self, orientation: Function, in_rods: np.ndarray | bool = True, *, soft: bool = False
    ) -> None:
        self.orientation, self.soft, self._in_rods = orientation, soft, in_rods
        self._comm = orientation.function_space().comm
        # The vertices come first, of any degree.
        self._ends = orientation.function_space().cell_node_map().values[:, :2]
        self._first, self._last = np.ascontiguousarray(self._ends.T)

    def relative(self, orientation: Function | None = None) -> np.ndarray:
        """p̄ q for the quaternions p and q of the two ends of each of this rank's cells."""
        found = self.orientation if orientation is None else orientation
        values = found.dat.data_ro_with_halos
        p, q = values[self._first], values[self._last]
        return _CONJUGATE_PRODUCT @ (p[:, :, None] * q[:, None]).reshape(-1, 16).T

    def cosines(self, before: Function) -> list[Expr]:
        """The cosines of half the angles of :meth:`check` since an orientation, as expressions at the
        midpoints of the cells of rods: of the change, and of the state if that is checked.
        """
        old, new = (_relative(f) for f in (before, self.orientation))
        change = sum(a * b for a, b in zip(old, new, strict=True))
        return [change, new[0]] if self.soft else [change]

    def check(self, before: np.ndarray) -> None:
        """Raise SolveFailed if a cell turned too far since ``before``, or is turned too far now."""
        after = self.relative()
        self.refuse((before * after).sum(axis=0), after[0])

    def check_state(self) -> None:
        """Raise ``ValueError`` if a cell is turned too far for the strain measure."""
        if self.soft and (found := self._worst(self.relative()[0])):
            raise ValueError(f"orientation: {_state(*found)}; refine the mesh there")

    def refuse(self, change: np.ndarray, state: np.ndarray) -> None:
        """:meth:`check`, from the cosines of half the angles in this rank's cells."""
        if found := self._worst(change):
            place, angle = found
            raise SolveFailed(
                f"the two ends of {place} turn against one another by {angle:.4g} degrees in a step, and "
                "90 degrees at most are possible",
                remedy="take smaller steps, or refine the mesh there",
            )
        if self.soft and (found := self._worst(state)):
            raise SolveFailed(_state(*found), remedy="refine the mesh there")

    def _worst(self, cosines: np.ndarray) -> tuple[str, float] | None:
        """Description of the cell that is turned most, and the angle; None within bounds."""
        cosines = np.where(self._in_rods, cosines, 1.0)
        cell = int(np.argmin(cosines)) if len(cosines) else -1
        least = float(cosines[cell]) if len(cosines) else 1.0  # argmin finds a NaN first
        if self._comm.allreduce(int(not least >= self.least), op=MPI.SUM) == 0:
            return None
        words = describe(self.orientation)  # on all ranks: it interpolates coordinates
        place = "" if cell < 0 else " and ".join(sorted(map(words, self._ends[cell])))
        least, place = min(self._comm.allgather((np.nan_to_num(least, nan=-2.0), place)))
        angle = np.nan if least < -1.5 else 2 * np.degrees(np.arccos(np.clip(least, -1, 1)))
        return f"the cell between {place}", float(angle)


def _relative(orientation: Function) -> list[Expr]:
    """p̄ q for the quaternions p and q of the two ends of a cell."""
    p, q = end_values(orientation, orientation.function_space().mesh())
    vectors = [ufl.as_vector([f[k] for k in (1, 2, 3)]) for f in (p, q)]
    turned = p[0] * vectors[1] - q[0] * vectors[0] - ufl.cross(*vectors)
    return [ufl.dot(p, q), *(turned[k] for k in range(3))]


def _state(place: str, angle: float) -> str:
    return (
        f"the two ends of {place} are turned against one another by {angle:.4g} degrees, and strains "
        "by directors soften beyond 90 degrees"
    )
