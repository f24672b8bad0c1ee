"""Methods that update the parts of a Poisson system one after another."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Unpack

from firedrake import Function

from fdgeom.identities import Identity, check_now
from fdgeom.operations import Flow, Operation
from fdgeom.steppers.stepper import Stepper, StepperOptions
from fdgeom.steppers.substep import MIDPOINT, TRAPEZOIDAL, Rule, substep
from fdgeom.systems.poisson.checks import pairing_is_apart
from fdgeom.systems.poisson.poisson import PoissonSystem
from fdgeom.validation import choice

CONFIGURATIONS = ("old", "new", "mean")


@dataclass(frozen=True)
class Turn:
    """One substep of a sweep: parts, rule, fraction, and an energy if not the system's."""

    active: tuple[int, ...]
    rule: Rule
    fraction: float = 1.0
    system: PoissonSystem | None = None


class SweepOptions(StepperOptions, total=False):
    """Keyword arguments of the constructors of all sweeps."""

    configuration: str | None


class Sweep(Stepper):
    """Base of the methods that update the parts of a state in turn, each by a rule."""

    moves = PoissonSystem
    needs = "a PoissonSystem (a bracket and an energy)"
    #: The momentum that moves the configuration, if the system has one.
    default_configuration: ClassVar[str] = "mean"

    def __init__(
        self,
        system,
        dt: float,
        *,
        configuration: str | None = None,
        **options: Unpack[StepperOptions],
    ) -> None:
        chosen = self.default_configuration if configuration is None else configuration
        self.configuration = choice("configuration", chosen, CONFIGURATIONS)
        #: Identities that the turns rely on, by the messages of errors.
        self._demands: dict[str, Identity] = {}
        super().__init__(system, dt, **options)

    @abstractmethod
    def turns(self) -> list[Turn]:
        """The turns of one step, in order."""

    def _setup(self) -> None:
        self.system.check_start()
        self._turns = self.turns()
        self._demands |= _demands_of_parts(self, self._turns)
        check_now(self._demands)

    def start(self, modified=None):
        check_now(self._demands)
        return super().start(modified)

    def flows(self):
        names = ["_".join(self.system.names[k] for k in turn.active) for turn in self._turns]
        single = len(set(names)) == 1
        made: dict[tuple, list[Operation]] = {}
        placed: dict[tuple, tuple[Operation, ...]] = {}
        #: Parts of unknowns whose guess is the result of the last solve.
        self._carried: list[Function] = []
        flows = []
        for name, turn in zip(names, self._turns, strict=True):
            key = (turn.active, turn.rule, id(turn.system))
            if key not in made:
                made[key], carried = substep(
                    turn.system or self.system,
                    turn.active,
                    turn.rule,
                    options=self.solve_options() if single else self.solve_options(name, names),
                    companions=self._companions(),
                )
                self._carried += carried
            # The times are those of the whole step.
            operations = placed.setdefault(
                (*key, turn.fraction),
                tuple(op.placed(at=op.at / turn.fraction) for op in made[key]),
            )
            flows.append(Flow(operations, turn.fraction))
        return flows

    def _companions(self) -> dict:
        return {"configuration": self.configuration} if hasattr(self.system, "position") else {}

    def parameters(self):
        return {"configuration": self.configuration}

    def functions(self):
        return {f"guess of the gradient {k}": f for k, f in enumerate(self._carried)}

    def uncomposable(self):
        if self._companions() and self.configuration != "mean":
            return (
                f"configuration: with {self.configuration!r} the poses are of order 1, whatever is "
                "composed; take 'mean'"
            )
        return None


def _demands_of_parts(stepper: Sweep, turns: list[Turn]) -> dict[str, Identity]:
    """Identities by which the pairing does not couple parts that move in turn."""
    system, found = stepper.system, {}
    for k in {k for turn in turns if len(turn.active) < len(system.parts) for k in turn.active}:
        if (identity := pairing_is_apart(system, k)) is not None:
            message = (
                f"system: {type(stepper).__name__} moves the parts of a state in turn, but the "
                f"pairing couples {system.names[k]!r} with another one; use ImplicitMidpoint"
            )
            found[message] = identity
    return found


def everything(system: PoissonSystem) -> tuple[int, ...]:
    """All parts of a state."""
    return tuple(range(len(system.parts)))


class PoissonIntegrator(Sweep):
    """Poisson integrator: each part by the implicit midpoint rule, the last part first.

    For a beam: the momentum with the old strain, then the strain with the new momentum,

        (μ¹ - μ⁰)/Δt = D₂γ⁰' - [γ⁰+e, D₂γ⁰]* + [ζ_m, μ_m]*,      ζ_m = D₁⁻¹μ_m, μ_m = (μ⁰+μ¹)/2,
        (γ¹ - γ⁰)/Δt = ζ¹' + [(γ⁰+γ¹)/2 + e, ζ¹],
        g¹ = g⁰ cay(Δt ζ),

    equations (53)-(55) of Chen & Shi, "A Poisson integrator for geometric exact beam" (2025). Each
    part's equations couple one node only, so a step costs about as much as an explicit one. The
    step is limited by the time that the fastest wave needs to cross a cell and, for thin beams, by
    the time that sound needs to cross the thickness.

    Parameters
    ----------
    system : PoissonSystem
        A system with a state of two parts, such as a :class:`Beam`; with one part this is the
        midpoint rule.
    dt : float
        Time step.
    configuration : {"old", "new", "mean"}, optional
        The momentum that moves a beam's configuration; "old" is that of the paper.
    solver_parameters, options_prefix
        PETSc options. Options of a single part go under its name: for a beam
        ``-<prefix>_momentum_snes_rtol``.
    """

    order = 1
    cites = ("ChenShi2025",)
    default_configuration = "old"

    def turns(self):
        return [Turn((k,), MIDPOINT) for k in reversed(range(len(self.system.parts)))]


class HamelFieldIntegrator(Sweep):
    """Hamel field integrator: as :class:`PoissonIntegrator`, with the trapezoidal mean.

    (μ¹ - μ⁰)/Δt = D₂γ⁰' - [γ⁰+e, D₂γ⁰]* + ½([ζ⁰, μ⁰]* + [ζ¹, μ¹]*), the baseline of Chen & Shi
    (2025), from their reference [9]. The unknown of a substep is the new value; a prescribed motion
    of an end is that at the new time.

    Parameters
    ----------
    system, dt, configuration, solver_parameters, options_prefix
        As for :class:`PoissonIntegrator`.
    """

    order = 1
    cites = ("WangAnShi2016", "ChenShi2025")
    default_configuration = "old"

    def turns(self):
        return [Turn((k,), TRAPEZOIDAL) for k in reversed(range(len(self.system.parts)))]


class SymmetricPoissonIntegrator(Sweep):
    """The substeps of :class:`PoissonIntegrator` in a symmetric order: half, whole, half.

    For a beam: half a step of the strain, a step of the momentum, half a step of the strain. Second
    order, at nearly the same cost, with the same limit of the step.

    Parameters
    ----------
    system, dt, configuration, solver_parameters, options_prefix
        As for :class:`PoissonIntegrator`; "mean" is the default of ``configuration``.
    """

    order = 2
    symmetric = True
    cites = ("ChenShi2025",)

    def turns(self):
        *others, last = range(len(self.system.parts))
        first = [Turn((k,), MIDPOINT, 0.5) for k in others]
        return [*first, Turn((last,), MIDPOINT), *reversed(first)]


class ImplicitMidpoint(Sweep):
    """Implicit midpoint rule for the whole state: z¹ = z⁰ + Δt X_h((z⁰+z¹)/2).

    Symplectic for constant brackets. It conserves every quadratic invariant of the flow, so the
    energy and the Casimirs if they are quadratic (beams of linear material, rigid bodies). For a
    bracket that is linear in the state it is not a Poisson map (Austin, Krishnaprasad & Wang, J.
    Comput. Phys. 107, 1993: almost Poisson, to second order). One coupled solve per step; the
    fastest wave does not limit the step.

    Parameters
    ----------
    system, dt, configuration, solver_parameters, options_prefix
        As for :class:`PoissonIntegrator`; "mean" is the default of ``configuration``.
    """

    order = 2
    symmetric = True
    symplectic = True
    conserves = ("quadratic energy", "quadratic Casimirs")
    cites = ("AustinKrishnaprasadWang1993",)

    def turns(self):
        return [Turn(everything(self.system), MIDPOINT)]
