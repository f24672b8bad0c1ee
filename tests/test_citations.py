"""What is cited: every method has its paper, entries are BibTeX, and a run prints what it used."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fdgeom as fg
from fdgeom import citations, steppers
from fdgeom.sections.drawn_section import DrawnSection

#: Steppers of no single source: classical, or fdgeom's own.
UNCITED = {"RungeKutta4", "HermiteSimpson"}
#: An order of each scheme that has a paper.
ORDERS = {"suzuki": 4, "yoshida": 6, "kahan-li": 6, "blanes-moan": 4}

RUN = """
from firedrake import *
import fdgeom as fg
R = FunctionSpace(fg.copies(1), "DG", 0)
q, p = Function(R).assign(1.0), Function(R)
system = fg.HamiltonianSystem(q, p, (p**2 / 2 + q**2 / 2) * dx)
fg.Composition(fg.StormerVerlet, order=4)(system, 0.1)
"""


def test_every_method_is_cited():
    for name in steppers.__all__:
        cls = getattr(steppers, name)
        if (
            isinstance(cls, type)
            and issubclass(cls, steppers.Stepper)
            and cls is not steppers.Stepper
        ):
            assert citations.keys_of(cls) or name in UNCITED, name
    for stages in (1, 2, 3, 4):
        assert citations.keys_of(steppers.GaussLegendre(stages))


def test_keys():
    """No key is misspelt, and no paper is left over."""
    classes = [getattr(fg, name) for name in fg.__all__]
    classes += [fg.GaussLegendre(2), DrawnSection]
    classes += [fg.Composition(fg.StormerVerlet, order, scheme) for scheme, order in ORDERS.items()]
    used = {key for cls in classes if isinstance(cls, type) for key in citations.keys_of(cls)}
    assert used == set(citations.BIBTEX)


@pytest.mark.parametrize(
    ("cls", "keys"),
    [
        (fg.HamelFieldIntegrator, ("WangAnShi2016", "ChenShi2025")),
        (fg.SHAKE, ("RyckaertCiccottiBerendsen1977", "LeimkuhlerSkeel1994")),
        (
            fg.Composition(fg.StormerVerlet, 6, "yoshida"),
            ("Yoshida1990", "HairerLubichWanner2003"),
        ),
        (fg.Beam, ("ChenShi2025",)),
        (fg.Section, ()),
    ],
)
def test_keys_of_a_class(cls, keys):
    assert citations.keys_of(cls) == keys
    own = type("Own", (cls,), {"cites": ("Riks1979",)})
    assert citations.keys_of(own) == ("Riks1979", *keys)


def test_bibliography():
    """The site gets the file as it is."""
    path = Path(citations.__file__).with_name("citations.bib")
    assert citations.bibliography() == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("key", citations.BIBTEX)
def test_entries(key):
    text = citations.BIBTEX[key]
    assert re.match(rf"@\w+\{{{key},\n  author = \{{.+\}},\n", text)
    assert text.count("{") == text.count("}")
    assert "title = {" in text
    if text.startswith("@article"):
        assert re.search(r"journal = \{.+\}", text)
        assert re.search(r"year = \{\d{4}\}", text)
        assert key.endswith(re.search(r"year = \{(\d{4})\}", text)[1])


@pytest.mark.always
def test_option():
    """``-citations`` names the base method and the scheme of a composition, and nothing else of ours."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, "-citations"],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    printed = set(re.findall(r"@\w+\{(\w+),", done.stdout)) & set(citations.BIBTEX)
    assert printed == {"HairerLubichWanner2003", "Suzuki1990"}


def test_citation_file():
    """Its version is the package's, and it names the papers of the beam as the package does."""
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", text, flags=re.MULTILINE)[1] == fg.__version__
    for key in ("ChenShi2025", "WangAnShi2016"):
        title = re.search(r"title = \{(.+)\}", citations.BIBTEX[key])[1]
        assert title.replace("{", "").replace("}", "") in text
