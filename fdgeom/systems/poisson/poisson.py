"""Poisson systems: a state, an energy, a bracket and a pairing, all UFL."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import ufl
from firedrake import (
    Function,
    MixedFunctionSpace,
    TestFunction,
    TestFunctions,
    TrialFunction,
    derivative,
    split,
)
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Expr, Form

from fdgeom.forms import (
    check_depends,
    checked_form,
    copy_into,
    depends_on,
    flatten,
    form_of,
    parts_of,
    polynomial_degree,
    substitute,
    with_fixed_quadrature,
)
from fdgeom.messages import format_value, is_function
from fdgeom.operations import Prescribed, parts
from fdgeom.systems.poisson.checks import (
    antisymmetry_defect,
    check_gradient,
    demands,
    jacobi_defect,
    pointwise_gradient,
    warn_of_casimirs,
)
from fdgeom.systems.system import System
from fdgeom.taping import not_taped
from fdgeom.validation import firedrake_function, instance

_EXAMPLES = {"bracket": "(a[0]*b[1] - a[1]*b[0])", "pairing": "inner(a, b)"}
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
    prescribed: tuple[Prescribed, ...] = ()
    auxiliary: tuple[Expr, ...] = ()
    #: Equations of the auxiliary functions and their multipliers.
    conditions: Form = dataclasses.field(default_factory=lambda: Form([]))


class PoissonSystem(System):
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

    Notes
    -----
    For authors: ``auxiliary``, ``bracket``, ``casimir_derivatives``, ``check_state``,
    ``companions``, ``energy_degree``, ``energy_derivative``, ``energy_form``, ``forcing``,
    ``forms``, ``frozen_gradient``, ``gather_state``, ``gradient``, ``has_pointwise_density``,
    ``lagrangian_form``, ``names``, ``pairing``, ``pairing_varies``, ``parts``, ``shapes``,
    ``space``, ``stage``, ``start_values``, ``test``, ``trial``, ``update_auxiliary``,
    ``whole``, ``with_energy``.

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

    #: Whether the forms are right beyond doubt: they are then made when they are first asked for, and
    #: ``energy`` is a function that gives it.
    _forms_are_known = False
    #: Whether bracket and pairing are what they must be beyond doubt, or have been checked.
    _structure_is_known = False

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
        firedrake_function("state", state)
        super().__init__(state.subfunctions[0].function_space().mesh())
        self.state, self.space, self.symbols = state, state.function_space(), (state,)
        own = tuple(state.subfunctions) if len(self.space) > 1 else (state,)
        self.parts = own if parts is None else _check_parts(parts, own)
        self.names = _check_names(names, len(self.parts))
        #: The arguments of :attr:`forms`.
        self.test, self.trial = TestFunction(self.space), TrialFunction(self.space)
        self._given = energy, bracket, pairing
        if not self._forms_are_known:
            _ = self.forms  # what is wrong with them is said now
        casimirs = _mapping("casimirs", "{name: functional}", casimirs)
        auxiliary = _mapping("auxiliary", "{psi: form}", auxiliary)
        self._casimirs = {
            name: self._in_terms_of_state(checked_form(f"casimirs[{name!r}]", form, mesh=self.mesh))
            for name, form in casimirs.items()
        }
        self.check_state()
        #: Functions that follow from the state, if there are any.
        self.auxiliary: Any = None
        if auxiliary:
            self.auxiliary = self._make_auxiliary(auxiliary)
            self.auxiliary.prepare(lambda form: substitute(form, self._state_map(None)))
            self.auxiliary.check()
        if not self._forms_are_known:
            followed = () if self.auxiliary is None else self.auxiliary.functions
            check_depends("energy", self._energy, self.state, *followed)
        self._given_gradient = gradient
        if gradient is not None:
            self._demands[_NO_GRADIENT] = check_gradient(self, gradient)

    # --- forms ---------------------------------------------------------------------------------
    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Value shapes of the parts of the state."""
        return tuple(p.ufl_shape for p in self.parts)

    def _in_terms_of_state(self, form: Form) -> Form:
        """A form in terms of ``split(state)``, also if it was given with the subfunctions."""
        if len(self.parts) == 1:
            return substitute(form, {})
        return substitute(form, dict(zip(self.parts, split(self.state), strict=True)))

    @cached_property
    def _energy(self) -> Form:
        given, _, _ = self._given
        known = self._forms_are_known
        given = given() if known else checked_form("energy", given, mesh=self.mesh)
        return with_fixed_quadrature(self._in_terms_of_state(given), self.state)

    @cached_property
    def _bracket(self) -> Form:
        return self._bilinear("bracket", self._given[1])

    @cached_property
    def _pairing(self) -> Form:
        return self._bilinear("pairing", self._given[2])

    def _bilinear(self, name: str, form: Callable) -> Form:
        if self._forms_are_known:
            return self._in_terms_of_state(form(self.test, self.trial))
        example, symbols = f"lambda a, b: {_EXAMPLES[name]}*dx", (self.test, self.trial)
        result = form_of(name, form, symbols, "(a, b)", example, "a and in b", self.mesh)
        return self._in_terms_of_state(result)

    def _make_auxiliary(self, equations: Mapping):
        # Inside of the method: most systems have none.
        from fdgeom.systems.poisson.auxiliary import Auxiliary

        made = Auxiliary(equations, self._energy, self.state, self._in_terms_of_state)
        for function in made.functions:
            if function in (self.state, *self.parts) or function.name() in self.names:
                raise ValueError(
                    f"auxiliary: {function.name()} is a part of the state, or named so"
                )
            for name, form in (("bracket", self._bracket), ("pairing", self._pairing)):
                if function in form.coefficients():
                    raise ValueError(f"{name} must not hold the auxiliary {function.name()}")
        return made

    def _state_map(self, at) -> dict[Expr, Expr]:
        """Substitutes for the state: ``at`` (all parts), by default the subfunctions themselves."""
        parts = self.parts if at is None else parts_of(at, self.shapes, "at")
        return {self.state: self.whole(parts)}

    def whole(self, parts: Sequence[Expr]) -> Expr:
        """The parts as one value of the state's space."""
        return flatten(parts) if len(self.parts) > 1 else parts[0]

    @property
    def forms(self) -> tuple[Form, Form, Form]:
        """Energy, bracket and pairing in ``state``."""
        return self._energy, self._bracket, self._pairing

    def pairing(self, a, b, at=None) -> Form:
        """The form ⟨a, b⟩ of functions of the state's space or tuples of parts, at the present
        state unless ``at`` gives another one.
        """
        return self._of(self._pairing, a, b, at)

    def _of(self, form: Form, a, b, at) -> Form:
        """A bilinear form of two elements, at a state."""
        a, b = (parts_of(x, self.shapes, n) for x, n in ((a, "a"), (b, "b")))
        return substitute(
            form, {self.test: self.whole(a), self.trial: self.whole(b), **self._state_map(at)}
        )

    @property
    def pairing_varies(self) -> bool:
        """Whether the pairing depends on the state."""
        return depends_on(self._pairing, self.state)

    def bracket(self, a, b, at=None) -> Form:
        """The form {f, h}(z) for δf/δz = a, δh/δz = b, by default at the present state."""
        return self._of(self._bracket, a, b, at)

    def energy_form(self, at=None) -> Form:
        """The Hamiltonian as a functional, at the present state or another one."""
        return substitute(self._energy, self._state_map(at))

    def casimir_derivatives(self) -> dict[str, Form]:
        """The forms dC(z)[w] of its Casimirs C, at the present state."""
        return {
            name: substitute(derivative(form, self.state, self.test), self._state_map(None))
            for name, form in self._casimirs.items()
        }

    def lagrangian_form(self) -> Form:
        """h, and with auxiliary functions h + F(ψ, z; λ), at the present state."""
        return substitute(self._lagrangian, self._state_map(None))

    @property
    def _lagrangian(self) -> Form:
        return self._energy if self.auxiliary is None else self.auxiliary.lagrangian

    def energy_derivative(self, direction, at=None, auxiliary: Sequence[Expr] = ()) -> Form:
        """The form dh(z)[w] for a direction w (a test function, a function or a tuple of parts),
        with auxiliary functions ∂_z L at their values and multipliers ``auxiliary``.
        """
        w = parts_of(direction, self.shapes, "direction")
        form = substitute(derivative(self._lagrangian, self.state, self.test), {})
        more = {} if self.auxiliary is None else self.auxiliary.at(auxiliary)
        return substitute(form, {self.test: self.whole(w), **self._state_map(at), **more})

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

    # --- as a system ---------------------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        found = dict(zip(self.names, self.parts, strict=True))
        if self.auxiliary is not None:
            found |= dict(zip(self.auxiliary.names, self.auxiliary.functions, strict=True))
        return found

    def parameters(self):
        return {} if self.auxiliary is None else self.auxiliary.parameters()

    def equations(self) -> dict[str, Form | Expr]:
        given = () if self.auxiliary is None else self.auxiliary.boundary_values()
        stated = dict(zip(("energy", "bracket", "pairing"), self.forms, strict=True))
        values = {f"boundary value {k}": value for k, value in enumerate(given)}
        elliptic = {} if self.auxiliary is None else self.auxiliary.equations
        return stated | elliptic | values

    def all_forms(self) -> tuple[Form | Expr, ...]:
        return tuple(self.equations().values())

    def energies(self) -> dict[str, Form]:
        """The Hamiltonian, ``"energy"``, and its parts if the system knows them."""
        self.update_auxiliary()
        return {"energy": self.energy_form()}

    def casimirs(self) -> dict[str, Form]:
        return {k: substitute(f, self._state_map(None)) for k, f in self._casimirs.items()}

    def underivable(self):
        return None if self.auxiliary is None else "auxiliary functions follow its state"

    # --- the state -------------------------------------------------------------------------------
    def check_state(self) -> None:
        """Raise ``ValueError`` if a part of the state is not finite."""
        self._check_finite(dict(zip(self.names, self.parts, strict=True)))

    @not_taped
    def gather_state(self) -> None:
        """Copy the parts into ``state``, if they are other Functions."""
        for own, part in zip(self.state.subfunctions, self.parts, strict=True):
            if own.dat is not part.dat:
                copy_into(own, part)

    def update_auxiliary(self) -> None:
        """Solve for the auxiliary functions of the present state, if there are any."""
        if self.auxiliary is not None:
            self.auxiliary.update()

    def energy(self) -> float:
        self.update_auxiliary()
        return super().energy()

    # --- what the steppers ask -------------------------------------------------------------------
    def check_start(self) -> None:
        self.check_state()
        self.update_auxiliary()
        if not self._structure_is_known:
            self._demands |= demands(self)
            warn_of_casimirs(self)
            self._structure_is_known = True
        self.prepare()

    def agree(self) -> None:
        self.update_auxiliary()

    def _chart(self, k: int, unknown: Expr) -> tuple[Expr, Expr | None]:
        """Part ``k`` of the state, and of δh/δz if it follows directly, in terms of the unknown."""
        return unknown, None

    def frozen_gradient(self, k: int) -> Expr | None:
        """Part ``k`` of δh/δz at the present state, if the system has it as a field."""
        return None

    def _prescribed(self, active: Sequence[int], share: float) -> tuple[Prescribed, ...]:
        """Degrees of freedom of a stage that boundary conditions fix (none in general); the stage is
        at this share of the way from old to new values.
        """
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

    def stage(self, active: Sequence[int], pointwise: bool = True, *, reach: float = 1.0) -> Stage:
        """The unknown of a substep that moves the parts ``active`` and freezes the others.

        If δh/δz is not pointwise, or not to be used so, it is an unknown too. ``reach`` is that in
        new = old + reach (stage - old), for given values.
        """
        active = tuple(active)
        spaces = [self.parts[k].function_space() for k in active]
        pointwise = pointwise and self.gradient(self.parts) is not None
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
        prescribed = self._prescribed(active, 1 / reach)
        if auxiliary:
            conditions = self.auxiliary.conditions(auxiliary, tests[own:])
            conditions = substitute(conditions, self._state_map(tuple(state)))
            prescribed += self.auxiliary.prescribed(own)
        if not pointwise:
            slope = list(fields[len(active) : own])
        elif any(b is None for b in slope):
            known: Any = self.gradient(state, auxiliary)
            slope = [g if b is None else b for b, g in zip(slope, known, strict=True)]
        return Stage(
            unknown=unknown,
            active=active,
            state=tuple(state),
            gradient=tuple(slope),
            test=tuple(test),
            gradient_test=None if pointwise else tuple(tests[len(active) : own]),
            prescribed=prescribed,
            auxiliary=auxiliary,
            conditions=conditions,
        )

    def start_values(self, stage: Stage) -> dict[Function, Function]:
        """A first guess of a stage's unknown: for each of its parts the function to copy."""
        own = parts(stage.unknown)
        return {piece: self.parts[k] for k, piece in zip(stage.active, own, strict=False)}


def _mapping(name: str, kind: str, value) -> Mapping:
    return {} if value is None else instance(name, value, Mapping, f"a dict {kind}")


def _check_parts(parts, own: tuple[Function, ...]) -> tuple[Function, ...]:
    found = tuple(parts) if isinstance(parts, list | tuple) else ()
    if [getattr(f, "ufl_shape", None) for f in found] != [f.ufl_shape for f in own] or not all(
        isinstance(f, Function) for f in found
    ):
        raise TypeError(
            "parts must be a tuple of Functions, one for each part of the state and of its shape, "
            f"not {format_value(parts)}"
        )
    return found


def _check_names(names, number: int) -> tuple[str, ...]:
    if names is None:
        return ("state",) if number == 1 else tuple(f"part{k}" for k in range(number))
    names = tuple(names) if isinstance(names, list | tuple) else ()
    strings = all(isinstance(name, str) for name in names)
    if len(names) != number or not strings or len(set(names)) != number:
        raise ValueError(f"names must be {number} different names, one for each part of the state")
    return names
