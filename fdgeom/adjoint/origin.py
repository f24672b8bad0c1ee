"""The initial state of steps, for replays."""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from fdgeom.adjoint.values import Kept
from fdgeom.clock import Clock


@dataclass
class Origin:
    """The start of some steps, beside the values of the inputs."""

    clock: Clock
    constants: list[np.ndarray]
    #: Initial guesses of the method's iterations.
    carried: Kept
    #: Values of the snapshots by which system and method detect values set by hand.
    remembered: list[list]
    #: For each snapshot the keys of functions that count as set, whatever their values.
    touched: list[Set[int]]
    #: `Stepper.mark`.
    mark: tuple[float, int]
    #: Operations of system and method before the first step, by `touched`.
    openings: list
    #: Keys of functions that were set to the values that they had already.
    unseen: Set[int]
