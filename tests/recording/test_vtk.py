"""The .vtu files, read with the vtk package, hold the numbers of the Functions."""

import builtins
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from firedrake import PeriodicIntervalMesh
from recording_fakes import (
    Oscillators,
    OscillatorStepper,
    Rod,
    RodOutput,
    RodStepper,
    read_grid,
    read_vtu,
)

from fdgeom.recording import VTKOutput, run
from fdgeom.systems.system import Output

pytest.importorskip("vtkmodules.vtkIOXML")


def times(path):
    return [float(t) for t in re.findall(r'timestep="([^"]*)"', path.read_text())]


@pytest.mark.parametrize("degree", [1, 2])
def test_curve_and_fields_of_a_rod(tmp_path, degree):
    rod = Rod(cells=3, degree=degree)
    stepper = RodStepper(rod)
    run(stepper, steps=5, output=VTKOutput(tmp_path / "rod.pvd", every=2))
    assert times(tmp_path / "rod.pvd") == pytest.approx([0, 0.2, 0.4, 0.5], rel=1e-15)
    points, fields, cells = read_vtu(tmp_path / "rod" / "rod_3.vtu")
    assert set(fields) == {
        "strain_angular", "strain_linear", "momentum_angular", "momentum_linear", "director",
        "stretch",
    }  # fmt: skip
    # Nodes of a cell: both ends first, then the middle (Firedrake numbers CG2 from end to end).
    order = {1: [0, 1], 2: [0, 2, 1]}[degree]
    position = rod.position.cell_node_map().values[:, order]
    tolerance = {"rtol": 0, "atol": 1e-14}  # interpolation between equal nodes: round-off
    assert np.allclose(points[cells], rod.position.dat.data_ro[position], **tolerance)
    momentum = rod.momentum.dat.data_ro[position]
    assert np.allclose(fields["momentum_angular"][cells], momentum[..., :3], **tolerance)
    assert np.allclose(fields["momentum_linear"][cells], momentum[..., 3:], **tolerance)
    q = rod.orientation.dat.data_ro[position]
    director = [q[..., 0] ** 2 - q[..., 3] ** 2, 2 * q[..., 0] * q[..., 3], 0 * q[..., 0]]
    assert np.allclose(fields["director"][cells], np.stack(director, axis=-1), **tolerance)
    # Strain at two ends (and the middle): constant, or linear through the two Gauss points.
    strain = rod.strain.dat.data_ro[rod.strain.cell_node_map().values]
    middle, slope = strain.mean(axis=1), (strain[:, -1] - strain[:, 0]) * np.sqrt(3) / 2
    strain = np.stack([middle - slope, middle + slope, middle][: degree + 1], axis=1)
    assert np.allclose(fields["strain_linear"][cells], strain[..., 3:], **tolerance)


def test_vtk_draws_the_parabola_of_a_quadratic_cell(tmp_path):
    """Not only the nodes: the curve that VTK makes of them is the Function's."""
    rod = Rod(cells=2, degree=2)  # position[1] = s²/10 is held exactly
    run(RodStepper(rod), steps=1, output=VTKOutput(tmp_path / "rod.pvd"))
    from vtkmodules.vtkCommonCore import reference

    grid = read_grid(tmp_path / "rod" / "rod_0.vtu")
    for i in range(2):
        for r in (0.0, 0.2, 0.5, 0.9, 1.0):
            point, weights = [0.0] * 3, [0.0] * 3
            grid.GetCell(i).EvaluateLocation(reference(0), [r, 0, 0], point, weights)
            assert point[1] == pytest.approx(0.1 * point[0] ** 2, abs=1e-14)
            ends = np.sort([grid.GetCell(i).GetPoints().GetPoint(k)[0] for k in (0, 1)])
            assert ends == pytest.approx([i, i + 1], abs=1e-14)


def test_a_frame_has_what_is_brought_up_to_date_for_it(tmp_path):
    """A curve that `output.refresh` moves is drawn where it then is."""

    class Late(RodOutput):
        def refresh(self):
            self.coordinates.dat.data[:] += 1.0

    rod = Rod(cells=2)
    rod.output = Late(rod)
    run(RodStepper(rod), steps=1, output=VTKOutput(tmp_path / "rod.pvd"))
    points, _, cells = read_vtu(tmp_path / "rod" / "rod_1.vtu")
    drawn = rod.position.dat.data_ro[rod.position.cell_node_map().values]
    assert np.allclose(points[cells], drawn, rtol=0, atol=1e-14)


def test_own_mesh_chosen_fields_and_a_closed_ring(tmp_path):
    system = Oscillators(cells=3)
    run(
        OscillatorStepper(system),
        steps=1,
        output=VTKOutput(tmp_path / "o.pvd", fields=["radius"]),
    )
    points, fields, cells = read_vtu(tmp_path / "o" / "o_0.vtu")
    assert np.sort(points[cells][..., 0]).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert list(fields) == ["radius"]
    # p = 0 at first: the radius is q
    assert fields["radius"][cells] == pytest.approx(np.array([[1.5] * 2, [2.5] * 2, [3.5] * 2]))

    ring = Rod(mesh=PeriodicIntervalMesh(4, 2.0))
    ring.position.dat.data[:] = np.arange(12).reshape(4, 3)
    run(RodStepper(ring), steps=1, output=VTKOutput(tmp_path / "ring.pvd"))
    points, _, cells = read_vtu(tmp_path / "ring" / "ring_1.vtu")
    expected = ring.position.dat.data_ro[ring.position.cell_node_map().values]
    assert np.allclose(points[cells], expected, rtol=0, atol=1e-14)


def test_series_goes_on_in_a_second_run_and_after_a_restart(tmp_path):
    path = tmp_path / "a.pvd"
    stepper = OscillatorStepper(Oscillators())
    output = VTKOutput(path, every=2)
    run(stepper, steps=4, output=output)
    run(stepper, steps=2, output=output)
    assert times(path) == pytest.approx([0, 0.2, 0.4, 0.6], rel=1e-14)
    stepper.t = 0.4
    run(stepper, steps=2, output=VTKOutput(path, every=2, append=True))
    assert times(path) == pytest.approx([0, 0.2, 0.4, 0.6], rel=1e-14)
    _, fields, _ = read_vtu(tmp_path / "a" / "a_3.vtu")
    assert np.allclose(fields["q"].reshape(3, 2)[:, 0], stepper.system.q.dat.data_ro, rtol=1e-15)


@pytest.mark.parametrize(("dt", "start"), [(2.0**-50, 0.0), (2.0**-20, 2.0**30)])
def test_series_of_short_steps_goes_on(tmp_path, dt, start):
    """Of times near zero, and of times with few digits left for a step."""
    path, stepper = tmp_path / "a.pvd", OscillatorStepper(Oscillators(), dt=dt)
    stepper.t = start
    run(stepper, steps=3, output=VTKOutput(path))
    run(stepper, steps=2, output=VTKOutput(path, append=True))
    assert times(path) == [start + k * dt for k in range(6)]


@pytest.mark.parametrize(("name", "plain"), [("ü", "u00fc"), ("a&b", "au0026b"), ("a b", "a b")])
def test_names_beyond_ascii(tmp_path, name, plain):
    """Of the file, its folder and the fields; a series that is continued, too."""

    class Named(Output):
        def fields(self):
            return {f"{name}-field": self._system.q}

    system = Oscillators()
    system.output = Named(system)
    stepper = OscillatorStepper(system)
    path = tmp_path / f"{name}.pvd"
    run(stepper, steps=1, output=VTKOutput(path))
    run(stepper, steps=1, output=VTKOutput(path, append=True))
    assert times(path) == pytest.approx([0, 0.1, 0.2], rel=1e-15)
    frames = [frame.get("file") for frame in ElementTree.parse(path).iter("DataSet")]
    assert frames == [f"{plain}/{plain}_{k}.vtu" for k in range(3)]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, plain])
    _, fields, _ = read_vtu(tmp_path / frames[2])
    assert set(fields) == {f"{plain}-field"}


@pytest.mark.parametrize("content", [b"", b"no frames", b"<a><b></a>", bytes(range(256))])
def test_a_series_that_is_none_is_not_continued(tmp_path, content):
    path = tmp_path / "a.pvd"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^path = '.*a.pvd': append: the file is not a series"):
        run(OscillatorStepper(Oscillators()), steps=1, output=VTKOutput(path, append=True))
    assert path.read_bytes() == content


def test_bad_input_is_named(tmp_path):
    for arguments, named in [
        ({"path": "a.vtu"}, "path"),
        ({"path": "a.pvd", "every": 0}, "every"),
        ({"path": "a.pvd", "fields": "strain"}, "fields"),
    ]:
        with pytest.raises(ValueError, match=named):
            VTKOutput(**arguments)
    stepper = RodStepper(Rod())
    with pytest.raises(ValueError, match=r"fields.*'stress'.*strain, momentum, director, stretch"):
        run(stepper, steps=1, output=VTKOutput(tmp_path / "a.pvd", fields=["stress"]))
    with pytest.raises(ValueError, match="path"):
        run(stepper, steps=1, output=VTKOutput("/dev/null/a.pvd"))
    (tmp_path / "b").write_text("a file where the folder of frames would be")
    with pytest.raises(ValueError, match="path"):
        run(stepper, steps=1, output=VTKOutput(tmp_path / "b.pvd"))


def test_missing_vtk_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without_vtk(name, *args, **kwargs):
        if name.startswith("vtk"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_vtk)
    with pytest.raises(ImportError, match=re.escape("fdgeom[vtk]")):
        VTKOutput("a.pvd")
