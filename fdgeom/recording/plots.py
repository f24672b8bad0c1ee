"""Plots of a run: energies, momenta, shapes, and an animation, with Matplotlib."""

import os
from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np

from fdgeom.files import as_path
from fdgeom.systems.system import PARTS
from fdgeom.validation import instance, whole

from .history import History, has_ratio
from .snapshots import Snapshots, holds_shapes
from .space import space_axes, trim
from .units import check_units, labelled

# Each with its own dash or marker: told apart in print without colour.
STYLES = (
    {"color": "black", "linestyle": "-"},
    {"color": "tab:red", "linestyle": "--"},
    {"color": "tab:blue", "linestyle": "-."},
    {"color": "tab:gray", "linestyle": "-", "marker": "o"},
    {"color": "tab:orange", "linestyle": "--", "marker": "s"},
    {"color": "tab:cyan", "linestyle": "-.", "marker": "^"},
)


def matplotlib_pyplot():
    try:
        from matplotlib import pyplot
    except ImportError as exc:
        raise ImportError('plots need Matplotlib: pip install "fdgeom[plots]"') from exc
    return pyplot


def plot_energy(
    history: History,
    ax=None,
    *,
    names: Sequence[str] | None = None,
    deviation: bool = False,
    title: str | None = None,
    units: str | Mapping[str, str] | None = None,
):
    """Draw recorded energies over time.

    Parameters
    ----------
    history : History
        As a run returns it.
    ax : matplotlib Axes, optional
        A new figure by default.
    names : sequence of str, optional
        By default "energy" and those of its parts that are recorded ("kinetic_energy",
        "potential_energy", "load_potential"), or only "energy" with `deviation`.
    deviation : bool
        Draw (H - H(0)) / |H(0)| instead of H; of all curves H - H(0) if H(0) of one is zero, or smaller
        than its changes, as where it is round-off.
    title : str, optional
        Title of the axes.
    units : "SI" or dict of str to str, optional
        Units for the names of the axes: ``{"time": "ms", "energy": "mJ"}``; the history's by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError, ImportError
        If an argument is not as described, the history lacks a name, or Matplotlib is missing.
    """
    instance("history", history, History, "a History as run(...) returns it")
    if names is None:
        parts = [n for n in history.names if n in PARTS and not deviation]
        names = ["energy", *parts]
    ax = _axes(ax, history, names, "Energy()")
    units = check_units(history.units if units is None else units, history.names)
    relative = deviation and all(has_ratio(history, name) for name in names)
    curves = []
    for name in names:
        values = history[name]
        if deviation:
            values = (values - values[0]) / (abs(values[0]) if relative else 1.0)
        curves.append(("total energy" if name == "energy" else name.replace("_", " "), values))
    quantity = labelled("energy deviation" if deviation else "energy", units.get("energy"))
    ax.set_ylabel("relative energy deviation" if relative else quantity)
    return _draw(ax, history.t, curves, title, units.get("time"))


def plot_momentum(
    history: History,
    ax=None,
    *,
    names: Sequence[str] | None = None,
    deviation: bool = False,
    title: str | None = None,
    units: str | Mapping[str, str] | None = None,
):
    """Draw the components of recorded momenta (space frame) over time.

    Parameters
    ----------
    names : sequence of str, optional
        By default every recorded name that ends in "momentum".
    deviation : bool
        Draw the difference from the first sample.
    history, ax, title, units
        The same as in :func:`plot_energy`, with its errors; units are for example
        ``{"linear_momentum": "g m/s"}``.

    Returns
    -------
    matplotlib Axes
    """
    instance("history", history, History, "a History as run(...) returns it")
    if names is None:
        names = [n for n in history.names if n.endswith("momentum")]
    ax = _axes(ax, history, names, "Momentum()")
    units = check_units(history.units if units is None else units, history.names)
    # One unit for all stands at the axis, several at their curves.
    several = len({units.get(name) for name in names}) > 1
    curves = []
    for name in names:
        values = history[name].reshape(len(history), -1)
        values = values - values[0] if deviation else values
        count = values.shape[1]
        axes = "xyz" if count == 3 else range(count)
        suffixes = [f", {axis}" for axis in axes] if count > 1 else [""]
        label, unit = name.replace("_", " "), units.get(name) if several else None
        curves += [(labelled(label + s, unit), v) for s, v in zip(suffixes, values.T, strict=True)]
    words = names[0].replace("_", " ") if len(names) == 1 else "momentum"
    unit = None if several else units.get(names[0])
    ax.set_ylabel(labelled(f"{words} deviation" if deviation else words, unit))
    return _draw(ax, history.t, curves, title, units.get("time"))


def plot_system(system, ax=None, *, title: str | None = None, units=None):
    """Draw the present shape of a system, as `System.plot`."""
    shape = Snapshots()
    shape.take(system, 0.0)
    return plot_shapes(shape, ax, title=title, units=units)


def plot_shapes(
    snapshots: Snapshots,
    ax=None,
    *,
    count: int = 12,
    title: str | None = None,
    colormap: str = "viridis",
    units: str | Mapping[str, str] | None = None,
):
    """Draw shapes of a beam or an assembly in space, dark at first and light at last.

    Colours show the time, or the number of the snapshot if the times do not increase.

    Obstacles are grey, where they are at first. The axes have one scale; shapes in one plane are
    seen from across it.

    Parameters
    ----------
    snapshots : Snapshots
        As a run has filled them; ``ValueError`` if they are empty. Other errors are those of
        :func:`plot_energy`.
    ax : matplotlib 3-D Axes, optional
        A new figure by default.
    count : int
        Number of shapes to draw, evenly chosen among the snapshots.
    title : str, optional
        Title of the axes.
    colormap : str
        Name of a colour map whose lightness grows (viridis, cividis, ...).
    units : "SI" or dict of str to str, optional
        Units for the names of the axes: ``{"time": "ms", "length": "mm"}``; none by default.

    Returns
    -------
    matplotlib 3-D Axes, or None on ranks without data
    """
    instance("snapshots", snapshots, Snapshots, "a Snapshots that a run has filled")
    units = check_units(units)
    count = whole("count", count, least=1)
    curves = _curves(snapshots)
    if curves is None:
        return None
    pyplot = matplotlib_pyplot()
    from mpl_toolkits import mplot3d

    own = ax is None
    if own:
        ax = axes_in_space()
    points = snapshots.obstacles[0] if snapshots.obstacles else np.zeros((0, 3))
    triangles = snapshots.obstacle_triangles
    space_axes(ax, [*np.reshape(snapshots.positions, (-1, 3)), *points], units)
    if len(triangles):
        ax.add_collection3d(
            mplot3d.art3d.Poly3DCollection(points[triangles], facecolor=(0.6, 0.6, 0.6, 0.2))
        )
    chosen = np.unique(np.linspace(0, len(curves) - 1, min(count, len(curves))).round().astype(int))
    times, name = np.array(snapshots.times), labelled("time t", units.get("time"))
    if np.any(np.diff(times) <= 0):
        times, name = np.arange(len(times)), "number of the snapshot"
    norm = pyplot.Normalize(times[0], times[-1])
    mapping = pyplot.cm.ScalarMappable(norm, colormap)
    for i in chosen:
        ax.plot(*curves[i].T, color=mapping.to_rgba(times[i]), linewidth=1.5)
        ax.plot(*curves[i][:1].T, "o", color=mapping.to_rgba(times[i]), markersize=3)
    if len(times) > 1:
        ax.figure.colorbar(mapping, ax=ax, label=name, shrink=0.7, pad=0.04)
    if title is not None:
        ax.set_title(title)
    if own:
        trim(ax)
    return ax


def animate(
    snapshots: Snapshots,
    path: str | os.PathLike,
    *,
    fps: int = 20,
    title: str | None = None,
    dpi: int = 80,
    units: str | Mapping[str, str] | None = None,
) -> None:
    """Write a moving picture (.gif) of a beam or an assembly, one frame a snapshot, with Pillow.

    Parameters
    ----------
    path : path-like
        Name of the .gif file; ``ValueError`` for another ending.
    fps : int
        Frames per second.
    dpi : int
        Resolution; the picture is about 6 by 5 inches, less what would be empty.
    snapshots, title, units
        The same as in :func:`plot_shapes`, with its errors.
    """
    instance("snapshots", snapshots, Snapshots, "a Snapshots that a run has filled")
    units = check_units(units)
    path = as_path("path", path, ".gif")
    for name, value in (("fps", fps), ("dpi", dpi)):
        whole(name, value, least=1)
    curves = _curves(snapshots)
    if curves is None:
        return
    pyplot = matplotlib_pyplot()
    from matplotlib.animation import PillowWriter

    ax = axes_in_space(figsize=(7.5, 6), dpi=dpi)
    (line,) = ax.plot(*curves[0].T, "k-", linewidth=2)
    (end,) = ax.plot(*curves[0][:1].T, "o", color="tab:red", markersize=4)
    space_axes(ax, snapshots.positions, units)
    digits = _decimals(np.unique(snapshots.times))

    def draw(i: int) -> None:
        line.set_data_3d(*curves[i].T)
        end.set_data_3d(*curves[i][:1].T)
        time = f"t = {snapshots.times[i]:.{digits}f} {units.get('time', '')}".rstrip()
        ax.title.set_text(f"{title}, {time}" if title else time)

    draw(len(curves) - 1)
    trim(ax)  # every frame has this layout

    writer = PillowWriter(fps=fps)
    with writer.saving(ax.figure, path, dpi):
        for i in range(len(curves)):
            draw(i)
            writer.grab_frame()
    pyplot.close(ax.figure)


def axes_in_space(figsize: tuple[float, float] = (8.5, 6.5), **options):
    """New axes in space, in a figure that :func:`trim` shall cut."""
    figure = matplotlib_pyplot().figure(figsize=figsize, layout="constrained", **options)
    return figure.add_subplot(projection="3d")


def _axes(ax, history: History, names: Sequence[str], monitor: str):
    if isinstance(names, str):
        raise TypeError(f"names must be a sequence of recorded names, such as [{names!r}]")
    missing = [name for name in names if name not in history]
    if missing or not names:
        raise ValueError(
            f"history holds no {missing[0] if missing else 'such quantity'}; it has "
            f"{', '.join(history.names) or 'nothing'}. Add {monitor} to the run's monitors"
        )
    return ax or matplotlib_pyplot().subplots(figsize=(7, 4), layout="constrained")[1]


def _draw(ax, times, curves: Sequence[tuple], title: str | None, unit: str | None):
    """Draw named curves over time."""
    for (label, values), style in zip(curves, cycle(STYLES), strict=False):
        ax.plot(times, values, label=label, markevery=0.1, markersize=4, **style)
    ax.set_xlabel(labelled("time t", unit))
    ax.grid(alpha=0.3)
    ax.margins(x=0)
    if len(curves) > 1:
        ax.legend()
    if title is not None:
        ax.set_title(title)
    return ax


def _decimals(times: np.ndarray) -> int:
    """The decimals that show all times to a fiftieth of their interval: the title does not dance."""
    if len(times) < 2:
        return 3
    interval = np.diff(times).max()
    least = max(0, -int(np.floor(np.log10(interval))))
    # Two more are always enough.
    errors = [np.abs(np.round(times, least + more) - times).max() for more in (0, 1)]
    return least + sum(error > 0.02 * interval for error in errors)


def _curves(snapshots: Snapshots) -> np.ndarray | None:
    """All shapes, (snapshots, points, 3), with NaN between two beams; None where there are no data."""
    if not holds_shapes("snapshots", snapshots):
        return None
    curves = np.array(snapshots.positions)
    if snapshots.closed:
        return np.concatenate([curves, curves[:, :1]], axis=1)
    ends = np.array([end for _, end in snapshots.parts[:-1]], dtype=int)
    return np.insert(curves, ends, np.nan, axis=1)
