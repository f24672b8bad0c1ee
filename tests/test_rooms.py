"""The house: rooms know those below them, and no file needs one that needs it."""

import ast
from pathlib import Path

import pytest

import fdgeom

ROOT = Path(fdgeom.__file__).parent
#: From the ground up, as ``fdgeom/__init__.py`` says.
ROOMS = (
    "lie",
    "operations",
    "compile",
    "execution",
    "systems",
    "sections",
    "beams",
    "steppers",
    "adjoint",
    "statics",
    "recording",
)


def module(path):
    parts = ("fdgeom", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module(path): path for path in ROOT.rglob("*.py")}


def needed_by(name):
    """What a file imports of fdgeom, in functions and for annotations too."""
    package = name if FILES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            above = above[: len(above) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            inside = [f"{origin}.{alias.name}" for alias in node.names]
            yield from [name for name in inside if name in FILES] or [origin]


NEEDS = {name: {n for n in needed_by(name) if n in FILES and n != name} for name in FILES}


def room(name):
    found = [part for part in name.split(".")[1:2] if part in ROOMS]
    return found[0] if found else None


def test_no_file_needs_one_that_needs_it():
    """Rooms' tables of contents aside, what a file imports can be read before it."""
    needs = {
        name: {n for n in found if FILES[n].name != "__init__.py"}
        for name, found in NEEDS.items()
        if FILES[name].name != "__init__.py"
    }
    while ready := [name for name, found in needs.items() if not found & needs.keys()]:
        for name in ready:
            del needs[name]
    assert not needs, f"circles of imports among {sorted(needs)}"


def test_rooms_know_those_below_them():
    upward = [
        (name, n)
        for name, found in NEEDS.items()
        for n in found
        if room(name) and room(n) and ROOMS.index(room(n)) > ROOMS.index(room(name))
    ]
    # A method imports recording when it is called: `run` of steppers.
    method = "fdgeom.steppers.stepper"
    assert not [pair for pair in upward if pair[0] != method or "recording" not in pair[1]]


def test_every_room_says_what_it_is_for():
    for name, path in FILES.items():
        if path.name == "__init__.py":
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert len(text.splitlines()) > 2, name


#: Rooms that others enter by the names in their ``__init__.py`` alone.
DOORS = ("fdgeom.adjoint",)


@pytest.mark.parametrize("door", DOORS)
def test_what_is_inside_is_reached_by_the_door(door):
    """From outside nobody names a file behind it."""
    past = [
        (name, node.module)
        for name, path in FILES.items()
        if not f"{name}.".startswith(f"{door}.")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{door}.")
    ]
    assert not past
