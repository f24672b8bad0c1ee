"""Functionals of a run, with their derivatives by the state."""

from dataclasses import dataclass

from firedrake import Form

from fdgeom.adjoint.values import Vectors, keys, parts
from fdgeom.execution import FunctionalAssembly, VectorAssembly
from fdgeom.forms import slope_by


class Slopes:
    """A functional and its derivatives by all functions that steps change or that depend on data."""

    def __init__(self, form: Form, active: set[int]) -> None:
        self.form, self._value = form, FunctionalAssembly(form)
        found = [(f, slope_by(form, f)) for f in form.coefficients() if keys([f]) & active]
        self._slopes = [(f, VectorAssembly(slope)) for f, slope in found if slope is not None]
        #: The keys of the functions that it has derivatives by.
        self.by = keys(f for f, _ in self._slopes)

    def add_to(self, cotangents: Vectors) -> float:
        """Add its present derivatives to cotangents; returns its present value."""
        for f, slope in self._slopes:
            for part, values in zip(parts(f), slope.values(), strict=True):
                cotangents.add(part, values)
        return self._value.assemble()


@dataclass
class Objective:
    """A functional of the state after the last step, and one of that after each step; or neither."""

    end: Slopes | None = None
    each: Slopes | None = None
    #: The value of what has been added.
    value: float = 0.0

    @property
    def running(self) -> Form | None:
        """The functional of the state after each step."""
        return None if self.each is None else self.each.form

    @property
    def by(self) -> set[int]:
        """The keys of the functions that it has derivatives by."""
        return set().union(*(part.by for part in (self.end, self.each) if part is not None))

    def add(self, cotangents: Vectors, *, last: bool, running: bool = True) -> None:
        """Add the derivatives at the state after a step to cotangents, and the value to ``value``."""
        for part, counts in ((self.end, last), (self.each, running)):
            if part is not None and counts:
                self.value += part.add_to(cotangents)
