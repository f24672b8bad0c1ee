"""Axes in space: one scale, labels that meet nothing, and nothing outside the place for them."""

from collections.abc import Mapping
from itertools import pairwise
from types import MethodType
from typing import Any

import numpy as np

from .units import check_units, labelled

# Points between a label and what is beside it.
_GAP = 4.0
# Matplotlib's distances of tick labels and axis names at no padding, in units of its own.
_TICKS, _NAME = 8.0, 21.0
# Placing labels and fitting change one another a little; the third round changes no pixel.
_ROUNDS = 3
# The part of an axis at each end that has no ticks.
_END = 0.04
# A motion is planar if its extent out of the plane is less than this part of the largest.
_PLANAR = 1e-9
# Where to look from at a plane across each axis.
_VIEWS = ({"elev": 0, "azim": 0}, {"elev": 0, "azim": -90}, {"elev": 90, "azim": -90})


def space_axes(ax, points, units: str | Mapping[str, str] | None = None) -> None:
    """Give 3-D axes one scale for all of ``points``, names, and room for all labels.

    Points in one plane are seen along its normal. The axes fill their place in the figure, for any
    layout, size and view. Labels are not cut off and do not overlap. Set a title after this call.

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
    half = np.maximum(extent, 0.1 * largest or 1.0) * 0.525
    for axis, middle, h in zip("xyz", (high + low) / 2, half, strict=True):
        limits = (middle - h, middle + h)
        ax.set(**{f"{axis}lim": limits, f"{axis}label": labelled(axis, unit)})
    ax.set_box_aspect(half)
    across = np.flatnonzero(extent <= _PLANAR * largest)
    if len(across) == 1:
        ax.set_proj_type("ortho")
        ax.view_init(**_VIEWS[across[0]])
        axis = (ax.xaxis, ax.yaxis, ax.zaxis)[across[0]]
        axis.set_visible(False)  # which 3-D axes heed in part
        axis.set_ticks([])
        axis.set_label_text("")
        axis.line.set_visible(False)
    ax.patch.set_visible(False)  # the square in which it is drawn reaches over its neighbours
    ax.set_axes_locator(_Fitted())
    ax.get_tightbbox = MethodType(_tight_box, ax)


def trim(ax) -> None:
    """Cut what is empty beside or below what framed axes show off their figure."""
    figure = ax.figure
    figure.draw_without_rendering()
    place, shown = ax.get_position(original=True), ax.get_axes_locator().shown
    width, height = figure.get_size_inches()
    title = ax.title.get_window_extent().width / figure.dpi if ax.get_title() else 0.0
    needed = max(shown.width * width, title + 0.1)
    figure.set_size_inches(
        width - max(place.width * width - needed, 0.0), height * (1 - place.height + shown.height)
    )


class _Fitted:
    """Where 3-D axes are: as large as the place that their figure's layout has for them allows.

    Matplotlib asks when it draws, so a saved picture, another size and another view fit as well.
    """

    def __init__(self) -> None:
        self._known: tuple | None = None
        self._bounds: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
        self.shown: Any = None

    def __call__(self, ax, renderer):
        from matplotlib.transforms import Bbox

        renderer = renderer or ax.figure._get_renderer()
        place = ax.get_position(original=True)
        # Layouts repeat a place to round-off only.
        key = (
            *np.round(place.bounds, 9), *ax.figure.bbox.bounds, ax.figure.dpi, ax.elev, ax.azim,
            ax.roll, *ax.get_w_lims(), *(axis.get_label_text() for axis in _axes_of(ax)),
        )  # fmt: skip
        if key != self._known:
            ax.M = ax.get_proj()
            self._bounds = place.bounds
            for _ in range(_ROUNDS):
                ax.apply_aspect(Bbox.from_bounds(*self._bounds))
                for axis in _axes_of(ax):
                    _choose_ticks(axis, renderer)
                    _move_labels(axis, renderer)
                self._fit(ax, renderer, place)
            self._known = key
        position = Bbox.from_bounds(*self._bounds)
        _put_title(ax, place, position)
        return position

    def _fit(self, ax, renderer, place) -> None:
        """Bounds of the axes at which all that they show just fills their place."""
        from matplotlib.transforms import Bbox
        from mpl_toolkits.mplot3d import proj3d

        x, y, z = (np.ravel(c) for c in np.meshgrid(ax.get_xlim(), ax.get_ylim(), ax.get_zlim()))
        corners = np.transpose(proj3d.proj_transform(x, y, z, ax.M)[:2])
        corners = ax.transData.transform(corners)
        to_figure = ax.figure.transFigure.inverted()
        box = Bbox([corners.min(axis=0), corners.max(axis=0)])
        labels = [axis.get_tightbbox(renderer) for axis in _axes_of(ax)]
        self.shown = shown = Bbox.union([box, *labels]).transformed(to_figure)
        box, own = box.transformed(to_figure), ax.get_position()
        # What scales is the box; the labels round it keep their sizes.
        width = place.width - (shown.width - box.width)
        height = place.height - (shown.height - box.height)
        scale = min(max(width, 0.1) / box.width, max(height, 0.1) / box.height)
        middle = (shown.x0 + shown.x1) / 2 - own.x0, (shown.y0 + shown.y1) / 2 - own.y0
        self._bounds = (
            (place.x0 + place.x1) / 2 - middle[0] * scale,
            (place.y0 + place.y1) / 2 - middle[1] * scale,
            own.width * scale,
            own.height * scale,
        )


def _axes_of(ax) -> list:
    return [axis for axis in (ax.xaxis, ax.yaxis, ax.zaxis) if axis.get_visible()]


def _boxes_of_ticks(axis, renderer) -> list:
    """The boxes of the tick labels that will be seen."""
    axis.get_tightbbox(renderer)  # puts everything where it will be drawn
    low, high = sorted(axis.get_view_interval())
    ticks = axis.get_major_ticks()
    seen = [t.label1 for t in ticks if low <= t.get_loc() <= high and t.label1.get_text()]
    return [label.get_window_extent(renderer) for label in seen]


def _choose_ticks(axis, renderer) -> None:
    """As many ticks as their labels have room for, none where two axes meet."""
    gap = 1.5 * _GAP * axis.figure.dpi / 72
    for most in range(7, 0, -1):
        axis.set_major_locator(_locator(most))
        boxes = _boxes_of_ticks(axis, renderer)
        apart = [
            abs(a.x0 + a.x1 - b.x0 - b.x1) / 2 >= (a.width + b.width) / 2 + gap
            or abs(a.y0 + a.y1 - b.y0 - b.y1) / 2 >= (a.height + b.height) / 2
            for a, b in pairwise(boxes)
        ]
        if all(apart):
            return
    axis.set_major_locator(_one_tick())


def _one_tick():
    """The roundest number near the middle of an axis that has no room for two labels."""
    from matplotlib.ticker import AutoLocator

    class Middle(AutoLocator):
        """One of the usual ticks."""

        def __call__(self):
            low, high = sorted(self.axis.get_view_interval())
            ticks = super().__call__()
            return ticks[[np.argmin(np.abs(ticks - (low + high) / 2))]]

    return Middle()


def _locator(most: int):
    """At most so many ticks between round numbers."""
    from matplotlib.ticker import MaxNLocator

    class Inside(MaxNLocator):
        """None at the ends, where another axis begins."""

        def __call__(self):
            low, high = sorted(self.axis.get_view_interval())
            ticks, end = super().__call__(), _END * (high - low)
            return ticks[(ticks > low + end) & (ticks < high - end)]

    return Inside(nbins=most, steps=[1, 2, 5, 10])


def _move_labels(axis, renderer) -> None:
    """Move tick labels off their axis, and the axis's name off them."""
    points = axis.figure.dpi / 72
    boxes = _boxes_of_ticks(axis, renderer)
    start, end = axis.axes.transData.transform(np.transpose(axis.line.get_data()))
    normal = np.array([start[1] - end[1], end[0] - start[0]])
    normal /= np.hypot(*normal) or 1.0

    def half(box) -> float:
        """Half of what a box takes across the axis."""
        return 0.5 * float(np.abs(normal) @ (box.width, box.height))

    def distance(box) -> float:
        """Of the middle of a box from the axis."""
        middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
        return abs(float(normal @ (middle - start))) or 1.0

    taken = 0.0
    if boxes:
        # Distances grow in proportion to the padding, by a factor that only Matplotlib knows.
        worst = max(boxes, key=half)
        padding = axis.get_major_ticks()[0].get_pad() + _TICKS
        wanted = half(worst) + _GAP * points
        axis.set_tick_params(pad=padding * wanted / distance(worst) - _TICKS)
        taken = wanted + half(worst)
    if axis.get_label_text():
        axis.get_tightbbox(renderer)
        box = axis.label.get_window_extent(renderer)
        along = axis.get_rotate_label(axis.get_label_text())
        own = 0.5 * axis.label.get_fontsize() * points if along else half(box)
        factor = (axis.labelpad + _NAME) / distance(box)
        axis.labelpad = factor * (taken + _GAP * points + own) - _NAME


def _tight_box(
    ax, renderer=None, *, call_axes_locator=True, bbox_extra_artists=None, for_layout_only=False
):
    """What framed axes show, for layouts and ``bbox_inches="tight"``.

    Matplotlib's own answer takes in the square in which it draws, which is partly empty, and
    forgets the names of the axes.
    """
    from matplotlib.transforms import Bbox

    renderer = renderer or ax.figure._get_renderer()
    locator = ax.get_axes_locator()
    ax.apply_aspect(locator(ax, renderer))
    boxes = [locator.shown.transformed(ax.figure.transFigure)]
    title = ax.title.get_window_extent(renderer)
    if ax.get_title():
        middle = (title.x0 + title.x1) / 2
        # A layout makes room for the title's height only, as for other axes.
        narrow = Bbox([[middle, title.y0], [middle + 1, title.y1]])
        boxes.append(narrow if for_layout_only else title)
    if ax.get_legend() is not None:
        boxes.append(ax.get_legend().get_window_extent(renderer))
    return Bbox.union(boxes)


def _put_title(ax, place, position) -> None:
    """Over the middle of the place, as for other axes."""
    if not ax.get_title():
        return
    size = np.array([ax.figure.bbox.width, ax.figure.bbox.height])
    square = min(position.width * size[0], position.height * size[1]) / size
    middle = np.array([position.x0 + position.x1, position.y0 + position.y1]) / 2
    wanted = np.array([(place.x0 + place.x1) / 2, place.y1])
    x, y = (wanted - middle) / square + 0.5
    look = {"fontproperties": ax.title.get_fontproperties(), "color": ax.title.get_color()}
    ax.set_title(ax.get_title(), y=y, **look)  # so that Matplotlib does not move it
    ax.title.set_position((x, y))  # 3-D axes would lower it
