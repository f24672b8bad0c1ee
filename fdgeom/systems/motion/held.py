"""Degrees of freedom of a motion that are held, or prescribed in time."""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import ufl
from firedrake import DirichletBC, Function
from ufl.algorithms import expand_derivatives
from ufl.classes import Expr, Zero
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.compat import given_value
from fdgeom.data import fields
from fdgeom.messages import is_function, reported_as
from fdgeom.operations import Copy, Interpolation, Performed, dofs_of, parts
from fdgeom.operations.dependent import Sources
from fdgeom.systems.boundary_conditions import (
    GivenValues,
    check_effect,
    conditions,
    described,
)


class Held(ABC):
    """Degrees of freedom of a motion that are given."""

    #: For each part of the space of the velocity: indices into its flat local values.
    dofs: list[np.ndarray]
    #: Whether some change in time.
    varies: bool
    #: After `update`, the increment to the given configuration at the motion's time, and the
    #: velocity and acceleration there; all are zero elsewhere.
    increment: Function
    v: Function
    a: Function

    #: The given values that are UFL expressions without the time: what they hold is at rest.
    at_rest: tuple[Expr, ...] = ()

    @abstractmethod
    def expressions(self) -> tuple[Expr, ...]:
        """The given values that are UFL expressions."""

    def parameters(self) -> dict[str, object]:
        """Their places and constant values, for checkpoints; none in general."""
        return {}

    @abstractmethod
    def update(self) -> None:
        """Evaluate the given values, at the motion's time and from its present configuration."""

    def assignments(self, t: Expr) -> dict[Function, Expr] | None:
        """The values set by :meth:`update` for a time, as expressions at all nodes, or None."""
        return None

    @abstractmethod
    def put(self) -> None:
        """Set the given configuration and velocity in the motion."""

    @abstractmethod
    def fixed(self) -> list[tuple[Function, np.ndarray]]:
        """The functions that :meth:`put` sets, and the indices of their flat local values."""

    def putting(self, **timed) -> Performed:
        """:meth:`put` as an operation; the values depend on nothing."""
        copies = [Copy(source=None, target=f, rows=dofs) for f, dofs in self.fixed()]
        return Performed(do=self.put, operations=copies, **timed)

    @abstractmethod
    def check_start(self) -> None:
        """Raise ``ValueError`` if the start contradicts the given values."""

    def check_new_configuration(self) -> None:  # noqa: B027
        """Raise ``ValueError`` if a configuration was set far from the given values, where :meth:`put`
        would tear it.
        """


class GivenMotion(Held):
    """Degrees of freedom that follow q = g(t), with v = ġ and v̇ = g̈ by automatic differentiation."""

    # `bcs` are DirichletBCs on the space of q or its parts, or a function of the time that gives
    # them. After `update`, `q` holds the given values, and zero elsewhere.
    def __init__(self, bcs, motion) -> None:
        self._motion, space = motion, motion.configuration[0].function_space()
        self.q, self.v, self.a, self.increment = (Function(space) for _ in range(4))
        #: The third derivatives of the given values after :meth:`update_jerk`; zero elsewhere.
        self.jerk = Function(space)
        symbol = ufl.variable(motion.time)
        if is_function(bcs):
            with reported_as("bcs: the function of t gives no DirichletBCs"):
                bcs = bcs(symbol)
        self.conditions = bcs = conditions("bcs", bcs)
        for bc in bcs:
            _check(bc, space)
        values = [given_value(bc) for bc in bcs]
        rates = [_rate(value, symbol) for value in values]
        second = [_rate(rate, symbol) for rate in rates]
        self._second, self._symbol = second, symbol
        # Also where the rates vanish, as of a value that jumps.
        given = [g for g in values if isinstance(g, Expr)]
        self.at_rest = tuple(
            g for g in given if not any(e is symbol for e in unique_pre_traversal(g))
        )
        self.varies = len(self.at_rest) < len(given)
        self._groups = []
        for target, found in ((self.q, values), (self.v, rates), (self.a, second)):
            group = [_Value(bc, 0 if g is None else g) for bc, g in zip(bcs, found, strict=True)]
            self._groups.append((target, group))
        #: Given degrees of freedom, for each part of the space: indices into its flat local values.
        self.dofs = self._find(bcs, space)
        self._given = GivenValues(bcs)
        self._values = tuple(given)
        self._read = Sources(*self._values)
        (q,) = motion.configuration
        self._shifts = list(zip(fields(self.increment), fields(self.q), fields(q), strict=True))
        self.update()
        check_effect("bcs", bcs, space)

    def expressions(self) -> tuple[Expr, ...]:
        """The given values, where they are no numbers."""
        return self._values

    def check_data(self) -> None:
        """Raise ``ValueError`` if a given value was replaced."""
        self._given.check()

    def parameters(self):
        return described(self.conditions)

    @staticmethod
    def _find(bcs, space) -> list[np.ndarray]:
        found = [[np.empty(0, dtype=int)] for _ in space]
        for bc in bcs:
            whole = bc.function_space()
            whole = whole if whole.component is None else whole.parent
            found[whole.index or 0].append(dofs_of(bc))
        return [np.unique(np.concatenate(dofs)) for dofs in found]

    def update(self) -> None:
        """Evaluate the given values that have changed, at the motion's time and configuration."""
        if self._read.changed():
            self._read.take()
            for target, group in self._groups:
                for value in group:
                    value.apply(target)
        for (shift, wanted, now), dofs in zip(self._shifts, self.dofs, strict=True):
            shift.array.reshape(-1)[dofs] = wanted.at(dofs) - now.at(dofs)
            shift.written(ghosts_too=True)

    def update_jerk(self) -> None:
        """Evaluate the third derivatives, which starts alone need, at the motion's time."""
        for value in self._jerks:
            value.apply(self.jerk)

    @cached_property
    def _jerks(self) -> list["_Value"]:
        thirds = [_rate(rate, self._symbol) for rate in self._second]
        pairs = zip(self.conditions, thirds, strict=True)
        return [_Value(bc, 0 if third is None else third) for bc, third in pairs]

    def put(self) -> None:
        self.update()
        (q,) = self._motion.configuration
        for target, source in ((q, self.q), (self._motion.v, self.v)):
            for t, s, dofs in zip(fields(target), fields(source), self.dofs, strict=True):
                t.array.reshape(-1)[dofs] = s.array.reshape(-1)[dofs]
                t.written()

    def fixed(self):
        (q,) = self._motion.configuration
        pairs = zip(parts(q), parts(self._motion.v), self.dofs, strict=True)
        return [(f, dofs) for *both, dofs in pairs for f in both]

    def check_start(self) -> None:
        """Nothing, since the start is set to the given values."""


class _Value:
    """A DirichletBC with one value, interpolated by cached kernels."""

    def __init__(self, bc: DirichletBC, value) -> None:
        self._update = None
        if isinstance(value, Expr) and not isinstance(value, (Function, Zero)):
            try:
                made = Interpolation(value, bc.function_space())
                self._update, value = made.apply, made.values
            except NotImplementedError:
                pass  # an element that DirichletBC has to project to
        self._bc = bc.reconstruct(g=value)

    def apply(self, function: Function) -> None:
        """Set the values in a function."""
        if self._update is not None:
            self._update()
        self._bc.apply(function)


def _check(bc, space) -> None:
    whole = bc.function_space()
    while whole.parent is not None:
        whole = whole.parent
    if whole != space:
        raise ValueError("bcs: a DirichletBC must be on the space of q, or on a part of it")


def _rate(value, symbol: Expr) -> Expr | None:
    """dg/dt, or None if g does not depend on the time."""
    if not isinstance(value, Expr):
        return None
    rate = expand_derivatives(ufl.diff(value, symbol))
    return None if isinstance(rate, Zero) else rate
