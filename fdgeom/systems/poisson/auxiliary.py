"""Functions in an energy that a linear elliptic form determines from the state."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from firedrake import DirichletBC, Function, MixedFunctionSpace, TestFunctions, derivative, split
from ufl.algorithms import replace
from ufl.classes import Expr, Form

from fdgeom.compat import given_value
from fdgeom.errors import SolveFailed
from fdgeom.execution import HeldSNES, Numerics, defaults, perform
from fdgeom.forms import (
    checked_form,
    copy_into,
    depends_on,
    has_kink,
    is_affine,
    refuse_views,
    simplify,
    substitute,
    with_fixed_quadrature,
)
from fdgeom.messages import format_value
from fdgeom.operations import Copy, Performed, Prescribed, dofs_of
from fdgeom.operations.dependent import Sources, read_in
from fdgeom.systems.boundary_conditions import check_effect, conditions, described
from fdgeom.taping import not_taped

# Between solutions from two guesses, relative: what a regular matrix leaves, and a singular does not.
_SAME = 1e-6
_IN_PYTHON = "values of boundary conditions are evaluated in Python before each solve"


class Auxiliary:
    """Functions ψ(z) with F(ψ, z; φ) = 0 for all tests φ, and their multipliers λ."""

    # The derivative of h(z, ψ(z)) is that of L = h + F(ψ, z; λ) by z alone, at the λ for which L is
    # stationary in ψ: one linear solve for ψ, and one with the transposed matrix for λ.
    # `equations` has for each ψ the form F with its test function, or that and the boundary
    # conditions; `energy` is h in terms of `state`, and `in_state` writes a form so.
    def __init__(
        self, equations: Mapping, energy: Form, state: Function, in_state: Callable[[Form], Form]
    ) -> None:
        self.functions = tuple(equations)
        _check_functions(self.functions)
        self.multipliers = tuple(
            Function(f.function_space(), name=f"multiplier of {f.name()}") for f in self.functions
        )
        forms, self.bcs = [], []
        for function, given in equations.items():
            form, bcs = (
                given if isinstance(given, list | tuple) and len(given) == 2 else (given, ())
            )
            form = in_state(_check_form(function, form))
            refuse_views(f"auxiliary[{function.name()}]", form, state, *self.functions)
            forms.append(form)
            self.bcs.append(_check_conditions(function, bcs))
        #: The forms F by the names of the ψ, in terms of the state.
        self.equations = dict(zip(self.names, forms, strict=True))
        constraint = Form([])
        for form, multiplier in zip(forms, self.multipliers, strict=True):
            (test,) = form.arguments()
            constraint += simplify(replace(form, {test: multiplier}))
        for function in self.functions:
            if not depends_on(constraint, function) or not is_affine(constraint, function):
                raise ValueError(
                    f"auxiliary: the forms must be of first degree in {function.name()}, so that it "
                    "follows from the state by a linear solve"
                )
        for k, function in enumerate(self.functions):
            others = [f for f in (state, *self.functions) if f is not function]
            if not any(depends_on(forms[k], f) for f in others):
                raise ValueError(
                    f"auxiliary[{function.name()}] must depend on the state: write the form with the "
                    "Functions that the system is given"
                )
            if not any(
                depends_on(form, function) for form in (energy, *forms[:k], *forms[k + 1 :])
            ):
                raise ValueError(
                    f"auxiliary: {function.name()} must occur in the energy, or in the form of a function "
                    "that does; leave it out"
                )
        constraint = with_fixed_quadrature(constraint, state)
        #: L, in terms of the state.
        self.lagrangian = energy + constraint
        #: Whether the ψ are of first degree in the state.
        self.is_affine = _jointly_affine(constraint, state, self.functions)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the ψ."""
        return tuple(f.name() for f in self.functions)

    @property
    def spaces(self) -> list:
        """The spaces of the ψ and the λ."""
        return [f.function_space() for f in (*self.functions, *self.multipliers)]

    def at(self, fields: Sequence[Expr] | None) -> dict[Expr, Expr]:
        """Substitutes for the ψ and the λ: none, or ``fields``."""
        if not fields:
            return {}
        return dict(zip((*self.functions, *self.multipliers), fields, strict=True))

    def conditions(self, fields: Sequence[Expr], tests: Sequence[Expr]) -> Form:
        """F(ψ, z; φ) and ∂L/∂ψ, for ``fields`` (ψ, λ) and as many ``tests``, with F in the rows of
        the ψ, so that the diagonal is elliptic.
        """
        by = (*self.multipliers, *self.functions)
        form = Form([])
        for symbol, test in zip(by, tests, strict=True):
            form += derivative(self.lagrangian, symbol, test)
        return substitute(simplify(form), self.at(fields))

    def prescribed(self, first: int) -> tuple[Prescribed, ...]:
        """The given degrees of freedom, where the ψ and λ are the parts from ``first`` on."""
        held = []
        for k, (psi, bcs) in enumerate(zip(self.functions, self.bcs, strict=True)):
            for bc in bcs:
                value, dofs = Function(psi.function_space(), name="prescribed"), dofs_of(bc)
                # At every solve, since the values may change.
                before = Performed(
                    do=partial(bc.apply, value),
                    operations=[Copy(source=None, target=value)],
                    why_not_compiled=_IN_PYTHON,
                )
                held += [
                    Prescribed(dofs, value, first + k, [before]),
                    Prescribed(dofs, part=first + len(self.functions) + k),
                ]
        return tuple(held)

    def parameters(self) -> dict[str, object]:
        """The boundary conditions, for a checkpoint."""
        return {f"auxiliary {k}": described(bcs) for k, bcs in enumerate(self.bcs)}

    def boundary_values(self) -> tuple[Expr, ...]:
        """The values of boundary conditions that are UFL expressions."""
        values = (given_value(bc) for bcs in self.bcs for bc in bcs)
        return tuple(value for value in values if isinstance(value, Expr))

    # --- at the present state --------------------------------------------------------------------
    def prepare(self, at_present: Callable[[Form], Form]) -> None:
        """Make the solver; ``at_present`` evaluates a form at the present state."""
        space = MixedFunctionSpace(self.spaces)
        unknown = Function(space, name="auxiliary")
        conditions = self.conditions(split(unknown), TestFunctions(space))
        residual = simplify(at_present(conditions))
        # Sources of dependent functions too, which are updated by the solve alone.
        own = *self.functions, *self.multipliers
        self._read = Sources(*own, *read_in(residual, *self.boundary_values()))
        self._unknown, prescribed = unknown, self.prescribed(0)
        self._before = [op for p in prescribed for op in p.before]
        self._snes = HeldSNES(
            residual,
            unknown,
            Numerics(defaults(residual, unknown, local=False)),
            essential=prescribed,
            name=" and ".join(self.names),
        )

    def holds(self) -> bool:
        """Whether nothing has changed since the last solve."""
        return not self._read.changed()

    @not_taped
    def update(self) -> None:
        """Solve for the ψ and λ of the present state, unless nothing has changed."""
        if self.holds():
            return
        perform(self._before, {})
        self._snes.solve()
        for target, piece in zip(
            (*self.functions, *self.multipliers), self._unknown.subfunctions, strict=True
        ):
            copy_into(target, piece)
        self._read.take()

    def check(self) -> None:
        """Raise ``ValueError`` if the forms do not determine the ψ."""
        found, rng = [], np.random.default_rng(0)
        for size in (0.0, 1.0):
            for piece in self._unknown.subfunctions:
                values = piece.dat.data_wo
                values[...] = size * rng.uniform(-1, 1, values.shape)
            try:
                self.update()
            except SolveFailed as failure:
                raise ValueError(f"{self._undetermined()} ({failure})") from failure
            found.append([np.array(f.dat.data_ro) for f in self.functions])
        comm = self.functions[0].function_space().comm
        for function, one, other in zip(self.functions, *found, strict=True):
            gap, scale = np.abs(one - other).max(initial=0.0), np.abs(one).max(initial=0.0)
            # From a random guess of the size 1, the solution carries that times round-off.
            if not max(comm.allgather(gap)) <= _SAME * max(1.0, *comm.allgather(scale)):
                raise ValueError(self._undetermined(function.name()))

    def _undetermined(self, name: str | None = None) -> str:
        return (
            f"auxiliary: the form does not determine {name or ' and '.join(self.names)}; give "
            "boundary conditions, auxiliary={psi: (form, bcs)}, or a term that fixes what is free "
            "(such as the mean)"
        )


def _check_functions(functions: Sequence) -> None:
    for f in functions:
        if not isinstance(f, Function) or len(f.function_space()) > 1:
            raise TypeError(
                f"auxiliary: its keys must be Functions, not mixed, not {format_value(f)}"
            )
    if len({f.name() for f in functions}) < len(functions):
        raise ValueError("auxiliary: give the Functions different names")


def _check_form(function: Function, form) -> Form:
    name = f"auxiliary[{function.name()}]"
    form = checked_form(name, form, 1, function.function_space().mesh())
    if form.arguments()[0].function_space() != function.function_space():
        raise ValueError(f"{name} must have a test function of the space of {function.name()}")
    return form


def _check_conditions(function: Function, bcs) -> tuple[DirichletBC, ...]:
    name = f"auxiliary[{function.name()}]"
    bcs = conditions(f"{name}: boundary conditions", bcs)
    for bc in bcs:
        if bc.function_space() != function.function_space():
            raise ValueError(
                f"auxiliary: a DirichletBC must be on the space of {function.name()}, as a whole"
            )
    check_effect(name, bcs, function.function_space())
    return bcs


def _jointly_affine(constraint: Form, state: Function, functions: Sequence[Function]) -> bool:
    """Whether F has no products of state and ψ, nor of either with itself, and no kink."""
    if has_kink(simplify(constraint), state, *functions):
        return False
    for symbol in (state, *functions):
        slope = simplify(derivative(constraint, symbol, Function(symbol.function_space())))
        if any(depends_on(slope, other) for other in (state, *functions)):
            return False
    return True
