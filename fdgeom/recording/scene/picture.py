"""The k3d plot of a scene: rods, supports, joints, bodies, loads, ground and camera."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from fdgeom.recording.snapshots import Snapshots
from fdgeom.sections.outline import ellipse

from .geometry import Symbols, across, joined, sweep, transported

#: Shapes in a scene at most.
MOST = 400
#: Of the scene: the thickness of a rod that is seen, and of a curve without a section.
_VISIBLE, _CURVE = 0.006, 0.01
#: Directions in which the furthest points are looked for: the camera shows these.
_DIRECTIONS = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3), axis=-1).reshape(-1, 3)
#: Times whose shapes are drawn as faint lines.
_TRACES = 9
_PLAIN, _FAINT = 0x4F86C6, 0x8E96A0


def picture(
    shapes: Snapshots,
    outlines: list[np.ndarray],
    words: Mapping[str, str],
    units: Mapping[str, str],
    cases: Sequence[dict[str, str | int]] = (),
):
    """The plot; its ``custom_data`` tells the controls what is in it.

    ``words`` are the title, the name of the parameter and its unit. A case is a part of the shapes
    that is played by itself, such as a mode: a name, the first and the last shape.
    """
    import k3d

    count = len(shapes) if cases else min(len(shapes), MOST)
    chosen = np.linspace(0, len(shapes) - 1, count).round().astype(int)
    positions, orientations, values = _arrays(shapes, chosen)
    parts = [(0, positions.shape[1])] if shapes.closed else shapes.parts
    low, high = positions.min(axis=(0, 1)), positions.max(axis=(0, 1))
    extent = float(np.linalg.norm(high - low)) or 1.0
    # k3d draws in single precision, which has few digits far from the origin.
    origin = np.where(np.abs(low) > 1e3 * extent, low, 0.0)
    positions = positions - origin
    outlines = outlines or [np.zeros((0, 3))] * len(parts)
    outlines = [o if len(o) else ellipse(*(_CURVE * extent / 2,) * 2) for o in outlines]
    size = max(float(np.ptp(outline[:, :2], axis=0).max()) for outline in outlines)
    factor = max(1.0, _VISIBLE * extent / size)
    outlines = [outline * (factor, factor, 1) for outline in outlines]
    if orientations is None:
        orientations = np.concatenate(
            [transported(positions[:, a:b], shapes.axis) for a, b in parts], axis=1
        )
    up, flat = _vertical(shapes.gravity, high - low)
    in_time = partial(_in_time, extent=extent)
    plot = k3d.plot(
        name=words["title"], snapshot_type="full", menu_visibility=False, grid_visible=False,
        camera_auto_fit=False, camera_fov=35, camera_mode="orbit",
        camera_up_axis="xyz"[int(up.argmax())], axes_helper=0.9,
        colorbar_object_id=0, lighting=1.5,
    )  # fmt: skip
    rods = joined(
        [
            sweep(outline, positions[:, a:b], orientations[:, a:b], shapes.axis, a)
            for outline, (a, b) in zip(outlines, parts, strict=True)
        ]
    )
    fields = [_field(name, values[name], parts, rods.tags, units) for name in values]
    mesh = k3d.mesh(
        in_time(rods.vertices), rods.triangles.astype(np.uint32), flat_shading=False,
        side="double", name="rods", color_map=k3d.matplotlib_color_maps.Viridis, roughness=0.5,
        **({"attribute": fields[0][1], "color_range": fields[0][0]["range"]} if fields
           else {"color": _PLAIN}),
        custom_data={"fields": [attribute for _, attribute in fields[1:]]},
    )  # fmt: skip
    plot += mesh
    symbols = Symbols(shapes, positions, orientations, extent, factor * size, up)
    symbols.add_arrows(chosen)
    shown = [rods.vertices.reshape(-1, 3)]
    if symbols.balls:
        balls, sizes, colors = zip(*symbols.balls, strict=True)
        places = np.stack(balls, axis=1)
        plot += k3d.points(
            in_time(places), point_sizes=np.float32(sizes), colors=np.uint32(colors), shader="3d",
            name="balls",
        )  # fmt: skip
        shown.append(places.reshape(-1, 3))
    if symbols.surfaces:
        surface = joined(symbols.surfaces)
        plot += k3d.mesh(
            in_time(surface.vertices), surface.triangles.astype(np.uint32),
            colors=surface.tags, side="double", name="symbols", roughness=0.6,
        )  # fmt: skip
        shown.append(surface.vertices.reshape(-1, 3))
    if shapes.obstacle_triangles.size:
        walls = np.array(shapes.obstacles) - origin
        walls = walls[chosen] if len(walls) > 1 else walls
        plot += k3d.mesh(
            in_time(walls), shapes.obstacle_triangles.astype(np.uint32), color=_FAINT,
            opacity=0.35, side="double", name="obstacles",
        )  # fmt: skip
    shown = np.concatenate(shown)
    low, high = shown.min(axis=0), shown.max(axis=0)
    trace = None
    if len(chosen) > 1 and not cases:
        trace = _traces(k3d, positions, parts)
        plot += trace
    square, ground = _ground(k3d, low, high, up)
    plot += ground
    length = f" {units['length']}" if "length" in units else ""
    notes = [f"grid {square:g}{length}"]
    notes += [f"sections drawn {factor:.2g} times as thick"] if factor > 1 else []
    plot.custom_data = dict(words) | {
        "times": [float(shapes.times[k]) for k in chosen],
        "fields": [about for about, _ in fields],
        "cases": list(cases),
        "rods": mesh.id,
        "traces": trace.id if trace else None,
        "plain": _PLAIN,
        "hull": shown[np.argmax(shown @ _DIRECTIONS.T, axis=0)].tolist(),
        "up": up.tolist(),
        "from": _view(flat, up).tolist(),
        "note": ", ".join(notes + symbols.notes),
    }
    return plot


def _in_time(values: np.ndarray, extent: float) -> dict[str, np.ndarray] | np.ndarray:
    """Values (times, ...) by the number of the time, as k3d has them, rounded so that they compress."""
    # The times themselves will not do: k3d takes those within 0.001 of one another for one.
    unit = 2.0 ** np.floor(np.log2(extent * 4e-5))
    rounded = (np.round(values / unit) * unit).astype(np.float32)
    if np.all(rounded == rounded[0]):
        return rounded[0]
    return {str(k): value for k, value in enumerate(rounded)}


def _arrays(shapes: Snapshots, chosen: np.ndarray):
    """Positions, quaternions whose signs may be mixed in time, and fields; a closed curve closed."""
    positions = np.array(shapes.positions)[chosen]
    if not np.all(np.isfinite(positions)):
        raise ValueError("shapes: a position is not finite")
    orientations = np.array(shapes.orientations)[chosen] if shapes.orientations else None
    values = {name: np.array(value)[chosen] for name, value in shapes.values.items()}
    if shapes.closed:
        positions = np.concatenate([positions, positions[:, :1]], axis=1)
        if orientations is not None:
            orientations = np.concatenate([orientations, orientations[:, :1]], axis=1)
    return positions, orientations, values


def _field(name: str, values: np.ndarray, parts, nodes: np.ndarray, units) -> tuple[dict, dict]:
    """Name, unit and range of a field, and its series at the vertices."""
    starts = np.cumsum([0, *(b - a - 1 for a, b in parts)])
    # A node has the mean of the segments beside it.
    at_nodes = [
        (np.pad(own, ((0, 0), (1, 0)), "edge") + np.pad(own, ((0, 0), (0, 1)), "edge")) / 2
        for own in (values[:, i:j] for i, j in pairwise(starts))
    ]
    found = np.concatenate(at_nodes, axis=1)[:, nodes]
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(high - low):
        raise ValueError(f"shapes: a value of {name} is not finite")
    if high <= low:
        high = low + (abs(low) or 1.0)
    # As fine as the colours are.
    found = low + np.round((found - low) / (high - low) * 1023) * ((high - low) / 1023)
    about = {"name": name.replace("_", " "), "unit": units.get(name, ""), "range": [low, high]}
    return about, {str(k): value for k, value in enumerate(found.astype(np.float32))}


def _traces(k3d, positions: np.ndarray, parts):
    """Faint lines of the rods at some times."""
    at = np.unique(np.linspace(0, len(positions) - 1, _TRACES).round().astype(int))
    count = positions.shape[1]
    first = np.concatenate([np.arange(a, b - 1) for a, b in parts])
    segments = np.stack([first, first + 1], axis=1)
    return k3d.lines(
        positions[at].reshape(-1, 3).astype(np.float32),
        np.concatenate([segments + k * count for k in range(len(at))]).astype(np.uint32),
        indices_type="segment", shader="simple", color=_FAINT, opacity=0.45, name="traces",
    )  # fmt: skip


# --- where one looks from ---------------------------------------------------------------------------
def _vertical(gravity: np.ndarray, extent: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The axis that points up, and the normal of the plane of the motion, if it is in one."""
    flat = np.flatnonzero(extent < 1e-3 * np.linalg.norm(extent))
    normal = np.eye(3)[flat[-1]] if len(flat) else None
    if np.any(gravity):
        k = int(np.abs(gravity).argmax())
        up = np.eye(3)[k]
    else:
        up = np.eye(3)[1 if len(flat) and flat[-1] == 2 else 2]
    if normal is not None and abs(normal @ up) > 0.5:
        other = [k for k in flat if abs(up[k]) < 0.5]
        normal = np.eye(3)[other[0]] if other else None
    return up, normal


def _view(flat: np.ndarray | None, up: np.ndarray) -> np.ndarray:
    """Direction from the scene to the camera."""
    right = across(up)
    to = np.cross(right, up) if flat is None else flat * (np.cross(right, up) @ flat or 1.0)
    found = to + 0.22 * up - 0.3 * right if flat is not None else to - 0.75 * right + 0.5 * up
    return found / np.linalg.norm(found)


def _ground(k3d, low, high, up):
    """Squares below the scene, of a round length."""
    span = high - low
    k = int(np.abs(up).argmax())
    others = [i for i in range(3) if i != k]
    reach = max(span[others].max(), 0.3 * span.max())
    exponent = np.floor(np.log10(reach / 4))
    square = next(s for s in (1, 2, 5, 10) if s * 10**exponent >= reach / 8) * 10.0**exponent
    depth = np.maximum(span[others], 0.35 * reach)
    middle = (low[others] + high[others]) / 2
    first = np.floor((middle - depth / 2) / square - 0.25) * square
    last = np.ceil((middle + depth / 2) / square + 0.25) * square
    height = low[k] - 0.02 * span.max()
    lines = []
    for i in (0, 1):
        at = np.arange(first[i], last[i] + square / 2, square)
        ends = np.full((len(at), 2, 3), height)
        ends[..., others[i]] = at[:, None]
        ends[..., others[1 - i]] = (first[1 - i], last[1 - i])
        lines.append(ends.reshape(-1, 3))
    points = np.concatenate(lines).astype(np.float32)
    pairs = np.arange(len(points), dtype=np.uint32).reshape(-1, 2)
    return square, k3d.lines(
        points, pairs, indices_type="segment", shader="simple", color=_FAINT, opacity=0.35,
        name="ground",
    )  # fmt: skip
