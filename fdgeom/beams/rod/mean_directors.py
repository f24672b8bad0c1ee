"""A step of rods with mean directors, for exact balances of energy and momenta.

Strains that are quadratic in positions and directors change over a step by their derivative at the
mean of its two ends. So a stress that does work on that derivative changes the elastic energy by
exactly this work; and since the derivative vanishes for rigid motions, no total momentum changes.
"""

from typing import Any

import ufl
from ufl.classes import Expr, Form

from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import NodalStep
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.variation import rate
from fdgeom.lie import halves, join, quaternion, so3
from fdgeom.lie.groups import R3xSO3

_GROUP = R3xSO3.by("cay")


class MeanStep:
    """UFL of a step of rods by an increment D = (θ, Δx), the Cayley vector of the rotation in the
    body frame and the translation in space.
    """

    # `configuration` (position, unit quaternion) and `velocity` are those at the start. Velocities
    # are (angular in the body frame, linear in the space frame), test functions all in the space
    # frame. `separate`: all inertias are separate, and the mean of the velocities in space is that
    # of the step; else it is the mean of those in the body frame, g¹ = g⁰ cay(Δt ζ) on SE(3).
    # `given`: 1 where rotation or translation of a node are prescribed, else 0 (6), and the
    # velocity there at the end; an inertia that is not separate couples it to the free components.
    # `old` and `directors` (3×3, in columns): the directors at the start, and their mean over the
    # step.
    def __init__(
        self,
        configuration,
        velocity: Expr,
        increment: Expr,
        dt: Expr,
        separate: bool,
        given: tuple[Expr, Expr] | None = None,
    ) -> None:
        self.dt, self._separate, self._given = dt, separate, given
        self._position, self._orientation = configuration
        self._velocity, self._increment = velocity, increment
        self._rotation, self._shift = halves(increment, "increment")
        self.old = quaternion.matrix(self._orientation)
        self.directors = ufl.dot(self.old, mean_cayley(self._rotation))

    # --- works of the step, times Δt ---------------------------------------------------------------
    def inertial(self, inertia: Inertia, test: Expr) -> Expr:
        """Change of the momenta, times the test, per length at a node."""
        eta, shift = halves(test, "test")
        turned = self._new
        if self._separate:
            spin, linear = halves(self._velocity, "velocity")
            J = inertia.spin
            after = ufl.dot(turned, ufl.dot(J, 2 * self._rotation / self.dt - spin))
            change = after - ufl.dot(self.old, ufl.dot(J, spin))
            push = inertia.mass * 2 * (self._shift / self.dt - linear)
            return ufl.dot(change, eta) + ufl.dot(push, shift)
        m0, n0 = halves(ufl.dot(inertia.matrix, self._body_velocity), "momentum")
        m1, n1 = halves(ufl.dot(inertia.matrix, self._new_body_velocity), "momentum")
        before, after = ufl.dot(self.old, n0), ufl.dot(turned, n1)
        change = ufl.dot(turned, m1) - ufl.dot(self.old, m0)
        change += 0.5 * ufl.cross(self._shift, before + after)
        return ufl.dot(change, eta) + ufl.dot(after - before, shift)

    def internal(self, rod: Rod, test: Expr) -> Form:
        """Δt ∫ σ·δε ds, with the mean stress of the law and that of the rate of strain over the
        step; the law's does the work ψ(ε¹) - ψ(ε⁰)."""
        cells, h = rod.cells, rod.cells.length
        (P, Q), (old_P, old_Q) = cells.ends(self.directors), cells.ends(self.old)
        slope, stretch = (_slope(cells, x) for x in (self._position, self._shift))
        old = _strain(old_P, old_Q, slope, h)
        new = _strain(2 * P - old_P, 2 * Q - old_Q, slope + stretch, h)
        rest = rod.tangent if rod.reference is None else rod.tangent + rod.reference
        stress = self.dt * rod.law.mean_stress(old - rest, new - rest, rod.stiffness)
        if rod.viscosity is not None:
            stress += ufl.dot(rod.viscosity, new - old)
        moment, force = halves(stress, "stress")
        (a, b), (u, v) = (cells.ends(part) for part in halves(test, "test"))
        # The derivative of the strain along the test, at the mean.
        tangent = slope + 0.5 * stretch
        curving = 0.5 * sum(
            moment[k] * (ufl.cross(P[:, i], Q[:, j]) + ufl.cross(Q[:, i], P[:, j]))
            for k, i, j in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        )
        first, second = 0.5 * ufl.dot(P, force), 0.5 * ufl.dot(Q, force)
        work = ufl.dot(curving, b - a) / h + ufl.dot(first + second, v - u) / h
        work += ufl.dot(ufl.cross(first, tangent), a) + ufl.dot(ufl.cross(second, tangent), b)
        return cells.sum(work)

    def external(self, rod: Rod, test: Expr) -> Expr:
        """Δt times the work of the loads per length at a node, exact for constant potentials."""
        step = self.nodal(rod.time, test)
        works = (load.density("mean_work", step) for load in rod.loads)
        return self.dt * sum(works, ufl.as_ufl(0.0))

    def nodal(self, time: Expr, test: Expr) -> NodalStep:
        """The step as loads see it, with a virtual displacement in space."""
        middle = _GROUP.turned(self._orientation, half_turn(self._rotation))
        eta, shift = halves(test, "test")
        virtual = join(quaternion.rotate_inverse(middle, eta), shift)
        return NodalStep(
            old=(self._position, self._orientation),
            new=self.configuration,
            middle=(self._position + 0.5 * self._shift, middle),
            velocity=self._increment / self.dt,
            time=time,
            virtual=virtual,
            following=virtual,
            weight=lambda inertia, field: self._weight(inertia, field, eta, shift),
        )

    # --- joints ------------------------------------------------------------------------------------
    def joint_work(self, joints: Any, multiplier: Any, test: Expr) -> Form:
        """Δλ·DΦ along the test at the mean, so that no energy comes in while Φ stays zero."""
        cells = Cells(joints.space.mesh())
        x, R = cells.ends(self._position + 0.5 * self._shift), cells.ends(self.directors)
        eta, shift = (cells.ends(part) for part in halves(test, "test"))

        def moved(s: Expr) -> Expr:
            sides = [
                (x[k] + s * shift[k], R[k] + s * ufl.dot(so3.hat(eta[k]), R[k])) for k in range(2)
            ]
            return joints.constraints(*sides)

        return joints.sum(ufl.dot(joints.at_cell(multiplier), rate(moved)))

    def joint_value(self, joints: Any, nu: Any) -> Form:
        """ν·Φ at the end of the step."""
        cells = Cells(joints.space.mesh())
        x = cells.ends(self._position + self._shift)
        R = cells.ends(2 * self.directors - self.old)
        sides = tuple(zip(x, R, strict=True))
        return joints.sum(ufl.dot(joints.at_cell(nu), joints.constraints(*sides)))

    def _weight(self, inertia: Inertia, field: Expr, eta: Expr, shift: Expr) -> Expr:
        work = inertia.mass * ufl.dot(field, shift)
        if not inertia.separate:
            offset = ufl.dot(self.directors, inertia.offset_moment)
            work += ufl.dot(eta, ufl.cross(offset, field))
            # What is left of M g, in the body frame, where the inertia is not one of masses.
            pull, turn, moved = (ufl.dot(part, self.directors) for part in (field, eta, shift))
            spin, linear = inertia.beside_masses()
            work += ufl.dot(turn, ufl.dot(spin, pull)) + ufl.dot(moved, ufl.dot(linear, pull))
        return work

    # --- where the step goes -----------------------------------------------------------------------
    @property
    def configuration(self) -> tuple[Expr, Expr]:
        """Position and unit quaternion at the end."""
        return _GROUP.retract((self._position, self._orientation), self._increment)

    @property
    def velocity(self) -> Expr:
        """The velocity at the end: its mean with the one at the start is that of the step."""
        if self._separate:
            return 2 * self._increment / self.dt - self._velocity
        spin, linear = halves(self._new_body_velocity, "velocity")
        return join(spin, quaternion.rotate(self.configuration[1], linear))

    @property
    def _new(self) -> Expr:
        """The directors at the end."""
        return ufl.dot(self.old, so3.cay(self._rotation))

    @property
    def _body_velocity(self) -> Expr:
        spin, linear = halves(self._velocity, "velocity")
        return join(spin, ufl.dot(ufl.transpose(self.old), linear))

    @property
    def _new_body_velocity(self) -> Expr:
        seen = ufl.dot(ufl.transpose(self.old), self._shift)
        mean = join(self._rotation, seen - 0.5 * ufl.cross(self._rotation, seen))
        new = 2 * mean / self.dt - self._body_velocity
        if self._given is None:
            return new
        where, what = self._given
        (spin, linear), (given_spin, given_linear) = halves(new, "new"), halves(what, "given")
        turned = ufl.dot(ufl.transpose(self._new), given_linear)
        return join(spin + where[0] * (given_spin - spin), linear + where[3] * (turned - linear))


def _strain(P: Expr, Q: Expr, tangent: Expr, length: Expr) -> Expr:
    """The measure "directors" from the directors (3×3) of the two ends and (x_B - x_A)/h."""
    curvature = so3.vee(ufl.dot(ufl.transpose(P), Q)) / length
    return join(curvature, 0.5 * ufl.dot(ufl.transpose(P + Q), tangent))


def _slope(cells, value: Expr) -> Expr:
    """Difference of a nodal field over a cell, by its length."""
    first, last = cells.ends(value)
    return (last - first) / cells.length


def mean_cayley(w: Expr) -> Expr:
    """½(1 + cay(w)) = (1 - ŵ/2)⁻¹ (3×3)."""
    return 0.5 * (ufl.Identity(3) + so3.cay(w))


def half_turn(w: Expr) -> Expr:
    """Cayley vector of half the rotation of cay(w): tan(φ/4) from tan(φ/2) = |w|/2."""
    return w / (1 + ufl.sqrt(1 + 0.25 * ufl.dot(w, w)))
