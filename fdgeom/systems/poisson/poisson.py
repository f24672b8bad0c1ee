"""Poisson systems: a state, an energy, a bracket and a pairing, all UFL."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import ufl
from firedrake import Function, MixedFunctionSpace, TestFunction, TestFunctions, split
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Expr, Form

from fdgeom.forms import parts_of, polynomial_degree, substitute
from fdgeom.identities import Identity, check_now
from fdgeom.messages import format_value, is_function
from fdgeom.operations import EssentialValues, parts
from fdgeom.systems.poisson.checks import (
    antisymmetry_defect,
    demands,
    jacobi_defect,
    warn_of_casimirs,
)
from fdgeom.systems.poisson.gradient import check_gradient, pointwise_gradient
from fdgeom.systems.poisson.poisson_forms import PoissonForms

_NO_GRADIENT = (
    "gradient: with the present values of the coefficients it is not the δh/δz of the energy, but off "
    "by {:.2g} of its size: let it read what the energy reads, or leave it out"
)


@dataclasses.dataclass(frozen=True)
class Stage:
    """The unknown of a substep, with the state and the gradient there as expressions of it."""

    unknown: Function
    active: tuple[int, ...]
    #: The parts of the state and of δh/δz there.
    state: tuple[Expr, ...]
    gradient: tuple[Expr, ...]
    #: Zero for the parts that are frozen.
    test: tuple[Expr, ...]
    #: For ⟨b, w⟩ = dh(z)[w] where b is an unknown too.
    gradient_test: tuple[Expr, ...] | None = None
    essential: tuple[EssentialValues, ...] = ()
    auxiliary: tuple[Expr, ...] = ()
    #: Equations of the auxiliary functions and their multipliers.
    conditions: Form = dataclasses.field(default_factory=lambda: Form([]))

    def reaching(self, reach: float) -> "Stage":
        """The stage with its given values, of a rule with new = old + reach (stage - old)."""
        given = tuple(e.at_share(1 / reach) for e in self.essential)
        return dataclasses.replace(self, essential=given)


class PoissonSystem(PoissonForms):
    """A Poisson (Hamiltonian) system: ⟨w, ż⟩ = {w, h}(z) for all tests w.

    Parameters
    ----------
    state : Function
        The state z. Splitting methods move the parts of a mixed state one after another; the forms
        may use ``split(state)``.
    energy : UFL functional
        The Hamiltonian h(z). An integral without a quadrature degree gets the degree of its
        derivative, so that the motion conserves the energy that :meth:`energy` reports. Other
        Functions in it are coefficients with their present values.
    bracket : callable
        ``bracket(a, b)`` gives the form {f, h}(z) for δf/δz = a and δh/δz = b: bilinear and
        antisymmetric. ``a`` and ``b`` come as functions of the state's space (``split`` them).
    pairing : callable
        ``pairing(a, b)`` gives the form ⟨a, b⟩ that defines the variational derivative, ⟨δh/δz, w⟩
        = dh(z)[w]: bilinear, symmetric, positive definite. It may depend on the state (a metric ⟨a,
        b⟩_z); every method then evaluates it at the same state as the bracket.
    names : sequence of str, optional
        Names of the parts, for solver prefixes and output.
    gradient : callable, optional
        ``gradient(z)`` gives δh/δz as an expression, if it is known pointwise (for a mixed state
        ``z`` and the result are tuples of parts). It is tested against the energy, at states near
        the present one. By default fdgeom derives one and tests it; if that fails, δh/δz becomes an
        unknown of the solves.
    casimirs : dict of str to UFL functional, optional
        Casimirs of the bracket, for monitors. In systems without derivatives in space a stepper
        warns of a functional that is no Casimir; with derivatives in space a mesh conserves
        Casimirs only approximately.
    auxiliary : dict, optional
        ``{psi: form}``: Functions in the energy that follow from the state by linear elliptic
        equations. ``form`` is F(ψ, z; φ) with a test function φ of the space of ψ, F = 0 for all φ;
        ``{psi: (form, bcs)}`` with DirichletBCs. They are solved for with the state, and their part
        of δh/δz comes from the adjoint solve. After each step, and after a call of :meth:`energy`,
        they have the values of the present state. Steppers by the midpoint rule support them.
    parts : sequence of Function, optional
        Functions for the parts of a mixed state, instead of its own; ``state`` is then only a
        symbol in the forms, which may contain either.

    Raises
    ------
    TypeError
        If an argument is not of the kind above.
    ValueError
        If a form has the wrong number of arguments, the state is not finite, ``gradient`` is not
        the derivative of the energy, or ``auxiliary`` does not determine its Functions.

    Examples
    --------
    The two-dimensional Euler equations, ω_t + u·∇ω = 0 with u = (ψ_y, -ψ_x) and -Δψ = ω:

    >>> phi = TestFunction(psi.function_space())
    >>> euler = PoissonSystem(
    ...     omega, 0.5*omega*psi*dx,
    ...     bracket=lambda a, b: omega*(a.dx(0)*b.dx(1) - a.dx(1)*b.dx(0))*dx,
    ...     pairing=lambda a, b: a*b*dx,
    ...     auxiliary={psi: (
    ...         inner(grad(psi), grad(phi))*dx - omega*phi*dx,
    ...         DirichletBC(psi.function_space(), 0, "on_boundary"))})  # doctest: +SKIP
    """

    def __init__(
        self,
        state: Function,
        energy: Form,
        bracket: Callable,
        pairing: Callable,
        *,
        names: Sequence[str] | None = None,
        gradient: Callable | None = None,
        casimirs: Mapping[str, Form] | None = None,
        auxiliary: Mapping[Function, Form] | None = None,
        parts: Sequence[Function] | None = None,
    ) -> None:
        if gradient is not None and not is_function(gradient):
            raise TypeError(
                f"gradient must be a callable of the state giving δh/δz, not {format_value(gradient)}"
            )
        super().__init__(
            state,
            energy,
            bracket,
            pairing,
            names=names,
            casimirs=casimirs,
            auxiliary=auxiliary,
            parts=parts,
        )
        self._given_gradient = gradient
        #: Identities that its steps rely on, by the messages of errors.
        self._demands: dict[str, Identity] = {}
        if gradient is not None:
            self._demands[_NO_GRADIENT] = check_gradient(self, gradient)

    def with_energy(self, energy: Form) -> "PoissonSystem":
        """The system with the same state, bracket and pairing and another energy."""
        if self.auxiliary is not None:
            raise ValueError("system: with auxiliary functions the energy cannot be exchanged")
        return PoissonSystem(
            self.state,
            energy,
            lambda a, b: self.bracket(a, b),
            lambda a, b: self.pairing(a, b),
            names=self.names,
            parts=self.parts,
        )

    @property
    def energy_degree(self) -> int | None:
        """Degree of the energy as a polynomial of the state; None if there is none up to 8."""
        if "degree" not in self._held:
            more, affine = (), True
            if self.auxiliary is not None:
                more, affine = self.auxiliary.functions, self.auxiliary.is_affine
            self._held["degree"] = (
                polynomial_degree(self._energy, self.state, *more) if affine else None
            )
        return self._held["degree"]

    def antisymmetry_defect(self) -> float:
        """Relative size of {·, b} + {b, ·} for random fields b, at the state: round-off if correct."""
        return antisymmetry_defect(self)

    def jacobi_defect(self, samples: int = 3, seed: int = 0) -> float:
        """Relative defect of the Jacobi identity on random linear functionals, at the state.

        Zero to round-off for a Poisson bracket; a discretised bracket has a defect that falls with
        the mesh.
        """
        return jacobi_defect(self, samples, seed)

    # --- what the steppers ask -------------------------------------------------------------------
    def check_start(self) -> None:
        self.check_state()
        self.update_auxiliary()
        if not (self._structure_is_known or "demands" in self._held):
            self._held["demands"] = demands(self)
            self._demands.update(self._held["demands"])
            warn_of_casimirs(self)
        self.prepare()

    def synchronise(self, modified=None):
        check_now(self._demands)
        return []

    def agree(self) -> None:
        self.update_auxiliary()

    def _chart(self, k: int, unknown: Expr) -> tuple[Expr, Expr | None]:
        """Part ``k`` of the state, and of δh/δz if it follows directly, in terms of the unknown."""
        return unknown, None

    def frozen_gradient(self, k: int) -> Expr | None:
        """Part ``k`` of δh/δz at the present state, if the system has it as a field."""
        return None

    def _essential_values(self, active: Sequence[int]) -> tuple:
        """Degrees of freedom of a stage that boundary conditions fix (none in general)."""
        return ()

    def forcing(self, test: Sequence[Expr], gradient: Sequence[Expr], dt: Expr) -> Form:
        """Work of forces that the energy does not contain, linear in the tests (none in general).

        ``gradient`` is δh/δz in the middle of a step ``dt``.
        """
        return Form([])

    def companions(
        self, active: Sequence[int], new: dict[int, Expr], *, dt: Expr
    ) -> dict[Function, Expr]:
        """Further assignments of a substep, by nodal expressions in old fields and ``new`` parts."""
        return {}

    def gradient(
        self, state: Sequence[Expr], auxiliary: Sequence[Expr] = ()
    ) -> tuple[Expr, ...] | None:
        """δh/δz as pointwise expressions of the parts ``state``; None if there are none.

        With auxiliary functions also of their values and multipliers ``auxiliary``.
        """
        found = self._given_gradient or self._density_gradient
        if found is None:
            return None
        given = found(tuple(state) if len(self.parts) > 1 else state[0])
        given = parts_of(given, self.shapes, "gradient")
        if auxiliary:
            more = self.auxiliary.at(auxiliary)
            given = tuple(replace(expand_derivatives(part), more) for part in given)
        return given

    @cached_property
    def _density_gradient(self) -> Callable | None:
        return pointwise_gradient(self)

    @property
    def has_pointwise_density(self) -> bool:
        """Whether δh/δz is the derivative of the energy's density, point by point."""
        return self._density_gradient is not None

    def stage(self, active: Sequence[int], pointwise: bool = True) -> Stage:
        """The unknown of a substep that moves the parts ``active`` and freezes the others.

        If δh/δz is not pointwise, or not to be used so, it is an unknown too.
        """
        active = tuple(active)
        spaces = [self.parts[k].function_space() for k in active]
        pointwise = pointwise and (self._charted(active) or self.gradient(self.parts) is not None)
        if not pointwise:
            spaces += [p.function_space() for p in self.parts]
        own = len(spaces)
        if self.auxiliary is not None:
            spaces += self.auxiliary.spaces
        mixed = len(spaces) > 1
        space = MixedFunctionSpace(spaces) if mixed else spaces[0]
        unknown = Function(space, name="stage")
        fields = split(unknown) if mixed else (unknown,)
        tests = TestFunctions(space) if mixed else (TestFunction(space),)

        state = list(self.parts)
        slope: list[Any] = [self.frozen_gradient(k) for k in range(len(self.parts))]
        test = [ufl.zero(*s) if s else ufl.as_ufl(0) for s in self.shapes]
        for k, field, w in zip(active, fields, tests, strict=False):
            state[k], slope[k] = self._chart(k, field)
            test[k] = w
        auxiliary, conditions = tuple(fields[own:]), Form([])
        essential = self._essential_values(active)
        if auxiliary:
            conditions = self.auxiliary.conditions(auxiliary, tests[own:])
            conditions = substitute(conditions, self._state_map(tuple(state)))
            essential += self.auxiliary.essential(own)
        if not pointwise:
            slope = list(fields[len(active) : own])
        elif any(b is None for b in slope):
            known = self.gradient(state, auxiliary) or ()
            slope = [g if b is None else b for b, g in zip(slope, known, strict=True)]
        return Stage(
            unknown=unknown,
            active=active,
            state=tuple(state),
            gradient=tuple(slope),
            test=tuple(test),
            gradient_test=None if pointwise else tuple(tests[len(active) : own]),
            essential=essential,
            auxiliary=auxiliary,
            conditions=conditions,
        )

    def _charted(self, active: Sequence[int]) -> bool:
        """Whether charts and held fields give every part of δh/δz."""
        probe = [self.frozen_gradient(k) for k in range(len(self.parts))]
        for k in active:
            probe[k] = self._chart(k, self.parts[k])[1]
        return all(b is not None for b in probe)

    def start_values(self, stage: Stage) -> dict[Function, Function]:
        """A first guess of a stage's unknown: for each of its parts the function to copy."""
        own = parts(stage.unknown)
        return {piece: self.parts[k] for k, piece in zip(stage.active, own, strict=False)}
