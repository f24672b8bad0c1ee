"""The moving picture of the README and the start page: the free beam of the main demo, as an animated file.

``python demos/site/front.py`` draws it anew from the shapes that are stored beside the demo.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SHAPES = HERE.parent / "poisson_beam" / "motion.npz"
PICTURE = HERE / "static" / "flight.gif"
#: Pixels, frames per second, number of frames, and the centrelines that stay visible behind the beam.
SIZE, RATE, FRAMES, TRACES = (640, 360), 20, 101, 5
#: Direction of the light, in the frame of the camera: to the right, upwards, towards the eye.
LIGHT = np.array([-0.4, 0.7, 0.6])


def camera(positions: np.ndarray) -> np.ndarray:
    """Orthonormal rows: to the right, upwards, towards the eye. The longest extent lies to the right."""
    points = positions.reshape(-1, 3)
    axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    # A little from above, so that two sides of the beam are visible.
    right, towards = axes[0], axes[2] + 0.9 * axes[1]
    towards /= np.linalg.norm(towards)
    return np.stack([right, np.cross(towards, right), towards])


def rotations(q: np.ndarray) -> np.ndarray:
    """Rotation matrices of unit quaternions, scalar first."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def faces(positions, orientations, size, axis):
    """Faces of a prism along the nodes: corners (n, 4, 3), outward normals (n, 3) and cells (n)."""
    others = [(axis + 1) % 3, (axis + 2) % 3]
    sides = rotations(orientations)[..., others]
    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]) * np.asarray(size) / 2
    edges = positions[:, None] + np.einsum("nij,cj->nci", sides, corners)
    following = np.roll(edges, -1, axis=1)
    quads = np.stack([edges[:-1], edges[1:], following[1:], following[:-1]], axis=2)
    middles = (positions[:-1] + positions[1:]) / 2
    normals = quads.mean(axis=2) - middles[:, None]
    cells = np.repeat(np.arange(len(middles)), 4)
    ends = np.array([positions[0] - positions[1], positions[-1] - positions[-2]])
    quads = np.concatenate([quads.reshape(-1, 4, 3), edges[[0, -1]]])
    normals = np.concatenate([normals.reshape(-1, 3), ends])
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return quads, normals, np.append(cells, [0, len(middles) - 1])


def frames():
    """One picture of the beam after the other, as RGB arrays."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection

    with np.load(SHAPES) as stored:
        shapes = {name: stored[name] for name in stored}
    view = camera(shapes["positions"])
    seen = shapes["positions"] @ view.T
    low, high = seen.min(axis=(0, 1))[:2] - 0.12, seen.max(axis=(0, 1))[:2] + 0.12
    bend = np.array(
        [
            np.convolve(np.pad(b, 3, "edge"), np.ones(7) / 7, "valid")
            for b in shapes["field curvature"]
        ]
    )
    levels = plt.Normalize(-0.15 * bend.max(), bend.max())
    figure = plt.figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100)
    chosen = np.linspace(0, len(seen) - 1, FRAMES).round().astype(int)
    for k in chosen:
        figure.clear()
        ax = figure.add_axes((0, 0, 1, 1), aspect="equal")
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.axis("off")
        for j in range(k % 8, k, 8)[-TRACES:]:
            ax.plot(*seen[j, :, :2].T, color="0.82", linewidth=1, zorder=0)
        quads, normals, cells = faces(
            shapes["positions"][k],
            shapes["orientations"][k],
            np.ptp(shapes["outlines"][:, :2], axis=0),
            int(shapes["axis"]),
        )
        normals, corners = normals @ view.T, quads @ view.T
        # The painter's algorithm: far faces first.
        order = np.argsort(corners[..., 2].mean(axis=1))
        order = order[normals[order, 2] > 0]
        light = 0.66 + 0.42 * np.clip(normals[order] @ LIGHT / np.linalg.norm(LIGHT), 0, 1)
        colours = plt.colormaps["viridis"](levels(bend[k][cells[order]]))[:, :3] * light[:, None]
        colours = np.clip(colours, 0, 1)
        shown = PolyCollection(corners[order][..., :2], facecolors=colours, edgecolors=colours)
        ax.add_collection(shown)
        time = f"t = {shapes['times'][k]:.2f} s"
        ax.text(0.98, 0.05, time, transform=ax.transAxes, ha="right", fontsize=11)
        figure.canvas.draw()
        yield np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()
    plt.close(figure)


def main() -> None:
    """Write the picture."""
    import matplotlib
    from PIL import Image

    matplotlib.use("Agg")
    pictures = [Image.fromarray(frame) for frame in frames()]
    palette = Image.fromarray(np.concatenate([np.asarray(p) for p in pictures[::10]])).quantize(64)
    indexed = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    # The background is exactly white.
    background, levels = indexed[0].getpixel((0, 0)), indexed[0].getpalette()
    levels[3 * background : 3 * background + 3] = [255] * 3
    for picture in indexed:
        picture.putpalette(levels)
    times = [1000 // RATE] * (len(indexed) - 1) + [1500]
    indexed[0].save(
        PICTURE, save_all=True, append_images=indexed[1:], duration=times, loop=0, optimize=True
    )
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
