"""Pictures of a run: energies, momenta, shapes, and a moving picture, with Matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from .history import History
from .snapshots import Snapshots

# Each with its own dash or marker: told apart in print without colour.
STYLES = (
    {"color": "black", "linestyle": "-"},
    {"color": "tab:red", "linestyle": "--"},
    {"color": "tab:blue", "linestyle": "-."},
    {"color": "tab:gray", "linestyle": "-", "marker": "o"},
    {"color": "tab:orange", "linestyle": "--", "marker": "s"},
    {"color": "tab:cyan", "linestyle": "-.", "marker": "^"},
)


def _pyplot():
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
):
    """Draw recorded energies over time.

    Parameters
    ----------
    history : History
    ax : matplotlib Axes, optional
        A new figure by default.
    names : sequence of str, optional
        By default every recorded name that ends in "energy", or only "energy" with `deviation`.
    deviation : bool
        Draw (H - H(0)) / |H(0)| instead of H (not divided where H(0) = 0).
    title : str, optional

    Returns
    -------
    matplotlib Axes
    """
    if names is None:
        parts = [n for n in history.names if n.endswith("_energy") and not deviation]
        names = ["energy", *parts]
    ax = _axes(ax, history, names, "Energy()")
    for name, style in zip(names, _styles(len(names)), strict=True):
        values = history[name]
        if deviation:
            values = (values - values[0]) / (abs(values[0]) or 1.0)
        label = "total energy" if name == "energy" else name.replace("_", " ")
        ax.plot(history.t, values, label=label, **style)
    ax.set_ylabel("relative energy deviation" if deviation else "energy")
    return _finish(ax, title, legend=len(names) > 1)


def plot_momentum(
    history: History,
    ax=None,
    *,
    names: Sequence[str] | None = None,
    deviation: bool = False,
    title: str | None = None,
):
    """Draw the components of recorded momenta (space frame) over time.

    Parameters
    ----------
    history : History
    ax : matplotlib Axes, optional
        A new figure by default.
    names : sequence of str, optional
        By default every recorded name that ends in "momentum".
    deviation : bool
        Draw the difference from the first sample.
    title : str, optional

    Returns
    -------
    matplotlib Axes
    """
    if names is None:
        names = [n for n in history.names if n.endswith("momentum")]
    ax = _axes(ax, history, names, "Momentum()")
    curves = []
    for name in names:
        values = history[name].reshape(len(history), -1)
        values = values - values[0] if deviation else values
        suffixes = [f", {'xyz'[i]}" for i in range(3)] if values.shape[1] == 3 else [""]
        if len(suffixes) != values.shape[1]:
            suffixes = [f", {i}" for i in range(values.shape[1])]
        label = name.replace("_", " ")
        curves += [(label + s, v) for s, v in zip(suffixes, values.T, strict=True)]
    for (label, values), style in zip(curves, _styles(len(curves)), strict=True):
        ax.plot(history.t, values, label=label, **style)
    ax.set_ylabel("momentum deviation" if deviation else "momentum")
    return _finish(ax, title, legend=len(curves) > 1)


def plot_shapes(
    snapshots: Snapshots,
    ax=None,
    *,
    count: int = 12,
    title: str | None = None,
    colormap: str = "viridis",
):
    """Draw shapes of a beam in space, dark at first and light at last.

    Parameters
    ----------
    snapshots : Snapshots
    ax : matplotlib 3-D Axes, optional
        A new figure by default.
    count : int
        Number of shapes to draw, evenly chosen among the snapshots.
    title : str, optional
    colormap : str
        Name of a colour map whose lightness grows (viridis, cividis, ...).

    Returns
    -------
    matplotlib 3-D Axes, or None on ranks without data
    """
    curves = _curves(snapshots)
    if curves is None:
        return None
    pyplot = _pyplot()
    ax = ax or pyplot.figure(figsize=(7, 5.5), layout="constrained").add_subplot(projection="3d")
    chosen = np.unique(np.linspace(0, len(curves) - 1, min(count, len(curves))).round().astype(int))
    times = np.array(snapshots.times)
    norm = pyplot.Normalize(times[0], times[-1])
    mapping = pyplot.cm.ScalarMappable(norm, colormap)
    for i in chosen:
        ax.plot(*curves[i].T, color=mapping.to_rgba(times[i]), linewidth=1.5)
        ax.plot(*curves[i][:1].T, "o", color=mapping.to_rgba(times[i]), markersize=3)
    _space(ax, curves)
    ax.figure.colorbar(mapping, ax=ax, label="time t", shrink=0.7, pad=0.12)
    if title is not None:
        ax.set_title(title)
    return ax


def animate(
    snapshots: Snapshots,
    path: str | os.PathLike,
    *,
    fps: int = 20,
    title: str | None = None,
    dpi: int = 80,
) -> None:
    """Write a moving picture (.gif) of a beam, one frame a snapshot, with Pillow.

    Parameters
    ----------
    snapshots : Snapshots
    path : path-like
        Name of the .gif file.
    fps : int
        Frames per second.
    title : str, optional
    dpi : int
        Resolution; the picture is 6 by 5 inches.
    """
    curves = _curves(snapshots)
    if curves is None:
        return
    pyplot = _pyplot()
    try:
        import PIL  # noqa: F401
    except ImportError as exc:
        raise ImportError('animate needs Pillow: pip install "fdgeom[plots]"') from exc
    from matplotlib.animation import FuncAnimation, PillowWriter

    figure = pyplot.figure(figsize=(6, 5))
    ax = figure.add_subplot(projection="3d")
    (line,) = ax.plot(*curves[0].T, "k-", linewidth=2)
    (end,) = ax.plot(*curves[0][:1].T, "o", color="tab:red", markersize=4)
    _space(ax, curves)

    def draw(i: int):
        line.set_data_3d(*curves[i].T)
        end.set_data_3d(*curves[i][:1].T)
        ax.set_title(f"{title + ', ' if title else ''}t = {snapshots.times[i]:.3g}")
        return line, end

    animation = FuncAnimation(figure, draw, frames=len(curves), blit=False)
    animation.save(os.fspath(path), writer=PillowWriter(fps=fps), dpi=dpi)
    pyplot.close(figure)


def _styles(count: int) -> list[dict]:
    return [STYLES[i % len(STYLES)] | {"markevery": 0.1, "markersize": 4} for i in range(count)]


def _axes(ax, history: History, names: Sequence[str], monitor: str):
    missing = [name for name in names if name not in history]
    if missing or not names:
        raise ValueError(
            f"history holds no {missing[0] if missing else 'such quantity'}; it has "
            f"{', '.join(history.names) or 'nothing'}. Add {monitor} to the run's monitors"
        )
    return ax or _pyplot().subplots(figsize=(7, 4), layout="constrained")[1]


def _finish(ax, title: str | None, legend: bool):
    ax.set_xlabel("time t")
    ax.grid(alpha=0.3)
    ax.margins(x=0)
    if legend:
        ax.legend()
    if title is not None:
        ax.set_title(title)
    return ax


def _curves(snapshots: Snapshots) -> np.ndarray | None:
    """All shapes, (snapshots, points, 3), a periodic one closed; None where there are no data."""
    if not len(snapshots):
        raise ValueError("snapshots is empty: give it to run(..., output=snapshots) first")
    if not snapshots.positions:
        return None
    curves = np.array(snapshots.positions)
    return np.concatenate([curves, curves[:, :1]], axis=1) if snapshots.closed else curves


def _space(ax, curves: np.ndarray) -> None:
    """One scale on all three axes, wide enough for all shapes."""
    low, high = curves.min(axis=(0, 1)), curves.max(axis=(0, 1))
    # A planar motion has no extent out of its plane: give it a tenth.
    half = np.maximum(high - low, 0.1 * (high - low).max() or 1.0) * 0.525
    middle = (high + low) / 2
    for set_limits, c, h in zip((ax.set_xlim, ax.set_ylim, ax.set_zlim), middle, half, strict=True):
        set_limits(c - h, c + h)
    ax.set_box_aspect(half)
    for axis, h in zip("xyz", half, strict=True):
        ax.locator_params(axis=axis, nbins=max(2, round(6 * h / half.max())))
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    ax.set_zlabel("z")
