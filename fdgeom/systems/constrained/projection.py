"""Projections of a state onto its constraints."""

from collections.abc import Callable, Sequence

import numpy as np
from firedrake import Function, TestFunctions, split

from fdgeom.errors import SolveFailed
from fdgeom.execution import HeldSNES, saddle_solver
from fdgeom.forms import copy_into, simplify
from fdgeom.operations import EssentialValues
from fdgeom.systems.constrained.constraint import Constraint, RateConstraint


class VelocityProjection:
    """Changes a momentum (or velocity) by a multiplier, so that A(q) q̇ = 0."""

    def __init__(
        self,
        constraint: RateConstraint,
        conjugate: Function,
        *,
        momentum: Callable,
        velocity: Callable,
        fixed: Sequence[EssentialValues],
    ) -> None:
        self._conjugate = conjugate
        self._fixed = np.unique(np.concatenate([e.dofs for e in fixed] or [[]])).astype(int)
        (w, test), x, mu, unknown = _unknowns(conjugate, constraint)
        change = momentum(x, w) - momentum(conjugate, w) - constraint.slope(mu, w)
        zero = Function(conjugate.function_space())
        rest = tuple(EssentialValues(0, e.dofs, old=zero) for e in fixed)
        residual = simplify(change + constraint.slope(test, velocity(x)))
        self._solver = saddle_solver(residual, unknown, essential=rest, name="the projection")

    def apply(self) -> None:
        """Project."""
        # On all ranks, also those that hold nothing.
        self._conjugate.dat.data_with_halos.reshape(-1)[self._fixed] = 0.0
        _solve(self._solver, self._conjugate)


class Projection(VelocityProjection):
    """Moves q to the nearest configuration on the constraint, then the momentum onto its tangent."""

    def __init__(
        self,
        constraint: Constraint,
        conjugate: Function,
        pairing: Callable,
        *,
        fixed: Sequence[EssentialValues],
        **options: Callable,
    ) -> None:
        super().__init__(constraint, conjugate, fixed=fixed, **options)
        self._q = q = constraint.q
        held = tuple(EssentialValues(0, e.dofs, old=q, target=q) for e in fixed)
        (w, test), x, mu, unknown = _unknowns(q, constraint)
        work = constraint.slope(mu, w, at=x)
        residual = simplify(pairing(x - q, w) - work + constraint.value(test, at=x))
        self._to_place = saddle_solver(residual, unknown, essential=held, name="the projection")

    def apply(self) -> None:
        _solve(self._to_place, self._q)
        super().apply()


class MotionProjection:
    """Projection: M d = B(g)ᵀμ with Φ(g r(d)) = 0, then M(w - v) = B(g)ᵀμ with B(g) w = 0."""

    # So d is the least in dᵀMd, and the velocity's part against the constraint is dropped.
    def __init__(self, motion) -> None:
        self._motion = motion
        constraint, self._increment = motion.constraint, Function(motion.space)
        (test, nu), d, mu, place = _unknowns(motion.v, constraint)
        held = motion.inertia(test, d) - constraint.slope(mu, test)
        held += constraint.value(nu, motion.moved(d))
        self._to_place = saddle_solver(simplify(held), place, name="the projection")
        (test, nu), w, mu, velocity = _unknowns(motion.v, constraint)
        along = motion.inertia(test, w - motion.v) - constraint.slope(mu, test)
        along += constraint.slope(nu, w)
        self._to_velocity = saddle_solver(simplify(along), velocity, name="the projection")

    def apply(self) -> None:
        """Project."""
        self._increment.assign(0.0)
        _solve(self._to_place, self._increment)
        self._motion.displace(self._increment)
        _solve(self._to_velocity, self._motion.v)


def _unknowns(function: Function, constraint) -> tuple:
    """Test functions, symbols and the mixed Function of a new value and a multiplier."""
    space = function.function_space() * constraint.space
    unknown = Function(space)
    return TestFunctions(space), *split(unknown), unknown


def _solve(solver: HeldSNES, target: Function) -> None:
    """Solve from the value of a function, and set it; ``ValueError`` if there is no consistent state."""
    value, multiplier = solver.unknown.subfunctions
    copy_into(value, target)
    multiplier.dat.data_wo_with_halos[...] = 0.0
    try:
        solver.solve()
    except SolveFailed as failure:
        raise ValueError(
            f"project: no consistent state was found from this start: {failure}. Start nearer to "
            "the constraint, and check that its parts are independent and do not contradict"
        ) from failure
    copy_into(target, value)
