"""Surfaces of rods: outlines of sections at the poses of the nodes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fdgeom.lie.arrays import pose_scan, quaternion
from fdgeom.sections.outline import edges_of, triangles_of

#: Cosine of the angle between two sides of an outline that meet in a sharp edge.
_SHARP = np.cos(np.radians(35))


class Surface(NamedTuple):
    """Vertices (times, n, 3), triangles (m, 3), and the node that each vertex belongs to (n,)."""

    vertices: np.ndarray
    triangles: np.ndarray
    nodes: np.ndarray


def joined(surfaces: Sequence[Surface], starts: Sequence[int] = ()) -> Surface:
    """One surface of several; ``starts``: the numbers of their first nodes, 0 by default."""
    counts = np.cumsum([0, *(s.vertices.shape[1] for s in surfaces)])
    times = max(len(s.vertices) for s in surfaces)
    vertices = [np.broadcast_to(s.vertices, (times, *s.vertices.shape[1:])) for s in surfaces]
    starts = starts or [0] * len(surfaces)
    return Surface(
        np.concatenate(vertices, axis=1),
        np.concatenate([s.triangles + n for s, n in zip(surfaces, counts, strict=False)]),
        np.concatenate([s.nodes + n for s, n in zip(surfaces, starts, strict=True)]),
    )


def sweep(outline, positions, orientations, axis: int) -> Surface:
    """The surface of a rod: an outline at each node (times, n), and its two end faces."""
    first, second = (k for k in range(3) if k != axis)
    frames = quaternion.matrix(orientations)
    a, b = frames[..., first], frames[..., second]
    corners, sides = _split(outline)
    count, around = positions.shape[1], len(corners)
    ends = np.array([0, count - 1])
    # Smooth shading averages normals at a vertex, so the end faces have corners of their own.
    nodes = np.concatenate([np.repeat(np.arange(count), around), np.repeat(ends, len(outline))])
    flat = np.concatenate([np.tile(corners, (count, 1)), np.tile(outline[:, :2], (2, 1))])
    vertices = positions[:, nodes] + flat[:, :1] * a[:, nodes] + flat[:, 1:] * b[:, nodes]
    start = around * np.arange(count - 1)[:, None]
    p, q = (start + side for side in sides.T)
    walls = np.stack([p, q, q + around, p, q + around, p + around], axis=-1).reshape(-1, 3)
    face = triangles_of(outline) + count * around
    return Surface(vertices, np.concatenate([walls, face, face + len(outline)]), nodes)


def _split(outline: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 2) of an outline, sharp ones twice, and its sides as pairs of them."""
    points, edges = outline[:, :2], edges_of(outline)
    along = points[edges[:, 1]] - points[edges[:, 0]]
    along /= np.maximum(np.linalg.norm(along, axis=1), 1e-300)[:, None]
    incoming = np.empty(len(edges), dtype=int)
    incoming[edges[:, 1]] = np.arange(len(edges))
    sharp = np.sum(along * along[incoming], axis=1) < _SHARP
    # A side starts at its corner, and ends at the copy of the next one where that is sharp.
    copies = np.where(sharp, len(points) + np.cumsum(sharp) - 1, np.arange(len(points)))
    return np.concatenate([points, points[sharp]]), np.stack(
        [edges[:, 0], copies[edges[:, 1]]], axis=1
    )


def transported(positions: np.ndarray, axis: int) -> np.ndarray:
    """Quaternions (times, n, 4) of sections that follow curves (times, n, 3) without twist."""
    tangent = np.gradient(positions, axis=1)
    tangent /= np.maximum(np.linalg.norm(tangent, axis=-1, keepdims=True), 1e-300)
    before = np.concatenate(
        [np.broadcast_to(np.eye(3)[axis], tangent[:, :1].shape), tangent[:, :-1]], axis=1
    )
    turns = shortest(before, tangent)
    # Each turn is given in space, so later turns are multiplied from the left.
    _, scanned = pose_scan((np.zeros_like(positions), quaternion.conjugate(turns)))
    return quaternion.conjugate(scanned)


def shortest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quaternion (..., 4) of the shortest rotation of unit vectors a to b (..., 3)."""
    w = 1 + np.sum(a * b, axis=-1, keepdims=True)
    turn = np.concatenate([w, np.cross(a, b)], axis=-1)
    # Opposite vectors: half a turn about an axis across a.
    other = np.where(np.abs(a[..., :1]) < 0.6, [1.0, 0, 0], [0.0, 1, 0])
    half = np.concatenate([np.zeros_like(w), np.cross(a, other)], axis=-1)
    return quaternion.normalize(np.where(w > 1e-9, turn, half))
