"""The forms of a Poisson system: energy, bracket and pairing, at its state or any other."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from firedrake import Function, TestFunction, TrialFunction, derivative, split
from ufl.classes import Expr, Form

from fdgeom.forms import (
    check_depends,
    checked_form,
    copy_into,
    depends_on,
    flatten,
    form_of,
    parts_of,
    substitute,
    with_fixed_quadrature,
)
from fdgeom.messages import format_value
from fdgeom.systems.boundary_conditions import described
from fdgeom.systems.poisson.auxiliary import Auxiliary
from fdgeom.systems.system import System
from fdgeom.taping import not_taped
from fdgeom.validation import firedrake_function, instance

_EXAMPLES = {"bracket": "(a[0]*b[1] - a[1]*b[0])", "pairing": "inner(a, b)"}


class PoissonForms(System):
    """State, energy, bracket and pairing of a Poisson system, as forms at any state.

    For authors: ``auxiliary``, ``bracket``, ``casimir_derivatives``, ``check_state``,
    ``companions``, ``energy_degree``, ``energy_derivative``, ``energy_form``,
    ``energy_in_state``, ``forcing``, ``forms``, ``frozen_gradient``, ``gather_state``,
    ``gradient``, ``has_pointwise_density``, ``lagrangian_form``, ``names``, ``pairing``,
    ``pairing_varies``, ``parts``, ``shapes``, ``space``, ``stage``, ``start_values``, ``test``,
    ``trial``, ``update_auxiliary``, ``whole``, ``with_energy``.
    """

    #: Whether the forms are right beyond doubt: they are then made when they are first asked for, and
    #: ``energy`` is a function that gives it.
    _forms_are_known = False
    #: Whether bracket and pairing are what they must be beyond doubt.
    _structure_is_known = False

    def __init__(
        self,
        state: Function,
        energy: Form,
        bracket: Callable,
        pairing: Callable,
        *,
        names: Sequence[str] | None,
        casimirs: Mapping[str, Form] | None,
        auxiliary: Mapping[Function, Form] | None,
        parts: Sequence[Function] | None,
    ) -> None:
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
        given = given() if self._forms_are_known else given
        if not self._forms_are_known:
            given = checked_form("energy", given, mesh=self.mesh)
        energy = self._in_terms_of_state(given)
        return with_fixed_quadrature(energy, self.state)

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

    def _make_auxiliary(self, equations: Mapping) -> Auxiliary:
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
    def energy_in_state(self) -> Form:
        """The Hamiltonian as a functional of ``state``, whatever Functions hold its parts."""
        return self._energy

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

    # --- as a system ---------------------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        found = dict(zip(self.names, self.parts, strict=True))
        if self.auxiliary is not None:
            found |= dict(zip(self.auxiliary.names, self.auxiliary.functions, strict=True))
        return found

    def parameters(self):
        bcs = () if self.auxiliary is None else self.auxiliary.bcs
        return {f"auxiliary {k}": described(held) for k, held in enumerate(bcs)}

    def equations(self) -> dict[str, Form | Expr]:
        given = () if self.auxiliary is None else self.auxiliary.boundary_values()
        stated = dict(zip(("energy", "bracket", "pairing"), self.forms, strict=True))
        values = {f"boundary value {k}": value for k, value in enumerate(given)}
        return stated | self._elliptic() | values

    def all_forms(self) -> tuple[Form | Expr, ...]:
        return tuple(self.equations().values())

    def _elliptic(self) -> dict[str, Form]:
        """The equations of the auxiliary functions, by their names."""
        return {} if self.auxiliary is None else self.auxiliary.equations

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
