"""A beam as a Poisson system: strain and momentum with their bracket, its ends, loads over a step."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import ufl
from firedrake import Constant, Function, TestFunction, dot, inner, split
from mpi4py import MPI
from ufl.algorithms import expand_derivatives
from ufl.classes import Expr, Form
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.beams.ends import HELD, GivenPose, Sliding
from fdgeom.beams.fields import BeamFields, End
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import NodalStep
from fdgeom.beams.rod.mean_directors import mean_cayley
from fdgeom.beams.rod.output import RodSystem
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.turns import Turns
from fdgeom.beams.rod.variation import Pose
from fdgeom.beams.rod_of_beam import rod_of
from fdgeom.data import Number
from fdgeom.execution import PointwiseUpdate
from fdgeom.lie import halves, join, quaternion, se3
from fdgeom.line import end_node
from fdgeom.messages import format_value, reported_as
from fdgeom.operations import EssentialValues
from fdgeom.systems.poisson.poisson import PoissonSystem


class BracketEnd:
    """One end of a beam in this form: free, clamped, pinned, or with a given body velocity ζ."""

    # At a held end a stage of the momentum is the mean of the old and the new velocity, so that the
    # new velocity is met exactly. An end held in some directions of space is refused: its
    # conditions are not on components of ζ.
    def __init__(self, beam: BeamFields, end: End) -> None:
        self.name, self.kind = name, kind = end.name, end.kind
        velocity = _given_velocity(kind)
        self._in_space = velocity is None and isinstance(kind, Sliding | GivenPose)
        prescribed = velocity is not None
        known = prescribed or self._in_space or (isinstance(kind, str) and kind in HELD)
        if not known:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, HELD))}, fdgeom.Sliding, "
                f"fdgeom.GivenPose or a callable velocity(t), not {format_value(kind)}"
            )
        components = HELD["clamped" if prescribed else "free" if self._in_space else kind]
        self.held = np.array(components, dtype=int)
        self._beam = beam
        #: Local index of the end's node, if this rank has it and it is held.
        self.nodes = np.array([], dtype=int)
        self._target, self._motion, self._update, self._rate = None, None, None, None
        if len(components) or self._in_space:
            self.nodes = end_node(beam.velocity.function_space(), name)
        if prescribed:
            self._target, rate = (
                Function(beam.velocity.function_space(), name=f"{what} of the {name} end")
                for what in ("velocity", "acceleration")
            )
            t = ufl.variable(beam.time)
            slope = expand_derivatives(ufl.diff(_velocity(name, velocity, t), t))
            self._motion = _velocity(name, velocity, beam.time)
            self._update = PointwiseUpdate({self._target: self._motion})
            self._rate = rate, PointwiseUpdate({rate: slope})

    def given_motion(self) -> tuple[Expr, ...]:
        """The expressions of its pose or velocity, if they are given in time."""
        if isinstance(self.kind, GivenPose):
            return tuple(part for part in self.kind.pose(self._beam.time) if part is not None)
        return () if self._motion is None else (self._motion,)

    def update(self) -> None:
        """Evaluate a prescribed motion at the beam's time."""
        if self._update is not None:
            self._update.apply()

    def essential_values(self, part: int) -> tuple[EssentialValues, ...]:
        """Given values of a stage of the momentum here; ``part``: its index in the unknown."""
        if not len(self.held):
            return ()
        dofs = (6 * self.nodes[:, None] + self.held[None, :]).ravel()
        made = EssentialValues(
            part, dofs, old=self._beam.velocity, target=self._target, motion=self._motion
        )
        return (made,)

    def accelerations(self) -> np.ndarray:
        """The rate of the held components of the velocity, at the beam's time."""
        if self._rate is None:
            return np.zeros(len(self.held))
        rate, update = self._rate
        update.apply()
        values = rate.dat.data_ro_with_halos[self.nodes]
        return values[0, self.held] if len(values) else np.zeros(len(self.held))

    def check_start(self) -> None:
        """Raise ``ValueError`` if the initial velocity is not that of the end, or the end is held
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
        self.update()
        velocity = self._beam.velocity.dat.data_ro_with_halos
        wanted = 0.0 if self._target is None else self._target.dat.data_ro_with_halos[self.nodes]
        gap = np.abs(velocity[self.nodes] - wanted)[:, self.held].max(initial=0.0)
        scale = np.abs(velocity).max(initial=1.0)
        worst = self._beam.comm.allreduce(gap / scale, op=MPI.MAX)
        # A start set from the same formula differs by round-off only.
        if worst > 1e-9:
            kind = self.kind if isinstance(self.kind, str) else "prescribed"
            raise ValueError(
                f"momentum: the {self.name} end is {kind}, but the start has another velocity there "
                f"(off by {worst:.2g}); set the momentum at that node accordingly"
            )


def _given_velocity(kind) -> Callable | None:
    """The body velocity as a function of time, if the end's motion is given altogether."""
    if isinstance(kind, GivenPose):
        return kind.body_velocity if len(kind.components) == 6 else None
    return kind if callable(kind) and not isinstance(kind, type) else None


def _velocity(name: str, velocity: Callable, time) -> Expr:
    with reported_as(f"{name}: velocity(t) must give a UFL vector of 6"):
        expression = ufl.as_ufl(velocity(time))
    if expression.ufl_shape != (6,):
        raise ValueError(f"{name}: velocity(t) must give a vector of 6, not {expression.ufl_shape}")
    return expression


class BeamBracket(BeamFields, RodSystem, PoissonSystem):
    """A beam as the steppers on strain and momentum move it, with its configuration:

        {f, h} = ∫ a·(β' + [γ+e, β]) - b·(α' + [γ+e, α]) ds + ∫ μ·[β, α] ds

    with (a, α) = δf/δz and (b, β) = δh/δz: Chen & Shi (2025), equations (41) and (50).

    For authors: ``consistency``, ``at_nodes``, ``bracket_ends``, ``chain``,
    ``compliance_of_inertia``, ``elastic_strain``, ``ends``, ``in_measure``, ``inertia``,
    ``inside``, ``kinetic``, ``numbers_of_inertia``, ``potential``, ``rod``, ``sampled_law``,
    ``shaped``, ``stiffness``, ``tangent``, ``time``.
    """

    # Steps in configuration form never ask for them.
    _forms_are_known = _structure_is_known = True

    def __init__(self, mesh, section, **options) -> None:
        BeamFields.__init__(self, mesh, section, **options)
        #: The supports of the ends in this form.
        self.bracket_ends = tuple(BracketEnd(self, end) for end in self.ends)
        PoissonSystem.__init__(
            self,
            self.state,
            energy=lambda: self._energy_of(*split(self.state)),
            bracket=self._beam_bracket,
            pairing=self._beam_pairing,
            names=("strain", "momentum"),
        )

    @cached_property
    def rod(self) -> Rod:
        """The configuration form; ``ValueError`` if the degree is not 1 or a load has no place."""
        return rod_of(self)

    @cached_property
    def turns(self) -> Turns:
        return Turns(self.orientation)

    # --- forms -------------------------------------------------------------------------------------
    def _energy_of(self, strain: Expr, momentum: Expr) -> Form:
        return self.kinetic(momentum) + self.potential(strain)

    def _beam_pairing(self, a, b) -> Form:
        (a_strain, a_momentum), (b_strain, b_momentum) = split(a), split(b)
        return self.inside(inner(a_strain, b_strain)) + self.at_nodes(inner(a_momentum, b_momentum))

    def _beam_bracket(self, a, b) -> Form:
        (a, alpha), (b, beta) = split(a), split(b)
        strain, momentum = split(self.state)
        frame = strain + self.tangent
        coupling = inner(a, beta.dx(0) + se3.bracket(frame, beta)) - inner(
            b, alpha.dx(0) + se3.bracket(frame, alpha)
        )
        return self.inside(coupling) + self.at_nodes(inner(momentum, se3.bracket(beta, alpha)))

    # --- how the steppers see it -------------------------------------------------------------------
    def gradient(self, state, auxiliary=()):
        strain, momentum = state
        return self.stress(strain), dot(self.compliance_of_inertia, momentum)

    def with_energy(self, energy):
        raise ValueError("system: the energy of a Beam cannot be replaced; state a PoissonSystem")

    def _chart(self, k: int, unknown: Expr):
        """The strain itself; for the momentum the body velocity, so that end conditions are nodal."""
        if k == 0:
            return unknown, self.stress(unknown)
        return dot(self.inertia, unknown), unknown

    def frozen_gradient(self, k: int):
        return self.stress(self.strain) if k == 0 else self.velocity

    def _essential_values(self, active):
        if 1 not in active:
            return ()
        part = tuple(active).index(1)
        return tuple(e for end in self.bracket_ends for e in end.essential_values(part))

    def forcing(self, test, gradient, dt):
        """Work of the loads on a test of the momentum (body frame), over a step g⁰ → g⁰ cay(Δt ζ)."""
        if not self.loads:
            return Form([])
        # A potential acts on the mean R̄ = ½(R⁰ + R¹) of the directors: since x¹ - x⁰ = Δt R̄ v, the
        # work on ζ is its exact change. Loads that turn with the section act at the orientation
        # halfway. Both are symmetric in time, so of second order.
        step = _step((self.position, self.orientation), self.time, test[1], gradient[1], dt)
        works = (load.density("mean_work", step) for load in self.rod.loads)
        return self.rod.cells.at_nodes(sum(works, ufl.as_ufl(0.0)))

    def start_values(self, stage):
        return {
            piece: self.velocity if source is self.momentum else source
            for piece, source in super().start_values(stage).items()
        }

    def check_start(self) -> None:
        """Raise ``ValueError`` if a field is not finite, the start contradicts a held end, or the
        beam has damping, loads in time or ends that need the configuration form.
        """
        self.check_state()
        self._refuse_damping_and_time()
        self.prepare()
        for load in self.loads:
            load.check_start(self)
        for end in self.bracket_ends:
            end.check_start()

    def _refuse_damping_and_time(self) -> None:
        """Raise ``ValueError`` for damping, or for a load that depends on time, which a step on
        strain and momentum would not evaluate at the right time.
        """
        if self.damping is not None:
            raise ValueError(
                "damping: steppers on strain and momentum do not support it (their bracket is "
                "antisymmetric); take a method in configuration form, such as GeneralizedAlpha"
            )
        pose, probe = (self.position, self.orientation), ufl.as_vector([1.0] * 6)
        for applied in self.rod.loads if self.loads else ():
            work = applied.density("work", pose, probe, self.time, probe)
            if any(part is self.time for part in unique_pre_traversal(work)):
                raise ValueError(
                    f"{applied.load!r} depends on the time, and steppers on strain and momentum "
                    "evaluate it at the end of a step only; change a Constant between steps, or "
                    "take GeneralizedAlpha"
                )

    def set_time(self, t: float) -> None:
        self._now.set(t)
        for end in self.bracket_ends:
            end.update()

    @cached_property
    def _now(self) -> Number:
        return Number(self.time)

    @property
    def clocks(self) -> tuple[Constant, ...]:
        return (self.time,)

    def companions(self, active, new, *, dt: Expr, configuration: str = "mean"):
        """Momentum, velocity and configuration after a substep of the momentum, g¹ = g⁰ cay(Δt ζ)
        with ζ of the old, the new or the mean momentum, equation (55).
        """
        if 1 not in active:
            return {}
        velocity = dot(self.compliance_of_inertia, new[1])
        used = {
            "old": self.velocity,
            "new": velocity,
            "mean": 0.5 * (self.velocity + velocity),
        }[configuration]
        pose = se3.pose_compose((self.position, self.orientation), se3.pose_cay(dt * used))
        return {
            self.momentum: new[1],
            self.velocity: velocity,
            self.position: pose[0],
            self.orientation: quaternion.normalize(pose[1]),
        }

    # --- as a system -------------------------------------------------------------------------------
    def all_forms(self) -> tuple[Form | Expr, ...]:
        found = [*self.forms, *(e for end in self.bracket_ends for e in end.given_motion())]
        if self.degree == 1:  # else nothing moves it that has loads or damping
            pose, v = (self.position, self.orientation), self.velocity
            test = TestFunction(v.function_space())
            found += [self.rod.internal_work(pose, test, v), self.rod.external_work(pose, test, v)]
        return tuple(found)


def _step(start: Pose, time: Expr, test: Expr, velocity: Expr, dt: Expr) -> NodalStep:
    """A step of the nodes with a velocity in the body frame."""
    spin, linear = halves(velocity, "velocity")
    rotation, translation = halves(test, "test")
    (position, orientation), turn = start, dt * spin
    half = 0.5 * turn
    # The quaternion of cay(2 half) is (1, half) / n with n² = 1 + |half|²; its root follows from
    # 1 + cos: (n + 1, half) / sqrt(2 n (n + 1)).
    n = ufl.sqrt(1 + ufl.dot(half, half))
    root = ufl.as_vector([n + 1, *half]) / ufl.sqrt(2 * n * (n + 1))
    between = quaternion.product(orientation, root)
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
