"""Linear equations on a chain, solved in compiled code."""

from collections.abc import Sequence

import numpy as np
from firedrake import Form, Function

from fdgeom.errors import CannotCompile
from fdgeom.solvers.chain.unit import ChainUnit
from fdgeom.solvers.compiled.nodes import pieces
from fdgeom.solvers.data import Field

# Largest ratio of the residual after two updates to the first one; largest relative error of the
# solution in the test of regularity.
_REDUCED, _REGULAR = 1e-6, 1e-3


class ChainLinear:
    """Linear equations F(u) = 0, solved by an update and a second one that refines it."""

    def __init__(self, residual: Form, unknown: Function, essential: Sequence = ()) -> None:
        self._unit = ChainUnit(residual, unknown, essential=essential, seldom=True)
        if not self._unit.affine:
            raise CannotCompile("the equations are not linear")
        self._fields, self._essential = [Field(f) for f in pieces(unknown)], list(essential)

    def solve(self) -> bool:
        """Solve from zero; False, with an undefined unknown, if the matrix is singular or ill-conditioned."""
        self._put([np.zeros_like(f.array) for f in self._fields])
        first = self._unit.residual_norm if self._unit.linearise() else np.nan
        last = first
        for _ in range(2 if first else 0):
            last = self._refined()
        if not np.isfinite(last):
            return False
        self._unit.give_unknown()
        # A zero right-hand side, or one of round-off, says nothing: then the matrix is tested.
        return (first > 0.0 and last <= _REDUCED * first) or self._is_regular()

    def _refined(self) -> float:
        """Do an update; returns the norm of the residual after it."""
        self._unit.update()
        return self._unit.residual_norm if self._unit.linearise() else np.nan

    def _put(self, values: Sequence[np.ndarray]) -> None:
        """Set the unknown, with prescribed degrees of freedom at their values."""
        for field, new in zip(self._fields, values, strict=True):
            field.array[...] = new
            field.written()
        for e in self._essential:
            self._fields[e.part].array.reshape(-1)[e.dofs] = e.values()
        self._unit.begin()
        self._unit.take_unknown()

    def _is_regular(self) -> bool:
        """Whether an update recovers the solution after all unknowns were increased by 1."""
        found = [np.array(f.array) for f in self._fields]
        self._put([values + 1.0 for values in found])
        if not np.isfinite(self._refined() if self._unit.linearise() else np.nan):
            return False
        self._unit.give_unknown()
        off = sum(np.sum((f.array - u) ** 2) for f, u in zip(self._fields, found, strict=True))
        self._put(found)
        return bool(off < _REGULAR**2 * sum(u.size for u in found))
