"""Ends and substeps of a beam, and a step of its nodes as loads see it, in strain and momentum."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import ufl
from firedrake import Function
from ufl.algorithms import expand_derivatives
from ufl.classes import Expr, Form

from fdgeom.beams.ends import HELD, GivenPose, Sliding, needed
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import NodalStep
from fdgeom.beams.rod.mean_directors import half_turn, mean_cayley
from fdgeom.beams.rod.variation import Pose
from fdgeom.data import largest
from fdgeom.execution import PointwiseUpdate
from fdgeom.lie import halves, join, quaternion, se3
from fdgeom.line import bounds, end_node
from fdgeom.messages import format_value
from fdgeom.operations import Map, Prescribed
from fdgeom.systems.poisson.stage import Substeps
from fdgeom.validation import evaluated

# Relative to the size of a motion: a start set from the same formula differs by round-off only.
_SAME = 1e-9
# Of the length, and in radians: steps move an end by its velocity, and leave it near the given pose.
_OTHER = 1e-2


class BracketEnd:
    """One end of a beam and its support as the user gave it; for steps on strain and momentum free,
    clamped, pinned, or with a given body velocity ζ.
    """

    # At a held end a stage of the momentum is the mean of the old and the new velocity, so that the
    # new velocity is met exactly. An end held in some directions of space is refused: its
    # conditions are not on components of ζ.
    def __init__(
        self, beam: BeamFields, name: str, kind: str | Sliding | GivenPose | Callable
    ) -> None:
        self.name, self.kind, self._beam = name, kind, beam
        velocity = _given_velocity(kind)
        prescribed = velocity is not None
        self._in_space = not prescribed and isinstance(kind, Sliding | GivenPose)
        known = prescribed or self._in_space or (isinstance(kind, str) and kind in HELD)
        if not known:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, HELD))}, fdgeom.Sliding, "
                f"fdgeom.GivenPose or a callable velocity(t), not {format_value(kind)}"
            )
        components = HELD["clamped" if prescribed else "free" if self._in_space else kind]
        self.held = np.array(components, dtype=int)
        space = beam.velocity.function_space()
        #: Local index of the end's node, if this rank has it and it is held.
        self.nodes = end_node(space, name) if components else np.array([], dtype=int)
        self._motion, self._rate = None, None
        if velocity is not None:
            t = ufl.variable(beam.time)
            self._motion, motion = (
                evaluated(name, velocity, (s,), 6, "velocity(t)") for s in (beam.time, t)
            )
            self._rate = expand_derivatives(ufl.diff(motion, t))
            self._given()  # a wrong function is refused when the beam is made

    def given_motion(self) -> tuple[Expr, ...]:
        """The expressions of its pose or velocity, if they are given in time."""
        if isinstance(self.kind, GivenPose):
            return tuple(part for part in self.kind.pose(self._beam.time) if part is not None)
        return () if self._motion is None else (self._motion,)

    @cached_property
    def _update(self) -> tuple[tuple[Function, ...], PointwiseUpdate]:
        space = self._beam.velocity.function_space()
        names = (f"{what} of the {self.name} end" for what in ("velocity", "acceleration"))
        v, a = (Function(space, name=name) for name in names)
        return (v, a), PointwiseUpdate({v: self._motion, a: self._rate})

    def _given(self) -> np.ndarray:
        """The velocity and its rate, (2, nodes of this rank, 6), at the beam's time."""
        if self._motion is None:
            return np.zeros((2, len(self.nodes), 6))
        functions, update = self._update
        update.apply()
        return np.array([f.dat.data_ro_with_halos[self.nodes] for f in functions])

    def prescribed(self, part: int, share: float) -> tuple[Prescribed, ...]:
        """Given values of a stage of the momentum here, at a share of the way from the old to the new
        velocity; ``part``: its index in the unknown.
        """
        if not len(self.held):
            return ()
        dofs = (6 * self.nodes[:, None] + self.held[None, :]).ravel()
        if self._motion is None and share == 1.0:
            return (Prescribed(dofs, part=part),)
        old = self._beam.velocity
        value, mean = Function(old.function_space(), name="prescribed"), (1 - share) * old
        if self._motion is not None:
            # Without a clock the motion is that at the end of the step.
            mean += share * self._motion
        return (Prescribed(dofs, value, part, [Map(values={value: mean})]),)

    def accelerations(self) -> np.ndarray:
        """The rate of the held components of the velocity, at the beam's time."""
        found = np.zeros(len(self.held))
        for rate in self._given()[1]:
            found[:] = rate[self.held]
        return found

    def check_start(self, *, stepped: bool) -> None:
        """Raise ``ValueError`` if the initial velocity or pose is not that of the end, or the end is held
        in a way that components of the body velocity do not express.
        """
        if self._in_space:
            raise ValueError(
                f"{self.name}: {self.kind!r} is a condition in space, which steppers on strain and "
                "momentum do not support; take a method in configuration form, clamp or pin the "
                "end, or give both position and orientation"
            )
        if not len(self.held):
            return
        velocity = self._beam.velocity.dat.data_ro_with_halos
        gap = (velocity[self.nodes] - self._given()[0])[:, self.held]
        worst = largest(self._beam.comm, gap / np.abs(velocity).max(initial=1.0))
        if isinstance(self.kind, GivenPose):
            self._check_pose(self.kind, _OTHER if stepped else _SAME)
        if not worst <= _SAME:
            kind = self.kind if isinstance(self.kind, str) else "prescribed"
            raise ValueError(
                f"momentum: the {self.name} end is {kind}, but the start has another velocity there "
                f"(off by {worst:.2g}); set the momentum at that node accordingly"
            )

    def _check_pose(self, given: GivenPose, bound: float) -> None:
        """Raise ``ValueError`` if the end is farther from the given pose than ``bound``."""
        beam = self._beam
        away, pose = Function(beam.velocity.function_space()), (beam.position, beam.orientation)
        increment, _, _ = needed(pose, given, quaternion.cay_inverse, beam.time)
        PointwiseUpdate({away: increment}).apply()
        first, last = bounds(beam.mesh)
        sizes = np.repeat([1.0, last - first], 3)
        # Half a turn away an increment is no number.
        if not largest(beam.comm, away.dat.data_ro_with_halos[self.nodes] / sizes) <= bound:
            raise ValueError(
                f"{self.name}: the end has a given pose, but starts elsewhere; put the beam where the "
                "given pose begins, as by reconstruct(position=..., orientation=...)"
            )


def _given_velocity(kind) -> Callable | None:
    """The body velocity as a function of time, if the end's motion is given altogether."""
    if isinstance(kind, GivenPose):
        return kind.body_velocity if len(kind.components) == 6 else None
    return kind if callable(kind) and not isinstance(kind, type) else None


class BeamSubsteps(Substeps):
    """The substeps of a beam: of its strain, of its momentum with the configuration, or of all."""

    def _chart(self, k: int, unknown: Expr):
        """The strain itself; for the momentum the body velocity, so that end conditions are nodal."""
        beam = self._system
        if k == 0:
            return unknown, beam.stress(unknown)
        return ufl.dot(beam.inertia, unknown), unknown

    def _prescribed(self, active, share):
        if 1 not in active:
            return ()
        part = tuple(active).index(1)
        return tuple(p for end in self._system.ends for p in end.prescribed(part, share))

    def frozen_gradient(self, k: int):
        return self._system.stress() if k == 0 else self._system.velocity

    def forcing(self, test, gradient, dt):
        """Work of the loads on a test of the momentum (body frame), over a step g⁰ → g⁰ cay(Δt ζ)."""
        beam = self._system
        if not beam.loads:
            return Form([])
        # A potential acts on the mean R̄ = ½(R⁰ + R¹) of the directors: since x¹ - x⁰ = Δt R̄ v, the
        # work on ζ is its exact change. Loads that turn with the section act at the orientation
        # halfway. Both are symmetric in time, so of second order.
        step = bracket_step((beam.position, beam.orientation), beam.time, test[1], gradient[1], dt)
        works = (load.density("mean_work", step) for load in beam.rod.loads)
        return beam.rod.cells.at_nodes(sum(works, ufl.as_ufl(0.0)))

    def start_values(self, stage):
        beam = self._system
        return {
            piece: beam.velocity if source is beam.momentum else source
            for piece, source in super().start_values(stage).items()
        }

    def companions(self, active, new, *, dt: Expr, configuration: str = "mean"):
        """Momentum, velocity and configuration after a substep of the momentum, g¹ = g⁰ cay(Δt ζ)
        with ζ of the old, the new or the mean momentum, equation (55).
        """
        if 1 not in active:
            return {}
        beam = self._system
        velocity = ufl.dot(beam.compliance_of_inertia, new[1])
        used = {
            "old": beam.velocity,
            "new": velocity,
            "mean": 0.5 * (beam.velocity + velocity),
        }[configuration]
        pose = se3.pose_compose((beam.position, beam.orientation), se3.pose_cay(dt * used))
        return {
            beam.momentum: new[1],
            beam.velocity: velocity,
            beam.position: pose[0],
            beam.orientation: quaternion.normalize(pose[1]),
        }


def bracket_step(start: Pose, time: Expr, test: Expr, velocity: Expr, dt: Expr) -> NodalStep:
    """A step of the nodes with a velocity in the body frame."""
    spin, linear = halves(velocity, "velocity")
    rotation, translation = halves(test, "test")
    (position, orientation), turn = start, dt * spin
    between = quaternion.product(orientation, quaternion.cay(half_turn(turn)))
    directors = ufl.dot(quaternion.matrix(orientation), mean_cayley(turn))
    drift = ufl.dot(directors, linear)

    def weight(inertia: Inertia, field: Expr) -> Expr:
        pull = join(ufl.zero(3), ufl.dot(field, directors))
        return ufl.dot(test, ufl.dot(inertia.matrix, pull))

    return NodalStep(
        old=start,
        new=(position + dt * drift, quaternion.product(orientation, quaternion.cay(turn))),
        middle=(position + 0.5 * dt * drift, between),
        velocity=join(spin, drift),
        time=time,
        virtual=join(rotation, ufl.dot(directors, translation)),
        following=join(rotation, quaternion.rotate(between, translation)),
        weight=weight,
    )
