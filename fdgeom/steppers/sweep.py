"""Methods that move the parts of a Poisson system one after another."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from fdgeom.steppers.refusal import wrong_system
from fdgeom.steppers.stepper import Stepper
from fdgeom.steppers.substep import MIDPOINT, TRAPEZOIDAL, Rule, Substep, options_for
from fdgeom.systems.poisson.checks import pairing_couples
from fdgeom.systems.poisson.poisson import PoissonSystem

CONFIGURATIONS = ("old", "new", "mean")


@dataclass(frozen=True)
class Move:
    """One substep of a sweep.

    Attributes
    ----------
    active : tuple of int
        The parts that move.
    rule : Rule
        How they move.
    fraction : float
        For how much of the step.
    system : PoissonSystem, optional
        With which energy, if not the whole system's.
    """

    active: tuple[int, ...]
    rule: Rule
    fraction: float = 1.0
    system: PoissonSystem | None = None


class Sweep(Stepper):
    """Base of the methods that move the parts of a state in turn.

    A subclass names its moves: which part, by which rule, for which fraction of the step.
    """

    #: Which momentum moves the configuration, where the system has one.
    default_configuration: ClassVar[str] = "mean"

    def __init__(self, system, dt, *, configuration: str | None = None, **options) -> None:
        chosen = self.default_configuration if configuration is None else configuration
        if chosen not in CONFIGURATIONS:
            raise ValueError(
                f"configuration must be one of {CONFIGURATIONS}, not {configuration!r}"
            )
        self.configuration = chosen
        super().__init__(system, dt, **options)

    @abstractmethod
    def moves(self) -> list[Move]:
        """The substeps of one step, in order."""

    def _setup(self) -> None:
        if not isinstance(self.system, PoissonSystem):
            needs = "a PoissonSystem (a bracket and an energy)"
            raise wrong_system(type(self).__name__, needs, self.system)
        self.system.check_start()
        moves = self.moves()
        _check_parts(self, moves)
        names = ["_".join(self.system.names[k] for k in move.active) for move in moves]
        single = len(set(names)) == 1
        held: dict[tuple, Substep] = {}
        self._substeps = []
        for name, move in zip(names, moves, strict=True):
            key = (move.active, move.rule, id(move.system))
            if key not in held:
                which = ("", ()) if single else (name, names)
                held[key] = Substep(
                    move.system or self.system,
                    move.active,
                    move.rule,
                    options=options_for(self, *which),
                    companions=self._companions(),
                )
            self._substeps.append((held[key], move.fraction))
        self._held = list(held.values())

    def _companions(self) -> dict:
        return {"configuration": self.configuration} if hasattr(self.system, "position") else {}

    def parameters(self):
        return {"configuration": self.configuration}

    def functions(self):
        carried = [f for substep in self._held for f in substep.carried]
        return {f"guess of the gradient {k}": f for k, f in enumerate(carried)}

    def _step(self, t: float, dt: float) -> None:
        system = self.system
        system.set_time(t + dt)
        # Symmetric, so that methods of second order stay so where coefficients change in time.
        system.set_clock(t + 0.5 * dt)
        try:
            for substep, fraction in self._substeps:
                substep.take(fraction * dt)
        finally:
            system.set_clock(t + dt)

    def substeps(self):
        return self._substeps

    def uncomposable(self):
        if self._companions() and self.configuration != "mean":
            return (
                f"configuration: with {self.configuration!r} the poses are of order 1, whatever is "
                "composed; take 'mean'"
            )
        return None

    def _solvers(self):
        return [s.__dict__["solver"] for s in self._held if "solver" in s.__dict__]


def _check_parts(stepper: Sweep, moves: list[Move]) -> None:
    """Raise ``ValueError`` if parts move in turn that the pairing ties together."""
    system = stepper.system
    for k in {k for move in moves if len(move.active) < len(system.parts) for k in move.active}:
        if pairing_couples(system, k):
            raise ValueError(
                f"system: {type(stepper).__name__} moves the parts of a state in turn, but the "
                f"pairing couples {system.names[k]!r} with another one; use ImplicitMidpoint"
            )


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
    part's equations couple one node only, so a step costs about as much as an explicit one; the
    step is bounded by the time the fastest wave takes through a cell.

    Parameters
    ----------
    system : PoissonSystem
        A state of two parts, such as a :class:`Beam`; with one part this is the midpoint rule.
    dt : float
        Time step.
    configuration : {"old", "new", "mean"}, optional
        Which momentum moves a beam's configuration; "old" is the paper's.
    solver_parameters, options_prefix
        PETSc options. Those of a single part go under its name: for a beam
        ``-<prefix>_momentum_snes_rtol``.
    """

    order = 1
    default_configuration = "old"

    def moves(self):
        return [Move((k,), MIDPOINT) for k in reversed(range(len(self.system.parts)))]


class HamelFieldIntegrator(Sweep):
    """Hamel field integrator: as :class:`PoissonIntegrator`, with the trapezoidal mean.

    (μ¹ - μ⁰)/Δt = D₂γ⁰' - [γ⁰+e, D₂γ⁰]* + ½([ζ⁰, μ⁰]* + [ζ¹, μ¹]*), the baseline of Chen & Shi
    (2025), from their reference [9]. The unknown of a substep is the new value: where the motion of an
    end is prescribed, that of the new time.
    """

    order = 1
    default_configuration = "old"

    def moves(self):
        return [Move((k,), TRAPEZOIDAL) for k in reversed(range(len(self.system.parts)))]


class SymmetricPoissonIntegrator(Sweep):
    """The substeps of :class:`PoissonIntegrator` in a symmetric order: half, whole, half.

    For a beam: half a step of the strain, a step of the momentum, half a step of the strain. Second
    order, at nearly the same cost, with the same bound on the step.
    """

    order = 2
    symmetric = True

    def moves(self):
        *others, last = range(len(self.system.parts))
        first = [Move((k,), MIDPOINT, 0.5) for k in others]
        return [*first, Move((last,), MIDPOINT), *reversed(first)]


class ImplicitMidpoint(Sweep):
    """Implicit midpoint rule for the whole state: z¹ = z⁰ + Δt X_h((z⁰+z¹)/2).

    Symplectic where the bracket is constant; conserves every quadratic invariant of the flow, so
    the energy and the Casimirs where they are quadratic (beams of linear material, rigid bodies).
    On a bracket that is linear in the state it is not a Poisson map (Austin, Krishnaprasad & Wang,
    J. Comput. Phys. 107, 1993: almost Poisson, to second order). One coupled solve a step; no bound
    on the step from the fastest wave.
    """

    order = 2
    symmetric = True
    symplectic = True
    conserves = ("quadratic energy", "quadratic Casimirs")

    def moves(self):
        return [Move(everything(self.system), MIDPOINT)]
