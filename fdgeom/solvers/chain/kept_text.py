"""A cache on disk of the C++ text of cells, beside the compiled kernels.

Elimination of derivatives takes most of the set-up time of a chain whose kernels are compiled already.
The key of a text is the graph of scalars that it is made from.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from firedrake import Constant, Function
from pyop2.configuration import configuration

from fdgeom.solvers.chain.graph import Graph
from fdgeom.solvers.compiled.tables import Tables


class Names:
    """Names functions and constants by the order in which they are first met."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._functions: dict[Function, int] = {}
        self._constants: dict[Constant, int] = {}
        self._met: list = []

    def __call__(self, thing: Function | Constant | None) -> int | None:
        """The name of a function or constant."""
        if thing is None:
            return None
        known = self._constants if isinstance(thing, Constant) else self._functions
        if thing not in known:
            known[thing] = len(self._met)
            self._met.append(thing)
        return known[thing]

    def of_input(self, key: Sequence) -> tuple:
        """The key of a graph input, with names in place of functions and constants."""
        return (key[0], *(self(x) if _is_thing(x) else x for x in key[1:]))

    def state(self) -> list:
        """Sizes and numbers in the tables that the text depends on beside the names."""
        tables = self._tables
        functions = {f: k for k, f in enumerate(tables.functions)}
        constants = {id(c): k for k, c in enumerate(tables.constants)}
        found: list = [len(tables.functions), len(tables.constants)]
        for thing in self._met:
            if isinstance(thing, Constant):
                found.append(("constant", constants.get(id(thing))))
            else:
                found.append((thing.function_space().block_size, functions.get(thing)))
        return found

    def taken(self, functions: int, constants: int) -> list[int] | None:
        """The names of the table entries added after the first ones; None if one has no name."""
        tables = self._tables
        known = [self._functions.get(f) for f in tables.functions[functions:]]
        known += [self._constants.get(c) for c in tables.constants[constants:]]
        return None if None in known else known

    def take(self, names: Sequence[int]) -> None:
        """Add functions and constants to the tables in this order of names."""
        for name in names:
            thing = self._met[name]
            if isinstance(thing, Constant):
                self._tables.constant(thing)
            else:
                self._tables.field(thing)

    def fits(self, names) -> bool:
        """Whether a value read from disk is a list of valid names."""
        return isinstance(names, list) and all(
            type(name) is int and 0 <= name < len(self._met) for name in names
        )


def _is_thing(x) -> bool:
    return not isinstance(x, str | int)


def kept_text(
    graph: Graph, tables: Tables, describe: Callable[[Names], object], make: Callable[[], str]
) -> str:
    """The text that ``make`` returns, from disk if there is one for the same graph."""
    # Functions and constants get the same numbers in the tables either way.
    names = Names(tables)
    # The order of these calls decides the names.
    told = [graph.written(names.of_input), describe(names)]
    told.append(names.state())
    digest = hashlib.sha256(f"{_sources()}\n{told!r}".encode()).hexdigest()
    file = folder() / f"{digest}.json"
    found = _read(file, names)
    if found is not None:
        text, taken = found
        names.take(taken)
        return text
    before = len(tables.functions), len(tables.constants)
    text = make()
    taken = names.taken(*before)
    if taken is not None:
        _write(file, {"text": text, "taken": taken})
    return text


def folder() -> Path:
    """The folder of the texts."""
    return Path(configuration["cache_dir"]) / "fdgeom-chains"


@cache
def _sources() -> str:
    """A hash of the modules that generate the texts."""
    here, found = Path(__file__).parent, hashlib.sha256()
    for file in sorted(here.glob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()


def _read(file: Path, names: Names) -> tuple[str, list[int]] | None:
    try:
        found = json.loads(file.read_text())
        text, taken = found["text"], found["taken"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (text, taken) if isinstance(text, str) and names.fits(taken) else None


def _write(file: Path, what: dict) -> None:
    """Write a file atomically, since others may read it now; ignore a disk that is not writable."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".new")
        try:
            with os.fdopen(handle, "w") as out:
                json.dump(what, out)
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise
    except OSError:
        return
