"""Projection of a motion's start onto its constraint, on a vector space or a Lie group."""

from firedrake import Function, TestFunctions, split

from fdgeom.forms import copy_into, simplify
from fdgeom.solvers import SaddleSNES, SolveFailed
from fdgeom.systems.motion.motion import Motion


class MotionProjection:
    """Projection: M d = B(g)ᵀμ with Φ(g r(d)) = 0, then M(w - v) = B(g)ᵀμ with B(g) w = 0."""

    # So d is the least in dᵀMd, and the velocity's part against the constraint is dropped.
    def __init__(self, motion: Motion) -> None:
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
        try:
            self._place.assign(0.0)
            self._to_place.solve()
            motion.displace(self._place.subfunctions[0])
            self._velocity.assign(0.0)
            self._to_velocity.solve()
        except SolveFailed as failure:
            raise ValueError(
                f"project: no consistent state was found from this start: {failure}. Start nearer "
                "to the constraint, and check that its parts do not contradict"
            ) from failure
        copy_into(motion.v, self._velocity.subfunctions[0])
