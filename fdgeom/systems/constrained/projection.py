"""Projection of a state onto its constraints."""

from collections.abc import Callable, Sequence

import numpy as np
from firedrake import Constant, Function, TestFunctions, split

from fdgeom.forms import copy_into, simplify
from fdgeom.solvers import EssentialValues, SaddleSNES, SolveFailed
from fdgeom.systems.constrained.constraint import Constraint

#: Name of the solves in errors.
NAME = "the projection"


class Projection:
    """Moves q to the nearest configuration on the constraint, then the momentum onto its tangent."""

    def __init__(
        self,
        constraint: Constraint,
        conjugate: Function,
        pairing: Callable,
        *,
        momentum: Callable,
        velocity: Callable,
        fixed: Sequence[EssentialValues],
    ) -> None:
        q = constraint.q
        self._q, self._conjugate = q, conjugate
        self._zero = Function(q.function_space())
        self._fixed = np.unique(np.concatenate([e.dofs for e in fixed] or [[]])).astype(int)
        held = tuple(EssentialValues(0, e.dofs, old=q, target=q) for e in fixed)
        space = q.function_space() * constraint.space
        w, test = TestFunctions(space)

        self._place = Function(space)
        x, mu = split(self._place)
        work = constraint.slope(mu, w, at=x)
        residual = simplify(pairing(x - q, w) - work + constraint.value(test, at=x))
        self._to_place = SaddleSNES(residual, self._place, essential=held, name=NAME)
        self._motion = Function(space)
        x, mu = split(self._motion)
        change = momentum(x, w) - momentum(conjugate, w) - constraint.slope(mu, w)
        rest = tuple(EssentialValues(0, e.dofs, old=self._zero) for e in fixed)
        residual = simplify(change + constraint.slope(test, velocity(x)))
        self._to_motion = SaddleSNES(residual, self._motion, essential=rest, name=NAME)

    def apply(self) -> None:
        """Project."""
        for solver, unknown, target in (
            (self._to_place, self._place, self._q),
            (self._to_motion, self._motion, self._conjugate),
        ):
            first, second = unknown.subfunctions
            copy_into(first, target)
            if target is self._conjugate:
                # On all ranks, also those that hold nothing.
                first.dat.data_with_halos.reshape(-1)[self._fixed] = 0.0
                copy_into(target, first)
            second.assign(Constant(0.0) if second.ufl_shape == () else 0.0)
            try:
                solver.solve()
            except SolveFailed as failure:
                raise ValueError(
                    f"project: no consistent state was found from this start: {failure}. Start "
                    "nearer to the constraint, and check that its parts do not contradict"
                ) from failure
            copy_into(target, first)
