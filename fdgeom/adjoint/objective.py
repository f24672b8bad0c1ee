"""Functionals of a run, with their derivatives by the state."""

from firedrake import Form

from fdgeom.adjoint.values import Vectors, keys, parts
from fdgeom.execution import FunctionalAssembly, VectorAssembly
from fdgeom.forms import slope_by


class Slopes:
    """A functional and its derivatives by all functions that steps change or that depend on data."""

    def __init__(self, form: Form, active: set[int]) -> None:
        self.form, self._value = form, FunctionalAssembly(form)
        self._slopes = []
        for f in form.coefficients():
            if keys([f]) & active and (slope := slope_by(form, f)) is not None:
                self._slopes.append((f, VectorAssembly(slope)))

    @property
    def by(self) -> set[int]:
        """The keys of the functions that it has derivatives by."""
        return keys(f for f, _ in self._slopes)

    def add_to(self, cotangents: Vectors) -> float:
        """Add its present derivatives to cotangents; returns its present value."""
        for f, slope in self._slopes:
            for part, values in zip(parts(f), slope.values(), strict=True):
                cotangents.add(part, values)
        return self._value.assemble()


class Objective:
    """A functional of the state after the last step, and one of that after each step; or neither."""

    def __init__(self, end: Slopes | None = None, each: Slopes | None = None) -> None:
        self._end, self._each = end, each
        #: The value of what has been added.
        self.value = 0.0

    @property
    def running(self) -> Form | None:
        """The functional of the state after each step."""
        return None if self._each is None else self._each.form

    @property
    def by(self) -> set[int]:
        """The keys of the functions that it has derivatives by."""
        return set().union(*(part.by for part in (self._end, self._each) if part is not None))

    def add(self, cotangents: Vectors, *, last: bool, running: bool = True) -> None:
        """Add the derivatives at the state after a step to cotangents, and the value to ``value``."""
        for part, counts in ((self._end, last), (self._each, running)):
            if part is not None and counts:
                self.value += part.add_to(cotangents)
