"""An operation before or after steps, with the equations that derivatives need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from firedrake import Form, Function
from ufl.core.expr import Expr


@dataclass(frozen=True, eq=False)
class Deed:
    """An operation on Functions: a solve, if there is a residual, then groups of nodal assignments."""

    #: Does the operation; the fields below describe it for derivatives.
    do: Callable[[], None]
    #: Groups of functions and their new values at the nodes; no group reads what another one writes.
    assignments: Sequence[Mapping[Function, Expr]] = ()
    residual: Form | None = None
    unknown: Function | None = None
    essential: Sequence = ()
    #: Degrees of freedom (indices into flat local values) that get values which depend on nothing.
    fixed: Sequence[tuple[Function, np.ndarray]] = ()
