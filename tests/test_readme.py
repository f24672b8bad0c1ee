"""The README: its code runs, its tables say what the classes say, its links lead somewhere."""

import re
from pathlib import Path

import pytest

import fdgeom as fg
from fdgeom import beams, steppers, systems

TOP = Path(__file__).parents[1]
README = (TOP / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


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


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^##)", README, flags=re.DOTALL | re.MULTILINE)[1]


def test_table_of_steppers():
    rows = {line for line in section("Steppers").splitlines() if line.startswith("| `")}
    assert rows == {row(name, method) for name, method in described_steppers()}


def test_table_of_systems():
    named = re.findall(r"^\| `(\w+)\(", section("Systems"), flags=re.MULTILINE)
    # Bases for one's own laws and loads, and what nobody makes, have no row.
    made = {*systems.__all__, *beams.__all__} - {"BodyLoad", "SectionLaw", "ground"}
    assert sorted(named) == sorted(made)


def test_names_and_links_exist():
    for name in re.findall(r"\bfg\.(\w+)", README):
        assert hasattr(fg, name), name
    for link in re.findall(r"\]\(([^):]+)\)", README):
        assert (TOP / link).exists(), link
    for path in re.findall(r"`((?:fdgeom|tests|demos|\.ci)/[\w./]*)`", README):
        assert (TOP / path).exists(), path
    targets = re.findall(r"^(\w+):", (TOP / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(re.findall(r"`make (\w+)", README)) <= set(targets)


def test_code(tmp_path, monkeypatch, capsys):
    """Each block as a reader would paste it, with ends 500 times nearer.

    Those that import something run by themselves, the others after the first.
    """
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("vtk")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names, ends = {}, 0
    for k, block in enumerate(BLOCKS):
        short, count = re.subn(r"until=([\d.]+)", lambda m: f"until={float(m[1]) / 500}", block)
        ends += count
        alone = block.startswith("from firedrake import")
        exec(compile(short, f"README.md, block {k}", "exec"), names if k == 0 or not alone else {})
    assert ends == 3
    assert names["history"]["energy"].shape == (3,)
    assert {p.name for p in tmp_path.iterdir()} >= {"beam.pvd", "beam.h5", "beam.csv", "shapes.png"}
    assert "failed" in capsys.readouterr().out
