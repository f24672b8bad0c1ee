"""Pages whose code runs when the site is built, with the printed output under each block."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

TOP = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^\.\. code-block:: python\n(?:   :\S.*\n)*\n(?:(?:   .*)?\n)+", flags=re.MULTILINE
)
#: Runs the blocks that stand, one text each, in standard input; prints what each of them prints.
_RUN = """
import contextlib, io, json, sys, warnings
warnings.simplefilter("ignore")
names, said = {}, []
for block in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(block, "page", "exec"), names)
    said.append(out.getvalue())
json.dump(said, sys.stdout)
"""


def code(block: str) -> str:
    """The Python of a block."""
    return textwrap.dedent(block.partition("\n\n")[2])


def run(blocks: list[str], folder: Path) -> list[str]:
    """Run blocks of code one after the other in a folder; return the printed output of each."""
    import json

    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "PYTHONPATH": str(TOP),
    }
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps(blocks),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    if done.returncode:
        raise SystemExit(f"code of a page fails:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def with_output(page: str, folder: Path) -> str:
    """The text of a page with the printed output under each block; its files are in the folder."""
    said = iter(run([code(block) for block in BLOCK.findall(page)], folder))

    def shown(match: re.Match) -> str:
        words = next(said).rstrip()
        if not words:
            return match[0]
        listing = textwrap.indent(words, "   ")
        return f"{match[0]}.. code-block:: text\n   :class: printed\n\n{listing}\n\n"

    return BLOCK.sub(shown, page)
