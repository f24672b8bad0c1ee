"""Prescribed (essential) degrees of freedom of unknowns."""

from dataclasses import dataclass, replace

import numpy as np
from firedrake import Function


def dofs_of(bc) -> np.ndarray:
    """The local scalar degrees of freedom of a DirichletBC, numbered in the whole vector space."""
    space = bc.function_space()
    component = space.component
    block = (space if component is None else space.parent).block_size
    held = np.arange(block) if component is None else np.array([component])
    return (block * np.asarray(bc.nodes)[:, None] + held[None, :]).ravel()


@dataclass(frozen=True)
class EssentialValues:
    """Prescribed degrees of freedom of an unknown: (1 - share) old + share target."""

    #: Index of the subspace of the unknown.
    part: int
    #: Local scalar degrees of freedom, ghosts included.
    dofs: np.ndarray
    old: Function
    #: The prescribed new values; None for zero.
    target: Function | None = None
    #: 1 if the unknown is the new value, 0.5 if it is the mean of old and new; see `Stage.reaching`.
    share: float = 1.0

    def at_share(self, share: float) -> "EssentialValues":
        """The same degrees of freedom for an unknown at this share of the way to ``target``."""
        return replace(self, share=share)

    def values(self) -> np.ndarray:
        """The prescribed values now, in the order of ``dofs``."""
        old = self.old.dat.data_ro_with_halos.reshape(-1)[self.dofs]
        before = (1 - self.share) * old
        if self.target is None:
            return before
        return before + self.share * self.target.dat.data_ro_with_halos.reshape(-1)[self.dofs]


class GivenValues:
    """Prescribed degrees of freedom of a part of an unknown whose values a caller sets in ``now``."""

    target = None

    def __init__(self, part: int, dofs: np.ndarray) -> None:
        self.part, self.dofs, self.now = part, dofs, 0.0

    def at_share(self, share: float) -> "GivenValues":
        """Itself: the values are those of the unknown at any share."""
        return self

    def values(self) -> np.ndarray | float:
        """The prescribed values now."""
        return self.now
