"""Partitioned methods, which update q and p of a canonical system in turn."""

from abc import abstractmethod
from typing import ClassVar, Unpack

import ufl
from firedrake import Constant, Function, TestFunction

from fdgeom.execution import plain
from fdgeom.operations import Flow, Solve, with_assignments
from fdgeom.steppers.stepper import Stepper, StepperOptions
from fdgeom.systems.poisson.hamiltonian import HamiltonianSystem
from fdgeom.validation import choice

PARTS = ("q", "p")


class Partitioned(Stepper):
    """Base of the methods that update q and p in turn, ⟨w, z¹ - z⁰⟩ = Δt {w, h}(z*) for w of one
    part, with that part of z* old (explicit) or new (implicit).
    """

    moves = HamiltonianSystem
    needs = "a HamiltonianSystem(q, p, energy)"
    #: Whether the method is explicit, for h = T(p) + V(q) only.
    _explicit: ClassVar[bool] = True

    def __init__(
        self, system, dt: float, *, first: str = "p", **options: Unpack[StepperOptions]
    ) -> None:
        self.first = choice("first", first, PARTS)
        super().__init__(system, dt, **options)

    @abstractmethod
    def turns(self) -> list[tuple[str, bool, float]]:
        """The turns in order: the part, whether implicit, and the fraction of the step."""

    def _setup(self) -> None:
        self.system.check_start()
        if self._explicit and not self.system.is_separable:
            raise ValueError(
                f"system: {type(self).__name__} is explicit and needs a separable energy T(p) + V(q),"
                " but this one has terms that hold both q and p; use ImplicitMidpoint,"
                " GaussLegendre(stages) or SymplecticEuler instead"
            )

    def flows(self):
        made: dict[tuple[str, bool], Flow] = {}
        sequence = []
        for part, implicit, fraction in self.turns():
            key = part, implicit and not self.system.is_separable
            if key not in made:
                made[key] = self._flow(PARTS.index(part), key[1])
            sequence.append(made[key].scaled(fraction))
        return sequence

    def _flow(self, k: int, implicit: bool) -> Flow:
        """⟨w, z¹ - z⁰⟩ = Δt {w, h}(z*) for w of part ``k``."""
        system, names = self.system, self.system.names
        space, old = system.parts[k].function_space(), system.parts[k]
        unknown, w = Function(space, name=names[k]), TestFunction(space)
        zero = ufl.zero(*w.ufl_shape) if w.ufl_shape else ufl.as_ufl(0)
        test = [zero, zero]
        test[k] = w
        state = list(system.parts)
        state[k] = unknown
        at = tuple(state) if implicit else system.parts
        dt = Constant(0.0, name="dt")
        change = [zero, zero]
        change[k] = unknown - old
        residual = system.pairing(tuple(test), tuple(change)) - dt * system.motion(tuple(test), at)
        solve = Solve(
            work=residual,
            unknown=unknown,
            guess=old,
            dt=dt,
            options=self.solve_options(names[k], names),
            numerics=plain,
            name=names[k],
        )
        after = with_assignments(solve, [{old: unknown}])
        return Flow(after, exact=system.is_separable)

    def parameters(self):
        return {"first": self.first}


def other(part: str) -> str:
    """The part that is not this one."""
    return PARTS[1 - PARTS.index(part)]


class SymplecticEuler(Partitioned):
    """Symplectic Euler: one part with the other's old value, then the other with the new one.

    With p first (the default)

        p¹ = p⁰ - Δt h_q(q⁰, p¹),    q¹ = q⁰ + Δt h_p(q⁰, p¹),

    with q first

        q¹ = q⁰ + Δt h_p(q¹, p⁰),    p¹ = p⁰ - Δt h_q(q¹, p⁰);

    each is the adjoint of the other (Hairer, Lubich & Wanner, Geometric Numerical Integration,
    section VI.3). Explicit where the energy is separable; otherwise one part is implicit. Its
    energy error stays bounded, of the order of Δt.

    Parameters
    ----------
    system : HamiltonianSystem
        The system to integrate.
    dt : float
        Time step.
    first : {"p", "q"}, optional
        The part that moves first.
    t0, solver_parameters, options_prefix, compiled
        As for every :class:`Stepper`. Options of a single part go under its name:
        ``-<prefix>_p_snes_rtol``.

    Raises
    ------
    TypeError, ValueError
        If the system is not a :class:`HamiltonianSystem`, or ``first`` is neither "p" nor "q".
    """

    order = 1
    symplectic = True
    cites = ("HairerLubichWanner2003",)
    _explicit = False

    def turns(self):
        return [(self.first, True, 1.0), (other(self.first), False, 1.0)]


class StormerVerlet(Partitioned):
    """Störmer–Verlet: half a step of one part, a step of the other, half a step of the first.

    With p first (the default; "velocity Verlet", or leapfrog)

        p½ = p⁰ - Δt/2 V_q(q⁰),    q¹ = q⁰ + Δt T_p(p½),    p¹ = p½ - Δt/2 V_q(q¹)

    for a separable energy h = T(p) + V(q) (Hairer, Lubich & Wanner, Acta Numerica 12, 2003).
    Explicit, so that Δt is bounded: Δt ω < 2 for the highest frequency ω. The energy error stays
    bounded, of the order of Δt²; angular momentum is conserved where T and V are invariant under
    rotations. A field in a finite element space costs a solve with the mass matrix for each part;
    with a lumped ``measure`` of the system that matrix is diagonal.

    Parameters
    ----------
    system : HamiltonianSystem
        The system to integrate, with a separable energy; ``ValueError`` otherwise.
    dt, first, t0, solver_parameters, options_prefix, compiled
        As for :class:`SymplecticEuler`, with its errors.
    """

    order = 2
    symmetric = True
    symplectic = True
    cites = ("HairerLubichWanner2003",)

    def turns(self):
        half = (self.first, False, 0.5)
        return [half, (other(self.first), False, 1.0), half]
