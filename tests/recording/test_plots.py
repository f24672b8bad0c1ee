"""Pictures show the numbers that were recorded."""

import builtins
import re

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    IntervalMesh,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    conditional,
    dot,
    dx,
    lt,
)
from recording_fakes import Oscillators, OscillatorStepper, Rod, RodStepper

import fdgeom as fg
from fdgeom.recording import (
    Energy,
    Momentum,
    Snapshots,
    animate,
    plot_energy,
    plot_momentum,
    plot_shapes,
    run,
)
from fdgeom.recording.plots import _decimals

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

MATERIAL = {"density": 1.0, "youngs_modulus": 1.0, "poisson_ratio": 0.3}


@pytest.fixture(scope="module")
def recorded():
    snapshots = Snapshots(every=4)
    history = run(
        RodStepper(Rod(cells=8, degree=2)),
        steps=30,
        monitors=[Energy(), Momentum()],
        output=snapshots,
    )
    return history, snapshots


def test_energy(recorded):
    history, _ = recorded
    ax = plot_energy(history, title="a title")
    assert np.array_equal(ax.lines[0].get_ydata(), history["energy"])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("time t", "energy", "a title")
    ax = plot_energy(history, ax, deviation=True)
    energy = history["energy"]
    assert np.array_equal(ax.lines[1].get_ydata(), (energy - energy[0]) / abs(energy[0]))
    parts = run(OscillatorStepper(Oscillators()), steps=3, monitors=Energy())
    ax = plot_energy(parts)
    assert {line.get_label() for line in ax.lines} == {
        "total energy", "kinetic energy", "potential energy",
    }  # fmt: skip
    # Told apart without colour
    assert len({line.get_linestyle() for line in ax.lines}) == 3


@pytest.mark.parametrize("start", [0.0, 1e-22])
def test_energies_from_zero_or_round_off_have_no_ratio(start):
    made = fg.History()
    made.units = "SI"
    for k, energy in enumerate((start, 2e-6, 5.0)):
        made.append(k, k, {"energy": energy, "kinetic_energy": 1.0 + k / 4})
    ax = plot_energy(made, names=["energy", "kinetic_energy"], deviation=True)
    assert ax.get_ylabel() == "energy deviation [J]"
    assert ax.lines[0].get_ydata() == pytest.approx([0.0, 2e-6, 5.0])
    assert ax.lines[1].get_ydata() == pytest.approx([0.0, 0.25, 0.5])
    assert plot_energy(made, names=["kinetic_energy"], deviation=True).get_ylabel() == (
        "relative energy deviation"
    )


def test_momentum(recorded):
    history, _ = recorded
    ax = plot_momentum(history, names=["linear_momentum"], deviation=True)
    drawn = np.array([line.get_ydata() for line in ax.lines]).T
    values = history["linear_momentum"]
    assert np.array_equal(drawn, values - values[0])
    assert len(plot_momentum(history).lines) == 6


def test_snapshots_are_in_order_along_the_rod(recorded):
    _, snapshots = recorded
    assert snapshots.times == pytest.approx(0.1 * np.array([*range(0, 30, 4), 30]), rel=1e-14)
    # 8 cells with three nodes each, at Gauss-Lobatto points: the middle is one
    assert np.allclose(snapshots.s, np.linspace(0, 2, 17), rtol=0, atol=1e-14)
    x = snapshots.positions[0]
    s = snapshots.s
    assert np.allclose(x, np.stack([s, 0.1 * s**2, np.sin(s)], axis=1), rtol=0, atol=1e-14)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("turned", [False, True])
def test_fields_are_in_order_along_the_rod(degree, turned):
    """A field that jumps between two cells, whichever way these are numbered."""
    mesh = IntervalMesh(4, 1.0)
    x = mesh.coordinates.dat.data
    x[:] = 1 - x if turned else x
    stiffness, inertia = np.diag([1.0, 1, 1, 100, 100, 100]), np.diag([2.0, 1, 1, 3, 3, 3])
    beam = fg.Beam(mesh, fg.Section(stiffness, inertia), degree=degree)
    (s,) = SpatialCoordinate(mesh)
    beam.strain.interpolate(as_vector([conditional(lt(s, 0.5), 1.0, 0.0), 0, 0, 0, 0, 0]))
    shapes = fg.Snapshots(fields=["curvature"])
    shapes.take(beam, 0.0)
    (found,) = shapes.values["curvature"]
    assert found == pytest.approx(np.repeat([1.0, 1, 0, 0], degree), abs=1e-12)


def test_fields_are_in_order_around_a_ring():
    """The first value is that between the first two nodes."""
    ring = Rod(mesh=PeriodicIntervalMesh(6, 6.0))
    (s,) = SpatialCoordinate(ring.mesh)
    ring.strain.interpolate(as_vector([s, 0, 0, 0, 0, 0]))
    shapes = fg.Snapshots(fields=["strain"])
    shapes.take(ring, 0.0)
    (found,) = shapes.values["strain"]
    assert found == pytest.approx((shapes.s + 0.5) % 6)


def test_shapes(recorded):
    _, snapshots = recorded
    ax = plot_shapes(snapshots, count=3, title="shapes")
    curves = [line for line in ax.lines if len(line.get_data_3d()[0]) > 1]
    assert len(curves) == 3
    assert np.array_equal(np.array(curves[0].get_data_3d()).T, snapshots.positions[0])
    assert np.array_equal(np.array(curves[2].get_data_3d()).T, snapshots.positions[-1])


@pytest.mark.parametrize("loads", [(0, 1, 0), (2, 1, 0)])
def test_shapes_of_a_load_that_falls_have_a_colour_each(loads):
    snapshots, rod = Snapshots(), Rod(cells=4)
    for load in loads:
        snapshots.take(rod, load)
    ax = plot_shapes(snapshots)
    viridis = matplotlib.colormaps["viridis"]
    assert [line.get_color() for line in ax.lines[::2]] == [viridis(x) for x in (0.0, 0.5, 1.0)]
    assert ax.figure.axes[-1].get_ylabel() == "number of the snapshot"


@pytest.mark.parametrize(("interval", "decimals"), [(1.25, 2), (1.0, 0), (0.1, 1), (1 / 3, 2)])
def test_titles_of_frames_show_their_times(interval, decimals):
    assert _decimals(interval * np.arange(5)) == decimals


def test_a_ring_is_drawn_closed():
    snapshots = Snapshots(every=2)
    run(RodStepper(Rod(mesh=PeriodicIntervalMesh(5, 2.0))), steps=2, output=snapshots)
    assert snapshots.positions[0].shape == (5, 3)
    curve = np.array(plot_shapes(snapshots, count=1).lines[0].get_data_3d()).T
    assert curve.shape == (6, 3)
    assert np.array_equal(curve[0], curve[-1])


def test_beams_of_an_assembly_are_not_joined_by_lines():
    snapshots = Snapshots()
    snapshots.take(Rod(cells=4), 0.0)
    snapshots.parts = [(0, 2), (2, 5)]
    curve = np.array(plot_shapes(snapshots).lines[0].get_data_3d()).T
    assert np.flatnonzero(np.isnan(curve).all(axis=1)).tolist() == [2]
    assert np.array_equal(np.delete(curve, 2, axis=0), snapshots.positions[0])


def test_a_system_draws_its_present_shape():
    rod = Rod(cells=4)
    ax = rod.plot(title="now", units={"length": "mm"})
    x = rod.position.dat.data_ro
    drawn = np.array(ax.lines[0].get_data_3d()).T
    assert np.array_equal(drawn, x[np.argsort(x[:, 0])])
    assert (ax.get_title(), ax.get_xlabel()) == ("now", "x [mm]")
    assert ax.figure.axes == [ax]  # no colour bar for one shape
    rod.position.dat.data[:] += 1.0
    again = rod.plot(ax)
    assert again is ax
    assert np.allclose(np.array(ax.lines[-2].get_data_3d()).T, drawn + 1.0, rtol=0, atol=1e-15)
    with pytest.raises(TypeError, match="output.coordinates"):
        Oscillators().plot()


def test_beams_and_assemblies_draw_themselves():
    section = fg.Section.rectangle(0.1, 0.1, density=1, youngs_modulus=1e3, poisson_ratio=0.3)
    arc, straight = (fg.Beam(IntervalMesh(16, np.pi), section) for _ in range(2))
    arc.strain.interpolate(Constant((0, 0, 1, 0, 0, 0)))
    arc.reconstruct()
    # A strain of one about z bends it to half a unit circle about (0, 1, 0).
    x = np.array(arc.plot().lines[0].get_data_3d()).T
    assert np.hypot(x[:, 0], x[:, 1] - 1) == pytest.approx(np.ones(17), abs=2e-3)
    straight.reconstruct(position=x[-1])
    both = fg.Assembly([arc, straight], [fg.Spherical(arc.right, straight.left)])
    drawn = np.array(both.plot().lines[0].get_data_3d()).T
    assert np.isnan(drawn[17]).all()
    assert drawn[:17] == pytest.approx(x, abs=1e-12)
    assert drawn[18:] == pytest.approx(x[-1] + np.linspace(0, np.pi, 17)[:, None] * [1, 0, 0])


def test_animation_has_a_frame_for_each_snapshot(recorded, tmp_path):
    from PIL import Image

    _, snapshots = recorded
    animate(snapshots, tmp_path / "motion.gif", fps=10, dpi=40)
    with Image.open(tmp_path / "motion.gif") as picture:
        assert picture.n_frames == len(snapshots)
        assert picture.info["duration"] == 100  # milliseconds


def test_what_is_missing_is_named(recorded, monkeypatch):
    history, _ = recorded
    with pytest.raises(ValueError, match=r"Energy\(\)"):
        plot_energy(run(RodStepper(Rod()), steps=1))
    with pytest.raises(ValueError, match="no mass"):
        plot_momentum(history, names=["mass"])
    with pytest.raises(ValueError, match="empty"):
        plot_shapes(Snapshots())
    with pytest.raises(ValueError, match=r"^snapshots is empty: give it to run"):
        Snapshots().save("shapes.npz")
    with pytest.raises(TypeError, match="output.coordinates"):
        run(OscillatorStepper(Oscillators()), steps=1, output=Snapshots())
    real = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=re.escape("fdgeom[plots]")):
        plot_energy(history)


def test_snapshots_of_two_runs():
    """Of one system the second run goes on where the first ended; another system is refused."""
    stepper, shapes = RodStepper(Rod(cells=4)), Snapshots()
    run(stepper, steps=2, output=shapes)
    run(stepper, steps=2, output=shapes)
    assert shapes.times == pytest.approx(0.1 * np.arange(5), rel=1e-14)
    assert len(shapes.positions) == 5
    with pytest.raises(ValueError, match="make new ones"):
        run(RodStepper(Rod(cells=4)), steps=2, output=shapes)
    # Another stepper may begin again, and one description of a beam be followed by the other.
    beam = fg.Beam(IntervalMesh(4, 1.0), fg.Section.circle(0.1, **MATERIAL))
    shapes = Snapshots()
    shapes.take(beam, 0.5)
    for dt in (1e-2, 1e-3):
        fg.GeneralizedAlpha(beam, dt).run(steps=1, output=shapes)
    assert shapes.times == [0.5, 0.0, 1e-2, 0.0, 1e-3]


def test_snapshots_of_a_stepper_that_went_back():
    """Its next run replaces the later shapes, but not those taken by hand at other parameters."""
    rod = Rod(cells=4)
    stepper, shapes = RodStepper(rod), Snapshots(fields=["strain"])
    shapes.take(rod, 7.0)
    run(stepper, steps=4, output=shapes)
    stepper.t, stepper.steps = 0.15, 2
    rod.position.assign(1.0)
    run(stepper, steps=3, output=shapes)
    assert shapes.times == pytest.approx([7.0, 0.0, 0.1, 0.15, 0.25, 0.35, 0.45], rel=1e-14)
    assert shapes.positions[3] == pytest.approx(1.0)
    assert len(shapes.positions) == len(shapes.values["strain"]) == 7
    shapes.take(rod, 7.0)
    stepper.t = 0.0
    run(stepper, steps=1, output=shapes)
    assert shapes.times[-4:] == pytest.approx([0.45, 7.0, 0.0, 0.1])


def test_a_curve_in_the_plane_is_no_shape():
    mesh = IntervalMesh(5, 1.0)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    q, v = Function(space), Function(space)
    system = fg.LagrangianSystem(q, v, 0.5 * dot(v, v) * dx, coordinates=q)
    with pytest.raises(TypeError, match=r"a curve in space.*shape \(2,\)"):
        Snapshots().take(system, 0.0)
