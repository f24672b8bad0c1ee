"""Projections of a state onto its constraints."""

from collections.abc import Callable, Sequence

import numpy as np
from firedrake import Constant, Function, TestFunctions, split

from fdgeom.forms import copy_into, simplify
from fdgeom.solvers import EssentialValues, SaddleSNES, SolveFailed
from fdgeom.systems.constrained.constraint import Constraint


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
        self._to_place = SaddleSNES(residual, self._place, essential=held, name="the projection")
        self._motion = Function(space)
        x, mu = split(self._motion)
        change = momentum(x, w) - momentum(conjugate, w) - constraint.slope(mu, w)
        rest = tuple(EssentialValues(0, e.dofs, old=self._zero) for e in fixed)
        residual = simplify(change + constraint.slope(test, velocity(x)))
        self._to_motion = SaddleSNES(residual, self._motion, essential=rest, name="the projection")

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
            _solve(solver)
            copy_into(target, first)


class MotionProjection:
    """Projection: M d = B(g)ᵀμ with Φ(g r(d)) = 0, then M(w - v) = B(g)ᵀμ with B(g) w = 0."""

    # So d is the least in dᵀMd, and the velocity's part against the constraint is dropped.
    def __init__(self, motion) -> None:
        self._motion = motion
        constraint = motion.constraint
        space = motion.space * constraint.space
        test, nu = TestFunctions(space)
        self._place, self._velocity = Function(space), Function(space)
        d, mu = split(self._place)
        held = motion.inertia(test, d) - constraint.slope(mu, test)
        held += constraint.value(nu, motion.moved(d))
        self._to_place = SaddleSNES(simplify(held), self._place, name="the projection")
        w, mu = split(self._velocity)
        along = motion.inertia(test, w - motion.v) - constraint.slope(mu, test)
        along += constraint.slope(nu, w)
        self._to_velocity = SaddleSNES(simplify(along), self._velocity, name="the projection")

    def apply(self) -> None:
        """Project."""
        motion = self._motion
        self._place.assign(0.0)
        _solve(self._to_place)
        motion.displace(self._place.subfunctions[0])
        self._velocity.assign(0.0)
        _solve(self._to_velocity)
        copy_into(motion.v, self._velocity.subfunctions[0])


def _solve(solver: SaddleSNES) -> None:
    """Solve, or raise ``ValueError`` if there is no consistent state."""
    try:
        solver.solve()
    except SolveFailed as failure:
        raise ValueError(
            f"project: no consistent state was found from this start: {failure}. Start nearer to "
            "the constraint, and check that its parts do not contradict"
        ) from failure
