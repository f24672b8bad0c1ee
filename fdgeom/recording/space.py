"""Axes in space: one scale, names with units, planar shapes seen from across their plane."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from .units import check_units, labelled

# Points between a label and what is beside it; the width of a digit.
_GAP, _DIGIT = 4.0, 6.2
# Of the box that Matplotlib would draw: labels need the rest.
_ZOOM = 0.8
# The part of a side at each end that has no ticks, since another axis meets it there.
_END = 0.04
# Matplotlib's distances of tick labels and names at no padding, and its points for a unit of
# padding, for a side as long as the square in which it draws.
_TICKS, _NAME, _POINTS = 8.0, 21.0, 1.92
# A motion is planar if its extent out of the plane is less than this part of the largest.
_PLANAR = 1e-9
# Where to look from at a plane across each axis.
_VIEWS = ({"elev": 0, "azim": 0}, {"elev": 0, "azim": -90}, {"elev": 90, "azim": -90})


def space_axes(ax, points, units: str | Mapping[str, str] | None = None) -> None:
    """Give 3-D axes one scale for all of ``points``, names and ticks.

    Points in one plane are seen along its normal. Labels are placed anew for each size and view, so
    that they do not lie on one another.

    Parameters
    ----------
    ax : matplotlib 3-D Axes
        In any figure.
    points : array_like, shape (..., 3)
        All that will be drawn.
    units : "SI" or dict of str to str, optional
        Units for the names of the axes, ``{"length": "mm"}``; none by default.

    Raises
    ------
    TypeError, ValueError
        If the axes are not 3-D, the points not finite, or a unit is of something else.
    """
    if not hasattr(ax, "get_zlim"):
        raise TypeError(
            "ax must be 3-D axes, such as figure.add_subplot(projection='3d'), not "
            f"{type(ax).__name__}"
        )
    flat = np.asarray(points, dtype=float)
    if flat.ndim == 0 or flat.shape[-1] != 3 or not flat.size or not np.all(np.isfinite(flat)):
        raise ValueError(f"points must be finite, of shape (..., 3), not of shape {flat.shape}")
    unit = check_units(units).get("length")
    flat = flat.reshape(-1, 3)
    low, high = flat.min(axis=0), flat.max(axis=0)
    extent, largest = high - low, (high - low).max()
    middle, half = (high + low) / 2, np.maximum(extent, 0.1 * largest or 1.0) * 0.525
    ax.set(**{f"{k}lim": (m - h, m + h) for k, m, h in zip("xyz", middle, half, strict=True)})
    across = np.flatnonzero(extent <= _PLANAR * largest)
    if len(across) == 1:
        ax.set_proj_type("ortho")
        ax.view_init(**_VIEWS[across[0]])
    ax.set_box_aspect(tuple(half), zoom=_ZOOM)  # Matplotlib changes an array in place
    for k, axis in enumerate((ax.xaxis, ax.yaxis, ax.zaxis)):
        if len(across) == 1 and k == across[0]:
            axis.set_visible(False)  # which 3-D axes heed in part
            axis.set_ticks([])
            axis.line.set_visible(False)
        else:
            axis.set_label_text(labelled("xyz"[k], unit))
    ax.set_axes_locator(_place_labels)


def _place_labels(ax, renderer):
    """Place ticks and names before Matplotlib draws; returns where it is to draw."""
    place = ax.get_position(original=True)
    square = 72 * min(place.size * ax.figure.bbox.size / ax.figure.dpi)
    for k in range(3):
        _place_label(ax, k, square)
    return place


def _seen(ax, points) -> np.ndarray:
    """Points on the screen, (n, 2), in parts of Matplotlib's square."""
    from mpl_toolkits.mplot3d import proj3d

    x, y, _ = proj3d.proj_transform(*np.transpose(points), ax.get_proj())
    return ax.transLimits.transform(np.transpose([x, y]))


def _place_label(ax, k: int, square: float) -> None:
    """Place ticks and the name of an axis in a square of so many points."""
    from matplotlib.ticker import MaxNLocator

    axis = (ax.xaxis, ax.yaxis, ax.zaxis)[k]
    if not axis.get_visible():
        return
    limits = np.array([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])
    ends = [
        np.where(np.arange(3) == j, limits[:, i], limits.mean(axis=1))
        for i in (0, 1)
        for j in range(3)
    ]
    sides = _seen(ax, ends[3:]) - _seen(ax, ends[:3])
    length, height = float(np.hypot(*sides[k])) or 1.0, axis.label.get_fontsize()
    low, high = sorted(limits[k])
    along, end = np.abs(sides[k]) / length, _END * (high - low)
    for most in range(7, 1, -1):
        values = MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)
        values = values[(values > low + end) & (values < high - end)]
        axis.set_ticks(values)
        texts = axis.get_major_formatter().format_ticks(values)
        size = np.array([_DIGIT * max(map(len, texts), default=0), height])
        apart = square * length * np.diff(values).min(initial=high - low) / (high - low)
        if np.any(apart * along >= size + _GAP):
            break
    else:
        axis.set_ticks(values[-1:])
    # Matplotlib moves labels along the other two sides, in proportion to these. A side that points
    # to the eye has no normal on the screen.
    normal = np.array([sides[k][1], -sides[k][0]]) / length
    points = max(_POINTS * float(np.abs(np.delete(sides, k, axis=0) @ normal).sum()), 0.2)
    half = np.abs(normal) @ size / 2
    distance = _GAP + half
    axis.set_tick_params(pad=distance / points - _TICKS)
    axis.labelpad = (distance + half + 1.5 * _GAP + height / 2) / points - _NAME


def trim(ax) -> None:
    """Cut what is empty off the figure of axes in space, and put a title and a colour bar beside the box."""
    from matplotlib.transforms import Bbox

    figure = ax.figure
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    renderer, gap = figure.canvas.get_renderer(), _GAP * figure.dpi / 72
    ends = product(ax.get_xlim(), ax.get_ylim(), ax.get_zlim())
    corners = ax.transAxes.transform(_seen(ax, list(ends)))
    box = Bbox([corners.min(axis=0), corners.max(axis=0)])
    axes = [axis for axis in (ax.xaxis, ax.yaxis, ax.zaxis) if axis.get_visible()]
    shown = Bbox.union([box, *(axis.get_tightbbox(renderer) for axis in axes)])
    ax.set_axes_locator(None)
    for bar in [other for other in figure.axes if other is not ax]:
        place = Bbox.from_bounds(shown.x1 + 3 * gap, box.y0, bar.bbox.width, box.height)
        bar.set_axes_locator(None)
        bar.set_position(place.transformed(figure.transFigure.inverted()))
        shown = Bbox.union([shown, bar.get_tightbbox(renderer)])
    if ax.get_title():
        ax.set_title(ax.get_title(), y=1, pad=_GAP)
        ax.title.set_y(ax.transAxes.inverted().transform(shown.max)[1])
        shown = Bbox.union([shown, ax.title.get_window_extent(renderer)])
    shown = shown.padded(gap)
    for each in figure.axes:
        each.set_position(Bbox((each.bbox.get_points() - shown.min) / shown.size))
    figure.set_size_inches(shown.size / figure.dpi)
    # For `savefig(bbox_inches="tight")`, which notebooks use.
    ax.get_tightbbox = lambda *_, **__: figure.bbox.frozen()
