"""Boundary conditions of a second-order motion: displacement, velocity and acceleration given."""

from __future__ import annotations

import numpy as np
import ufl
from firedrake import Constant, DirichletBC, Function
from ufl.algorithms import expand_derivatives
from ufl.core.expr import Expr

from fdgeom.solvers.data import fields


class GivenMotion:
    """Degrees of freedom that follow q = g(t), and so v = ġ and v̇ = g̈ by automatic differentiation.

    Parameters
    ----------
    bcs : callable or sequence of DirichletBC
        ``bcs(t)`` gives DirichletBCs on the space of q (or parts of it) whose values are UFL
        expressions of the time t. A sequence holds q at values that do not change.
    space : FunctionSpace
        The space of q.
    time : Constant
        The time that the values are read at.

    Attributes
    ----------
    q, v, a : Function
        The given values, after :meth:`update`; zero elsewhere.
    moves : bool
        Whether they change in time.

    Raises
    ------
    TypeError, ValueError
        If something else than DirichletBCs on the space of q is given.
    """

    def __init__(self, bcs, space, time: Constant) -> None:
        self.q, self.v, self.a = (Function(space) for _ in range(3))
        symbol = ufl.variable(time)
        if callable(bcs) and not isinstance(bcs, DirichletBC):
            bcs = bcs(symbol)
        bcs = (bcs,) if isinstance(bcs, DirichletBC) else tuple(bcs)
        for bc in bcs:
            _check(bc, space)
        values = [bc._original_arg for bc in bcs]
        rates = [_rate(value, symbol) for value in values]
        self.moves = any(rate is not None for rate in rates)
        self._groups = []
        for target, order in ((self.q, 0), (self.v, 1), (self.a, 2)):
            found = [_differentiated(value, symbol, order) for value in values]
            pairs = zip(bcs, found, strict=True)
            group = [bc.reconstruct(g=0 if g is None else g) for bc, g in pairs]
            self._groups.append((target, group))
        #: Given degrees of freedom, for each part of the space: indices into its flat local values.
        self.dofs = self._find(bcs, space)
        self._evaluated = False
        self.update()

    @staticmethod
    def _find(bcs, space) -> list[np.ndarray]:
        mark = Function(space)
        for bc in bcs:
            shape = bc.function_space().value_shape
            bc.reconstruct(g=Constant(np.ones(shape)) if shape else Constant(1.0)).apply(mark)
        return [np.flatnonzero(field.array.reshape(-1)) for field in fields(mark)]

    def update(self) -> None:
        """Evaluate the given values at the present time."""
        if self._evaluated and not self.moves:
            return
        self._evaluated = True
        for target, group in self._groups:
            for bc in group:
                bc.apply(target)


def _check(bc, space) -> None:
    if not isinstance(bc, DirichletBC):
        raise TypeError(f"bcs must give DirichletBC objects, not {type(bc).__name__}")
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
    return None if isinstance(rate, ufl.classes.Zero) else rate


def _differentiated(value, symbol: Expr, order: int):
    for _ in range(order):
        value = None if value is None else _rate(value, symbol)
    return value
