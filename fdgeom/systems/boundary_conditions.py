"""Boundary conditions as a user gives them: as a tuple, described, and checked for effect."""

from collections.abc import Sequence

import numpy as np
from firedrake import DirichletBC, Function
from ufl.classes import Expr

from fdgeom.compat import given_value
from fdgeom.validation import instances


def conditions(name: str, bcs) -> tuple[DirichletBC, ...]:
    """Boundary conditions as a tuple, whether a user gives one or a sequence of them."""
    return instances(name, bcs, DirichletBC, "DirichletBC objects")


def described(bcs: Sequence[DirichletBC]) -> dict[str, dict]:
    """Places and constant values of boundary conditions, for a checkpoint."""
    return {
        f"condition {k} of bcs": {
            "on": str(bc.sub_domain),
            "part": [bc.function_space().index, bc.function_space().component],
            "value": None if isinstance(given_value(bc), Expr) else given_value(bc),
        }
        for k, bc in enumerate(bcs)
    }


class GivenValues:
    """The values that a user gave boundary conditions, which are read from there on."""

    def __init__(self, bcs: Sequence[DirichletBC]) -> None:
        self._given = [(bc, given_value(bc)) for bc in bcs]

    def check(self) -> None:
        """Raise ``ValueError`` if a value was replaced, as ``set_value`` and ``homogenize`` do."""
        if not all(_is_same(given_value(bc), value) for bc, value in self._given):
            raise ValueError(
                "bcs: the value of a DirichletBC was replaced: give it a Constant or a Function, and "
                "assign to that"
            )


def _is_same(value, before) -> bool:
    expressions = isinstance(value, Expr), isinstance(before, Expr)
    if any(expressions):
        return all(expressions) and (value is before or bool(value == before))
    return np.array_equal(value, before)


def check_effect(name: str, bcs: Sequence[DirichletBC], space) -> None:
    """Raise ``ValueError`` if a condition's values are all replaced by those of later ones."""
    if len(bcs) < 2:
        return
    final, alone = Function(space), []
    for bc in bcs:
        own = Function(space)
        for part in own.subfunctions:
            part.dat.data_wo[...] = np.nan
        bc.apply(own)
        bc.apply(final)
        alone.append(own)
    for k, own in enumerate(alone):
        given = kept = 0
        for one, last in zip(own.subfunctions, final.subfunctions, strict=True):
            values = one.dat.data_ro.reshape(-1, one.dat.cdim)
            free = np.isnan(values)
            same = free | (values == last.dat.data_ro.reshape(values.shape))
            set_here = ~free.all(axis=1)
            given, kept = given + set_here.sum(), kept + (set_here & same.all(axis=1)).sum()
        if space.comm.allreduce(int(given)) and not space.comm.allreduce(int(kept)):
            raise ValueError(
                f"{name}: DirichletBC number {k + 1} has no effect, since later ones give other "
                "values wherever it holds: leave out one of them"
            )
