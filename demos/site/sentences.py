"""The page of sentences: what wrong calls are told, from the tests; what runs may say, from the code."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

TOP = Path(__file__).parents[2]
#: Kinds of errors and warnings that tell of runs, by heading; wrong calls have tables of their own.
OF_RUNS = {
    "While it runs": {
        "SolveFailed", "RuntimeError", "NotFinite", "NotImplementedError", "NoCompiler", "ImportError",
        "OSError", "warn",
    },
    "Why steps are not compiled": {"CannotCompile"},
}  # fmt: skip


def page() -> str:
    """All of it."""
    lines = [
        "Every sentence",
        "==============",
        "",
        "Wrong calls and what they are told, from the tests' own tables: each is called there and its "
        "sentence compared. An ellipsis stands for what differs from case to case. At the end what runs "
        "may say, read from the code.",
        "",
    ]
    for room, rows in refusals().items():
        title = room.splitlines()[0].rstrip(".")
        lines += [title, "-" * len(title), ""]
        for _, code, kind, sentence in rows:
            lines += [f".. code-block:: text\n   :class: wrapped\n\n   {kind}: {sentence}", ""]
            lines += [f"by ``{code}``", ""]
    for title, kinds in OF_RUNS.items():
        lines += [title, "-" * len(title), ""]
        lines += [INTRODUCED[title], ""]
        for sentence in sorted(said(kinds)):
            lines += [f".. code-block:: text\n   :class: wrapped\n\n   {sentence}", ""]
    return "\n".join(lines) + "\n"


INTRODUCED = {
    "While it runs": "A step ends in ``StepFailed``, with its time and number before one of these sentences, "
    "statics in ``LoadStepFailed``; :doc:`troubleshooting` says where to look.",
    "Why steps are not compiled": "``stepper.why_not_compiled`` has one of these; such steps go through "
    "PETSc.",
}


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


def said(kinds: set[str]) -> set[str]:
    """Sentences of errors and warnings of some kinds in the package, each with some words of its own."""
    found = set()
    for file in (TOP / "fdgeom").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            call = node.exc if isinstance(node, ast.Raise) else node
            if not (isinstance(call, ast.Call) and call.args):
                continue
            if ast.unparse(call.func).rpartition(".")[2] in kinds and (text := words(call.args[0])):
                found.add(" ".join(text.split()))
    return {text for text in found if len(text.replace("…", "").split()) > 2}


def words(node: ast.expr) -> str | None:
    """A string with an ellipsis for each value that is put into it; None if it is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
    return None
