"""Pictures and moving previews of the cards: shapes where a demo keeps them, else a part of a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import films
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import fdgeom as fg

#: Figure and the part of it that is shown: left, upper, right, lower, as parts of width and height.
PARTS = {
    "blade_root": ("blade.png", (0, 0.1, 0.76, 0.97)),
    "capstan": ("capstan.png", (0.07, 0.06, 0.34, 0.86)),
    "chaplygin_ball": ("centre.png", (0, 0.06, 0.5, 1)),
    "elastodynamics": ("shaken.png", (0.082, 0.085, 0.413, 0.86)),
    "exploding_gradients": ("sensitivity.png", (0.066, 0.057, 0.457, 0.9)),
    "friction_identification": ("sliding.png", (0.067, 0.1, 0.57, 0.843)),
    "generalized_alpha": ("spectrum.png", (0, 0, 0.33, 1)),
    "gripper": ("gripper.png", (0.067, 0.05, 0.37, 0.88)),
    "heavy_top": ("position.png", (0.62, 0.1, 1, 1)),
    "henon_heiles": ("henon_heiles.png", (0, 0.05, 0.493, 1)),
    "own_bracket": ("own_bracket.png", (0.09, 0.16, 0.26, 0.7)),
    "profiles": ("profiles.png", (0, 0.05, 1, 1)),
    "soft_arm": ("arm.png", (0.612, 0.043, 0.942, 0.505)),
    "spherical_pendulum": ("motion.png", (0.07, 0.04, 0.41, 0.44)),
    "stiff_springs": ("springs.png", (0, 0.09, 0.33, 0.485)),
    "strip_stiffness": ("strip.png", (0.582, 0.043, 0.942, 0.405)),
    "strip_modes": ("modes.png", (0, 0, 1, 1)),
}
#: Width over height of a card's picture, the length of its diagonal in inches, and how many shapes it shows.
WIDE, INCHES, MOST = 16 / 9, 5.0, 12


def make(name: str, figure: str, folder: Path) -> str:
    """Write the picture of a demo into a folder; its name. Without shapes and part it is the figure."""
    if shapes := films.load(name):
        file = folder / f"{name}-shapes.png"
        draw(shapes, file)
    else:
        file = folder / f"{name}-part.png"
        cut(films.DEMOS / name, *PARTS.get(name, (figure, (0, 0, 1, 1))), file)
    return file.name


def preview(name: str, folder: Path) -> None:
    """Write the moving picture of a card, ``preview.webm``, where a demo keeps what moves."""
    if shapes := films.load(name):
        frames, rate = moving(shapes), 20
    elif name in films.FLAT:
        kept = films.DEMOS / name / f"{films.FLAT[name].stem}.npz"
        frames, rate = films.bodies(kept, with_axes=False), 10
    else:
        return
    folder.mkdir(parents=True, exist_ok=True)
    films.encode(frames, folder / "preview.webm", rate=rate)


def moving(shapes: fg.Snapshots, most: int = 80) -> Iterator[Figure]:
    """Draw at most so many of the shapes, one after the other, each over its faint predecessors.

    Shapes that travel far are seen from a camera that follows them.
    """
    chosen = np.unique(np.linspace(0, len(shapes) - 1, most).round().astype(int))
    seen = project(np.array(shapes.positions))[chosen]
    if np.ptp(seen, axis=1).max() < np.ptp(seen, axis=(0, 1)).max() / 2:
        seen = seen - seen.mean(axis=1, keepdims=True)
    figure, ax = canvas()
    # The limits are those of all shapes.
    ax.plot(*np.array([seen.min(axis=(0, 1)), seen.max(axis=(0, 1))]).T, alpha=0)
    trail = [
        [ax.plot([], [], color="0.8", linewidth=1.5)[0] for _ in shapes.parts] for _ in range(5)
    ]
    lines = [
        ax.plot([], [], color=films.COLOURS[k % 4], linewidth=4)[0]
        for k in range(len(shapes.parts))
    ]
    for k in range(len(seen)):
        for j, group in enumerate([*trail, lines]):
            past = seen[max(0, k - 2 * (len(trail) - j))]
            for line, (first, last) in zip(group, shapes.parts, strict=True):
                line.set_data(*past[first:last].T)
        yield figure


def canvas() -> tuple[Figure, Axes]:
    """Axes of the form of a card, without ticks and lines."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(INCHES, INCHES / WIDE))
    ax = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    ax.set_aspect("equal")
    ax.axis("off")
    return figure, ax


def cut(folder: Path, figure: str, part: tuple[float, ...], file: Path) -> None:
    """A part of a figure, without the white round it."""
    from PIL import Image, ImageChops

    with Image.open(folder / figure) as picture:
        size = (*picture.size, *picture.size)
        piece = picture.convert("RGB").crop([round(p * s) for p, s in zip(part, size, strict=True)])
    white = Image.new("RGB", piece.size, "white")
    piece.crop(ImageChops.difference(piece, white).getbbox()).save(file)


def draw(shapes: fg.Snapshots, file: Path) -> None:
    """Shapes from the first to the last, dark to light, on nothing; tall ones side by side."""
    import matplotlib.pyplot as plt

    chosen = np.unique(np.linspace(0, len(shapes) - 1, MOST).round().astype(int))
    seen = project(np.array(shapes.positions))[chosen]
    low, high = seen.min(axis=(0, 1)), seen.max(axis=(0, 1))
    width, height = high - low
    if width < 0.8 * height:
        # As in a series of photographs.
        seen[..., 0] += np.linspace(0, WIDE * height - width, len(chosen))[:, None]
    figure, ax = canvas()
    for shape, colour in zip(
        seen, plt.colormaps["viridis"](np.linspace(0, 0.82, len(chosen))), strict=True
    ):
        for first, last in shapes.parts:
            ax.plot(*shape[first:last].T, color=colour, linewidth=3, solid_capstyle="round")
    figure.savefig(file, dpi=200, transparent=True)
    plt.close(figure)


def project(positions: np.ndarray) -> np.ndarray:
    """As a scene sees it at first: along the axis in which nothing moves, else from aside and above."""
    extent = np.ptp(positions.reshape(-1, 3), axis=0)
    towards = np.array([0.75, -1.1, 0.5])
    flat = np.flatnonzero(extent < 1e-3 * np.linalg.norm(extent))
    if len(flat) == 1:
        towards = np.eye(3)[flat[0]] * (-1 if flat[0] == 1 else 1)
    upward = np.eye(3)[1 if flat.tolist() == [2] else 2]
    towards = towards / np.linalg.norm(towards)
    right = np.cross(upward, towards)
    right /= np.linalg.norm(right)
    return positions @ np.stack([right, np.cross(towards, right)], axis=1)
