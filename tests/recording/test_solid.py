"""A beam as a body: volume, places and stress in VTK files and pictures."""

import numpy as np
import pytest
from firedrake import Constant, IntervalMesh, assemble, dx
from sections.drawn import STEEL, halves, rectangle

import fdgeom as fg
from fdgeom.recording.solid import Solid, SolidMesh, von_mises

LENGTH = 3.0


@pytest.fixture(scope="module")
def section():
    return fg.Section.from_mesh(rectangle(0.5, 0.3, 4), STEEL, origin="tension")


def bent(section, size=0.1, cells=6):
    """A beam bent to an arc in the plane of axes 0 and 1, and stretched a little."""
    beam = fg.Beam(IntervalMesh(cells, LENGTH), section)
    beam.strain.dat.data_wo[...] = [0, 0, size, 0.01, 0, 0]
    beam.reconstruct()
    return beam


def test_volume_and_places(section):
    """At rest the body is the box; sections of a stretched bar get thinner by Poisson's ratio."""
    beam = fg.Beam(IntervalMesh(6, LENGTH), section)
    body = SolidMesh(beam)
    body.update()
    volume = assemble(Constant(1.0) * dx(domain=body.mesh))
    assert volume == pytest.approx(0.15 * LENGTH, rel=1e-12)
    beam.strain.dat.data_wo[...] = [0, 0, 0, 0.01, 0, 0]
    beam.reconstruct()
    body.update()
    volume = assemble(Constant(1.0) * dx(domain=body.mesh))
    assert volume == pytest.approx(0.15 * LENGTH * 1.01 * (1 - 0.3 * 0.01) ** 2, rel=1e-10)
    stress, mises = body.functions
    assert stress.name() == "stress"
    assert mises.dat.data_ro == pytest.approx(2.6 * 0.01, rel=1e-9)


def test_stress_along_an_arc(section):
    """Bending stress E κ y and stretch E ε, at all stations."""
    beam = bent(section)
    solid = Solid(beam)
    resultants = solid.resultants()
    stress = solid.stress(resultants)
    y = solid.cut.places[..., 0] - section.origin[0]
    # κ about the third axis stretches the side of negative second coordinate.
    expected = np.broadcast_to(2.6 * (0.01 - 0.1 * y), stress.shape[:-2])
    assert stress[..., 0, 0] == pytest.approx(expected, abs=1e-9)
    assert von_mises(stress) == pytest.approx(np.abs(expected), abs=1e-8)
    assert Solid(beam.motion).beam is beam
    places = solid.places(resultants)
    assert places.shape == (7, *y.shape, 3)
    # The middle of the first section is the clamp's, in its plane.
    assert np.abs(places[0][..., 0]).max() < 1e-12


def test_files(section, tmp_path):
    pytest.importorskip("vtk")
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridReader

    beam = bent(section)
    stepper = fg.PoissonIntegrator(beam, dt=1e-4)
    stepper.run(steps=2, output=fg.VTKOutput(tmp_path / "body.pvd", solid=True))
    frames = sorted((tmp_path / "body").glob("*.vtu"))
    assert len(frames) == 3
    reader = vtkXMLUnstructuredGridReader()
    reader.SetFileName(str(frames[0]))
    reader.Update()
    grid = reader.GetOutput()
    assert grid.GetNumberOfCells() == 6 * 16
    names = {
        grid.GetPointData().GetArrayName(k) for k in range(grid.GetPointData().GetNumberOfArrays())
    }
    assert names >= {"stress", "von_mises"}
    low, high = grid.GetPointData().GetArray("von_mises").GetRange()
    assert 0 <= low < high
    assert high == pytest.approx(2.6 * (0.01 + 0.1 * 0.25), rel=1e-6)


def test_refused(section, tmp_path):
    pytest.importorskip("vtk")
    plain = fg.Beam(IntervalMesh(3, 1.0), fg.Section(np.eye(6), np.eye(6)))
    with pytest.raises(TypeError, match="^a drawn solid needs a section with a mesh"):
        SolidMesh(plain)
    with pytest.raises(TypeError, match=r"^a drawn solid needs a fdgeom\.Beam"):
        SolidMesh(3)
    with pytest.raises(ValueError, match="^fields: unknown 'heat'"):
        SolidMesh(bent(section), ["heat"])
    with pytest.raises(TypeError, match="^section must be one made by"):
        fg.plot_section(plain.section)


def test_pictures_of_materials_and_infinite_reserves():
    """Tags are those of the mesh; an infinite reserve leaves the scale to the finite ones."""
    pytest.importorskip("matplotlib").use("Agg")
    section = fg.Section.from_mesh(halves(0.5, 0.3, 4), {1: STEEL, 2: STEEL}, origin="tension")
    assert set(fg.plot_section(section).collections[0].get_array()) == {1.0, 2.0}
    # A force of 1 on 0.5 by 0.3, with a yield stress of 5.
    reserve = section.reserve_factor([0, 0, 0, 1, 0, 0], {1: fg.VonMises(5.0)})
    image = fg.plot_section(section, reserve).collections[0]
    low, high = image.get_clim()
    assert low == pytest.approx(0.75, rel=1e-8)
    assert high < 2.0
    values = image.get_array().compressed()  # Matplotlib masks what is infinite
    assert values == pytest.approx(np.full(len(image.get_array()) // 2, 0.75), rel=1e-8)


def test_pictures(section):
    """What is drawn: all cells, the range of the stress, the centres, the outline of the body."""
    pytest.importorskip("matplotlib").use("Agg")
    stress = section.recover([0, 0, 1, 0, 0, 0])
    ax = fg.plot_section(section, stress, component=(0, 0), title="bent")
    image = ax.collections[0]
    assert image.get_clim() == pytest.approx((-6 / 0.3 / 0.25, 6 / 0.3 / 0.25), rel=1e-8)
    assert ax.get_title() == "bent"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "tension centre",
        "shear centre",
        "mass centre",
    ]
    assert fg.plot_section(section).get_xlabel() == "body axis 1"
    strain = section.recover_strain([0, 0, 1, 0, 0, 0])
    with pytest.raises(TypeError, match="^component must be two numbers.* the field 'strain'"):
        fg.plot_section(section, strain)
    ax = fg.plot_section(section, strain, component=(0, 0))
    assert ax.figure.axes[-1].get_ylabel() == "strain 00"
    ax = fg.plot_solid(bent(section))
    # 4 cells on each of 4 sides, each of 2 pieces, in 6 beam cells; 8 triangles a cell at both ends.
    assert len(ax.collections[0].get_facecolor()) == 6 * 4 * 4 * 2 + 2 * 16 * 8
