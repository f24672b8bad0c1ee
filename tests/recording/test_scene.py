"""Scenes for a browser: what the page holds is what the run made; what snapshots keep of a system."""

import base64
import html
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest
from firedrake import (
    DirichletBC,
    Function,
    IntervalMesh,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    dot,
    dx,
    sin,
)
from recording.recording_fakes import Rod, RodOutput, RodStepper
from verification.joined import sprung_chain

import fdgeom as fg
from fdgeom.lie.arrays import quaternion
from fdgeom.recording.scene.geometry import sweep, transported

msgpack = pytest.importorskip("msgpack", reason="no k3d: pip install -e '.[scene]'")

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
    """What k3d reads: for the controls, and objects by name with their series in time as arrays."""
    packed = base64.b64decode(re.search("var data = '([^']*)'", page)[1])
    found = msgpack.unpackb(zlib.decompress(packed))

    def numbers(value):
        if isinstance(value, list):
            return [numbers(v) for v in value]
        if not isinstance(value, dict) or not value:
            return value
        if "data" in value:
            return np.frombuffer(value["data"], value["dtype"]).reshape(value["shape"])
        if all(key.isdigit() for key in value):
            return np.array([numbers(value[str(k)]) for k in range(len(value))])
        return {key: numbers(v) for key, v in value.items()}

    objects = {thing["name"]: numbers(thing) for thing in found["objects"]}
    return found["plot"]["customData"], objects


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


MATERIAL = {"density": 1.0, "youngs_modulus": 1.0, "poisson_ratio": 0.3}


def outline_of(section):
    shapes = fg.Snapshots()
    shapes.take(fg.Beam(IntervalMesh(2, 1.0), section), 0.0)
    return shapes.outlines[0]


def area(outline):
    """The area between the curves of an outline: that of the first less those inside it."""
    areas = []
    for number in np.unique(outline[:, 2]):
        x, y = outline[outline[:, 2] == number, :2].T
        areas.append(0.5 * abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)))
    return 2 * max(areas) - sum(areas)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_outline_of_a_rectangle(axis):
    """With its own sides, and as the rectangle that bends as two given matrices do."""
    section = fg.Section.rectangle(0.3, 0.1, axis=axis, **MATERIAL)
    given = fg.Section(section.stiffness, section.inertia, axis=axis)
    for found in (outline_of(section), outline_of(given)):
        assert np.ptp(found[:, :2], axis=0) == pytest.approx((0.3, 0.1), rel=1e-12)
        assert area(found) == pytest.approx(0.03, rel=1e-12)


def test_outlines_that_are_round():
    corners = outline_of(fg.Section.circle(0.2, **MATERIAL))
    assert np.linalg.norm(corners[:, :2], axis=1) == pytest.approx(0.2, rel=1e-12)
    tube = outline_of(fg.Section.tube(0.2, 0.15, **MATERIAL))
    assert len(np.unique(tube[:, 2])) == 2
    assert area(tube) == pytest.approx(np.pi * (0.2**2 - 0.15**2), rel=0.03)


@pytest.mark.parametrize(
    ("shape", "curves"),
    [
        (fg.sections.shapes.angle(0.2, 0.1, 0.02), 1),
        (fg.sections.shapes.box(0.2, 0.1, 0.01), 2),
        (fg.sections.shapes.tube(0.2, 0.15), 2),
    ],
)
def test_outlines_that_are_drawn(shape, curves):
    """The outline of a mesh has the area of the mesh, and lies where the beam's axis is its origin."""
    material = fg.Isotropic(youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
    section = fg.Section.from_mesh(shape.mesh, material, origin="mass")
    found = outline_of(section)
    assert len(np.unique(found[:, 2])) == curves
    assert area(found) == pytest.approx(section.area, rel=0.02)
    low, high = found[:, :2].min(axis=0), found[:, :2].max(axis=0)
    places = shape.mesh.coordinates.dat.data_ro - section.origin
    assert (*low, *high) == pytest.approx((*places.min(axis=0), *places.max(axis=0)), abs=1e-3)


def test_surface_of_a_rod():
    """A straight tube of length 2, seen from somewhere, has the area of its two walls and end faces."""
    s = np.linspace(0, 2, 9)
    direction = np.array([2.0, -1.0, 2.0]) / 3
    positions = (s[:, None] * direction + 1.0)[None]
    outline = outline_of(fg.Section.tube(0.2, 0.15, **MATERIAL))
    surface = sweep(outline, positions, transported(positions, 1), 1)
    a, b, c = (surface.vertices[0][surface.triangles[:, k]] for k in range(3))
    found = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()
    sides = 16 * 2 * np.sin(np.pi / 16) * (0.2 + 0.15)
    assert found == pytest.approx(2 * sides + 2 * area(outline), rel=1e-12)
    along = (surface.vertices[0] - positions[0][surface.tags]) @ direction
    assert along == pytest.approx(0, abs=1e-12)


def test_sections_follow_a_curve_without_twist():
    """Along a helix the axis is the tangent, and the sections turn about it by the torsion alone."""
    s = np.linspace(0, 8, 4001)
    a, h = 1.0, 0.5
    curve = np.stack([a * np.cos(s), a * np.sin(s), h * s], axis=1)[None]
    orientation = transported(curve, 2)[0]
    tangent = np.gradient(curve[0], axis=0)
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    assert quaternion.rotate(orientation, np.array([0.0, 0, 1])) == pytest.approx(tangent, abs=1e-9)
    # The angle from the principal normal changes by the torsion h/(a² + h²) of the arc length.
    normal = np.stack([-np.cos(s), -np.sin(s), 0 * s], axis=1)
    first = quaternion.rotate(orientation, np.array([1.0, 0, 0]))
    sine = np.einsum("nk,nk->n", np.cross(normal, first), tangent)
    angle = np.unwrap(np.arctan2(sine, np.einsum("nk,nk->n", normal, first)))
    turned = -h / (a**2 + h**2) * np.hypot(a, h) * (s[-2] - s[1])
    assert angle[-2] - angle[1] == pytest.approx(turned, rel=1e-3)


def test_page(tmp_path):
    """To 4e-5 of its extent the page holds the shapes, and it refers to nothing else."""
    shapes = fg.Snapshots(every=1, fields=["momentum"])
    rod = Rod(4)
    stepper = RodStepper(rod)
    shapes.open(stepper)
    for _ in range(3):
        shapes.write(stepper)
        stepper.advance()
    scene = fg.save_scene(tmp_path / "run.html", shapes, title="A </script> & <b>", units="SI")
    page = (tmp_path / "run.html").read_text()
    about, objects = data_of(page)
    assert about["times"] == pytest.approx([0.0, 0.1, 0.2])
    whole = np.array(shapes.positions)
    near = 4e-5 * np.linalg.norm(np.ptp(whole, axis=(0, 1)))
    # The corners of a section lie round its node.
    corners = objects["rods"]["vertices"][:, : 5 * 16].reshape(3, 5, 16, 3)
    assert corners.mean(axis=2) == pytest.approx(whole, abs=near)
    momentum = np.array(shapes.values["momentum"])
    inner = objects["rods"]["attribute"][:, : 5 * 16].reshape(3, 5, 16)[:, 1:-1, 0]
    expected = 0.5 * (momentum[:, 1:] + momentum[:, :-1])
    assert inner == pytest.approx(expected, abs=np.ptp(momentum) / 1023)
    assert about["fields"][0]["range"] == pytest.approx([momentum.min(), momentum.max()])
    assert "A &lt;/script&gt; &amp; &lt;b&gt;" in page
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=", page)
    # Jupyter shows the same page.
    shown = re.fullmatch(r'<iframe srcdoc="([^"]*)" style="[^"]*"></iframe>', scene._repr_html_())
    assert html.unescape(shown[1]) == page


HARMFUL = '<!--<script> A </script> & "b" \\u003c'


class Page(HTMLParser):
    """What a browser has of a page: the texts of its scripts, and its titles."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.titles, self._inside = [], [], ""
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
            self.titles.append(data)


def test_texts_of_the_user(tmp_path):
    """Title, parameter, units and names come out as they went in, and change nothing else."""

    class Named(RodOutput):
        def fields(self):
            return {HARMFUL: self._system.strain}

    def made(**texts):
        shapes = fg.Snapshots(fields=[HARMFUL])
        rod = Rod(4)
        rod.output = Named(rod)
        shapes.take(rod, 0.0)
        fg.save_scene(tmp_path / "a.html", shapes, **texts)
        return (tmp_path / "a.html").read_text(encoding="utf-8")

    units = {"length": HARMFUL, "time": "s", HARMFUL: HARMFUL}
    page = made(title=HARMFUL, parameter=HARMFUL, units=units)
    found = Page(page)
    about, _ = data_of(page)
    assert found.titles[0] == about["title"] == about["parameter"] == HARMFUL
    assert (about["fields"][0]["name"], about["fields"][0]["unit"]) == (HARMFUL, HARMFUL)
    assert HARMFUL in about["note"]
    # A unit of time belongs to the time only.
    assert about["unit"] == ""
    other_page = made(units={"time": HARMFUL})
    other = Page(other_page)
    about, _ = data_of(other_page)
    assert (about["unit"], about["parameter"]) == (HARMFUL, "t")
    # But for the data, which are letters and digits, the scripts are the same, and none is cut.
    assert len(found.scripts) == len(other.scripts) == 4
    data = re.compile("var data = '[A-Za-z0-9+/=]*'")
    assert [data.sub("", s) for s in found.scripts] == [data.sub("", s) for s in other.scripts]


def test_closed_curve(tmp_path):
    shapes = fg.Snapshots()
    shapes.take(Rod(mesh=PeriodicIntervalMesh(6, 2.0)), 0.0)
    fg.save_scene(tmp_path / "ring.html", shapes)
    _, objects = data_of((tmp_path / "ring.html").read_text())
    middles = objects["rods"]["vertices"][: 7 * 16].reshape(7, 16, 3).mean(axis=1)
    extent = np.linalg.norm(np.ptp(shapes.positions[0], axis=0))
    assert middles[0] == pytest.approx(middles[-1], abs=4e-5 * extent)


def test_only_so_many_times_are_drawn(tmp_path):
    shapes = fg.Snapshots()
    rod = Rod(2)
    for k in range(1001):
        shapes.take(rod, float(k))
    fg.save_scene(tmp_path / "long.html", shapes)
    about, _ = data_of((tmp_path / "long.html").read_text())
    assert len(about["times"]) == 400
    assert (about["times"][0], about["times"][-1]) == (0.0, 1000.0)


def pendulum():
    """Two bars, a hinge to the ground, a ball joint, a body and a force that turns with the bar."""
    section = fg.Section.circle(0.05, **MATERIAL)
    upper = fg.Beam(IntervalMesh(4, 1.0), section)
    force = fg.Load(force=lambda t: as_vector([0, 2 + t, 0]), at="right", frame="body")
    lower = fg.Beam(IntervalMesh(3, 0.5), section, loads=force)
    turn = (np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4))
    upper.reconstruct()
    lower.reconstruct(position=(1, 0, 0), orientation=turn)
    return fg.Assembly(
        [upper, lower],
        [
            fg.Revolute(lower.left, upper.right, axis=(0, 1, 0)),
            fg.Spherical(fg.ground, upper.left),
        ],
        bodies=[fg.PointBody(lower.right, mass=3.0, inertia=[0.012] * 3, offset=(0.1, 0, 0))],
        loads=fg.Gravity((0, 0, -9.81)),
    )


def test_marks_and_forces(tmp_path):
    """Joints and bodies at their nodes, axes in the section, forces in space at the present time."""
    assembly = pendulum()
    shapes = fg.Snapshots()
    shapes.take(assembly, 0.0)
    assembly.model.set_time(1.5)
    shapes.take(assembly, 1.5)
    shapes.save(tmp_path / "shapes.npz")
    for found in (shapes, fg.Snapshots.load(tmp_path / "shapes.npz")):
        marks = {mark.kind: mark for mark in found.marks}
        nodes = {kind: mark.node for kind, mark in marks.items()}
        assert nodes == {"revolute": 5, "joint": 0, "ground": 0, "body": 8}
        # The second bar is turned by a quarter about z: y in space is its first axis.
        assert marks["revolute"].vector == pytest.approx((1, 0, 0), abs=1e-12)
        assert marks["body"].vector == pytest.approx((0.1, 0, 0), abs=1e-12)
        # A ball has the moments 2/5 m r².
        assert marks["body"].size == pytest.approx(0.1, rel=1e-9)
        assert found.loaded == [8]
        assert np.array(found.forces) == pytest.approx(
            np.array([[[-2.0, 0, 0]], [[-3.5, 0, 0]]]), abs=1e-6
        )
        assert found.gravity == pytest.approx((0, 0, -9.81))
    about, _ = data_of(page_of(tmp_path, shapes))
    assert "longest arrow 3.5" in about["note"]
    assert about["up"] == [0, 0, 1]


def test_held_nodes_of_a_chain(tmp_path):
    """Boundary conditions of the whole position are supports; those of one component are not."""
    mesh = IntervalMesh(4, 1.0)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=3)
    q, v = Function(space), Function(space)
    q.interpolate(as_vector([SpatialCoordinate(mesh)[0], 0, 0]))
    chain = fg.LagrangianSystem(
        q, v, (0.5 * dot(v, v) - 0.5 * dot(q.dx(0), q.dx(0))) * dx,
        bcs=[DirichletBC(space, 0, 2), DirichletBC(space.sub(2), 0, 1)], coordinates=q,
    )  # fmt: skip
    shapes = fg.Snapshots()
    shapes.take(chain, 0.0)
    assert [(mark.kind, mark.node) for mark in shapes.marks] == [("pinned", 4)]
    assert "symbols" in data_of(page_of(tmp_path, shapes))[1]


def page_of(folder, shapes, **options):
    fg.save_scene(folder / "scene.html", shapes, **options)
    return (folder / "scene.html").read_text()


def test_a_scene_far_from_the_origin(tmp_path):
    """It has the shape that it has at the origin, in the single precision of a page."""
    found = []
    for place in (0.0, 3e7):
        shapes = fg.Snapshots()
        shapes.take(bent(), 0.0)
        shapes.positions[0] = shapes.positions[0] + (0.0, place, 0.0)
        _, objects = data_of(page_of(tmp_path, shapes))
        found.append(objects["rods"]["vertices"] - objects["rods"]["vertices"][0])
    assert found[1] == pytest.approx(found[0], abs=1e-4)


def test_obstacles(tmp_path):
    """A plane that rises and a ball: points on both at each time, in the page and in the file."""
    section = fg.Section.circle(0.05, **MATERIAL)
    floor = fg.Plane(lambda t: as_vector([0, 0, t - 1]), (0, 0, 2))
    contact = fg.Contact(floor, fg.Sphere((0.5, 0, -2), 0.7), stiffness=100.0)
    beam = fg.Beam(IntervalMesh(4, 1.0), section, loads=contact)
    shapes = fg.Snapshots()
    for t in (0.0, 0.25):
        shapes.take(beam, t)
    shapes.save(tmp_path / "shapes.npz")
    _, objects = data_of(page_of(tmp_path, shapes))
    saved = fg.Snapshots.load(tmp_path / "shapes.npz").obstacles
    for found in (shapes.obstacles, saved, objects["obstacles"]["vertices"]):
        for t, points in zip((0.0, 0.25), found, strict=True):
            assert points[:4, 2] == pytest.approx(t - 1, abs=1e-4)
            ball = np.linalg.norm(points[4:] - np.array([0.5, 0, -2]), axis=1)
            assert ball == pytest.approx(0.7, abs=1e-4)
    assert objects["obstacles"]["indices"].max() == len(shapes.obstacles[0]) - 1


def test_supports(tmp_path):
    """Each kind of end has its mark, and a load along the beam arrows from end to end."""
    section = fg.Section.circle(0.05, **MATERIAL)
    wave = fg.GivenPose(position=lambda t: as_vector([0, 0, sin(t)]))
    kinds = {"clamped": "clamped", "pinned": "pinned", "sliding": fg.Sliding("y"), "given": wave}
    for kind, end in kinds.items():
        load = fg.Load(force=lambda s: as_vector([0, 0, -s]))
        beam = fg.Beam(IntervalMesh(40, 2.0), section, right=end, loads=load)
        shapes = fg.Snapshots()
        shapes.take(beam, 0.0)
        (mark,) = shapes.marks
        assert (mark.kind, mark.node) == (kind, 40)
        assert mark.vector == ((0.0, 1.0, 0.0) if kind == "sliding" else (0.0, 0.0, 0.0))
        assert shapes.forces[0][:, 2] == pytest.approx(np.linspace(0, -2, 9), abs=1e-12)
        _, objects = data_of(page_of(tmp_path, shapes))
        assert np.all(np.isfinite(objects["symbols"]["vertices"]))


def test_modes(tmp_path):
    """A period of each mode: half a sine for the first of a beam on two hinges, a quarter period on."""
    section = fg.Section.rectangle(0.01, 0.02, density=1.0, youngs_modulus=1e4, poisson_ratio=0.3)
    beam = fg.Beam(IntervalMesh(32, 1.0), section, left="pinned", right=fg.Sliding("x"))
    modes = fg.VibrationModes(beam, 4)
    about, objects = data_of(page_of(tmp_path, modes, units="SI"))
    assert [(case["first"], case["last"]) for case in about["cases"]] == [
        (25 * k, 25 * k + 24) for k in range(4)
    ]
    bending = next(k for k, f in enumerate(modes.frequencies) if f > 1e-6)
    assert about["cases"][bending]["name"].endswith("Hz")
    # Euler's beam on two hinges, to the order of the shear.
    euler = np.pi / 2 * np.sqrt(1e4 * 0.02 * 0.01**3 / 12 / (0.01 * 0.02))
    assert modes.frequencies[bending] == pytest.approx(euler, rel=0.01)
    corners = objects["rods"]["vertices"][:, : 33 * 8].reshape(-1, 33, 8, 3)
    shape = corners[25 * bending + 6].mean(axis=1) - corners[25 * bending].mean(axis=1)
    across = shape[:, np.abs(shape).max(axis=0).argmax()]
    amplitude = across[np.abs(across).argmax()]
    # A tenth of the length at most.
    assert abs(amplitude) == pytest.approx(0.1, rel=0.01)
    assert across / amplitude == pytest.approx(np.sin(np.pi * np.linspace(0, 1, 33)), abs=0.01)
    opposite = corners[25 * bending + 18].mean(axis=1) - corners[25 * bending].mean(axis=1)
    assert opposite == pytest.approx(-shape, abs=2e-4)


def test_file(tmp_path):
    """What is saved is read again, to single precision."""
    shapes = fg.Snapshots(fields=["curvature", "strain_energy"])
    beam = bent()
    for t in (0.0, 0.5):
        shapes.take(beam, t)
    shapes.save(tmp_path / "shapes.npz")
    found = fg.Snapshots.load(tmp_path / "shapes.npz")
    assert (found.times, found.parts, found.axis) == (shapes.times, shapes.parts, shapes.axis)
    assert found.outlines[0] == pytest.approx(shapes.outlines[0])
    for name in ("positions", "orientations"):
        ours, theirs = (np.array(getattr(x, name)) for x in (shapes, found))
        assert theirs == pytest.approx(ours, abs=1e-6)
    assert found.values.keys() == shapes.values.keys()
    assert fg.plot_shapes(found) is not None


def test_file_of_version_0_1(tmp_path):
    """Files that have the sides of rectangles instead of outlines are read."""
    shapes = fg.Snapshots()
    shapes.take(bent(), 0.0)
    shapes.save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        arrays = {k: v for k, v in file.items() if k not in NEW}
    np.savez(tmp_path / "old.npz", sizes=np.array([[0.3, 0.1]]), **arrays)
    found = fg.Snapshots.load(tmp_path / "old.npz")
    assert np.ptp(found.outlines[0][:, :2], axis=0) == pytest.approx((0.3, 0.1))
    assert (found.marks, found.loaded) == ([], [])
    assert data_of(page_of(tmp_path, found))


NEW = ("outlines", "marks", "loaded", "forces", "gravity")
