"""The code on the pages of the site runs as a reader would paste it, from the top of a page on."""

import re
import textwrap
from pathlib import Path

import pytest
from pyadjoint import Tape, set_working_tape

import fdgeom as fg

PAGES = Path(__file__).parents[2] / "demos" / "site" / "pages"
BLOCK = re.compile(
    r"^\.\. code-block:: python\n((?:   :\S.*\n)*)\n((?:(?:   .*)?\n)+)", flags=re.MULTILINE
)


def blocks(page):
    """The Python of a page; what other programs run is marked as quoted."""
    return [
        textwrap.dedent(code)
        for options, code in BLOCK.findall(page.read_text() + "\n")
        if "quoted" not in options
    ]


CODED = [page for page in sorted(PAGES.rglob("*.rst")) if blocks(page)]


@pytest.mark.parametrize("page", CODED, ids=lambda page: str(page.relative_to(PAGES)))
def test_page(page, tmp_path, monkeypatch):
    """Blocks share their names."""
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("vtk")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    # A page may leave a schedule of checkpoints on its tape.
    with set_working_tape(Tape()):
        for k, block in enumerate(blocks(page)):
            exec(compile(block, f"{page.name}, block {k}", "exec"), names)
    matplotlib.pyplot.close("all")


def test_every_name_is_shown():
    """Each public name has its place in the API, and an example that uses it."""
    shown, used = set(), set()
    for page in (PAGES / "api").glob("*.rst"):
        text = page.read_text()
        names = re.findall(r"^\.\. auto\w+:: fdgeom\.(\w+)$", text, flags=re.MULTILINE)
        assert not shown & set(names), "described twice"
        shown |= set(names)
        used |= set(re.findall(r"\bfg(?:dgeom)?\.(\w+)", "\n".join(blocks(page))))
    assert shown >= set(fg.__all__), set(fg.__all__) - shown
    # PETSc makes solvers by their names.
    assert used >= set(fg.__all__) - {"LocalNewton", "ChainNewton", "ChainLU"}, (
        set(fg.__all__) - used
    )
