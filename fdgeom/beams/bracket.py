"""A beam as a Poisson system: strain and momentum with their bracket."""

from functools import cached_property

from firedrake import Constant, TestFunction, dot, inner, split
from ufl.classes import Expr, Form

from fdgeom.beams.bracket_ends import BracketEnd
from fdgeom.beams.bracket_loads import check_for_bracket, load_forcing
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.turns import Turns
from fdgeom.beams.rod_of_beam import rod_of
from fdgeom.lie import quaternion, se3
from fdgeom.solvers import Number
from fdgeom.systems.poisson.poisson import PoissonSystem


class BeamBracket(BeamFields, PoissonSystem):
    """A beam as the steppers on strain and momentum move it, with its configuration:

        {f, h} = ∫ a·(β' + [γ+e, β]) - b·(α' + [γ+e, α]) ds + ∫ μ·[β, α] ds

    with (a, α) = δf/δz and (b, β) = δh/δz: Chen & Shi (2025), equations (41) and (50).
    """

    # Steps in configuration form never ask for them.
    forms_are_known = structure_is_known = True

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
        self._clock = Number(self.time)

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
        raise ValueError("system: the energy of a Beam cannot be exchanged; state a PoissonSystem")

    def chart(self, k: int, unknown: Expr):
        """The strain itself; for the momentum the body velocity, so that end conditions are nodal."""
        if k == 0:
            return unknown, self.stress(unknown)
        return dot(self.inertia, unknown), unknown

    def frozen_gradient(self, k: int):
        return self.stress(self.strain) if k == 0 else self.velocity

    def essential_values(self, active):
        if 1 not in active:
            return ()
        part = tuple(active).index(1)
        return tuple(e for end in self.bracket_ends for e in end.essential_values(part))

    def forcing(self, test, gradient, dt):
        return load_forcing(self, self.rod, test[1], gradient[1], dt) if self.loads else Form([])

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
        check_for_bracket(self, self.rod if self.loads else None)
        self.prepare()
        for end in self.bracket_ends:
            end.check_start()

    def set_time(self, t: float) -> None:
        self.time.assign(t)
        for end in self.bracket_ends:
            end.update()

    @property
    def clocks(self) -> tuple[Constant, ...]:
        return (self.time,)

    def set_clock(self, t: float) -> None:
        self._clock.set(t)

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
    def equations(self) -> dict[str, Form]:
        """None beside those of the class."""
        return {}

    def all_forms(self) -> tuple[Form | Expr, ...]:
        found = [*self.forms, *(e for end in self.bracket_ends for e in end.given_motion())]
        if self.degree == 1:  # else nothing moves it that has loads or damping
            pose, v = (self.position, self.orientation), self.velocity
            test = TestFunction(v.function_space())
            found += [self.rod.internal_work(pose, test, v), self.rod.external_work(pose, test, v)]
        return tuple(found)
