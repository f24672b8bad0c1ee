"""How fields follow what they are made of, for those who differentiate them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from firedrake import Cofunction, Function, TestFunction, assemble, interpolate
from ufl import derivative
from ufl.algorithms import expand_derivatives
from ufl.classes import Form, Zero
from ufl.core.expr import Expr

from fdgeom.forms import is_zero, simplify, slope_by


class Rule(Protocol):
    """How a field follows its sources.

    Attributes
    ----------
    inverse : bool
        Whether it holds the inverses of the matrices that are made of them.
    """

    inverse: bool

    def along(self, field: Function, source: Function, change: Function) -> np.ndarray:
        """How the field, not inverted, changes with a source: what this rank owns."""
        ...

    def across(self, field: Function, source: Function, bar: np.ndarray) -> Cofunction | None:
        """The cotangent of a source from that of the field, not inverted; None where it is zero."""
        ...

    def bent(self, source: Function, change: Function) -> "Rule | None":
        """The rule's own derivative as a source changes; None where it is linear."""
        ...


@dataclass(frozen=True)
class Interpolated:
    """A field that is the interpolant of an expression.

    Attributes
    ----------
    expression : UFL expression
        What it is the interpolant of.
    inverse : bool
        As of :class:`Rule`.
    """

    expression: Expr
    inverse: bool = False

    def along(self, field: Function, source: Function, change: Function) -> np.ndarray:
        slope = expand_derivatives(derivative(self.expression, source, change))
        return np.array(Function(field.function_space()).interpolate(slope).dat.data_ro)

    def across(self, field: Function, source: Function, bar: np.ndarray) -> Cofunction | None:
        test = TestFunction(source.function_space())
        slope = expand_derivatives(derivative(self.expression, source, test))
        if isinstance(slope, Zero):
            return None
        work = Cofunction(field.function_space().dual())
        work.dat.data_wo[...] = bar
        return assemble(interpolate(slope, work))

    def bent(self, source: Function, change: Function) -> "Interpolated":
        return Interpolated(expand_derivatives(derivative(self.expression, source, change)))


@dataclass(frozen=True)
class Summed:
    """A field whose values are those of a linear form, each times a weight of its own.

    Attributes
    ----------
    form : callable
        ``form(w)`` is the form, linear in the test function or the Function w.
    weights : numpy.ndarray
        Of what this rank owns.
    inverse : bool
        As of :class:`Rule`.
    """

    form: Callable[[Expr], Form]
    weights: np.ndarray
    inverse: bool = False

    def along(self, field: Function, source: Function, change: Function) -> np.ndarray:
        slope = simplify(
            derivative(self.form(TestFunction(field.function_space())), source, change)
        )
        if is_zero(slope):
            return np.zeros(field.dat.data_ro.shape)
        return self.weights * assemble(slope).dat.data_ro

    def across(self, field: Function, source: Function, bar: np.ndarray) -> Cofunction | None:
        weighted = Function(field.function_space())
        weighted.dat.data_wo[...] = self.weights * bar
        slope = slope_by(self.form(weighted), source)
        return None if slope is None else assemble(slope)

    def bent(self, source: Function, change: Function) -> "Summed | None":
        def bent(w: Expr) -> Form:
            return simplify(derivative(self.form(w), source, change))

        return Summed(bent, self.weights)


class Copied:
    """A number, a Function of a Real space, that is the same as another one."""

    inverse = False

    def along(self, field: Function, source: Function, change: Function) -> np.ndarray:
        return np.array(change.dat.data_ro)

    def across(self, field: Function, source: Function, bar: np.ndarray) -> Cofunction:
        found = Cofunction(source.function_space().dual())
        found.dat.data_wo[...] = bar
        return found

    def bent(self, source: Function, change: Function) -> None:
        return None
