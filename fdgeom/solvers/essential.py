"""Degrees of freedom that are given, not solved for."""

from dataclasses import dataclass, replace

import numpy as np
from firedrake import Function


def dofs_of(bc) -> np.ndarray:
    """Local scalar degrees of freedom of a DirichletBC, in the space that it is (a component) of."""
    space = bc.function_space()
    component = space.component
    block = (space if component is None else space.parent).block_size
    held = np.arange(block) if component is None else np.array([component])
    return (block * np.asarray(bc.nodes)[:, None] + held[None, :]).ravel()


@dataclass(frozen=True)
class EssentialValues:
    """Degrees of freedom of an unknown that are given, not solved for.

    ``part`` is the index of the subspace of the unknown, ``dofs`` are local scalar degrees of freedom,
    ghosts too; ``old`` is the field whose values it replaces, ``target`` what that is to become there
    (None: zero), and ``share`` how far the unknown is on its way: 1 where it is the new value, 0.5 where
    it is the mean of the two. The rule of a step says which (`Stage.reaching`).
    """

    part: int
    dofs: np.ndarray
    old: Function
    target: Function | None = None
    share: float = 1.0

    def at_share(self, share: float) -> "EssentialValues":
        """The same for an unknown that lies so far from ``old`` to ``target``."""
        return replace(self, share=share)

    def values(self) -> np.ndarray:
        """The given values now, in the order of ``dofs``."""
        old = self.old.dat.data_ro_with_halos.reshape(-1)[self.dofs]
        before = (1 - self.share) * old
        if self.target is None:
            return before
        return before + self.share * self.target.dat.data_ro_with_halos.reshape(-1)[self.dofs]


class GivenValues:
    """Degrees of freedom of a part of an unknown whose values are set from outside.

    They are ``now``, and move to nothing by themselves.
    """

    target = None

    def __init__(self, part: int, dofs: np.ndarray) -> None:
        self.part, self.dofs, self.now = part, dofs, 0.0

    def at_share(self, share: float) -> "GivenValues":
        """The same: the values are those of the unknown, wherever it lies."""
        return self

    def values(self) -> np.ndarray | float:
        """The given values now."""
        return self.now
