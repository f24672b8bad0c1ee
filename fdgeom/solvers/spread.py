"""Numbers of a Real space as fields, which compiled code reads in place of the number."""

from collections.abc import Mapping, Sequence, Set

import numpy as np
from firedrake import Cofunction, Form, Function
from mpi4py import MPI
from ufl import as_ufl
from ufl.algorithms import extract_coefficients, replace
from ufl.core.expr import Expr

from fdgeom.forms import scalar_space, shaped_space
from fdgeom.solvers.data import key
from fdgeom.solvers.derived import Derived, is_real

_ATTRIBUTE = "_fdgeom_spread"


# Compiled code need not know numbers: the cotangent of a number is the sum of those of its field.
class Spread:
    """The dependence of a constant field on a number of a Real space; a :class:`Dependence`."""

    inverse = False

    def along(self, field: Function, source: Function, change: Function) -> np.ndarray:
        values = np.zeros(field.dat.data_ro.shape)
        values[...] = _shaped(change.dat.data_ro, field)
        return values

    def across(self, field: Function, source: Function, bar: np.ndarray) -> Cofunction:
        found = Cofunction(source.function_space().dual())
        total = field.function_space().mesh().comm.allreduce(np.sum(bar, axis=0), op=MPI.SUM)
        found.dat.data_wo[...] = np.reshape(total, found.dat.data_ro.shape)
        return found

    def bent(self, source: Function, change: Function) -> None:
        return None


def _shaped(values: np.ndarray, field: Function) -> np.ndarray:
    return np.reshape(values, field.dat.data_ro.shape[1:])


def spread(number: Function, mesh, family, degree: int | None = None) -> Function:
    """The field, of an element or of a family and degree, that equals a number everywhere; made once."""
    known = number.__dict__.setdefault(_ATTRIBUTE, {})
    name = mesh, family, degree
    if name not in known:
        field = Function(
            shaped_space(number.ufl_shape, mesh, family, degree), name=f"{number.name()}, spread"
        )

        def make() -> None:
            field.dat.data_wo_with_halos[...] = _shaped(number.dat.data_ro, field)

        Derived([field], [number], make, private=True).rule = Spread()
        known[name] = field
    return known[name]


def spread_of(number: Function) -> Sequence[Function]:
    """The fields that :func:`spread` has made of a number."""
    return tuple(getattr(number, _ATTRIBUTE, {}).values())


def numbers_in(thing: Form | Expr, moving: Set[int] = frozenset()) -> list[Function]:
    """The numbers of Real spaces in a form or an expression, without those with keys in ``moving``."""
    return [
        f
        for f in extract_coefficients(thing)
        if len(f.function_space()) == 1 and is_real(f) and key(f) not in moving
    ]


def in_cells(form: Form, moving: Set[int] = frozenset()) -> Form:
    """A form with DG0 fields in place of numbers."""
    numbers = numbers_in(form, moving)
    if not numbers:
        return form
    return replace(form, {f: spread(f, f.function_space().mesh(), "DG", 0) for f in numbers})


def in_assignments(
    group: Mapping[Function, Expr], moving: Set[int] = frozenset()
) -> dict[Function, Expr]:
    """Assignments whose expressions have nodal fields of the target's element in place of numbers."""
    found = {}
    for target, e in group.items():
        e, space = as_ufl(e), target.function_space()
        numbers = numbers_in(e, moving)
        if numbers:
            element = scalar_space(space).ufl_element()
            e = replace(e, {f: spread(f, space.mesh(), element) for f in numbers})
        found[target] = e
    return found
