"""The gallery's tools: which pictures count as changed, and what a demo asserts."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

SITE = Path(__file__).parents[2] / "demos" / "site"
sys.path.append(str(SITE))

import covers  # noqa: E402
import gallery  # noqa: E402
import pictures  # noqa: E402
import printed  # noqa: E402
import program  # noqa: E402
import sentences  # noqa: E402
import verified  # noqa: E402
from markdown import to_rst  # noqa: E402


def test_changed_pictures(tmp_path, rng):
    image = pytest.importorskip("PIL.Image")
    levels = rng.integers(0, 256, (50, 60, 3), dtype=np.uint8)
    old, same, other = (tmp_path / f"{name}.png" for name in ("old", "same", "other"))
    image.fromarray(levels).save(old)
    image.fromarray(np.clip(levels.astype(int) + 5, 0, 255).astype(np.uint8)).save(same)
    image.fromarray(levels[::-1]).save(other)
    assert pictures.changed(same, old) == ""
    assert "of its pixels" in pictures.changed(other, old)
    assert pictures.changed(old, tmp_path / "nothing.png") == "is new"


def test_changed_shapes(tmp_path, rng):
    values = rng.standard_normal((4, 5, 3))
    whole = {"closed": False, "axis": 2, "sizes": np.zeros((0, 2))}
    np.savez(tmp_path / "old.npz", positions=values, **whole)
    np.savez(tmp_path / "same.npz", positions=values + 1e-5, **whole)
    np.savez(tmp_path / "other.npz", positions=values + 0.1, **whole)
    assert pictures.changed(tmp_path / "same.npz", tmp_path / "old.npz") == ""
    assert "positions" in pictures.changed(tmp_path / "other.npz", tmp_path / "old.npz")


def test_assertions_of_a_demo():
    code = "x = 1\nfor k in range(3):\n    assert k < 3\nassert x == 1, 'one'\n"
    assert gallery.assertions(code) == ["k < 3", "x == 1"]


def test_each_demo_is_listed_with_its_topic():
    demos = gallery.listed()
    assert {demo.name for demo in demos} == {p.parent.name for p in SITE.parent.glob("*/*.py.rst")}
    for demo in demos:
        assert demo.topic
        assert demo.words
        assert all(demo.tags)


@pytest.mark.parametrize("demo", gallery.listed(), ids=lambda demo: demo.name)
def test_page_of_a_demo(demo):
    """The best picture is on top; options are folded away; printed lines stand below their code."""
    page = gallery.page(demo, {"seconds": 10}, [])
    title, _, rest = page.partition("\n\n")
    assert title.splitlines() == [demo.title, "=" * len(demo.title)]
    assert rest.startswith(f".. image:: {demo.figures[0]}\n")
    assert not re.search(r"^(::|[^.].* ::)$", page, flags=re.MULTILINE)
    assert page.count("import argparse") == page.count(".. dropdown:: Imports") == 1
    for place, lines in program.read_printed(demo.folder / "printed.txt").items():
        part = [part for part in program.split(demo.text) if part.is_code][place]
        code = next(line for line in reversed(part.lines) if line).strip()
        below = page[page.index(f"{code}\n") :]
        assert ":class: printed unwrapped" in below
        assert gallery.wrapped(lines)[0].strip() in below


def test_printed_output_is_read_back(tmp_path):
    lines = {0: ["one", "", "  two"], 3: ["[1, 2]"]}
    program.write_printed(lines, tmp_path / "printed.txt")
    assert program.read_printed(tmp_path / "printed.txt") == lines
    assert program.read_printed(tmp_path / "nothing.txt") == {}


def test_output_belongs_to_its_block(tmp_path):
    """Lines of Python and of PETSc in their order, and the assertions that are reached."""
    demo = tmp_path / "small.py.rst"
    demo.write_text(
        "Small\n=====\n\nFirst. ::\n\n  from firedrake import PETSc\n\n  def f():\n"
        "      print('from f')\n      assert True\n\n"
        "Then. ::\n\n  PETSc.Sys.Print('by PETSc')\n  f()\n  if False:\n      assert True\n"
    )
    folder = tmp_path / "run"
    folder.mkdir()
    found = program.run(demo, [], folder, os.environ | {"OMP_NUM_THREADS": "1"})
    assert found["printed"] == {1: ["by PETSc", "from f"]}
    assert found["reached"] == {10}
    assert program.asserted(demo.read_text()) == {10, 17}


@pytest.mark.parametrize("demo", gallery.listed(), ids=lambda demo: demo.name)
def test_covers(demo, tmp_path):
    """Each card has a picture with something on it."""
    image = pytest.importorskip("PIL.Image")
    with image.open(tmp_path / covers.make(demo.name, demo.figures[0], tmp_path)) as picture:
        levels = np.asarray(picture.convert("RGBA"), dtype=int)
    assert min(levels.shape[:2]) > 80
    seen = (levels[..., 3] > 128) & (levels[..., :3].min(axis=2) < 200)
    assert seen.mean() > 0.005


def test_kept_pictures_are_small():
    """All that the site is made from: below 15 MB."""
    kept = [p for p in SITE.parent.rglob("*") if p.is_file() and "output" not in p.parts]
    assert sum(p.stat().st_size for p in kept) < 15e6


def test_output_stands_under_its_code(tmp_path):
    """Blocks share their names; those that print nothing stay as they are."""
    block = ".. code-block:: python\n\n   {}\n\n"
    page = block.format("x = 6") + "Text.\n\n" + block.format("print(x * 7)") + "End.\n"
    found = printed.with_output(page, tmp_path)
    assert found == page.replace(
        "End.", ".. code-block:: text\n   :class: printed\n\n   42\n\nEnd."
    )
    with pytest.raises(SystemExit, match="division by zero"):
        printed.with_output(block.format("1 / 0"), tmp_path)


def test_order_and_limit():
    """Of values 2 + 3/n², with another reference."""
    row = {"meshes": [4, 8, 16], "values": [2 + 3 / n**2 for n in (4, 8, 16)], "reference": 2.5}
    order, limit = verified.limit(row)
    assert order == "2.00"
    assert limit == pytest.approx(2, abs=1e-12)


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("dt must be a positive number, not -1", "Give a positive number."),
        ("poisson_ratio must lie in (-1, 0.5), not 2", "Give a value in (-1, 0.5)."),
        ("degree=1 is much too stiff; take degree=2", "Take degree=2."),
        ('plots need it: pip install "fdgeom[plots]"', "pip install"),
        ("run() got an unexpected keyword argument 'monitor'", "Remove <code>monitor</code>"),
        ("the tangent stiffness is singular", "clamp an end"),
        ("give until or steps, not both", "Give until or steps"),
        ("stiffness must be positive definite: its least eigenvalue is -1", "positive definite."),
        ("force: the function must give a vector of 3, not (2,)", "Return a vector of 3."),
        ("system: RATTLE needs one, not B; that is moved by A or C", "Use A or C."),
    ],
)
def test_remedies(message, remedy):
    assert remedy in sentences.remedy(message)


def test_wrong_calls_have_remedies():
    """Each with one of its own, from its sentence or for its kind."""
    messages = [text for rows in sentences.refusals().values() for *_, text in rows]
    assert len(messages) > 500
    assert [m for m in messages if sentences.remedy(m) == sentences.remedy("")] == []


def test_markdown():
    text = "# Changes\n\n- `a` and [b](https://c.d)\n\n| x | y |\n|---|---|\n| 1 | `2` |\n"
    assert to_rst(text) == (
        "Changes\n=======\n\n- ``a`` and `b <https://c.d>`__\n\n"
        ".. list-table::\n   :header-rows: 1\n\n   * - x\n     - y\n   * - 1\n     - ``2``\n\n"
    )
