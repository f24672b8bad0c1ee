"""Pictures can be read: nothing is cut off, no label lies on another, units stand at the axes."""

import itertools

import numpy as np
import pytest
from recording_fakes import Rod, RodStepper

from fdgeom.recording import (
    Energy,
    Momentum,
    Snapshots,
    animate,
    plot_energy,
    plot_momentum,
    plot_shapes,
    run,
    space_axes,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

# Points of the curves: their extents, so that the box is a tower, a strip in a plane, a cube.
SHAPES = {
    "tower": (0.8, 1.2, 2.3),
    "board": (0.6, 0.6, 0.05),
    "cube": (1.2, 1.2, 1.2),
    "blade": (0.12, 0.9, 1.6),
    "plane x-y": (34.0, 9.0, 0.0),
    "plane x-z": (3.0, 0.0, 4.0),
    "plane y-z": (0.0, 1e-3, 2e-3),
    "far away": (1.0, 1.0, 1.0),
}


def filled(name):
    """Snapshots of a made-up curve that swings."""
    snapshots, s = Snapshots(), np.linspace(0, 1, 20)
    for t in np.linspace(0, 1, 5):
        curve = np.stack([s * np.cos(4 * t), 0.5 * np.sin(3 * s + t), s - t], axis=1)
        snapshots.times.append(t)
        snapshots.positions.append(curve)
    snapshots.closed = False
    every = np.array(snapshots.positions)
    low, high = every.min(axis=(0, 1)), every.max(axis=(0, 1))
    shift = 1234.5 if name == "far away" else 0.0
    snapshots.positions = list((every - low) / (high - low) * SHAPES[name] + shift)
    return snapshots


def boxes(figure):
    """What is written in a picture, and where: boxes in pixels by text and axis."""
    renderer = figure.canvas.get_renderer()
    found = {}
    for ax in figure.axes:
        for which in ("x", "y", "z"):
            axis = getattr(ax, f"{which}axis", None)
            if axis is None or not axis.get_visible():
                continue
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                for label in (tick.label1, tick.label2):
                    drawn = tick.get_visible() and label.get_visible() and label.get_text()
                    if drawn and low <= tick.get_loc() <= high:
                        box = label.get_window_extent(renderer)
                        found[f"{id(ax)} {which} {label.get_text()} {len(found)}"] = box
            if axis.label.get_text():
                name = f"{id(ax)} {which} name {axis.label.get_text()}"
                found[name] = axis.label.get_window_extent(renderer)
        if ax.get_title():
            found[f"{id(ax)} title"] = ax.title.get_window_extent(renderer)
    return found


def check_picture(figure):
    """All that is written lies in the figure, and nothing on anything else."""
    figure.canvas.draw()
    width, height = figure.bbox.width, figure.bbox.height
    found = boxes(figure)
    for name, box in found.items():
        # Half a pixel: where a glyph's edge falls between two.
        assert box.x0 > -0.5, name
        assert box.y0 > -0.5, name
        assert box.x1 < width + 0.5, name
        assert box.y1 < height + 0.5, name
    for (one, a), (other, b) in itertools.combinations(found.items(), 2):
        apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
        # Names along slanted axes have boxes that are mostly empty.
        slanted = " name " in one or " name " in other
        assert apart or slanted, (one, other)


def check_off_the_axes(ax):
    """No tick label lies on its axis: not even its minus sign."""
    renderer = ax.figure.canvas.get_renderer()
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        if not axis.get_visible():
            continue
        axis.get_tightbbox(renderer)
        line = ax.transData.transform(np.transpose(axis.line.get_data()))
        points = line[0] + np.linspace(0, 1, 500)[:, None] * (line[1] - line[0])
        for tick in axis.get_major_ticks():
            box = tick.label1.get_window_extent(renderer)
            inside = (points > [box.x0, box.y0]).all(axis=1) & (points < [box.x1, box.y1]).all(1)
            assert not inside.any(), tick.label1.get_text()


@pytest.mark.parametrize("dpi", [60, 150])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_fill_their_picture(name, dpi, tmp_path):
    """As a plain ``savefig`` draws them, at any resolution."""
    ax = plot_shapes(filled(name), title="A title that is not short at all", units="SI")
    figure = ax.figure
    # Drawn at its own resolution, and then checked at that.
    figure.savefig(tmp_path / "shapes.png", dpi=dpi)
    figure.set_dpi(dpi)
    check_picture(figure)
    check_off_the_axes(ax)
    # Also with bbox_inches="tight", as in notebooks.
    tight = figure.get_tightbbox(figure.canvas.get_renderer()).extents * dpi
    assert tight == pytest.approx([0, 0, figure.bbox.width, figure.bbox.height], abs=0.5)
    pyplot.close(figure)


@pytest.mark.parametrize("size", [(1.2, 1.2, 1.0), (0.8, 1.2, 2.3), (0.2, 2.0, 1.0)])
@pytest.mark.parametrize("view", [(18, -60), (-10, -30), (40, 110), (5, 20)])
def test_any_view(size, view):
    """Labels lie in the figure from whatever side the box is seen."""
    figure = pyplot.figure(figsize=(6, 4), layout="constrained")
    ax = figure.add_subplot(projection="3d")
    space_axes(ax, [[0, 0, 0], size], units="SI")
    ax.view_init(*view)
    figure.canvas.draw()
    for name, box in boxes(figure).items():
        assert min(box.x0, box.y0) > -0.5, name
        assert max(box.x1 - figure.bbox.width, box.y1 - figure.bbox.height) < 0.5, name
    pyplot.close(figure)


def test_axes_have_one_scale():
    """A unit of length is as long along x as along y and z, and the limits hold all curves."""
    snapshots = filled("tower")
    ax = plot_shapes(snapshots)
    every = np.array(snapshots.positions).reshape(-1, 3)
    limits = np.array([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])
    assert np.all(limits[:, 0] < every.min(axis=0))
    assert np.all(limits[:, 1] > every.max(axis=0))
    extent = np.ptp(limits, axis=1)
    assert ax._box_aspect / ax._box_aspect[0] == pytest.approx(extent / extent[0], rel=1e-12)
    pyplot.close(ax.figure)


@pytest.mark.parametrize("name", ["tower", "plane x-y"])
def test_shapes_beside_other_axes(name, tmp_path):
    """In a figure of one's own, under its layout; drawn again after it has been made larger."""
    figure = pyplot.figure(figsize=(10, 4), layout="constrained")
    ax = figure.add_subplot(1, 2, 1, projection="3d")
    plot_shapes(filled(name), ax, title="Shapes", units={"length": "mm", "time": "ms"})
    beside = figure.add_subplot(1, 2, 2)
    beside.plot([0, 1], [0, 1])
    beside.set(xlabel="time t [s]", ylabel="energy [J]", title="Beside")
    for size in ((10, 4), (8, 6)):
        figure.set_size_inches(size)
        figure.savefig(tmp_path / "both.png")
        check_picture(figure)
        check_off_the_axes(ax)
    assert [ax.get_xlabel(), ax.get_ylabel(), ax.get_zlabel()][0] == "x [mm]"
    pyplot.close(figure)


@pytest.mark.parametrize("of_figures", [False, True])
def test_neighbours_do_not_cover_one_another(of_figures):
    """Every label of two pictures in space, side by side, can be seen: there is ink in its box."""
    figure = pyplot.figure(figsize=(8, 3.5), layout="constrained")
    if of_figures:
        both = [part.add_subplot(projection="3d") for part in figure.subfigures(1, 2)]
    else:
        both = [figure.add_subplot(1, 2, k, projection="3d") for k in (1, 2)]
    for ax in both:
        space_axes(ax, [[-0.6, -0.6, -0.8], [0.6, 0.6, 0.2]], units="SI")
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3].min(axis=-1)
    found = boxes(figure)
    assert len(found) > 12
    for name, box in found.items():
        rows, columns = (
            slice(int(low), int(high) + 1) for low, high in ((box.y0, box.y1), (box.x0, box.x1))
        )
        assert pixels[rows, columns].min() < 100, name
    pyplot.close(figure)


def test_what_is_no_place_in_space_is_refused():
    figure, ax = pyplot.subplots()
    with pytest.raises(TypeError, match=r"^ax must be 3-D axes"):
        space_axes(ax, [[0, 0, 0]])
    ax = figure.add_subplot(projection="3d")
    with pytest.raises(ValueError, match=r"^points must be finite, of shape \(..., 3\)"):
        space_axes(ax, [[0, 0]])
    pyplot.close(figure)


def ink(pixels):
    """Parts of the width and the height between the first and the last pixel that is not white."""
    dark = np.asarray(pixels)[..., :3].min(axis=-1) < 0.9 * np.max(pixels)
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    return np.ptp(columns) / dark.shape[1], np.ptp(rows) / dark.shape[0]


@pytest.mark.parametrize("name", ["tower", "board", "plane x-y"])
def test_a_moving_picture_is_not_empty(name, tmp_path):
    from PIL import Image

    path = tmp_path / "motion.gif"
    animate(filled(name), path, dpi=50, title="swinging", units="SI")
    with Image.open(path) as picture:
        assert picture.n_frames == 5
        frames = []
        for k in range(5):
            picture.seek(k)
            frames.append(np.asarray(picture.convert("RGB"), dtype=float))
    for frame in frames:
        wide, high = ink(frame)
        assert wide > 0.9
        assert high > 0.9
    # What moves takes a good part of it: the columns and rows in which any two frames differ.
    moving = np.ptp(np.array(frames), axis=0).max(axis=-1) > 60
    assert np.ptp(np.flatnonzero(moving.any(axis=0))) > 0.4 * moving.shape[1]
    assert np.ptp(np.flatnonzero(moving.any(axis=1))) > 0.3 * moving.shape[0]


@pytest.fixture(scope="module")
def recorded():
    return run(RodStepper(Rod()), steps=5, monitors=[Energy(), Momentum()])


def test_units(recorded):
    ax = plot_energy(recorded, units="SI")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time t [s]", "energy [J]")
    ax = plot_energy(recorded, units={"time": "ms"}, deviation=True)
    # Relative: a number.
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time t [ms]", "relative energy deviation")
    ax = plot_momentum(recorded, names=["linear_momentum"], units="SI")
    assert ax.get_ylabel() == "linear momentum [kg m/s]"
    ax = plot_momentum(recorded, units="SI", deviation=True)
    assert ax.get_ylabel() == "momentum deviation"
    labels = {line.get_label() for line in ax.lines}
    assert "linear momentum, x [kg m/s]" in labels
    assert "angular momentum, z [kg m²/s]" in labels
    ax = plot_momentum(recorded)
    assert ax.get_ylabel() == "momentum"
    ax = plot_shapes(filled("cube"), units={"length": "cm"})
    assert ax.get_zlabel() == "z [cm]"
    assert ax.figure.axes[-1].get_ylabel() == "time t"
    pyplot.close("all")
