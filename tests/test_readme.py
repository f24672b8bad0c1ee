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


def test_code(tmp_path, monkeypatch, capsys):
    """Each block as a reader would paste it, with ends 500 times nearer.

    Those that import something run by themselves, the others after the first.
    """
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("vtk")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names, ends = {}, 0
    for k, block in enumerate([*BLOCKS, *pages_of_the_guide()]):
        short, count = re.subn(r"until=([\d.]+)", lambda m: f"until={float(m[1]) / 500}", block)
        ends += count
        alone = block.startswith("from firedrake import")
        exec(compile(short, f"README.md, block {k}", "exec"), names if k == 0 or not alone else {})
    assert ends == 3
    assert names["history"]["energy"].shape == (3,)
    assert {p.name for p in tmp_path.iterdir()} >= {"beam.pvd", "beam.h5", "beam.csv", "shapes.png"}
    assert "failed" in capsys.readouterr().out
