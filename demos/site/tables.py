"""Parts of pages that are read from the package and its tests when the site is built."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import textwrap
from functools import cached_property
from pathlib import Path

import printed
import sentences
from markdown import table, to_rst

import fdgeom as fg
from fdgeom import citations, steppers
from fdgeom.beams.beam import Beam
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.sections.drawn_section import DrawnSection
from fdgeom.steppers.composition import PAPERS
from fdgeom.steppers.method import Method, Restart
from fdgeom.systems.motion.motion import MotionTraits
from fdgeom.systems.poisson.poisson import PoissonForms
from fdgeom.systems.poisson.stage import Substeps
from fdgeom.systems.system import Consistency, Model, Output, System

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
        "guide/errors.rst": sentences.page(),
        "guide/snes_view.inc.rst": snes_view(),
        "guide/speed.inc.rst": to_rst((HERE / "measured" / "speed.md").read_text()),
        "guide/kept.inc.rst": to_rst((HERE / "measured" / "kept.md").read_text()),
        "guide/hooks.inc.rst": hooks(),
        "guide/changes.inc.rst": to_rst((TOP / "CHANGELOG.md").read_text()),
        "references.bib": citations.bibliography(),
    }
    for name, text in parts.items():
        (source / name).write_text(text)
    made = source / "made"
    made.mkdir()
    for name in ("index.rst", "start.rst"):
        page = source / name
        page.write_text(printed.with_output(page.read_text(), made))
    shutil.copytree(made, source / "_extra" / "made", ignore=shutil.ignore_patterns("*.png"))
    api(source / "api")


def api(folder: Path) -> None:
    """Insert a table of names, a line each, at the top of each page of the API and on its index."""
    index = folder / "index.rst"
    order = re.findall(r"^   (\w+)$", index.read_text(), flags=re.MULTILINE)
    listing = []
    for page in order:
        file = folder / f"{page}.rst"
        text = file.read_text()
        names = re.findall(r"^\.\. auto(?:class|function|data):: (\S+)$", text, flags=re.MULTILINE)
        lines = [
            ".. autosummary::",
            "   :nosignatures:",
            "",
            *(f"   ~{name}" for name in names),
            "",
        ]
        title, mark, rest = text.split("\n", 2)
        file.write_text("\n".join([title, mark, "", *lines, rest]))
        listing += [f":doc:`{title} <{page}>`", "-" * (len(title) + len(page) + 10), "", *lines]
    index.write_text(index.read_text() + "\n" + "\n".join(listing))


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
    classes = {name: getattr(fg, name) for name in fg.__all__}
    classes |= {"GaussLegendre": fg.GaussLegendre(2), "Section.from_mesh": DrawnSection}
    papers = {
        name: citations.keys_of(cls)
        for name, cls in sorted(classes.items())
        if isinstance(cls, type)
    }
    for name, keys in (papers | PAPERS).items():
        if keys:
            rows.append([f"``{name}``", f":cite:`{','.join(keys)}`"])
    return "\n".join(table(rows)) + "\n"


def hooks() -> str:
    """The methods that base classes list under "For authors", or all, with their first sentences."""
    bases = {
        "all steppers": (Method, Restart, steppers.Stepper),
        "all systems": (System,),
        "``model`` of systems": (Model,),
        "``output`` of systems": (Output,),
        "``consistency`` of systems": (Consistency,),
        "Poisson systems": (fg.PoissonSystem,),
        "``forms`` of Poisson systems": (PoissonForms,),
        "``substeps`` of Poisson systems": (Substeps,),
        "beams": (Beam,),
        "motions": (fg.Motion,),
        "``traits`` of motions": (MotionTraits,),
        "beams and assemblies in configuration form": (RodMotion,),
    }
    rows = [["hooks of", "name", "what it is"]]
    for kind, classes in bases.items():
        for cls in classes:
            listed = re.search(
                r"For authors: (.*?)\.$", cls.__doc__, flags=re.DOTALL | re.MULTILINE
            )
            own = [name for name in vars(cls) if name[0] != "_"]
            for name in re.findall(r"``(\w+)``", listed[1]) if listed else own:
                found = inspect.getattr_static(cls, name, None)
                has_text = callable(found) or isinstance(found, property | cached_property)
                text = inspect.getdoc(found) if has_text else None
                first = (text or "An attribute.").split("\n\n")[0].replace("\n", " ")
                rows.append([kind, f"``{name}``", first])
    return "\n".join(table(rows)) + "\n"


def snes_view() -> str:
    """Output of ``-beam_snes_view`` for an energy–momentum step."""
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
