"""Which rigid motions of a beam its held ends leave free, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fdgeom.beams.beam import Beam
from fdgeom.beams.ends import HeldEnd
from fdgeom.lie.arrays import quaternion, so3

# Of the size of the beam: what counts as no motion of a held node.
_NONE = 1e-9


def free_motion(beam: Beam, ends: Sequence[HeldEnd]) -> str:
    """What the beam can still do as a rigid body; "" if its ends hold it. To be called on all ranks.

    Parameters
    ----------
    beam : Beam
        In its present configuration.
    ends : sequence of HeldEnd
        What is held of it.
    """
    held = _held(beam, ends)
    x = np.concatenate(beam.comm.allgather(np.array(beam.position.dat.data_ro)))
    size = float(np.linalg.norm(np.ptp(x, axis=0))) or 1.0
    # A rigid motion (ω, u): the node at x turns by ω and moves by u + ω × x, lengths over the size.
    rows = [np.zeros((0, 6))]
    for _, place, orientation, components in held:
        turn = np.hstack([quaternion.matrix(orientation).T, np.zeros((3, 3))])
        shift = np.hstack([-so3.hat(place / size), np.eye(3)])
        rows.append(np.vstack([turn, shift])[components])
    _, values, basis = np.linalg.svd(np.vstack(rows))
    free = basis[int(np.sum(values > _NONE)) :]
    if not len(free):
        return ""
    pinned = [name for name, _, _, components in held if list(components) == [3, 4, 5]]
    if len(free) == 3 and len(held) == 1 and pinned:
        return f"the beam can still turn about its {pinned[0]} end"
    if len(free) > 1:
        return f"the beam can still move as a rigid body in {len(free)} independent ways"
    spin, drift = free[0][:3], free[0][3:] * size
    if np.linalg.norm(spin) <= _NONE:
        return f"the beam can still move along {_direction(drift)}"
    point = np.cross(spin, drift) / (spin @ spin)
    return (
        f"the beam can still turn about the line along {_direction(spin)} through {_vector(point)}"
    )


def _held(beam: Beam, ends: Sequence[HeldEnd]) -> list[tuple]:
    """Name, position, orientation and held components of each end that is held, on all ranks."""
    owned, found = len(beam.position.dat.data_ro), []
    for end in ends:
        for node in end.nodes[end.nodes < owned] if len(end.components) else ():
            pose = beam.position.dat.data_ro[node], beam.orientation.dat.data_ro[node]
            found.append((end.name, *map(np.array, pose), end.components))
    return [end for part in beam.comm.allgather(found) for end in part]


def _direction(vector: np.ndarray) -> str:
    """Of length one, its largest component positive."""
    largest = vector[np.argmax(np.abs(vector))]
    return _vector(vector / np.linalg.norm(vector) * np.sign(largest))


def _vector(values: np.ndarray) -> str:
    # Adding zero makes -0 a 0.
    return "(" + ", ".join(f"{v:.4g}" for v in np.round(values, 9) + 0.0) + ")"
