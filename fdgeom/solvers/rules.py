"""Derivatives of dependent fields by their sources."""

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
    """How a field depends on its sources: tangent, adjoint and second derivative."""

    #: Whether the field holds the inverses of the matrices made of the sources; the methods are those
    #: of the matrices themselves.
    inverse: bool

    def along(self, field: Function, source: Function, change: Function) -> np.ndarray:
        """The derivative of the field (before inversion) along a change of a source, in owned rows."""
        ...

    def across(self, field: Function, source: Function, bar: np.ndarray) -> Cofunction | None:
        """The cotangent of a source for the cotangent of the field (before inversion); None for zero."""
        ...

    def bent(self, source: Function, change: Function) -> "Rule | None":
        """The derivative of this rule in the direction of a change of a source; None if it is linear."""
        ...


@dataclass(frozen=True)
class Interpolated:
    """A field that is the interpolant of an expression."""

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
    """A field with the values of a linear form, each multiplied by a weight of its own."""

    #: form(w) is the form, linear in the test function or the Function w.
    form: Callable[[Expr], Form]
    #: Weights of the rows that this rank owns.
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
    """A Function of a Real space that equals another one."""

    inverse = False

    def along(self, field: Function, source: Function, change: Function) -> np.ndarray:
        return np.array(change.dat.data_ro)

    def across(self, field: Function, source: Function, bar: np.ndarray) -> Cofunction:
        found = Cofunction(source.function_space().dual())
        found.dat.data_wo[...] = bar
        return found

    def bent(self, source: Function, change: Function) -> None:
        return None
