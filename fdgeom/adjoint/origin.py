"""Where steps begin that are to be taken again."""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from fdgeom.adjoint.values import Kept
from fdgeom.clock import Clock


@dataclass
class Origin:
    """Where some steps begin, beside the values of Functions that derivatives are taken by.

    ``carried`` is what the method begins its iterations with. ``remembered`` are the values by which
    system and method see what was set by hand, of each of their snapshots, and ``touched`` the keys of
    what is set of them, to whatever; ``mark`` is the method's. ``openings`` are what both change before
    the first step, by ``touched``. What is ``unseen`` was set to the values that were there.
    """

    clock: Clock
    constants: list[np.ndarray]
    carried: Kept
    remembered: list[list]
    touched: list[Set[int]]
    mark: tuple[float, int]
    openings: list
    unseen: Set[int]
