"""What is cited: every method has its paper, entries are BibTeX, and a run prints what it used."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fdgeom as fg
from fdgeom import citations, steppers

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
            assert citations.keys_of(cls) or name in citations.UNCITED, name
    for stages in (1, 2, 3, 4):
        assert citations.keys_of(steppers.GaussLegendre(stages))


def test_keys():
    """No name of a class, scheme or paper is misspelt, and no paper is left over."""
    used = {key for keys in (citations.CITED | citations.SCHEMES).values() for key in keys}
    assert used == set(citations.BIBTEX)
    hidden = {"_Gauss", "DrawnSection"}
    assert all(hasattr(fg, name) or name in hidden for name in citations.CITED)
    for scheme in citations.SCHEMES:
        order = {"suzuki": 4, "yoshida": 6, "kahan-li": 6, "blanes-moan": 4}[scheme]
        composed = fg.Composition(fg.StormerVerlet, order=order, scheme=scheme)
        assert citations.keys_of(composed)[-1] in citations.SCHEMES[scheme]


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
