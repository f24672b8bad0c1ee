"""The README and the tables of the site: code runs, tables say what the classes say, links lead somewhere."""

import re
import sys
import textwrap
from pathlib import Path

import pytest

import fdgeom as fg
from fdgeom import beams, steppers, systems

TOP = Path(__file__).parents[1]
SITE = TOP / "demos" / "site"
sys.path.append(str(SITE))
README = (TOP / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


import tables  # noqa: E402


def described_steppers():
    """Names in the first column of the table of steppers, and the classes."""
    for name in sorted(set(steppers.__all__) - {"Stepper", "Composition", "GaussLegendre"}):
        method = getattr(steppers, name)
        if isinstance(method, type) and issubclass(method, steppers.Stepper):
            yield name, method
    for order in (4, 6):
        method = steppers.SymmetricPoissonIntegrator
        name = f"Composition({method.__name__}, order={order})"
        yield name, steppers.Composition(method, order=order)
    yield (
        "Composition(StormerVerlet, order=8)",
        steppers.Composition(steppers.StormerVerlet, order=8),
    )
    for stages in (1, 2, 3, 4):
        yield f"GaussLegendre({stages})", steppers.GaussLegendre(stages)


def row(name, method):
    yes = {True: "yes", False: "no"}
    kept = ", ".join(method.conserves) or "-"
    traits = f"{method.order} | {yes[method.symmetric]} | {yes[method.symplectic]} | {kept}"
    return f"| `{name}` | {traits} |"


def test_table_of_steppers():
    """The site's table is made from the classes: it has all of them, with their traits."""
    listing = tables.traits()
    cells = re.findall(r"^   (?:\* -|  -) (.*)$", listing, flags=re.MULTILINE)
    rows = set()
    for k in range(5, len(cells), 5):
        name = re.sub(r":class:`~fdgeom\.(\w+)`|``(.*?)``", lambda m: m[1] or m[2], cells[k])
        rows.add(f"| `{name}` | {' | '.join(cells[k + 1 : k + 5])} |".replace("–", "-"))
    assert rows == {row(name, method) for name, method in described_steppers()}


def test_table_of_systems():
    listing = (SITE / "pages" / "guide" / "systems.rst").read_text()
    named = re.findall(r"^   \* - ``(\w+)\(", listing, flags=re.MULTILINE)
    bases = {"Condition", "Joint", "Motion"}
    assert sorted(named) == sorted({*systems.__all__, *beams.__all__} - bases - {"ground"})


def test_names_and_links_exist():
    for name in re.findall(r"\bfg\.(\w+)", README):
        assert hasattr(fg, name), name
    for link in re.findall(r"\]\(([^):]+)\)", README):
        assert (TOP / link).exists(), link
    for path in re.findall(r"`((?:fdgeom|tests|demos|\.ci)/[\w./]*)`", README):
        assert (TOP / path).exists(), path
    targets = re.findall(r"^(\w+):", (TOP / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(re.findall(r"`make (\w+)", README)) <= set(targets)


def pages_of_the_guide():
    """What the guide says of runs and of failures, each page as one program."""
    for name in ("recording", "troubleshooting"):
        page = (SITE / "pages" / "guide" / f"{name}.rst").read_text()
        found = re.findall(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", page, re.MULTILINE)
        yield "\n".join(map(textwrap.dedent, found))


def agree(printed, shown):
    """Whether two printed texts have the same words, and the same numbers to one percent."""
    number = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
    apart = [number.split(re.sub(r"[\d.]+ s of computing", "", text)) for text in (printed, shown)]
    values = [
        [float(x) for x in number.findall(re.sub(r"[\d.]+ s of computing", "", text))]
        for text in (printed, shown)
    ]
    words = [[" ".join(part.split()) for part in parts] for parts in apart]
    return words[0] == words[1] and values[0] == pytest.approx(values[1], rel=1e-2, abs=1e-9)


def test_what_agrees():
    assert agree("a: [ 1.00  2] at 3, 0.1 s of computing", "a: [1.001 2] at 3, 0.32 s of computing")
    assert not agree("a: 1.00", "a: 1.02")
    assert not agree("a: 1.00", "b: 1.00")


def test_code(tmp_path, monkeypatch, capsys):
    """The README's example prints what stands under it; the guide's code runs, to nearer ends."""
    pytest.importorskip("vtk")
    monkeypatch.chdir(tmp_path)
    (code,) = BLOCKS
    (shown,) = re.findall(r"^```text\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert agree(printed, shown), printed
    ends = 0
    for page in pages_of_the_guide():
        short, count = re.subn(r"until=([\d.]+)", lambda m: f"until={float(m[1]) / 500}", page)
        ends += count
        exec(compile(short, "page of the guide", "exec"), {})
    assert ends == 2
    assert {p.name for p in tmp_path.iterdir()} >= {"beam.h5", "beam.csv"}
    assert "failed" in capsys.readouterr().out


def test_readme_is_short():
    """For users: at most 90 lines, with a moving picture below a megabyte."""
    assert README.count("\n") <= 90
    (picture,) = re.findall(r"^!\[.*\]\((.*)\)$", README, flags=re.MULTILINE)
    data = (TOP / picture).read_bytes()
    assert len(data) < 1e6
    # Frames of a GIF begin with a control block.
    assert data.count(b"\x21\xf9\x04") > 10
