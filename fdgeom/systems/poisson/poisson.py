"""Poisson systems: a state, an energy, a bracket and a pairing, all UFL."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from firedrake import Function, TestFunction, TrialFunction, derivative, split
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Expr, Form

from fdgeom.forms import (
    check_depends,
    checked_form,
    depends_on,
    flatten,
    form_of,
    parts_of,
    polynomial_degree,
    refuse_views,
    restricted,
    substitute,
    with_fixed_quadrature,
)
from fdgeom.messages import format_value, is_function
from fdgeom.systems.poisson.checks import (
    antisymmetry_defect,
    check_gradient,
    demands,
    jacobi_defect,
    pointwise_gradient,
    warn_of_casimirs,
)
from fdgeom.systems.poisson.stage import Substeps
from fdgeom.systems.system import Consistency, Model, System
from fdgeom.validation import instance, state_function

_EXAMPLES = {"bracket": "(a[0]*b[1] - a[1]*b[0])", "pairing": "inner(a, b)"}
_NO_GRADIENT = (
    "gradient: with the present values of the coefficients it is not the δh/δz of the energy, but off "
    "by {:.2g} of its size: let it read what the energy reads, or leave it out"
)


class PoissonForms:
    """Energy, bracket and pairing of a Poisson system, in terms of its state and arguments."""

    #: The Casimirs by name.
    casimirs: dict[str, Form]

    # `known`: they are right beyond doubt, and `energy` is a function that gives it.
    def __init__(
        self, system: "PoissonSystem", energy, bracket: Callable, pairing: Callable, *, known: bool
    ) -> None:
        self._system, self._given, self._known = system, (energy, bracket, pairing), known

    @property
    def own(self) -> tuple[Function, ...]:
        """The state and its parts, by which forms are stated."""
        return self._system.state, *self._system.parts

    @cached_property
    def energy(self) -> Form:
        """h."""
        given, mesh = self._given[0], self._system.mesh
        given = given() if self._known else checked_form("energy", given, mesh=mesh, state=self.own)
        return with_fixed_quadrature(self.in_state(given), self._system.state)

    @cached_property
    def bracket(self) -> Form:
        """{·, ·} of the test and the trial function."""
        return self._bilinear("bracket", self._given[1])

    @cached_property
    def pairing(self) -> Form:
        """⟨·, ·⟩ of the test and the trial function."""
        return self._bilinear("pairing", self._given[2])

    def _bilinear(self, name: str, form: Callable) -> Form:
        symbols = self._system.test, self._system.trial
        if self._known:
            return self.in_state(form(*symbols))
        example, mesh = f"lambda a, b: {_EXAMPLES[name]}*dx", self._system.mesh
        of, linear_in = "(a, b)", "a and in b"
        return self.in_state(
            form_of(name, form, symbols, of, example, linear_in, mesh, state=self.own)
        )

    def stated(self) -> dict[str, Form]:
        """Energy, bracket and pairing by name."""
        return {"energy": self.energy, "bracket": self.bracket, "pairing": self.pairing}

    def in_state(self, form: Form) -> Form:
        """A form in terms of ``split(state)``, also if it was given with the subfunctions."""
        own, state = self._system.parts, self._system.state
        mapping = {} if len(own) == 1 else dict(zip(own, split(state), strict=True))
        return restricted("forms", substitute(form, mapping))  # at the state, too

    # --- at the present state, or another one ----------------------------------------------------
    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Value shapes of the parts of the state."""
        return tuple(p.ufl_shape for p in self._system.parts)

    def whole(self, parts: Sequence[Expr]) -> Expr:
        """The parts as one value of the state's space."""
        return flatten(parts) if len(self._system.parts) > 1 else parts[0]

    def at(self, state) -> dict[Expr, Expr]:
        """Substitutes for the state: all parts of another one, or those of the present one if None."""
        own = self._system.parts if state is None else parts_of(state, self.shapes, "at")
        return {self._system.state: self.whole(own)}

    def of(self, form: Form, a, b, at) -> Form:
        """A bilinear form of two elements, at a state."""
        a, b = (self.whole(parts_of(x, self.shapes, n)) for x, n in ((a, "a"), (b, "b")))
        return substitute(form, {self._system.test: a, self._system.trial: b, **self.at(at)})

    @property
    def lagrangian(self) -> Form:
        """h, and with auxiliary functions h + F(ψ, z; λ)."""
        auxiliary = self._system.auxiliary
        return self.energy if auxiliary is None else auxiliary.lagrangian

    def energy_derivative(self, direction, at=None, auxiliary: Sequence[Expr] = ()) -> Form:
        """The form dh(z)[w] for a direction w (a test function, a function or a tuple of parts),
        with auxiliary functions ∂_z L at their values and multipliers ``auxiliary``.
        """
        system, w = self._system, parts_of(direction, self.shapes, "direction")
        form = substitute(derivative(self.lagrangian, system.state, system.test), {})
        more = {} if system.auxiliary is None else system.auxiliary.at(auxiliary)
        return substitute(form, {system.test: self.whole(w), **self.at(at), **more})

    @property
    def pairing_varies(self) -> bool:
        """Whether the pairing depends on the state."""
        return depends_on(self.pairing, self._system.state)

    @cached_property
    def energy_degree(self) -> int | None:
        """Degree of the energy as a polynomial of the state; None if there is none up to 8."""
        auxiliary = self._system.auxiliary
        if auxiliary is not None and not auxiliary.is_affine:
            return None
        more = () if auxiliary is None else auxiliary.functions
        return polynomial_degree(self.energy, self._system.state, *more)

    @cached_property
    def density_gradient(self) -> Callable | None:
        """δh/δz as the derivative of the energy's density, point by point; None if it is not that."""
        return pointwise_gradient(self._system)


class PoissonModel(Model):
    """Energy, bracket and pairing, and the equations of auxiliary functions."""

    def __init__(self, system: "PoissonSystem") -> None:
        super().__init__(system)
        self.symbols = (system.state,)

    def parameters(self):
        auxiliary = self._system.auxiliary
        return {} if auxiliary is None else auxiliary.parameters()

    def equations(self):
        stated, auxiliary = self._system.forms.stated(), self._system.auxiliary
        if auxiliary is None:
            return stated
        values = {f"boundary value {k}": v for k, v in enumerate(auxiliary.boundary_values())}
        return stated | auxiliary.equations | values

    def all_forms(self):
        # The energy is among them; `energies()` would solve for auxiliary functions.
        return tuple(self.equations().values())

    def underivable(self):
        auxiliary = self._system.auxiliary
        return (
            super().underivable() if auxiliary is None else "auxiliary functions follow its state"
        )


class AuxiliaryConsistency(Consistency):
    """Keeps auxiliary functions consistent with the state."""

    def holds(self) -> bool:
        return super().holds() and self._system.auxiliary.holds()

    def prepare(self) -> None:
        super().prepare()
        self._system.auxiliary.update()

    def agree(self) -> None:
        self._system.auxiliary.update()


class PoissonSubsteps(Substeps):
    """The substeps of a system that is its state, energy, bracket and pairing alone."""

    def with_energy(self, energy: Form) -> "PoissonSystem":
        system = self._system
        if system.auxiliary is not None:
            raise ValueError("system: with auxiliary functions the energy cannot be exchanged")
        return PoissonSystem(
            system.state, energy, system.bracket, system.pairing,
            names=system.names, parts=system.parts,
        )  # fmt: skip


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
    For authors: ``auxiliary``, ``bracket``, ``energy_form``, ``forms``, ``gradient``, ``names``,
    ``pairing``, ``parts``, ``space``, ``substeps``, ``test``, ``trial``.

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
        state_function("state", state)
        super().__init__(state.subfunctions[0].function_space().mesh())
        self.state, self.space = state, state.function_space()
        own = tuple(state.subfunctions) if len(self.space) > 1 else (state,)
        self.parts = own if parts is None else _check_parts(parts, own)
        self.names = _check_names(names, len(self.parts))
        #: The arguments of its forms.
        self.test, self.trial = TestFunction(self.space), TrialFunction(self.space)
        self.forms = PoissonForms(self, energy, bracket, pairing, known=self._forms_are_known)
        if not self._forms_are_known:
            self.forms.stated()  # what is wrong with them is said now
        casimirs = _mapping("casimirs", "{name: functional}", casimirs)
        auxiliary = _mapping("auxiliary", "{psi: form}", auxiliary)
        self.forms.casimirs = {
            name: self.forms.in_state(
                checked_form(f"casimirs[{name!r}]", form, mesh=self.mesh, state=self.forms.own)
            )
            for name, form in casimirs.items()
        }
        self._check_state()
        #: Functions that follow from the state, if there are any.
        self.auxiliary: Any = None
        if auxiliary:
            self.auxiliary = self._make_auxiliary(auxiliary)
            self.auxiliary.prepare(lambda form: substitute(form, self.forms.at(None)))
            self.auxiliary.check()
        if not self._forms_are_known:
            followed = () if self.auxiliary is None else self.auxiliary.functions
            check_depends("energy", self.forms.energy, self.state, *followed)
        self._given_gradient = gradient
        if gradient is not None:
            self._demands[_NO_GRADIENT] = check_gradient(self, gradient)

    # --- forms ---------------------------------------------------------------------------------
    def _make_auxiliary(self, equations: Mapping):
        # Inside of the method: most systems have none.
        from fdgeom.systems.poisson.auxiliary import Auxiliary

        made = Auxiliary(equations, self.forms.energy, self.state, self.forms.in_state)
        for function in made.functions:
            refuse_views("energy", self.forms.energy, function)
            if function in (self.state, *self.parts) or function.name() in self.names:
                raise ValueError(
                    f"auxiliary: {function.name()} is a part of the state, or named so"
                )
            for name in ("bracket", "pairing"):
                refuse_views(name, self.forms.stated()[name], function)
                if function in self.forms.stated()[name].coefficients():
                    raise ValueError(f"{name} must not hold the auxiliary {function.name()}")
        return made

    def pairing(self, a, b, at=None) -> Form:
        """The form ⟨a, b⟩ of functions of the state's space or tuples of parts, at the present
        state unless ``at`` gives another one.
        """
        return self.forms.of(self.forms.pairing, a, b, at)

    def bracket(self, a, b, at=None) -> Form:
        """The form {f, h}(z) for δf/δz = a, δh/δz = b, by default at the present state."""
        return self.forms.of(self.forms.bracket, a, b, at)

    def energy_form(self, at=None) -> Form:
        """The Hamiltonian as a functional, at the present state or another one."""
        return substitute(self.forms.energy, self.forms.at(at))

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

    def energies(self) -> dict[str, Form]:
        """The Hamiltonian, ``"energy"``, and its parts if the system knows them."""
        self._update_auxiliary()
        return {"energy": self.energy_form()}

    def casimirs(self) -> dict[str, Form]:
        return {k: substitute(f, self.forms.at(None)) for k, f in self.forms.casimirs.items()}

    # --- the state -------------------------------------------------------------------------------
    def _check_state(self) -> None:
        """Raise ``ValueError`` if a part of the state is not finite."""
        self._check_finite(dict(zip(self.names, self.parts, strict=True)))

    def _update_auxiliary(self) -> None:
        """Solve for the auxiliary functions of the present state, if there are any."""
        if self.auxiliary is not None:
            self.auxiliary.update()

    def energy(self) -> float:
        self._update_auxiliary()
        return super().energy()

    # --- what the steppers ask -------------------------------------------------------------------
    def check_start(self) -> None:
        self._check_state()
        self._update_auxiliary()
        if not self._structure_is_known:
            self._demands |= demands(self)
            warn_of_casimirs(self)
            self._structure_is_known = True
        self.consistency.prepare()

    model: cached_property[Model] = cached_property(PoissonModel)

    consistency: cached_property[Consistency] = cached_property(
        lambda self: (Consistency if self.auxiliary is None else AuxiliaryConsistency)(self)
    )

    substeps: cached_property[Substeps] = cached_property(PoissonSubsteps)

    def gradient(
        self, state: Sequence[Expr], auxiliary: Sequence[Expr] = ()
    ) -> tuple[Expr, ...] | None:
        """δh/δz as pointwise expressions of the parts ``state``; None if there are none.

        With auxiliary functions also of their values and multipliers ``auxiliary``.
        """
        found = self._given_gradient or self.forms.density_gradient
        if found is None:
            return None
        given = found(tuple(state) if len(self.parts) > 1 else state[0])
        given = parts_of(given, self.forms.shapes, "gradient")
        if auxiliary:
            more = self.auxiliary.at(auxiliary)
            given = tuple(replace(expand_derivatives(part), more) for part in given)
        return given


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
