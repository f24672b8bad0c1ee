"""Methods that update the parts of a Poisson system one after another."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Unpack

from firedrake import Constant, Form, Function
from ufl.algorithms import replace
from ufl.core.expr import Expr

from fdgeom.execution import plain
from fdgeom.execution.options import SolveOptions
from fdgeom.forms import flatten
from fdgeom.identities import Identity, check_now, of_numbers
from fdgeom.operations import Flow, Operation, Solve, with_assignments
from fdgeom.steppers.stepper import Stepper, StepperOptions
from fdgeom.systems.poisson.checks import pairing_is_apart
from fdgeom.systems.poisson.poisson import PoissonSystem
from fdgeom.systems.poisson.stage import Stage
from fdgeom.validation import choice, instance

CONFIGURATIONS = ("old", "new", "mean")


@dataclass(frozen=True)
class Rule:
    """A rule for a substep: its residual, and ``reach`` in new = old + reach (stage - old), 2 where
    the stage is the mean of the two, 1 where it is the new value.
    """

    residual: Callable[[PoissonSystem, Stage, Expr], Form]
    reach: float
    #: Whether the stage takes a pointwise δh/δz where there is one.
    pointwise: bool = True


def _change(system: PoissonSystem, stage: Stage) -> tuple[Expr, ...]:
    return tuple(new - old for new, old in zip(stage.state, system.parts, strict=True))


def defining(system: PoissonSystem, stage: Stage) -> Form:
    """The equations of the unknowns of a stage beside the state: ⟨b, w⟩ = dh(z)[w] where the
    gradient b is one, and the conditions of auxiliary functions.
    """
    if stage.gradient_test is None:
        return stage.conditions
    w = stage.gradient_test
    slope = system.forms.energy_derivative(w, stage.state, stage.auxiliary)
    return system.pairing(w, stage.gradient, at=stage.state) - slope + stage.conditions


def _midpoint(system, stage, dt):
    # The stage is the midpoint: ⟨w, z_m - z⁰⟩ = Δt/2 {w, h}(z_m).
    flow = system.bracket(stage.test, stage.gradient, at=stage.state)
    flow += system.substeps.forcing(stage.test, stage.gradient, dt)
    return (
        system.pairing(stage.test, _change(system, stage), at=stage.state)
        - 0.5 * dt * flow
        + defining(system, stage)
    )


def _trapezoidal(system, stage, dt):
    # The stage is the new value: ⟨w, z¹ - z⁰⟩ = Δt/2 ({w, h}(z¹) + {w, h}(z⁰)).
    if stage.auxiliary:
        raise ValueError(
            "system: the trapezoidal rule does not treat auxiliary functions; take ImplicitMidpoint"
        )
    if stage.gradient_test is not None:
        raise ValueError("system: the trapezoidal rule needs a pointwise variational derivative")
    present = [system.substeps.frozen_gradient(k) for k in range(len(system.parts))]
    if any(b is None for b in present):
        known = system.gradient(system.parts)
        present = [g if b is None else b for b, g in zip(present, known, strict=True)]
    new = system.bracket(stage.test, stage.gradient, at=stage.state)
    old = system.bracket(stage.test, tuple(present))
    middle = tuple((a + b) / 2 for a, b in zip(stage.gradient, present, strict=True))
    old += 2 * system.substeps.forcing(stage.test, middle, dt)
    mean = tuple((a + b) / 2 for a, b in zip(system.parts, stage.state, strict=True))
    change = system.pairing(stage.test, _change(system, stage), at=mean)
    return change - 0.5 * dt * (new + old)


#: Implicit midpoint.
MIDPOINT = Rule(_midpoint, reach=2.0)
#: Trapezoidal mean of the flow.
TRAPEZOIDAL = Rule(_trapezoidal, reach=1.0)


def substep(
    system: PoissonSystem,
    active: Sequence[int],
    rule: Rule,
    *,
    options: SolveOptions,
    companions: Mapping,
) -> tuple[list[Operation], list[Function]]:
    """One implicit step of the parts ``active`` of a Poisson system, by a rule, and the parts of its
    unknown whose guess is the result of the last solve; ``companions`` are options of
    ``system.substeps.companions``.
    """
    dt = Constant(0.0, name="dt")
    stage = system.substeps.stage(active, rule.pointwise, reach=rule.reach)
    # Symmetric, so that methods of second order stay so where coefficients change in time.
    timed = {"dt": dt, "clock": system.model.clocks or None, "at": 0.5}
    solve = Solve(
        work=rule.residual(system, stage, dt),
        unknown=stage.unknown,
        prescribed=stage.prescribed,
        options=options,
        numerics=plain,
        name=" and ".join(system.names[k] for k in active),
        **timed,
    )
    guess = system.substeps.start_values(stage)
    groups = _assignments(system, stage, rule.reach, dt, companions)
    guessed = {id(part) for f in guess for part in f.subfunctions}
    carried = [f for f in stage.unknown.subfunctions if id(f) not in guessed]
    before = [op for given in stage.prescribed for op in given.before]
    return [*before, *with_assignments(solve, groups, guess=guess)], carried


def _assignments(system, stage, reach: float, dt, companions) -> list[dict[Function, Expr]]:
    """Assignments after the solve: the new parts, and the fields that move with them."""
    pieces = stage.unknown.subfunctions if len(stage.unknown.function_space()) > 1 else ()
    plain = {stage.unknown: flatten(pieces)} if pieces else {}
    new = {}
    for k in stage.active:
        old = system.parts[k]
        new[k] = old + reach * (replace(stage.state[k], plain) - old)
    followers = system.substeps.companions(stage.active, new, dt=dt, **companions)
    groups = [
        {system.parts[k]: value} for k, value in new.items() if system.parts[k] not in followers
    ]
    return [*groups, followers] if followers else groups


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
    _default_configuration: ClassVar[str] = "mean"

    def __init__(
        self,
        system,
        dt: float,
        *,
        configuration: str | None = None,
        **options: Unpack[StepperOptions],
    ) -> None:
        chosen = self._default_configuration if configuration is None else configuration
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
        if self._companions() and self.configuration != "mean":
            self.order, self.symmetric = 1, False

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
    t0, solver_parameters, options_prefix, compiled
        As for every :class:`Stepper`. Options of a single part go under its name: for a beam
        ``-<prefix>_momentum_snes_rtol``.

    Raises
    ------
    TypeError, ValueError
        As for every :class:`Stepper`; also if the pairing couples parts that move in turn.
    """

    order = 1
    cites = ("ChenShi2025",)
    _default_configuration = "old"

    def turns(self):
        return [Turn((k,), MIDPOINT) for k in reversed(range(len(self.system.parts)))]


class HamelFieldIntegrator(Sweep):
    """Hamel field integrator: as :class:`PoissonIntegrator`, with the trapezoidal mean.

    (μ¹ - μ⁰)/Δt = D₂γ⁰' - [γ⁰+e, D₂γ⁰]* + ½([ζ⁰, μ⁰]* + [ζ¹, μ¹]*), the baseline of Chen & Shi
    (2025), from their reference [9]. The unknown of a substep is the new value; a prescribed motion
    of an end is that at the new time.

    Parameters
    ----------
    system, dt, configuration, t0, solver_parameters, options_prefix, compiled
        As for :class:`PoissonIntegrator`, with its errors; also ``ValueError`` if the variational
        derivative is not pointwise.
    """

    order = 1
    cites = ("WangAnShi2016", "ChenShi2025")
    _default_configuration = "old"

    def turns(self):
        return [Turn((k,), TRAPEZOIDAL) for k in reversed(range(len(self.system.parts)))]


class SymmetricPoissonIntegrator(Sweep):
    """The substeps of :class:`PoissonIntegrator` in a symmetric order: half, whole, half.

    For a beam: half a step of the strain, a step of the momentum, half a step of the strain. Second
    order, at nearly the same cost, with the same limit of the step.

    Parameters
    ----------
    system, dt, configuration, t0, solver_parameters, options_prefix, compiled
        As for :class:`PoissonIntegrator`, with its errors; ``configuration`` is "mean" by default.
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
    system, dt, configuration, t0, solver_parameters, options_prefix, compiled
        As for :class:`PoissonIntegrator`, but the pairing may couple the parts, and "mean" is the
        default of ``configuration``.
    """

    order = 2
    symmetric = True
    symplectic = True
    conserves = ("quadratic energy", "quadratic Casimirs")
    cites = ("AustinKrishnaprasadWang1993",)

    def turns(self):
        return [Turn(everything(self.system), MIDPOINT)]


# Energies that are all zero are no quotient of zeros.
_TINY = 1e-300
_NO_SUM = (
    "energies must sum to the energy of the system, at every state and for the values that coefficients "
    "have now: they are off by {:.2g} of their size"
)


class Splitting(Sweep):
    """Splits h = h₁ + ... + h_n and composes the flows of the h_i, each by the midpoint rule.

    Strang's symmetric order: half a step with h₁ ... h_{n-1}, a step with h_n, and back. If the
    midpoint rule is a Poisson map for each flow, so is the splitting: for the free rigid body with
    h_i = y_i²/(2I_i) each flow is a rotation about a fixed axis, and the method is a Poisson map on
    so(3)* that conserves the Casimir (McLachlan, Phys. Rev. Lett. 71, 1993; Reich 1994). For
    constant brackets it is symplectic.

    Parameters
    ----------
    system : PoissonSystem
        The system to integrate.
    dt : float
        Time step.
    energies : sequence of UFL functionals
        The parts h_i, at least two; ``ValueError`` if their sum is not the system's energy.
    configuration, t0, solver_parameters, options_prefix, compiled
        As for :class:`ImplicitMidpoint`, with its errors.
    """

    needs = "a PoissonSystem"
    order = 2
    symmetric = True
    symplectic = True
    conserves = ("quadratic Casimirs",)
    cites = ("McLachlan1993",)

    def __init__(
        self, system, dt: float, *, energies: Sequence[Form], **options: Unpack[SweepOptions]
    ) -> None:
        instance("energies", energies, tuple | list, "a list of functionals")
        self.energies = tuple(energies)
        super().__init__(system, dt, **options)

    def _setup(self) -> None:
        if len(self.energies) < 2:
            raise ValueError("energies must be two functionals or more, that sum to the energy")
        self._pieces = [self.system.substeps.with_energy(h) for h in self.energies]
        self._demands[_NO_SUM] = self._identity_of_sums()
        super()._setup()

    def _identity_of_sums(self) -> Identity:
        """The identity of the energy and the sum of its parts."""
        forms = [system.energy_form() for system in (self.system, *self._pieces)]

        def defect(total: float, *pieces: float) -> float:
            return abs(sum(pieces) - total) / max(abs(total), *map(abs, pieces), _TINY)

        return Identity(self.system.parts, forms, of_numbers(forms, defect))

    def parameters(self):
        return super().parameters() | {"energies": self.energies}

    def turns(self):
        parts = everything(self.system)
        *others, last = self._pieces
        first = [Turn(parts, MIDPOINT, 0.5, piece) for piece in others]
        return [*first, Turn(parts, MIDPOINT, 1.0, last), *reversed(first)]
