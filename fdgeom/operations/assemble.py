"""Derivatives of functionals, as vectors of degrees of freedom."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import ufl
from firedrake import Argument, Form, Function, derivative
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr

from fdgeom.forms import is_zero, rename, simplify
from fdgeom.operations.copy import Copy, zero_rest
from fdgeom.operations.operation import Cotangents, Operation, Tangents, Work
from fdgeom.validation import instance


@dataclass(frozen=True, kw_only=True, eq=False)
class Assemble(Operation):
    """Sets Functions to the derivatives of a functional by others, or adds these.

    The values that a target gets are degrees of freedom of a Cofunction: the derivatives by the
    degrees of freedom of the other Function.

    Parameters
    ----------
    work : Form or UFL expression
        The functional; an expression means its sum over the nodes that its Functions share.
    by : dict
        Functions in the functional, and for each the target, a Function of the same space. For a
        form that is linear in a test function its key is the test function.
    adds : collection of Functions, optional
        The targets to which the derivatives are added.
    dt, fraction, clock, at
        As for every operation: the symbols for its length and its time.

    Raises
    ------
    TypeError
        If ``work`` is no form or expression, or ``by`` is no dict of Functions.
    ValueError
        If ``by`` is empty, a target has another space, or ``adds`` names others than targets.

    Notes
    -----
    All derivatives are computed before any target is written, so the functional may read targets.
    """

    work: Work
    by: Mapping[Function, Function]
    adds: Collection[Function] = frozenset()

    def __post_init__(self) -> None:
        instance("work", self.work, Form | Expr, "a form or a UFL expression")
        instance("by", self.by, Mapping, "a dict of Functions and their targets")
        if not self.by:
            raise ValueError("by is empty; give at least one Function and its target")
        self._name_arguments()
        for f, target in self.by.items():
            instance("by", f, Function, "a dict whose keys are Functions")
            instance("by", target, Function, "a dict whose values are Functions")
            if target.function_space().ufl_element() != f.function_space().ufl_element():
                raise ValueError(
                    f"by: the target for {f.name()!r} must be a Function of the same space"
                )
        if not set(self.adds) <= set(self.by.values()):
            raise ValueError("adds contains a Function that is no target; give only targets of by")

    def _name_arguments(self) -> None:
        """Put Functions in the place of test functions."""
        work, by = self.work, dict(self.by)
        for argument in [a for a in by if isinstance(a, Argument)]:
            test = Function(argument.function_space(), name="test")
            work, by[test] = rename(work, argument, test), by.pop(argument)
        object.__setattr__(self, "work", work)
        object.__setattr__(self, "by", by)

    @property
    def reads(self) -> list[Function]:
        return [*extract_coefficients(self.work), *self.adds]

    @property
    def writes(self) -> list[Function]:
        return list(self.by.values())

    def jvp(self, tangents: Tangents) -> list[Operation]:
        work = directional(self.work, {f: tangents[f] for f in self.reads if f in tangents})
        by = {f: tangents[t] for f, t in self.by.items() if t in tangents}
        adds = frozenset(tangents[t] for t in self.adds if t in tangents)
        return [Assemble(work=work, by=by, adds=adds, **self._timed())] if by else []

    def vjp(self, cotangents: Cotangents) -> list[Operation]:
        zeroes = [op for t in self.writes for op in zero_rest(self._timed(), t, cotangents)]
        along = {f: cotangents[t] for f, t in self.by.items() if t in cotangents}
        cotangents.drop([t for t in self.by.values() if t not in self.adds])
        if not along:
            return []
        return [*zeroes, *gradient(self._timed(), directional(self.work, along), cotangents)]


def directional(work: Work, along: Mapping[Function, Function]) -> Work:
    """The derivative of a functional along changes of Functions."""
    if isinstance(work, Form):
        return simplify(sum((derivative(work, f, d) for f, d in along.items()), Form([])))
    return sum((ufl.derivative(work, f, d) for f, d in along.items()), ufl.as_ufl(0.0))


def gradient(
    timed: dict, work: Work, cotangents: Cotangents, but: Collection[Function] = ()
) -> list[Operation]:
    """The operation that adds the derivatives of a functional to the cotangents of what it reads."""
    if isinstance(work, Form) and is_zero(work):
        return []
    by = [f for f in extract_coefficients(work) if cotangents.is_active(f) and f not in but]
    if not by:
        return []
    zeroes = [made for f in by for made in zero_rest(timed, f, cotangents)]
    for bar in [op.target for op in zeroes if op.target in extract_coefficients(work)]:
        # The operation has set a part of a mixed Function, which it also reads.
        own = Function(bar.function_space(), name=bar.name())
        zeroes.insert(0, Copy(source=bar, target=own, **timed))
        work = ufl.replace(work, {bar: own})
    adds = frozenset(cotangents[f] for f in by if f in cotangents)
    cotangents.add(by)
    targets = {f: cotangents[f] for f in by}
    return [*zeroes, Assemble(work=work, by=targets, adds=adds, **timed)]
