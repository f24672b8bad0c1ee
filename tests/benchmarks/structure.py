"""Size and structure of the package: python tests/benchmarks/structure.py [--list]

Lines, files, classes and functions, and lines of each subpackage; the closure of a class (files that its
import loads, first without imports inside functions, then with them); circles of imports; private names
of another file or of another library; names that occur twice; what the C++ templates repeat; what an
author of a stepper sees. ``--list`` prints the places.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TOP = Path(__file__).parents[2]
SUFFIXES = {".py", ".hpp", ".h", ".cpp", ".js", ".css", ".html"}
FILES = sorted(f for f in (TOP / "fdgeom").rglob("*") if f.suffix in SUFFIXES)
TEXTS = {f: f.read_text(errors="replace") for f in FILES}
TREES = {f: ast.parse(text) for f, text in TEXTS.items() if f.suffix == ".py"}
CLASSES = (
    "Stepper",
    "PoissonIntegrator",
    "RungeKutta4",
    "RATTLE",
    "GeneralizedAlpha",
    "EnergyMomentum",
    "StaticEquilibrium",
)
_RELATIVE = re.compile(r'"""(What|How|Some|Of|That|By|Which)\b')
NAMED_TUPLE = ("_asdict", "_replace")  # public methods, so named to differ from the fields
METHODS = ("pull", "push", "pull_rates", "bent", "openings", "closings", "vjp", "jvp")
# Functions of the C++ templates: Newton iterations, and factorisations or eliminations.
NEWTON = re.compile(r"^(?:template.*> *)?(?:inline )?int (?:newton\w*|solve_links)\(", re.M)
FACTORISATION = re.compile(
    r"^(?!.*;$).*\b(?:bool|void) "
    r"(?:factorise\w*|eliminate\w*|solve_plain|solve_pivoting|solve_transposed)\(.*\{$",
    re.M,
)


def module_of(file: Path) -> str:
    """The dotted name of a file."""
    names = file.relative_to(TOP).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


MODULES = {module_of(f): f for f in TREES}


def is_package(module: str) -> bool:
    """Whether a module is the table of contents of a folder."""
    return MODULES[module].name == "__init__.py"


def statements(tree: ast.AST, *, typing: bool, inner: bool) -> Iterator[ast.AST]:
    """All nodes; without those for type checkers, and without those inside functions, unless asked for."""
    for node in ast.iter_child_nodes(tree):
        if not typing and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        if inner or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from statements(node, typing=typing, inner=inner)


def imported_from(module: str, node: ast.ImportFrom) -> str:
    """The dotted name after "from"."""
    if not node.level:
        return node.module or ""
    parts = module.split(".") if is_package(module) else module.split(".")[:-1]
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


@cache
def exports(package: str) -> dict[str, str]:
    """The modules that define the names that a package hands on."""
    found = {}
    for node in statements(TREES[MODULES[package]], typing=False, inner=True):
        if isinstance(node, ast.ImportFrom):
            base = imported_from(package, node)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                if full in MODULES:
                    found[alias.asname or alias.name] = full
                elif base in MODULES:
                    home = exports(base).get(alias.name, base) if is_package(base) else base
                    found[alias.asname or alias.name] = home
    return found


def behind(package: str, seen: tuple[str, ...] = ()) -> set[str]:
    """The modules behind all names of a package."""
    found: set[str] = set()
    for target in exports(package).values():
        if target not in MODULES or not is_package(target):
            found.add(target)
        elif target not in (*seen, package):
            found |= behind(target, (*seen, package))
    return found


@cache
def imports(module: str, typing: bool, inner: bool) -> frozenset[str]:
    """The files of the package that a module imports itself."""
    found: set[str] = set()
    for node in statements(TREES[MODULES[module]], typing=typing, inner=inner):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name in MODULES]
        elif isinstance(node, ast.ImportFrom):
            base = imported_from(module, node)
            names = []
            for alias in node.names:
                full = f"{base}.{alias.name}"
                if full in MODULES:
                    names.append(full)
                elif base in MODULES:
                    home = exports(base).get(alias.name, base) if is_package(base) else base
                    found.add(home)
        else:
            continue
        for name in names:
            found |= behind(name) if is_package(name) else {name}
    return frozenset(m for m in found if m != module and m in MODULES and not is_package(m))


def closure(module: str, *, typing: bool = False, inner: bool = False) -> set[str]:
    """All files that importing a module loads, itself among them."""
    seen, todo = set(), [module]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += imports(name, typing, inner)
    return seen


def home_of(name: str) -> str | None:
    """The module that defines a class."""
    for module, file in MODULES.items():
        if any(isinstance(n, ast.ClassDef) and n.name == name for n in TREES[file].body):
            return module
    return None


def circles() -> list[list[str]]:
    """Modules that import one another, also for type checkers."""
    graph = {m: closure(m, typing=True, inner=True) for m in MODULES if not is_package(m)}
    found = {frozenset(x for x in graph[m] if m in graph.get(x, ())) for m in graph}
    return [sorted(circle) for circle in found if len(circle) > 1]


def private_names() -> tuple[list[str], list[str], list[str]]:
    """Uses of private names of other files, of other libraries, and of attributes put on their objects."""
    homes: dict[str, set[Path]] = {}
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            for name in _defined(node):
                homes.setdefault(name, set()).add(file)
    ours, theirs, put = [], [], []
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            line = f"{file.relative_to(TOP)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Constant) and str(node.value).startswith("_fdgeom"):
                put.append(f"{line} {node.value}")
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
                continue
            if node.attr in NAMED_TUPLE:
                continue
            value = ast.unparse(node.value)
            if node.attr.startswith("_fdgeom"):
                put.append(f"{line} {node.attr}")
            elif node.attr.startswith("__") or value in ("self", "cls") or value[:6] == "super(":
                continue
            elif node.attr not in homes:
                theirs.append(f"{line} {ast.unparse(node)[:80]}")
            elif file not in homes[node.attr]:
                ours.append(f"{line} {ast.unparse(node)[:80]}")
    # Names of other libraries in compat.py may be those of ours by chance.
    ours, theirs = ([p for p in places if "compat.py" not in p] for places in (ours, theirs))
    return ours, theirs, put


def _defined(node: ast.AST) -> Iterator[str]:
    """The private or assigned names that a node defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.startswith("_"):
        yield node.name
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield from [node.attr] if ast.unparse(node.value) == "self" else []
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            targets = (
                part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
            )
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _members(node: ast.AST) -> list[str]:
    """The name of a method or an attribute in the body of a class."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    return [node.target.id] if isinstance(node, ast.AnnAssign) else []


def twice(names: Iterator[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, number in Counter(names).items() if number > 1]


def report() -> tuple[dict[str, int], dict[str, list], Counter]:
    """Figures by name, places by name, and lines by subpackage."""
    lines = {file: text.count("\n") for file, text in TEXTS.items()}
    everything = [node for tree in TREES.values() for node in ast.walk(tree)]
    classes = [node for node in everything if isinstance(node, ast.ClassDef)]
    figures = {
        "lines": sum(lines.values()),
        "files": len(FILES),
        "lines of Python": sum(n for file, n in lines.items() if file.suffix == ".py"),
        "classes": len(classes),
        "functions": sum(isinstance(node, ast.FunctionDef) for node in everything),
    }
    for name in CLASSES:
        if home := home_of(name):
            figures[f"closure of {name}"] = len(closure(home)) - 1
            figures[f"closure of {name}, with imports inside functions"] = (
                len(closure(home, inner=True)) - 1
            )
    ours, theirs, put = private_names()
    top = (n.name for tree in TREES.values() for n in tree.body if isinstance(n, ast.ClassDef))
    places = {
        "circles": circles(),
        "private names of another file": ours,
        "private names of another library, outside compat.py": theirs,
        "attributes put on objects of another library": sorted({x.split()[-1] for x in put}),
        "module docstrings that begin with What, How, ...": [
            str(file.relative_to(TOP)) for file in TREES if _RELATIVE.match(TEXTS[file])
        ],
        "class names twice": twice(top),
        "file names twice": twice(f.stem for f in TREES if f.name != "__init__.py"),
    }
    figures |= {name: len(found) for name, found in places.items()}
    for name in METHODS:
        figures[f"def {name}("] = sum(text.count(f"def {name}(") for text in TEXTS.values())
    figures["subclasses of ctypes.Structure"] = sum(
        any("Structure" in ast.unparse(base) for base in node.bases) for node in classes
    )
    figures["Python files with C++ loops in strings"] = sum(
        "for (" in text for file, text in TEXTS.items() if file.suffix == ".py"
    )
    headers = "\n".join(text for file, text in TEXTS.items() if file.suffix == ".hpp")
    figures["Newton functions in headers"] = len(NEWTON.findall(headers))
    figures["factorisations in headers"] = len(FACTORISATION.findall(headers))
    # What every author of a stepper sees, and those of methods that carry fields.
    for base in ("Method", "Restart"):
        bodies = [node.body for node in classes if node.name == base]
        parts = [part for body in bodies for part in body]
        name = f"methods of {base}"
        places[name] = [part.name for part in parts if isinstance(part, ast.FunctionDef)]
        figures[name] = len(places[name])
        figures[f"members of {base}"] = sum(len(list(_members(part))) for part in parts)
    by_subpackage: Counter = Counter()
    for file, number in lines.items():
        parts = file.relative_to(TOP).parts
        by_subpackage[parts[1] if len(parts) > 2 else "(top)"] += number
    return figures, places, by_subpackage


def main() -> None:
    """Print the report."""
    figures, places, by_subpackage = report()
    for name, value in figures.items():
        print(f"{value:7d}  {name}")
        for place in places.get(name, ()) if "--list" in sys.argv else ():
            print("         ", place)
    print("lines by subpackage:", ", ".join(f"{n} {k}" for n, k in by_subpackage.most_common()))


if __name__ == "__main__":
    main()
