"""Parts of pages that are read from the package and its tests when the site is built."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from markdown import table, to_rst

import fdgeom as fg
from fdgeom import citations, steppers

HERE = Path(__file__).parent
TOP = HERE.parents[1]
_VIEW = """
from firedrake import *
import fdgeom as fg
section = fg.Section.rectangle(0.1, 0.1, density=1000, youngs_modulus=1e7, poisson_ratio=0.35)
beam = fg.Beam(IntervalMesh(10, 1.0), section)
beam.velocity.interpolate(Constant((0, 0, 1, 0, 1, 0)))
beam.project()
fg.EnergyMomentum(beam, dt=1e-2, options_prefix="beam").advance()
"""


def write(source: Path) -> None:
    """Put all generated parts among the pages."""
    parts = {
        "traits.inc.rst": traits(),
        "cited.inc.rst": cited(),
        "guide/errors.rst": errors(),
        "guide/snes_view.inc.rst": snes_view(),
        "guide/speed.inc.rst": to_rst((HERE / "measured" / "speed.md").read_text()),
        "guide/kept.inc.rst": to_rst((HERE / "measured" / "kept.md").read_text()),
        "guide/changes.inc.rst": to_rst((TOP / "CHANGELOG.md").read_text()),
        "references.bib": citations.bibliography(),
    }
    for name, text in parts.items():
        (source / name).write_text(text)


def all_steppers():
    """Public stepper classes, with some members of the families."""
    base = steppers.Stepper
    for name in sorted(steppers.__all__):
        cls = getattr(steppers, name)
        if isinstance(cls, type) and issubclass(cls, base) and cls is not base:
            yield f":class:`~fdgeom.{name}`", cls
    for stages in (1, 2, 3, 4):
        yield f"``GaussLegendre({stages})``", fg.GaussLegendre(stages)
    for cls, order in (
        (fg.SymmetricPoissonIntegrator, 4),
        (fg.SymmetricPoissonIntegrator, 6),
        (fg.StormerVerlet, 8),
    ):
        yield f"``Composition({cls.__name__}, order={order})``", fg.Composition(cls, order)


def traits() -> str:
    """Order, symmetry, symplecticity and what is conserved, by class."""
    word = {True: "yes", False: "no"}
    rows = [["stepper", "order", "symmetric", "symplectic", "conserves"]]
    for name, cls in all_steppers():
        kept = ", ".join(cls.conserves) or "–"
        rows.append([name, str(cls.order), word[cls.symmetric], word[cls.symplectic], kept])
    return "\n".join(table(rows)) + "\n"


def cited() -> str:
    """Which papers belong to which class."""
    rows = [["class or scheme", "papers"]]
    shown = {"_Gauss": "GaussLegendre", "DrawnSection": "Section.from_mesh"}
    for name, keys in (citations.CITED | citations.SCHEMES).items():
        rows.append([f"``{shown.get(name, name)}``", f":cite:`{','.join(keys)}`"])
    return "\n".join(table(rows)) + "\n"


def refusals() -> dict[str, list[tuple[str, str, str, str]]]:
    """Wrong calls of the tests, by room: argument, code, kind of error, sentence."""
    found = {}
    for file in sorted((TOP / "tests" / "robustness" / "calls").glob("*.py")):
        text = file.read_text()
        module = ast.parse(text)
        rows = []
        for node in ast.walk(module):
            if not (isinstance(node, ast.Tuple) and len(node.elts) == 4):
                continue
            argument, call, kind, sentence = node.elts
            if not (isinstance(call, ast.Lambda) and isinstance(kind, ast.Name)):
                continue
            try:
                words = ast.literal_eval(argument), ast.literal_eval(sentence)
            except ValueError:
                continue
            code = " ".join(ast.get_source_segment(text, call.body).split())
            rows.append((words[0], code, kind.id, words[1]))
        if rows:
            found[inspect.cleandoc(ast.get_docstring(module) or file.stem)] = rows
    return found


def errors() -> str:
    """The page of sentences."""
    lines = [
        "Every sentence",
        "==============",
        "",
        "Wrong calls and what they are told, from the tests' own tables: each is called there and its "
        "sentence compared. An ellipsis stands for what differs with the machine.",
        "",
    ]
    for room, rows in refusals().items():
        title = room.splitlines()[0].rstrip(".")
        lines += [title, "-" * len(title), ""]
        for _, code, kind, sentence in rows:
            lines += [f".. code-block:: text\n   :class: wrapped\n\n   {kind}: {sentence}", ""]
            lines += ["   ", textwrap.shorten(f"``{code}``", 10_000), ""]
    return "\n".join(lines) + "\n"


def snes_view() -> str:
    """What ``-beam_snes_view`` prints of an energy–momentum step."""
    done = subprocess.run(
        [sys.executable, "-c", _VIEW, "-beam_snes_view"],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TOP)},
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    listing = textwrap.indent(done.stdout.strip(), "   ")
    return f".. code-block:: text\n   :class: quoted\n\n{listing}\n"
