"""Where steps begin that are to be taken again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from firedrake import Function

from fdgeom.adjoint.values import Kept
from fdgeom.clock import Clock


@dataclass
class Origin:
    """Where some steps begin, beside the values of Functions that derivatives are taken by.

    Attributes
    ----------
    clock : Clock
        Of the stepper.
    constants : list of numpy.ndarray
        Values of the Constants.
    carried : Kept
        What the method begins its iterations with.
    touched : sequence of Function
        What of the state is set, to whatever.
    remembered : list
        By what the system sees what of it was set by hand.
    openings : list
        What system and stepper change before the first step where these are.
    entrance : str or None
        What the method does there.
    """

    clock: Clock
    constants: list[np.ndarray]
    carried: Kept
    touched: Sequence[Function]
    remembered: list
    openings: list
    entrance: str | None
