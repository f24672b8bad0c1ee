"""Shapes of sections as meshes of quadrilaterals, with walls, layers and their tangents.

Walls are tagged by name and layer; a closed wall runs counter-clockwise, its layers from outside to
inside. The tags and the tangents are what plies need: ``shape.lay(...)`` makes the materials.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from firedrake import COMM_WORLD

from fdgeom.messages import format_value
from fdgeom.validation import scalar, whole

from .blocks import Block, Shape, rows_of, straight


# --- full sections -------------------------------------------------------------------------------------
def rectangle(width: float, height: float, *, layers=(1,), along: int = 8, through: int = 8,
              comm=COMM_WORLD) -> Shape:  # fmt: skip
    """Rectangle about the origin; layers of relative thickness ``layers`` from bottom to top.

    ``along`` cells in the width, ``through`` in each layer.
    """
    _check(width=width, height=height)
    x, y = width / 2, height / 2
    place = straight([(-x, -y), (x, -y), (x, y), (-x, y)])
    return Shape(
        [Block("wall", place, whole("along", along, least=1), *_rows(layers, through))], comm
    )


def circle(radius: float, *, cells: int = 6, comm=COMM_WORLD) -> Shape:
    """Full circle about the origin; ``cells`` on a quarter and from the middle out."""
    _check(radius=radius)
    return ellipse(radius, radius, cells=cells, comm=comm)


def ellipse(first: float, second: float, *, cells: int = 6, comm=COMM_WORLD) -> Shape:
    """Full ellipse about the origin with the given half-axes; curved cells."""
    _check(first=first, second=second)
    cells = whole("cells", cells, least=1)
    axes, half = np.array([first, second]), 0.45
    rows = rows_of([1], cells)
    square = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * half

    def outside(quarter, xi, eta):
        a, b = square[quarter], square[(quarter + 1) % 4]
        angle = np.pi / 2 * (quarter + xi) - 3 * np.pi / 4
        arc = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        edge = a + xi[..., None] * (b - a)
        return (edge + (1 - eta[..., None]) * (arc - edge)) * axes

    blocks = [Block("wall", straight(square * axes), cells, *rows)]
    places = [partial(outside, quarter) for quarter in range(4)]
    blocks += [Block("wall", place, cells, *rows, is_straight=False) for place in places]
    return Shape(blocks, comm)


# --- walls -----------------------------------------------------------------------------------------------
def tube(outer_radius: float, inner_radius: float, *, layers=(1,), along: int = 8, through: int = 2,
         comm=COMM_WORLD) -> Shape:  # fmt: skip
    """Circular tube about the origin, with one wall, ``"wall"``, and ``along`` cells on a quarter."""
    return _arc(outer_radius, inner_radius, 4, layers, along, through, comm)


def half_tube(outer_radius: float, inner_radius: float, *, layers=(1,), along: int = 8,
              through: int = 2, comm=COMM_WORLD) -> Shape:  # fmt: skip
    """Upper half of a circular tube about the origin, open, with one wall, ``"wall"``."""
    return _arc(outer_radius, inner_radius, 2, layers, along, through, comm)


def _arc(outer_radius, inner_radius, quarters, layers, along, through, comm) -> Shape:
    _check(outer_radius=outer_radius, inner_radius=inner_radius)
    if not inner_radius < outer_radius:
        raise ValueError("inner_radius must be smaller than outer_radius")

    def piece(quarter, xi, eta):
        angle = np.pi / 2 * (quarter + xi)
        radius = outer_radius + eta * (inner_radius - outer_radius)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)

    rows, along = _rows(layers, through), whole("along", along, least=1)
    places = [partial(piece, quarter) for quarter in range(quarters)]
    return Shape([Block("wall", place, along, *rows, is_straight=False) for place in places], comm)


def box(width: float, height: float, thickness, *, layers=(1,), along: int = 12, through: int = 2,
        comm=COMM_WORLD) -> Shape:  # fmt: skip
    """Closed box about the origin by its outer sides; walls ``bottom, right, top, left``.

    ``thickness``: one number, or two for the horizontal and the vertical walls. Layers go round the
    mitred corners. ``along`` cells on the longer walls.
    """
    flange, web = _flange_and_web(thickness, width, height, webs=2, flanges=2)
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)])
    outer, inner = (width / 2, height / 2), (width / 2 - web, height / 2 - flange)
    names = ("bottom", "right", "top", "left")
    return _walls(names, corners * outer, corners * inner, layers, along, through, comm)


def channel(width: float, height: float, thickness, *, layers=(1,), along: int = 16,
            through: int = 2, comm=COMM_WORLD) -> Shape:  # fmt: skip
    """Channel, open to the right; walls ``top, web, bottom``.

    ``width`` and ``height`` are those of the middle lines, and the origin is in the middle of the
    web's. ``thickness``: one number, or two for the flanges and the web.
    """
    flange, web = _flange_and_web(thickness, width, height, webs=1, flanges=1)
    x, y, dx, dy = width, height / 2, web / 2, flange / 2
    outer = [(x, y + dy), (-dx, y + dy), (-dx, -y - dy), (x, -y - dy)]
    inner = [(x, y - dy), (dx, y - dy), (dx, -y + dy), (x, -y + dy)]
    return _walls(("top", "web", "bottom"), outer, inner, layers, along, through, comm)


def angle(width: float, height: float, thickness: float, *, layers=(1,), along: int = 16,
          through: int = 2, comm=COMM_WORLD) -> Shape:  # fmt: skip
    """L with legs to the right and upwards; walls ``leg`` (upright) and ``foot``.

    ``width`` and ``height`` are those of the middle lines, which meet at the origin.
    """
    _check(width=width, height=height, thickness=thickness)
    _fits(thickness, width, thickness, height)
    d = thickness / 2
    outer = [(-d, height), (-d, -d), (width, -d)]
    inner = [(d, height), (d, d), (width, d)]
    return _walls(("leg", "foot"), outer, inner, layers, along, through, comm)


def i_beam(width: float, height: float, thickness, *, layers=(1,), along: int = 12,
           through: int = 2, comm=COMM_WORLD) -> Shape:  # fmt: skip
    """I about the origin by its outer sides; walls ``bottom, web, top``.

    ``thickness``: one number, or two for the flanges and the web. Layers of the flanges count from
    outside, those of the web from left to right; ``along`` cells in the height of the web.
    """
    flange, web = _flange_and_web(thickness, width, height, webs=1, flanges=2)
    x, y, d, inner = width / 2, height / 2, web / 2, height / 2 - flange
    rows, along = _rows(layers, through), whole("along", along, least=1)
    beside = max(2, round(along * (x - d) / (2 * inner)))

    def flange_blocks(wall, sign):
        # Counter-clockwise: the bottom to the right, the top to the left; nodes of the web at the web.
        web_nodes = rows[0] if sign > 0 else 1 - rows[0][::-1]
        for start, end, cells in ((-x, -d, beside), (-d, d, web_nodes), (d, x, beside)):
            corners = [(sign * start, -sign * y), (sign * end, -sign * y),
                       (sign * end, -sign * inner), (sign * start, -sign * inner)]  # fmt: skip
            yield Block(wall, straight(corners), cells, *rows)

    corners = [(-d, inner), (-d, -inner), (d, -inner), (d, inner)]
    blocks = [*flange_blocks("bottom", 1), Block("web", straight(corners), along, *rows)]
    return Shape([*blocks, *flange_blocks("top", -1)], comm)


def spar_box(upper: Callable, lower: Callable, front: float, rear: float, thickness, *,
             layers=(1,), along: int = 16, through: int = 2, comm=COMM_WORLD) -> Shape:  # fmt: skip
    """Closed box between two curves, such as those of an airfoil; walls ``lower, rear, upper, front``.

    Parameters
    ----------
    upper, lower : callable, or (n, 2) array of points
        Height of the outer surfaces over the first axis; points, from ``front`` to ``rear`` at
        least, are joined by a cubic spline.
    front, rear : float
        Positions of the outer faces of the webs on the first axis.
    thickness : float, or two of them
        Thickness of the skins (vertically) and of the webs.
    """
    skin, web = _two(thickness)
    if not front < rear:
        raise ValueError(f"front must be smaller than rear, not {format_value(front)} and {rear!r}")
    top, bottom = (
        _curve(name, given, front, rear) for name, given in (("upper", upper), ("lower", lower))
    )
    ends = np.linspace(front, rear, 65)
    if not np.all(top(ends) - bottom(ends) > 2 * skin):
        raise ValueError(
            "upper must lie above lower by more than two thicknesses, from front to rear"
        )
    _fits(2 * web, rear - front, 0.0, 1.0)

    def surface(curve, inwards, xi, eta):
        x = front + web * eta + xi * (rear - front - 2 * web * eta)
        return np.stack([x, curve(x) + inwards * skin * eta], axis=-1)

    low, high = partial(surface, bottom, 1), partial(surface, top, -1)

    def upright(at, xi, eta):
        a, b = low(np.full_like(xi, at), eta), high(np.full_like(xi, at), eta)
        up = xi if at else 1 - xi
        return a + up[..., None] * (b - a)

    rows, along = _rows(layers, through), whole("along", along, least=1)
    beside = max(2, round(along * (top(front) - bottom(front)) / (rear - front)))
    return Shape(
        [
            Block("lower", low, along, *rows, is_straight=False),
            Block("rear", partial(upright, 1), beside, *rows),
            Block("upper", lambda xi, eta: high(1 - xi, eta), along, *rows, is_straight=False),
            Block("front", partial(upright, 0), beside, *rows),
        ],
        comm,
    )


def _walls(names, outer, inner, layers, along, through, comm) -> Shape:
    """Straight walls between two polygons, with mitred corners."""
    rows, along = _rows(layers, through), whole("along", along, least=1)
    outer, inner = np.asarray(outer, dtype=float), np.asarray(inner, dtype=float)
    lengths = np.linalg.norm(np.diff(outer, axis=0), axis=1)
    blocks = []
    for k, (name, length) in enumerate(zip(names, lengths, strict=True)):
        place = straight([outer[k], outer[k + 1], inner[k + 1], inner[k]])
        cells = max(2, round(along * length / lengths.max()))
        blocks.append(Block(name, place, cells, *rows))
    return Shape(blocks, comm)


# --- arguments -------------------------------------------------------------------------------------------
def _check(**values) -> None:
    for name, value in values.items():
        scalar(name, value, above=0)


def _two(thickness) -> tuple[float, float]:
    pair = (thickness, thickness) if np.ndim(thickness) == 0 else tuple(thickness)
    if len(pair) != 2:
        raise ValueError(f"thickness must be one number or two, not {format_value(thickness)}")
    for value in pair:
        _check(thickness=value)
    return pair


def _flange_and_web(thickness, width, height, *, webs: int, flanges: int) -> tuple[float, float]:
    _check(width=width, height=height)
    flange, web = _two(thickness)
    _fits(webs * web, width, flanges * flange, height)
    return flange, web


def _fits(horizontal: float, width: float, vertical: float, height: float) -> None:
    if not (horizontal < width and vertical < height):
        raise ValueError("thickness is too large: the walls fill the section")


def _rows(layers, through) -> tuple[np.ndarray, np.ndarray]:
    if np.ndim(layers) != 1 or not len(layers):
        raise ValueError(
            f"layers must be relative thicknesses, one for each layer, not {format_value(layers)}"
        )
    for value in layers:
        scalar("layers", value, above=0)
    return rows_of(layers, whole("through", through, least=1))


def _curve(name: str, given, front: float, rear: float) -> Callable:
    if callable(given):
        return given
    points = np.asarray(given, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2:
        raise ValueError(f"{name} must be a callable or an array of points (n, 2)")
    from scipy.interpolate import CubicSpline

    points = points[np.argsort(points[:, 0])]
    first, last = points[[0, -1], 0]
    slack = 1e-9 * (rear - front)
    if not (first <= front + slack and rear - slack <= last):
        raise ValueError(
            f"{name}: its points reach from {first:g} to {last:g}, but the box from {front:g} to "
            f"{rear:g}: give points from front to rear"
        )
    return CubicSpline(*points.T)
