"""Choice of the node of a joint that carries its multiplier."""

from collections.abc import Collection, Sequence

import numpy as np

from fdgeom.beams.network.joint import Joint


def owners(ends: np.ndarray, fixed: Collection[int], joints: Sequence[Joint]) -> np.ndarray:
    """A node of its own for each joint, none of them held: 0 or 1, the first or second place."""
    found = np.full(len(ends), -1)
    nodes = set(ends.ravel().tolist())
    seen: set[int] = set()
    for root in [*sorted(nodes & set(fixed)), *sorted(nodes - set(fixed))]:
        if root in seen:
            continue
        # Each tree of nodes and joints has its multipliers away from a root, the held node if there
        # is one: so the equations of a joint have full rank in the displacements of its owner.
        seen.add(root)
        front = [root]
        while front:
            node = front.pop()
            for k in np.flatnonzero((ends == node).any(axis=1)):
                if found[k] >= 0:
                    continue
                other = int(np.flatnonzero(ends[k] != node)[0])
                new = int(ends[k, other])
                if new in seen or new in fixed:
                    raise ValueError(
                        f"joints: {joints[k]!r} is over-constrained: what it joins is already "
                        "joined or held by others at the same node. Leave it out, or state all that "
                        "is to hold there as one joint"
                    )
                found[k] = other
                seen.add(new)
                front.append(new)
    return found
