"""What is done beside the solves of steps, in equations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from firedrake import Form, Function
from ufl.core.expr import Expr


@dataclass(frozen=True, eq=False)
class Deed:
    """Something that changes Functions before or after steps, and what it is, for derivatives.

    A solve, if there is a residual; then assignments, none of which reads what another one writes.

    Attributes
    ----------
    do : callable
        Does it.
    assignments : sequence of dict
        Groups of functions and the expressions that they get at their nodes.
    residual : Form, optional
        What is to vanish.
    unknown : Function, optional
        What that is solved for.
    essential : sequence
        Degrees of freedom of the unknown that are given.
    fixed : sequence of (Function, numpy.ndarray)
        Degrees of freedom that become what depends on nothing: into flat local values.
    """

    do: Callable[[], None]
    assignments: Sequence[Mapping[Function, Expr]] = ()
    residual: Form | None = None
    unknown: Function | None = None
    essential: Sequence = ()
    fixed: Sequence[tuple[Function, np.ndarray]] = ()
