"""Surfaces of rods, and symbols of supports, joints, bodies, forces and gravity."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fdgeom.lie.arrays import pose_scan, quaternion
from fdgeom.recording.snapshots import Snapshots
from fdgeom.sections.outline import edges_of, triangles_of

#: Cosine of the angle between two sides of an outline that meet in a sharp edge.
_SHARP = np.cos(np.radians(35))
#: Of the scene: the smallest and the largest size of a symbol, and the longest arrow.
_SYMBOL, _ARROW = (0.014, 0.026), 0.16
#: Arrows of forces at most.
_MOST = 200
_METAL, _BODY, _FORCE, _WEIGHT = 0x8A919C, 0xE0A03C, 0xD9532C, 0x9AA0A6
_Z = np.array([0.0, 0.0, 1.0])


class Surface(NamedTuple):
    """Vertices (times, n, 3), triangles (m, 3), and the node or the colour of each vertex (n,)."""

    vertices: np.ndarray
    triangles: np.ndarray
    tags: np.ndarray


def joined(surfaces: Sequence[Surface]) -> Surface:
    """One surface of several."""
    counts = np.cumsum([0, *(s.vertices.shape[1] for s in surfaces)])
    times = max(len(s.vertices) for s in surfaces)
    vertices = [np.broadcast_to(s.vertices, (times, *s.vertices.shape[1:])) for s in surfaces]
    return Surface(
        np.concatenate(vertices, axis=1),
        np.concatenate([s.triangles + n for s, n in zip(surfaces, counts, strict=False)]),
        np.concatenate([s.tags for s in surfaces]),
    )


def sweep(outline, positions, orientations, axis: int, start: int = 0) -> Surface:
    """The surface of a rod with end faces: an outline at each node (times, n), from ``start`` on."""
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
    face = triangles_of(outline) + count * around
    triangles = [_walls(count, around, sides), face, face + len(outline)]
    return Surface(vertices, np.concatenate(triangles), nodes + start)


def _walls(count: int, around: int, sides: np.ndarray) -> np.ndarray:
    """Triangles between rings of corners, each with these sides (pairs of corners)."""
    p, q = (around * np.arange(count - 1)[:, None] + side for side in sides.T)
    return np.stack([p, q, q + around, p, q + around, p + around], axis=-1).reshape(-1, 3)


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


# --- symbols ----------------------------------------------------------------------------------------
def _revolved(profile, sides: int, scale=(1.0, 1.0, 1.0)) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles of a solid of revolution about z, or of a prism, by (radius, z) pairs."""
    angle = (np.arange(sides) + 0.5) * (2 * np.pi / sides)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) / np.cos(np.pi / sides)
    points = np.concatenate(
        [np.column_stack([r * ring, np.full(sides, z)]) for r, z in profile]
    ) * np.array(scale)
    k = np.arange(sides)
    return points, _walls(len(profile), sides, np.stack([k, (k + 1) % sides], axis=1))


#: Symbols by name; z is the direction of the beam at a clamp, else the vertical or the joint's axis.
_SYMBOLS = {
    "clamped": _revolved([(0, -0.35), (1.5, -0.35), (1.5, 0), (0, 0)], 4),
    "pinned": _revolved([(0, 0), (1.0, -1.5), (0, -1.5)], 4),
    "sliding": _revolved([(0, 0.35), (0.6, 0.35), (0.6, -0.35), (0, -0.35)], 4, (1, 1, 6)),
    "given": _revolved([(0, 1.1), (1.1, 0), (0, -1.1)], 4),
    "revolute": _revolved([(0, -1.5), (0.55, -1.5), (0.55, 1.5), (0, 1.5)], 16),
    "prismatic": _revolved([(0, -3.0), (0.6, -3.0), (0.6, 3.0), (0, 3.0)], 4),
    "arrow": _revolved([(0, 0), (0.028, 0), (0.028, 0.72), (0.085, 0.72), (0, 1)], 12),
}


class Symbols:
    """The symbols of shapes: balls (places, diameter, colour), surfaces, and words about the arrows."""

    def __init__(
        self, shapes: Snapshots, positions, orientations, extent: float, thick: float, up
    ) -> None:
        self._shapes, self._extent, self._up = shapes, extent, up
        self._positions = positions
        self._size = float(np.clip(0.6 * thick, *(extent * part for part in _SYMBOL)))
        self._upright = shortest(_Z, up)
        self.balls: list[tuple] = []
        self.surfaces: list[Surface] = []
        self.notes: list[str] = []
        for mark in shapes.marks:
            self._add(mark, positions[:, mark.node], orientations[:, mark.node])

    def _add(self, mark, x, q) -> None:
        """The symbol of a mark at poses (times, 3) and (times, 4)."""
        kind, vector = mark.kind, np.array(mark.vector)
        match kind:
            case "body":
                places = x + quaternion.rotate(q, vector)
                self.balls.append((places, 2 * max(mark.size, self._size), _BODY))
            case "joint":
                self.balls.append((x, 2 * self._size, _METAL))
            case "revolute" | "prismatic":
                self._place(kind, x, quaternion.product(q, shortest(_Z, vector)))
            case "clamped":
                is_first = mark.node in [first for first, _ in self._shapes.parts]
                inward = (1.0 if is_first else -1.0) * np.eye(3)[self._shapes.axis]
                self._place(kind, x, quaternion.product(q, shortest(_Z, inward)))
            case "sliding":
                self._place(kind, x - 1.4 * self._size * self._up, shortest(_Z, vector))
                self._place("pinned", x, self._upright, 0.7 * self._size)
            case "ground":
                self._place("pinned", x[:1], self._upright)
            case _:
                color = _FORCE if kind == "given" else _METAL
                self._place(kind, x, self._upright, color=color)

    def _place(self, kind: str, places, turn, scale=None, color: int = _METAL) -> None:
        """A symbol at places (times, 3), turned by quaternions."""
        points, triangles = _SYMBOLS[kind]
        turn = np.broadcast_to(turn, (len(places), 4))
        scale = self._size if scale is None else scale
        scale = np.broadcast_to(scale, len(places))[:, None, None]
        vertices = places[:, None] + scale * quaternion.rotate(turn[:, None], points)
        self.surfaces.append(Surface(vertices, triangles, np.full(len(points), color, np.uint32)))

    # --- loads ------------------------------------------------------------------------------------------
    def add_arrows(self, chosen: np.ndarray) -> None:
        """Forces at the chosen times, and gravity."""
        shapes = self._shapes
        every = -(-len(shapes.loaded) // _MOST) or 1
        nodes = shapes.loaded[::every]
        forces = np.array(shapes.forces)[chosen][:, ::every] if nodes else np.zeros((1, 0, 3))
        most = np.linalg.norm(forces, axis=-1).max(initial=0.0)
        if most > 0:
            for k, node in enumerate(nodes):
                vectors = forces[:, k] * (_ARROW * self._extent / most)
                self._arrow(self._positions[:, node], vectors, _FORCE)
            self.notes.append(f"longest arrow {most:.3g}")
        weight = np.linalg.norm(shapes.gravity)
        if weight > 0:
            # At the upper right of the scene.
            points, right = self._positions.reshape(-1, 3), across(self._up)
            middle = points.mean(axis=0)
            reach = ((points - middle) @ right).max() + 0.1 * self._extent
            place = middle + right * reach + self._up * ((points - middle) @ self._up).max()
            vector = shapes.gravity * (0.7 * _ARROW * self._extent / weight)
            self._arrow(place[None], vector[None], _WEIGHT)
            self.notes.append("grey arrow: gravity")

    def _arrow(self, places: np.ndarray, vectors: np.ndarray, color: int) -> None:
        """An arrow from places (times, 3) along vectors (times, 3)."""
        length = np.linalg.norm(vectors, axis=1)
        along = vectors / np.maximum(length, 1e-300)[:, None]
        turn = shortest(np.broadcast_to(_Z, along.shape), along)
        self._place("arrow", places, turn, length, color)


def across(up: np.ndarray) -> np.ndarray:
    """The axis to the right of one who looks at a scene."""
    return np.eye(3)[1 if abs(up[0]) > 0.5 else 0]
