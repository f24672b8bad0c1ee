"""Scenes and films of the demos, drawn from the shapes that are kept beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import fdgeom as fg
from fdgeom.lie.arrays import quaternion
from fdgeom.recording.space import trim

matplotlib.use("Agg")

DEMOS = Path(__file__).parents[1]


class Shown(NamedTuple):
    """A moving picture: the file of its shapes, what it shows, and what changes if it is not the time."""

    stem: str
    words: str
    parameter: str = "t"
    #: The part of the run at which its scene opens.
    opens: float = 0.0
    #: Whether gravity acts along the first axis; pictures are turned so that it acts downwards.
    turned: bool = False


SHOWN = {
    "poisson_beam": Shown("motion", "a free beam in flight", opens=0.22),
    "flying_spaghetti": Shown("flight", "the flying spaghetti", opens=0.45),
    "hanging_chain": Shown("chain", "a hanging chain let go", opens=0.35),
    "four_bar": Shown("linkage", "the linkage of rubber", opens=0.3),
    "flexible_double_pendulum": Shown("pendulum", "the flexible double pendulum", opens=0.4),
    "roll_up": Shown("helix", "the coil that is pulled sideways", "turns", opens=0.3),
    "frame": Shown("frame", "the frame past its limits", "P", opens=0.5),
    "swing_up": Shown("swing", "the rod that is swung up", opens=0.7, turned=True),
    "soft_arm": Shown("arm", "the arm that comes to rest", opens=0.3),
}
#: Bodies in the plane, which have no scene.
FLAT = {"elastodynamics": Shown("motion", "the cantilever on its shaken clamp", opens=0.85)}
COLOURS = ("tab:blue", "black", "tab:red", "tab:orange")


def load(name: str) -> fg.Snapshots | None:
    """The shapes that a demo stores, if it does."""
    if name not in SHOWN or not (file := DEMOS / name / f"{SHOWN[name].stem}.npz").exists():
        return None
    shapes = fg.Snapshots.load(file)
    if SHOWN[name].turned:
        quarter = np.sqrt(0.5) * np.array([1, 0, 0, -1])
        shapes.positions = [quaternion.rotate(quarter, x) for x in shapes.positions]
        shapes.orientations = [quaternion.product(quarter, q) for q in shapes.orientations]
    return shapes


def make(extra: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Write all scenes and films below ``extra``; what there is for each demo.

    Returns
    -------
    dict
        A list of (kind, file, words) by name; without FFmpeg there are scenes only.
    """
    found = {}
    for name, (stem, words, parameter, opens, _) in SHOWN.items():
        shapes = load(name)
        if shapes is None:
            continue
        folder = extra / "gallery" / name
        folder.mkdir(parents=True)
        units = "SI" if parameter == "t" else None
        title = words[0].upper() + words[1:]
        fg.save_scene(
            folder / f"{stem}.html", shapes, title=title, parameter=parameter, units=units
        )
        found[name] = [("scene", f"{stem}.html?at={opens:g}", words)]
        if encode(curves(shapes, parameter), folder / f"{stem}.webm", opens):
            found[name].append(("video", f"{stem}.webm", f"Film of {words}"))
    for name, (stem, words, _, opens, _) in FLAT.items():
        folder = extra / "gallery" / name
        folder.mkdir(parents=True)
        if encode(bodies(DEMOS / name / f"{stem}.npz"), folder / f"{stem}.webm", opens, rate=10):
            found[name] = [("video", f"{stem}.webm", f"Film of {words}")]
    return found


def encoder() -> str | None:
    """FFmpeg: that of the system, or the one that a package brings."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        import imageio_ffmpeg
    except ImportError:
        return None
    return imageio_ffmpeg.get_ffmpeg_exe()


def curves(shapes: fg.Snapshots, parameter: str, most: int = 100) -> Iterator[Figure]:
    """Draw at most so many of the shapes in space, one after the other."""
    figure = plt.figure(figsize=(7.5, 5.5), layout="constrained")
    ax = figure.add_subplot(projection="3d")
    positions = np.array(shapes.positions)
    lines = [
        ax.plot([], [], [], color=COLOURS[k % len(COLOURS)], linewidth=2)[0]
        for k in range(len(shapes.parts))
    ]
    fg.space_axes(ax, positions, "SI")
    ax.set_title(parameter)
    trim(ax)
    every = max(1, len(shapes) // most)
    # Times to as many digits as tell them apart.
    digits = max(0, -int(np.floor(np.log10(np.abs(np.diff(shapes.times)).max()))))
    unit = " s" if parameter == "t" else ""
    for k in range(0, len(shapes), every):
        for line, (first, last) in zip(lines, shapes.parts, strict=True):
            line.set_data_3d(*positions[k, first:last].T)
        ax.title.set_text(f"{parameter} = {shapes.times[k]:.{digits}f}{unit}")
        yield figure


def bodies(file: Path, with_axes: bool = True) -> Iterator[Figure]:
    """Draw the cells of a plane body that moves, coloured by its strain."""
    with np.load(file) as kept:
        times, cells, colours = (kept[name] for name in ("times", "cells", "colours"))
    figure, ax = plt.subplots(figsize=(7.5, 5.5), layout="constrained")
    low, high = cells.min(axis=(0, 1, 2)) - 0.05, cells.max(axis=(0, 1, 2)) + 0.05
    ax.set(
        xlim=(low[0], high[0]),
        ylim=(low[1], high[1]),
        aspect="equal",
        xlabel="x [m]",
        ylabel="y [m]",
    )
    patches = PolyCollection([], cmap="cividis", clim=(0, colours.max()), edgecolor="face")
    ax.add_collection(patches)
    if with_axes:
        figure.colorbar(patches, ax=ax, label="strain |E|", shrink=0.8)
    else:
        ax.axis("off")
    for t, corners, levels in zip(times, cells, colours, strict=True):
        patches.set_verts(corners)
        patches.set_array(levels)
        if with_axes:
            ax.set_title(f"t = {t:.2f} s")
        yield figure


def encode(
    frames: Iterable[Figure], path: Path, opens: float | None = None, rate: int = 20
) -> bool:
    """Make a film of figures, with the frame at the part ``opens`` as its poster; False without FFmpeg."""
    program = encoder()
    if program is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        for number, figure in enumerate(frames):
            figure.savefig(f"{folder}/{number:04d}.png", dpi=110)
        plt.close(figure)
        if opens is not None:
            poster = path.with_name(f"{path.stem}-poster.png")
            shutil.copy(f"{folder}/{round(opens * number):04d}.png", poster)
        command = [program, "-y", "-loglevel", "error", "-framerate", str(rate), "-i"]
        command += [f"{folder}/%04d.png", "-c:v", "libvpx-vp9", "-crf", "34", "-b:v", "0"]
        command += ["-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white"]
        command += ["-threads", str(os.cpu_count() or 1), "-deadline", "realtime", "-cpu-used", "6"]
        subprocess.run([*command, str(path)], check=True)
    return True
