"""Programs of demos: their code blocks, the output of each block, and the assertions that a run reaches.

Run as ``program.py FOUND STARTS SCRIPT [argument ...]``: runs the script of a demo as its reader would, and
writes the lines of the reached assertions to the file FOUND (JSON). STARTS are the first lines of the code
blocks. Nothing here imports fdgeom on top: PETSc takes the arguments that the script leaves.
"""

from __future__ import annotations

import ast
import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

#: Begins a line of the output: the number of the code block that prints the lines below it.
_MARK = "\x1d"


class Part(NamedTuple):
    """Some lines of a demo, from a line number (counted from one): text, or a code block."""

    start: int
    is_code: bool
    lines: list[str]


def split(text: str) -> list[Part]:
    """Text and code blocks in turn, as ``script`` finds them: code follows a paragraph ending in ``::``."""
    parts, lines = [Part(1, False, [])], text.splitlines()
    for number, line in enumerate(lines, start=1):
        last = parts[-1]
        if last.is_code and line and not line.startswith(" "):
            parts.append(Part(number, False, []))
        elif not last.is_code and line.startswith("  ") and _announces(last.lines):
            parts.append(Part(number, True, []))
        parts[-1].lines.append(line)
    return parts


def _announces(lines: list[str]) -> bool:
    above = next((line for line in reversed(lines) if line), "")
    return above.endswith("::") and not above.startswith("..")


def script(text: str) -> str:
    """The script of a demo. Its lines have the numbers that they have in the text."""
    from fdgeom.__main__ import script

    return script(text)


def asserted(text: str) -> set[int]:
    """Lines of all assertions of a demo."""
    return {
        node.lineno for node in ast.walk(ast.parse(script(text))) if isinstance(node, ast.Assert)
    }


def run(demo: Path, arguments: list[str], folder: Path, environment: dict) -> dict:
    """Run a demo in a folder; its ``printed`` lines by code block, ``errors`` and ``reached`` assertions.

    Raises
    ------
    RuntimeError
        The demo fails; the message ends with what it printed.
    """
    text, noted = demo.read_text(), folder / "found.json"
    starts = [part.start for part in split(text) if part.is_code]
    program = folder / demo.name.removesuffix(".rst")
    program.write_text(script(text))
    done = subprocess.run(
        [sys.executable, "-u", __file__, noted, json.dumps(starts), program.name, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{demo.name} fails:\n{done.stdout}{done.stderr}")
    printed, place = {}, None
    for line in done.stdout.removesuffix("\n").split("\n"):
        if line.startswith(_MARK):
            place = int(line[1:])
        else:
            printed.setdefault(place, []).append(line)
    reached = json.loads(noted.read_text())
    noted.unlink()
    return {"printed": printed, "errors": done.stderr, "reached": set(reached)}


def write_printed(printed: dict[int, list[str]], file: Path) -> None:
    """Write the printed lines to a small text file."""
    blocks = [f"[code block {place}]\n" + "\n".join(lines) for place, lines in printed.items()]
    file.write_text("\n".join(blocks) + "\n")


def read_printed(file: Path) -> dict[int, list[str]]:
    """Read the printed lines by code block; none if there is no such file."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        if head := re.fullmatch(r"\[code block (\d+)\]", line):
            lines = found.setdefault(int(head[1]), [])
        else:
            lines.append(line)
    return found


class _Noting(ast.NodeTransformer):
    """Calls that note the code block, before each statement of the program, and each assertion."""

    def __init__(self, starts: list[int]) -> None:
        self.starts = starts

    def visit_Module(self, node):
        body = []
        for statement in node.body:
            place = sum(start <= statement.lineno for start in self.starts) - 1
            body += [ast.parse(f"_begin({place})").body[0], self.visit(statement)]
        # An assertion becomes two statements.
        node.body = [s for item in body for s in (item if isinstance(item, list) else [item])]
        return node

    def visit_Assert(self, node):
        note = ast.parse(f"_reached.add({node.lineno})").body[0]
        return [ast.copy_location(note, node), node]


def main(found: Path, starts: list[int], name: str, arguments: list[str]) -> None:
    """Run a script in this process as the main program."""
    reached: set[int] = set()
    place = None

    def begin(block: int) -> None:
        nonlocal place
        if block != place:
            print(f"{_MARK}{block}", flush=True)
        place = block

    _unbuffered()
    program = ast.fix_missing_locations(_Noting(starts).visit(ast.parse(Path(name).read_text())))
    sys.argv, sys.path[0] = [name, *arguments], ""
    names = {"__name__": "__main__", "__file__": name, "_reached": reached, "_begin": begin}
    exec(compile(program, name, "exec"), names)
    found.write_text(json.dumps(sorted(reached)))


def _unbuffered() -> None:
    """Let C write to the standard output at once, as ``python -u`` does, so that lines keep their order."""
    library = ctypes.CDLL(None)
    name = "__stdoutp" if sys.platform == "darwin" else "stdout"
    library.setvbuf(ctypes.c_void_p.in_dll(library, name), None, 2, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], sys.argv[4:])
