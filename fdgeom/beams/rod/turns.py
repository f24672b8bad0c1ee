"""Check of the relative rotation of the two ends of a cell, which a step must not turn too far."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ufl
from firedrake import Function
from mpi4py import MPI
from ufl.core.expr import Expr

from fdgeom.errors import SolveFailed
from fdgeom.lie import arrays, quaternion
from fdgeom.measures import end_values
from fdgeom.messages import describe
from fdgeom.operations import Check, HostOperation, Map, Operation, Solve


class Turns:
    """The relative rotation of the two ends of each cell, and its change in a step."""

    #: Cosine of half of 90 degrees: farther, a cell of finite length says little about a rod.
    least = float(np.sqrt(0.5))
    #: If no node turns by more than 45 degrees, no cell does by more than 90.
    _harmless = float(np.cos(np.pi / 8))

    # A step that changes it by more than 90 degrees has found another branch of solutions, or folds
    # the cell. `soft`: the strain measure softens where the rotation itself exceeds 90 degrees;
    # `joints`: the `JointSet` of a network.
    def __init__(
        self,
        orientation: Function,
        in_rods: np.ndarray | bool = True,
        *,
        soft: bool = False,
        joints: Any = None,
    ) -> None:
        self.orientation, self.soft, self._in_rods = orientation, soft, in_rods
        self._joints = joints
        self._comm = orientation.function_space().comm
        # The vertices come first, of any degree.
        self._ends = orientation.function_space().cell_node_map().values[:, :2]
        self._first, self._last = np.ascontiguousarray(self._ends.T)

    def checked(self, operations: Sequence[Operation]) -> list[Operation]:
        """The operations of a step, with a check where they turn nodes after a solve."""
        found: list[Operation] = []
        solved = False
        for op in operations:
            solved = solved or isinstance(op, Solve)
            if solved and isinstance(op, Map) and self.orientation in op.values:
                before = Function(self.orientation.function_space(), name="orientation before")
                values = {before: self.orientation, **op.values}
                found += [replace(op, values=values), TurnCheck(turns=self, before=before)]
            else:
                found.append(op)
        is_checked = any(isinstance(op, TurnCheck) for op in operations)
        return list(operations) if is_checked else found

    def values(self) -> np.ndarray:
        """A copy of the orientations, for :meth:`check`."""
        return np.array(self.orientation.dat.data_ro_with_halos)

    def branch(self) -> np.ndarray | None:
        """Numbers of joints with springs whose signs no step may change; None without any."""
        return None if self._joints is None else self._joints.half_cosines()

    def check_branch(self, before: np.ndarray) -> None:
        """Raise SolveFailed if a number of :meth:`branch` has another sign than ``before``."""
        self._joints.check_half_turns(before)

    def _relative(self, values: np.ndarray) -> np.ndarray:
        """p̄ q for the quaternions p and q of the two ends of each of this rank's cells."""
        p, q = values[self._first], values[self._last]
        return arrays.quaternion.product(arrays.quaternion.conjugate(p), q)

    def cosines(self, before: Function) -> list[Expr]:
        """The cosines of half the angles of :meth:`check` since an orientation, as expressions at the
        midpoints of the cells of rods: of the change, and of the state if that is checked.
        """
        old, new = (_relative(f) for f in (before, self.orientation))
        change = ufl.dot(old, new)
        return [change, new[0]] if self.soft else [change]

    def check(self, before: np.ndarray) -> None:
        """Raise SolveFailed if a cell turned too far since ``before``, or is turned too far now."""
        after = self.orientation.dat.data_ro_with_halos
        quiet = _dots(before, after).min(initial=1.0) >= self._harmless
        if self._some(not quiet) and (found := self._worst(self.changes(before))):
            place, angle = found
            raise SolveFailed(
                f"the two ends of {place} turn against one another by {angle:.4g} degrees in a step, and "
                "90 degrees at most are possible",
                remedy="take smaller steps, or refine the mesh there",
            )
        if self.soft and (found := self._worst(self._states())):
            raise SolveFailed(_state(*found), remedy="refine the mesh there")

    def changes(self, before: np.ndarray) -> np.ndarray:
        """The cosines of half the angles by which cells have turned since ``before``."""
        after = self.orientation.dat.data_ro_with_halos
        return _dots(self._relative(before), self._relative(after))

    def _states(self) -> np.ndarray:
        """The cosines of half the angles by which the ends of cells are turned."""
        values = self.orientation.dat.data_ro_with_halos
        return _dots(values[self._first], values[self._last])

    def check_state(self) -> None:
        """Raise ``ValueError`` if a cell is turned too far for the strain measure."""
        if self.soft and (found := self._worst(self._states())):
            raise ValueError(f"orientation: {_state(*found)}; refine the mesh there")

    def _some(self, holds: bool) -> bool:
        """Whether something holds on some rank."""
        return holds if self._comm.size == 1 else bool(self._comm.allreduce(holds, op=MPI.LOR))

    def _worst(self, cosines: np.ndarray) -> tuple[str, float] | None:
        """Description of the cell that is turned most, and the angle; None within bounds."""
        cosines = np.where(self._in_rods, cosines, 1.0)
        cell = int(np.argmin(cosines)) if len(cosines) else -1
        least = float(cosines[cell]) if len(cosines) else 1.0  # argmin finds a NaN first
        if not self._some(not least >= self.least):
            return None
        words = describe(self.orientation)  # on all ranks: it interpolates coordinates
        place = "" if cell < 0 else " and ".join(sorted(map(words, self._ends[cell])))
        least, place = min(self._comm.allgather((np.nan_to_num(least, nan=-2.0), place)))
        angle = np.nan if least < -1.5 else 2 * np.degrees(np.arccos(np.clip(least, -1, 1)))
        return f"the cell between {place}", float(angle)


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnCheck(HostOperation):
    """Fails the step where a cell has turned too far; its sentence needs the place and the angle."""

    turns: Turns
    #: The orientation before the assignments.
    before: Function

    @property
    def reads(self) -> list[Function]:
        return [self.turns.orientation, self.before]

    @property
    def writes(self) -> list[Function]:
        return []

    @property
    def derivative_as(self) -> Sequence[Operation]:
        return []

    def run(self) -> None:
        self.turns.check(self.before.dat.data_ro_with_halos)

    @property
    def compiled_as(self) -> Sequence[Operation] | None:
        message = "the two ends of a cell turn too far against one another in a step"
        before, least = self.before, self.turns.least
        # The angles at both ends bound the change of that between them.
        small = float(np.cos(np.arccos(least) / 2)) - ufl.dot(self.turns.orientation, before)
        return [
            Check(value=-cosine, limit=-least, message=message, sufficient=enough)
            for cosine, enough in zip(self.turns.cosines(before), (small, None), strict=False)
        ]

    def explain(self) -> None:
        self.run()


def _dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("nk,nk->n", a, b)


def _relative(orientation: Function) -> Expr:
    """p̄ q for the quaternions p and q of the two ends of a cell."""
    p, q = end_values(orientation, orientation.function_space().mesh())
    return quaternion.product(quaternion.conjugate(p), q)


def _state(place: str, angle: float) -> str:
    return (
        f"the two ends of {place} are turned against one another by {angle:.4g} degrees, and strains "
        "by directors soften beyond 90 degrees"
    )
