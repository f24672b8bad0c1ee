"""Compilation of C++ text, and the structs that it shares with Python."""

import ctypes
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from mpi4py import MPI
from pyop2 import compilation
from pyop2.configuration import configuration

from fdgeom.compat import compiler, has_instructions
from fdgeom.errors import NoCompiler

#: Places in a block: the lanes of a vector, which fills a register where that has room for four or eight.
WIDTH = 8 if has_instructions("AVX512F") else 4

_FLAGS = (
    "-std=c++17",
    f"-DFDGEOM_WIDTH={WIDTH}",
    # Fast arithmetic must preserve NaN.
    "-fno-finite-math-only",
    "-fno-math-errno",
    # Small matrices stay in registers if their loops are unrolled.
    "--param=max-completely-peeled-insns=8000",
    "--param=max-completely-peel-times=64",
)


# Loops are unrolled by hand: the third level takes twice as long for code that is no faster.
BY_HAND = "-O2"
#: For kernels of TSFC, which have loops.
WITH_LOOPS = "-O3"


@cache
def header(name: str) -> str:
    """The text of a header file."""
    return files("fdgeom.compile").joinpath("cpp", name).read_text()


def load(
    code: str,
    comm: MPI.Comm,
    functions: Mapping[str, tuple],
    *,
    level: str = BY_HAND,
) -> ctypes.CDLL:
    """Compile a text, or find it compiled on disk; collective."""
    # functions: their results and arguments. PyOP2 compiles on rank 0, and keeps the library in its cache
    # by the text, the compiler with its version and all flags. Headers are parts of the text for this
    # reason.
    try:
        library = _library(code, (level, *_FLAGS), comm)
    except (RuntimeError, OSError, compilation.CompilationError) as error:
        raise NoCompiler(
            "compiled steps need a working C++ compiler (PETSc's, usually mpicxx), and it failed: install "
            "one, or pass compiled=False to step through PETSc SNES instead"
        ) from error
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _library(code: str, flags: tuple[str, ...], comm: MPI.Comm) -> ctypes.CDLL:
    if comm.size > 1:
        return compilation.load(code, "cpp", cppargs=flags, comm=comm)
    # PyOP2 runs the compiler twice to ask for its name and version: once a process is enough.
    made = compiler()(flags, (), debug=configuration["debug"])
    return ctypes.CDLL(compilation.make_so(made, code, "cpp", comm))


_TYPES = {
    "int": ctypes.c_int, "long": ctypes.c_long, "double": ctypes.c_double, "int64_t": ctypes.c_int64
}  # fmt: skip


def declared(name: str, file: str) -> type[ctypes.Structure]:
    """The ctypes class of a struct in a header."""
    text = re.sub(r"//.*", "", header(file))
    body = re.search(rf"^struct {name} {{(.*?)}};", text, re.MULTILINE | re.DOTALL)[1]
    members: list[tuple[str, type]] = []
    for line in filter(None, map(str.strip, body.split(";"))):
        kind, names = re.match(r"(?:const )?(\w+)(.*)", line, re.DOTALL).groups()
        for one in names.split(","):
            kind_of = ctypes.c_void_p if "*" in one else _TYPES[kind]
            members.append((re.findall(r"\w+", one)[-1], kind_of))
    return type(name, (ctypes.Structure,), {"_fields_": members})


Place = declared("Place", "fields.hpp")
Keep = declared("Keep", "fields.hpp")
Report = declared("Report", "fields.hpp")
NodeMap = declared("NodeMap", "fields.hpp")
Call = declared("Call", "fields.hpp")
Test = declared("Test", "convergence.hpp")
Copy = declared("Copy", "fields.hpp")
Run = declared("Run", "fields.hpp")
Neighbour = declared("Neighbour", "fields.hpp")
Exchange = declared("Exchange", "fields.hpp")
Front = declared("Front", "fronts.hpp")
Fronts = declared("Fronts", "fronts.hpp")
Segment = declared("Segment", "chain_lu.hpp")
Tree = declared("Tree", "chain_lu.hpp")


def array_of(kind: type, items: Sequence):
    """A ctypes array with at least one entry."""
    return (kind * max(len(items), 1))(*items)


def address(thing) -> int:
    """The address of a ctypes object."""
    return ctypes.addressof(thing)
