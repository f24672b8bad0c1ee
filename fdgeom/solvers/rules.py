"""Derivatives of dependent fields by their sources."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from firedrake import Cofunction, Function, TestFunction, assemble, interpolate
from ufl import derivative
from ufl.algorithms import expand_derivatives
from ufl.classes import Form, Zero
from ufl.core.expr import Expr

from fdgeom.forms import is_zero, simplify, slope_by
from fdgeom.operations import ArrayOperation, parts


class Dependence(Protocol):
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

    def bent(self, source: Function, change: Function) -> "Dependence | None":
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


class FieldUpdate(ArrayOperation):
    """The update of a dependent field, for derivatives by some of its sources."""

    # Derivatives by the field itself remain beside those by its sources.
    replaces = False

    def __init__(self, field: Function, sources: Sequence[Function], rule: Dependence) -> None:
        super().__init__()
        self.field, self._sources, self._rule = field, tuple(sources), rule

    @property
    def reads(self) -> list[Function]:
        return list(self._sources)

    @property
    def writes(self) -> list[Function]:
        return [self.field]

    def run(self) -> None:
        """Nothing: the field is up to date."""

    def tangents(self, dots):
        values = np.zeros(self.field.dat.data_ro.shape)
        for source, dot in zip(self._sources, dots, strict=True):
            if dot is not None:
                values += self._rule.along(self.field, source, dot)
        if self._rule.inverse:
            inverse = self.field.dat.data_ro
            values = -inverse @ values @ inverse
        return [values]

    def cotangents(self, bars):
        (bar,) = bars
        if self._rule.inverse:
            x = np.swapaxes(self.field.dat.data_ro, -1, -2)
            bar = -x @ bar @ x
        return [self._rule.across(self.field, source, bar) for source in self._sources]

    def cotangent_rates(self, bars, dots):
        (bar,), bent = bars, []
        if self._rule.inverse:
            # The derivative of -XᵀāXᵀ, with the inverse X.
            x, dx = self.field.dat.data_ro, self.tangents(dots)[0]
            x, dx = (np.swapaxes(v, -1, -2) for v in (x, dx))
            bent.append((self._rule, -dx @ bar @ x - x @ bar @ dx))
            bar = -x @ bar @ x
        for source, dot in zip(self._sources, dots, strict=True):
            rule = None if dot is None else self._rule.bent(source, dot)
            if rule is not None:
                bent.append((rule, bar))
        found = []
        for source in self._sources:
            total = [np.zeros(part.dat.data_ro.shape) for part in parts(source)]
            for rule, bar in bent:
                slope = rule.across(self.field, source, bar)
                if slope is not None:
                    for values, part in zip(total, parts(slope), strict=True):
                        values += part.dat.data_ro
            found.append(total)
        return found
