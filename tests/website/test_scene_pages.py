"""A scene in a browser, from a file: what it draws, its controls, and that it asks nobody for anything."""

import time

import numpy as np
import pytest
from firedrake import IntervalMesh
from website.browser import Browser, need_browser

import fdgeom as fg

pytest.importorskip("k3d", reason="no k3d: pip install -e '.[scene]'")

HARMFUL = '<!--<script> A </script> & "b"'


@pytest.fixture(scope="module")
def browser():
    need_browser()
    found = Browser(900, 600, still=True)
    yield found
    found.close()


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A strip that is bent to an arc: curvature and moment grow with the time, from 0 to 2 and to 0.02."""
    material = {"density": 1.0, "youngs_modulus": 1.2e4, "poisson_ratio": 0.3}
    section = fg.Section.rectangle(0.1, 0.01, **material)
    load = fg.Load(force=(0, 1.0, 0), at="right")
    beam = fg.Beam(IntervalMesh(20, 1.0), section, left="clamped", loads=load)
    shapes = fg.Snapshots(fields=["curvature", "moment"])
    for t in np.linspace(0, 1, 11):
        beam.strain.dat.data[:, 2] = 2 * t
        beam.reconstruct()
        shapes.take(beam, t)
    assert max(shapes.values["moment"][-1]) == pytest.approx(2 * 1.2e4 * 0.01 * 0.1**3 / 12)
    folder = tmp_path_factory.mktemp("scene")
    fg.save_scene(folder / "arc.html", shapes, title="An arc", units="SI")
    units = {"length": HARMFUL, "time": HARMFUL, "curvature": HARMFUL}
    fg.save_scene(folder / "harm.html", shapes, title=HARMFUL, units=units)
    return folder


def opened(browser, page, query=""):
    browser.open(page, query)
    browser.wait("return document.documentElement.dataset.ready === 'yes'")
    time.sleep(0.3)


def moved(a, b):
    """How many pixels of the picture differ clearly."""
    return (np.abs(a - b)[80:520].sum(axis=2) > 60).sum()


def set_to(browser, name, value):
    """Set a control as a reader would; the picture after that."""
    event = "input" if name == "time" else "change"
    browser.run(
        f"const c = document.getElementById('{name}'); c.value = '{value}';"
        f"c.dispatchEvent(new Event('{event}'));"
    )
    time.sleep(0.5)
    return browser.pixels()


def text(browser, name):
    return browser.run(f"return document.getElementById('{name}').textContent")


def test_slider_and_start(browser, scene):
    """The slider moves the beam; ``?at=`` opens the scene where the slider would go."""
    opened(browser, scene / "arc.html")
    assert text(browser, "clock") == "t = 0.00 s"
    first = browser.pixels()
    middle = set_to(browser, "time", 5)
    assert text(browser, "clock") == "t = 0.50 s"
    assert moved(first, middle) > 500
    opened(browser, scene / "arc.html", "?at=0.5")
    assert text(browser, "clock") == "t = 0.50 s"
    assert moved(browser.pixels(), middle) < 50
    assert not browser.errors()


def test_choice_of_field(browser, scene):
    """Each field has its own colours and its own bar, with name, unit and ticks on the right places."""
    opened(browser, scene / "arc.html", "?at=0.5")
    pictures = []
    for k, (quantity, largest) in enumerate((("curvature [1/m]", 2.0), ("moment [N m]", 0.02))):
        pictures.append(set_to(browser, "field", k))
        assert text(browser, "quantity") == quantity
        ticks = browser.run(
            "return [...document.querySelectorAll('#ticks span')]"
            ".map(t => [Number(t.textContent), parseFloat(t.style.left)])"
        )
        assert len(ticks) >= 3
        for value, place in ticks:
            assert place == pytest.approx(100 * value / largest, abs=0.1)
    pictures.append(set_to(browser, "field", 2))
    assert (
        browser.run("return getComputedStyle(document.getElementById('legend')).visibility")
        == "hidden"
    )
    # Curvature and moment are in proportion, so their colours are alike: half of the bar.
    assert moved(pictures[0], pictures[1]) < 50
    assert moved(pictures[1], pictures[2]) > 500
    assert not browser.errors()


def test_traces(browser, scene):
    opened(browser, scene / "arc.html", "?at=0.5")
    lines = browser.pixels()
    for least, most in ((100, 1e9), (0, 50)):
        browser.run("document.getElementById('traces').click()")
        time.sleep(0.5)
        assert least <= moved(lines, browser.pixels()) <= most


def test_it_plays_once(browser, scene):
    """From the start to the end, then it stands; not at all for readers who prefer no motion."""
    opened(browser, scene / "arc.html")
    time.sleep(0.5)
    assert text(browser, "clock") == "t = 0.00 s"
    try:
        browser.prefer(still=False)
        opened(browser, scene / "arc.html")
        playing = "return document.getElementById('play').getAttribute('aria-label') === '{}'"
        browser.wait(playing.format("Pause"))
        browser.wait(playing.format("Play"))
        assert text(browser, "clock") == "t = 1.00 s"
    finally:
        browser.prefer(still=True)


def test_nothing_is_asked_for(browser, scene):
    browser.requests()
    opened(browser, scene / "arc.html")
    set_to(browser, "time", 5)
    assert not browser.requests()
    assert not browser.errors()
    assert browser.run("return performance.getEntriesByType('resource').map(e => e.name)") == []


def test_modes(browser, tmp_path):
    """Each mode has its own part of the series, and its frequency in the list."""
    section = fg.Section.rectangle(0.1, 0.01, density=1.0, youngs_modulus=1.2e4, poisson_ratio=0.3)
    beam = fg.Beam(IntervalMesh(20, 1.0), section, left="clamped")
    fg.save_scene(tmp_path / "modes.html", fg.VibrationModes(beam, 3), title="Modes")
    opened(browser, tmp_path / "modes.html")
    names = browser.run(
        "return [...document.getElementById('case').options].map(o => o.textContent)"
    )
    modes = [float(name.partition("f = ")[2]) for name in names]
    # A clamped strip: the second frequency of the first bending is 6.267 times the first.
    assert len(modes) == 3
    assert any(f / modes[0] == pytest.approx(6.267, rel=0.02) for f in modes)
    pictures = [set_to(browser, "time", 6)]
    set_to(browser, "case", 1)
    pictures.append(set_to(browser, "time", 25 + 6))
    assert moved(*pictures) > 300
    assert not browser.errors()


def test_texts_do_no_harm(browser, scene):
    opened(browser, scene / "harm.html")
    assert browser.driver.title == text(browser, "title") == HARMFUL
    assert text(browser, "quantity") == f"curvature [{HARMFUL}]"
    assert text(browser, "clock") == f"t = 0.00 {HARMFUL}"
    assert HARMFUL in text(browser, "note")
    assert not browser.errors()


@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_widths_and_themes(browser, scene, width, dark):
    """Controls stand beside the picture, nothing is wider than the window, and dark is dark."""
    try:
        browser.prefer(dark, still=True)
        browser.resize(width, 700)
        opened(browser, scene / "arc.html", "?at=1")
        sizes = browser.run(
            "return ['header', '#canvasTarget', 'form'].map(name => {"
            "const box = document.querySelector(name).getBoundingClientRect();"
            "return [box.left, box.top, box.right, box.bottom]; })"
        )
        for left, _, right, _ in sizes:
            assert (left, right) == (0, width)
        (_, _, _, above), (_, top, _, bottom), (_, below, _, end) = sizes
        assert (above, bottom, end) == (top, below, 700)
        assert bottom - top > 350
        pixels = browser.pixels()
        assert (pixels[int(top) + 3, 3].mean() < 60) == dark
        # The beam is in the middle of the picture, and in no corner of it.
        drawn = np.abs(pixels[int(top) : int(bottom)] - pixels[int(top) + 3, 3]).max(axis=2) > 90
        rows, columns = np.nonzero(drawn[:, : width - 110])
        assert columns.min() > 3
        assert rows.min() > 3
        assert np.ptp(columns) > 0.35 * min(width, 700)
    finally:
        browser.prefer(still=True)
        browser.resize(900, 600)
