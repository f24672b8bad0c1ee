"""Scenes for a browser: what the page holds is what the run made; what snapshots keep of fields."""

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from firedrake import IntervalMesh, PeriodicIntervalMesh
from recording.recording_fakes import Rod, RodStepper
from verification.joined import sprung_chain

import fdgeom as fg

STIFFNESS = np.diag([3.0, 5.0, 8.0, 100.0, 100.0, 100.0])
CURVATURE = 0.6


def bent():
    """A beam of constant curvature about its third axis, with a natural strain beside it."""
    section = fg.Section(STIFFNESS, np.eye(6))
    beam = fg.Beam(IntervalMesh(4, 1.0), section, reference_strain=(0, 0, 0.1, 0, 0, 0))
    beam.strain.dat.data[:, 2] = CURVATURE
    beam.reconstruct()
    return beam


def data_of(page):
    """What the viewer reads, with its integers of 16 bits made numbers."""
    found = json.loads(re.search(r'id="data" type="application/json">(.*?)</script>', page)[1])

    def numbers(packed):
        whole = np.frombuffer(base64.b64decode(packed["base64"]), dtype="<u2")
        return packed["low"] + whole * (packed["high"] - packed["low"]) / 65535

    for name in ("positions", "orientations"):
        found[name] = found[name] and numbers(found[name])
    found["fields"] = {name: numbers(packed) for name, packed in found["fields"].items()}
    return found


def test_fields_of_a_beam():
    """Length of the curvature and of the moment; the energy is that above the natural strain."""
    shapes = fg.Snapshots(fields=["curvature", "moment", "strain_energy"])
    beam = bent()
    shapes.take(beam, 0.0)
    elastic = CURVATURE - 0.1
    expected = {
        "curvature": CURVATURE,
        "moment": 8 * elastic,
        "strain_energy": 0.5 * 8 * elastic**2,
    }
    for name, value in expected.items():
        assert shapes.values[name][0] == pytest.approx(np.full(4, value), rel=1e-12)


def test_energy_of_configuration_form():
    """The sum over the pieces is the potential energy, which is computed elsewhere."""
    beam = bent()
    stepper = fg.GeneralizedAlpha(beam, 1e-3)
    shapes = fg.Snapshots(every=5, fields=["strain_energy"])
    history = stepper.run(steps=5, monitors=[fg.Energy()], every=5, output=shapes, progress=False)
    found = [0.25 * values.sum() for values in shapes.values["strain_energy"]]
    assert found == pytest.approx(history["potential_energy"], rel=1e-10)


def test_parts_of_an_assembly():
    """Each beam is a part with its own pieces; nodes of joints are in none."""
    assembly = sprung_chain()
    shapes = fg.Snapshots(fields=["velocity"])
    shapes.take(assembly, 0.0)
    assert shapes.parts == [(0, 3), (3, 6), (6, 9)]
    for (first, last), nodes in zip(shapes.parts, assembly.shapes(), strict=True):
        assert shapes.positions[0][first:last] == pytest.approx(nodes, abs=1e-15)
    assert shapes.values["velocity"][0].shape == (6,)


def test_sizes_bend_as_the_section():
    for axis in (0, 1, 2):
        section = fg.Section.rectangle(
            0.3, 0.1, density=1.0, youngs_modulus=1.0, poisson_ratio=0.3, axis=axis
        )
        shapes = fg.Snapshots()
        shapes.take(fg.Beam(IntervalMesh(2, 1.0), section), 0.0)
        assert shapes.sizes[0] == pytest.approx((0.3, 0.1), rel=1e-12)
        assert shapes.axis == axis


def test_page(tmp_path):
    """To a part in 65535 of its extent the page holds the shapes, and it refers to nothing else."""
    shapes = fg.Snapshots(every=1, fields=["momentum"])
    rod = Rod(4)
    stepper = RodStepper(rod)
    shapes.open(stepper)
    for _ in range(3):
        shapes.write(stepper)
        stepper.advance()
    fg.save_scene(tmp_path / "run.html", shapes, title="A </script> & <b>", units="SI")
    page = (tmp_path / "run.html").read_text()
    data = data_of(page)
    assert data["times"] == pytest.approx([0.0, 0.1, 0.2])
    whole = np.array(shapes.positions)
    near = np.ptp(whole) / 65535
    assert data["positions"].reshape(whole.shape) == pytest.approx(whole, abs=near)
    momentum = np.array(shapes.values["momentum"])
    found = data["fields"]["momentum"].reshape(momentum.shape)
    assert found == pytest.approx(momentum, abs=np.ptp(momentum) / 65535)
    assert "A &lt;/script&gt; &amp; &lt;b&gt;" in page
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=", page)
    assert page.count("</script>") == 5


HARMFUL = '<!--<script> A </script> & "b" \\u003c'


class Page(HTMLParser):
    """What a browser has of a page: the texts of its scripts, and its title."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.title, self._inside = [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside == "title":
            self.title += data


def test_texts_of_the_user(tmp_path):
    """Title, parameter, units and names come out as they went in, and change nothing else.

    A browser that finds "<!--<script" in a script takes all until "-->" for a part of it: so no "<"
    may be in the data.
    """

    class Named(Rod):
        def output_fields(self):
            return {HARMFUL: self.strain}

    shapes = fg.Snapshots(fields=[HARMFUL])
    shapes.take(Named(4), 0.0)
    texts = {"title": HARMFUL, "parameter": HARMFUL, "units": {"length": HARMFUL, "time": "s"}}
    fg.save_scene(tmp_path / "a.html", shapes, **texts)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    found = Page(page)
    data = json.loads(found.scripts[0])
    assert "<" not in found.scripts[0]
    assert found.title == HARMFUL
    assert (data["parameter"], data["length"], list(data["fields"])) == (
        HARMFUL,
        HARMFUL,
        [HARMFUL],
    )
    # A unit of time belongs to the time only.
    assert data["unit"] == ""
    fg.save_scene(tmp_path / "b.html", shapes, units={"time": HARMFUL})
    other = Page((tmp_path / "b.html").read_text(encoding="utf-8"))
    data = json.loads(other.scripts[0])
    assert (data["unit"], data["parameter"], data["length"]) == (f" {HARMFUL}", "t", "")
    # The other scripts are the same, and none is cut or swallowed.
    assert len(found.scripts) == 5
    assert found.scripts[1:] == other.scripts[1:]


def test_quaternions_may_be_mixed(tmp_path):
    """A quaternion and its negative are one turn: neighbours in time are on one side."""
    shapes = fg.Snapshots()
    s = np.linspace(0, 1, 5)
    for k in range(3):
        shapes.times.append(k)
        shapes.positions.append(np.stack([s, 0 * s, 0 * s], axis=1))
        shapes.orientations.append((-1) ** k * np.tile([1.0, 0, 0, 0], (5, 1)))
    shapes.parts = [(0, 5)]
    fg.save_scene(tmp_path / "turns.html", shapes)
    data = data_of((tmp_path / "turns.html").read_text())
    assert data["orientations"].reshape(3, 5, 4)[..., 0] == pytest.approx(np.ones((3, 5)), abs=1e-4)


def test_closed_curve(tmp_path):
    shapes = fg.Snapshots()
    shapes.take(Rod(mesh=PeriodicIntervalMesh(6, 2.0)), 0.0)
    fg.save_scene(tmp_path / "ring.html", shapes)
    data = data_of((tmp_path / "ring.html").read_text())
    assert data["nodes"] == 7
    points = data["positions"].reshape(7, 3)
    assert points[0] == pytest.approx(points[-1], abs=1e-12)


def test_file(tmp_path):
    """What is saved is read again, to single precision."""
    shapes = fg.Snapshots(fields=["curvature", "strain_energy"])
    beam = bent()
    for t in (0.0, 0.5):
        shapes.take(beam, t)
    shapes.save(tmp_path / "shapes.npz")
    found = fg.Snapshots.load(tmp_path / "shapes.npz")
    assert (found.times, found.parts, found.axis) == (shapes.times, shapes.parts, shapes.axis)
    assert np.array(found.sizes) == pytest.approx(np.array(shapes.sizes))
    for name in ("positions", "orientations"):
        ours, theirs = (np.array(getattr(x, name)) for x in (shapes, found))
        assert theirs == pytest.approx(ours, abs=1e-6)
    assert found.values.keys() == shapes.values.keys()
    assert fg.plot_shapes(found) is not None
