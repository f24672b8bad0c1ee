"""The page of messages and remedies: wrong calls from the tests, runs from the code."""

from __future__ import annotations

import ast
import inspect
import re
from html import escape
from pathlib import Path

from markdown import html_table

TOP = Path(__file__).parents[2]
#: Kinds of errors and warnings of runs, by heading; wrong calls have headings of their own.
OF_RUNS = {
    "Runs and solves": {
        "SolveFailed", "RuntimeError", "NotFinite", "NotImplementedError", "NoCompiler", "ImportError",
        "OSError", "warn",
    },
    "Reasons why steps are not compiled": {"CannotCompile"},
}  # fmt: skip
#: A clause that tells the reader what to do.
_ORDER = re.compile(
    r"(?:^|(?:[;:.,]|\bor) )((?:give|take|leave|use|call|clamp|install|look|set|make|pass|create|join|write|"
    r"put|choose|state|hold|build|add|try|move|remove|evaluate|define|start|open|change|rename|divide|"
    r"refine|restrict|solve|drop|replace|compare|interpolate|turn|delete|check|with friction give)\b"
    r"(?! (?:must|holds)\b).*)$",
    flags=re.IGNORECASE,
)
#: The end of a clause with "must".
_END = (
    r"(?:(?:, (?:not|got|but|which|that|and|this)\b|; |: \S+ is not | at the start|"
    r": (?:its|it|the|1)\b).*)?$"
)
_SEE = "See <a href='troubleshooting.html'>Troubleshooting</a>."
#: Remedies by words of the message, where the message itself has none. The first that fits counts.
_REMEDIES = {
    r"(pip install .*)": r"<code>\1</code>",
    r"did you mean ('\w+')": r"Write <code>\1</code>.",
    r"unexpected keyword argument '(\w+)'": r"Remove <code>\1</code>, or correct its name.",
    r"required .*argument.*'(\w+)'": r"Give <code>\1</code>.",
    r"that is moved by (.+)$": r"Use \1.",
    r"gives no UFL|no valid|UFL vector of 6: ": "Return UFL from the function, whose error ends the message.",
    r"Casimirs? of": "Leave it out of the Casimirs, or correct its form.",
    r"kinetic energy must grow": "Correct the sign of the kinetic energy.",
    rf"function must take (.+?){_END}": r"Let the function take \1.",
    rf"(?:function|\)|constraint|bracket|residual|force) must give (.+?){_END}": r"Return \1.",
    r"must be (linear .+?|symmetric.*?|positive(?! number| whole| length).*?|finite .+?|greater .+?|"
    r"smaller .+?|less .+?|below .+?|above .+?|of .+?|on .+?|over .+?|in .+?|different .+?|least .+?|zero.*?)"
    rf"{_END}": r"Make it \1.",
    rf"^.+? must be (.+?){_END}": r"Give \1.",
    rf"must lie (in|ahead of) (.+?){_END}": r"Give a value \1 \2.",
    rf"must (?:have|hold) (.+?){_END}": r"Give one with \1.",
    rf"must end in (\S+?){_END}": r"Give a name that ends in <code>\1</code>.",
    rf"must not be (?:the )?(zero|empty|negative|above [\w/.]+)\b.*{_END}": r"Give one that is not \1.",
    rf"must not (?:contain|hold) (.+?){_END}": r"Give one without \1.",
    rf"must depend on (.+?){_END}": r"Use \1 in it.",
    rf"must live on (.+?){_END}": r"Define it on \1.",
    rf"must sum to (.+?){_END}": r"Choose parts whose sum is \1.",
    rf"must stay (.+?)(?:, and so on.*|{_END})": r"Let it stay \1.",
    r"^(\w+) is needed": r"Give <code>\1</code>.",
    r"depends? on the momentum|not depend on": "Correct the form.",
    rf"neither .+ read (\w+){_END}": r"Leave <code>\1</code> out, or use it in a form.",
    rf"\bneeds? (an? .+?){_END}": r"Give \1.",
    rf"\bneeds? (.+?){_END}": r"Give \1.",
    r"(?:not|no) values at nodes": "Use a CG or DG0 space.",
    r"of degree 1 only": "Use <code>degree=1</code>.",
    r"the nearest is": "Use a place with a node, or a mesh with a node at that place.",
    r"outside the mesh": "Give a point of the mesh.",
    r"recorded are (.+?)\W*$": r"Name one of \1.",
    r"(dt) and (t) may be set": r"Use <code>\1</code> or <code>\2</code>.",
    r"no parameter of this system": "Give parameters of this system only.",
    r"such file|cannot be written|resumed from|a table of samples|a section written|holds no snapshots": (
        "Give the name of another file or folder."
    ),
    r"solver_parameters: '(\w+)' cannot be": r"Give a value that PETSc accepts for <code>\1</code>.",
    r"not finite|NaN": "Take a smaller step. Look for a division by zero or a root of a negative number in "
    "your forms.",
    r"SNES|Newton|iterations|linear solve": f"Take a smaller step or load step, or try "
    f"<code>halvings=3</code>. {_SEE}",
    r"pyadjoint|[Gg]radients|tape": "Take finite differences of whole runs. See "
    "<a href='../api/gradients.html'>Gradients</a>.",
    r"singular|real eigenvalue": "Hold the system: clamp an end, or join it to <code>fg.ground</code>. Look "
    "for a constraint that is given twice and for a mass that is zero.",
    r"do not move the beam": "Give a load that moves the beam.",
    r"against one another|half a turn": "Take a smaller step, or more cells at the place that the message "
    "names.",
    r"turns by more|of the path|load_step": "Take a smaller <code>step</code> in <code>follow(step)</code>.",
    r"disk is full": "Make room, or write less often.",
    r"folder|device": "Give the name of a regular file.",
    r"no cross-section|no table": "Compare the order of the components: fdgeom puts rotation first.",
    r"slower|less time": "None is needed. See <a href='performance.html'>Performance</a>.",
}


def page() -> str:
    """The page: a filter and one table."""
    lines = [
        ":nosearch:",
        "",
        "Messages and remedies",
        "=====================",
        "",
        "Type some words of a message. An ellipsis stands for a part that differs from case to case. The "
        "messages of wrong calls come from the tests, which make each of these calls and compare its "
        "message; those of runs are read from the code. :doc:`troubleshooting` treats symptoms.",
        "",
        ".. raw:: html",
        "",
        '   <p><input id="filter" type="search" class="form-control" placeholder="for example: dt must be" '
        'aria-label="Words of a message"> <span id="found" role="status"></span></p>',
    ]
    for room, rows in refusals().items():
        title = room.splitlines()[0].rstrip(".")
        said_by = [
            (f"{kind}: {text}", remedy(text), code.replace("small.", ""))
            for code, kind, text in rows
        ]
        lines += ["", title, "-" * len(title), "", *table(said_by)]
    for title, kinds in OF_RUNS.items():
        found = sorted(said(kinds), key=str.lower)
        lines += ["", title, "-" * len(title), "", INTRODUCED[title], ""]
        named = title == "Runs and solves"
        lines += table([(text, remedy(text) if named else "", "") for text in found])
    return "\n".join(lines) + "\n"


def table(rows: list[tuple[str, str, str]]) -> list[str]:
    """An HTML table of messages, remedies (a column only if there are any) and calls that cause them."""
    two = any(what for _, what, _ in rows)
    cells = []
    for message, what, code in rows:
        by = f"<br><small>for example <code>{escape(code)}</code></small>" if code else ""
        cells.append([f"{escape(message)}{by}", what][: 1 + two])
    return html_table(["message", "remedy"][: 1 + two], {"": cells}, "messages stacked")


def remedy(message: str) -> str:
    """Remedy as HTML: the clause of the message that says it, or else a remedy for its kind."""
    if found := _ORDER.search(message):
        words = found[1].strip().rstrip(".")
        return f"{escape(words[0].upper() + words[1:])}."
    for pattern, words in _REMEDIES.items():
        if found := re.search(pattern, escape(message, quote=False)):
            return found.expand(words)
    return _SEE


INTRODUCED = {
    "Runs and solves": "A step that fails raises ``StepFailed``; its message begins with time and number of "
    "the step. Statics raises ``LoadStepFailed``.",
    "Reasons why steps are not compiled": "``stepper.why_not_compiled`` gives one of these reasons. Such "
    "steps are correct and slower.",
}


def refusals() -> dict[str, list[tuple[str, str, str]]]:
    """Wrong calls of the tests, by topic: code, kind of error, message."""
    found = {}
    for file in sorted((TOP / "tests" / "robustness" / "calls").glob("*.py")):
        text = file.read_text()
        module = ast.parse(text)
        rows = []
        for node in ast.walk(module):
            if not (isinstance(node, ast.Tuple) and len(node.elts) == 4):
                continue
            _, call, kind, sentence = node.elts
            if not (isinstance(call, ast.Lambda) and isinstance(kind, ast.Name)):
                continue
            try:
                message = ast.literal_eval(sentence)
            except ValueError:
                continue
            code = " ".join(ast.get_source_segment(text, call.body).split())
            rows.append((code, kind.id, message))
        if rows:
            found[inspect.cleandoc(ast.get_docstring(module) or file.stem)] = rows
    return found


def said(kinds: set[str]) -> set[str]:
    """Messages of errors and warnings of some kinds in the package."""
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
