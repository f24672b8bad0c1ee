"""Runs a program, writes the lines of its assertions that it came to: reached.py FILE PROGRAM ..."""

import ast
import sys
from pathlib import Path


class _Noting(ast.NodeTransformer):
    """Before each assertion, a call that notes its line."""

    def visit_Assert(self, node):
        note = ast.parse(f"_reached.add({node.lineno})").body[0]
        return [ast.copy_location(note, node), node]


def assertions(program: Path) -> set[int]:
    """Lines of all assertions of a program."""
    return {
        node.lineno
        for node in ast.walk(ast.parse(program.read_text()))
        if isinstance(node, ast.Assert)
    }


def run(program: Path, arguments: list[str]) -> set[int]:
    """Run a program as the main one; the lines of assertions that it came to."""
    reached: set[int] = set()
    noting = ast.fix_missing_locations(_Noting().visit(ast.parse(program.read_text())))
    sys.argv = [str(program), *arguments]
    sys.path[0] = str(program.parent)
    names = {"__name__": "__main__", "__file__": str(program), "_reached": reached}
    exec(compile(noting, str(program), "exec"), names)
    return reached


if __name__ == "__main__":
    found, script, *rest = sys.argv[1:]
    lines = run(Path(script), rest)
    Path(found).write_text(" ".join(map(str, sorted(lines))))
