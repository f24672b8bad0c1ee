"""Compiled code of a chain, as ctypes functions."""

import ctypes

import numpy as np
from pyop2 import compilation

from fdgeom.errors import NoCompiler

# Fast arithmetic must preserve NaN; copies of a few vectors must not become calls of memcpy.
_FLAGS = (
    "-std=c++17",
    "-fno-finite-math-only",
    "-fno-math-errno",
    "-fno-tree-loop-distribute-patterns",
    # Functions to be inlined are marked; the search for others takes a fifth of the compile time.
    "-fno-inline-functions",
)


# For code that runs once or twice: halves the compile time.
_SELDOM = "-O1"


def load(code: str, comm, *, seldom: bool = False):
    """Compile the text of a chain, or load it from disk; ``seldom``: optimise less, as it runs rarely."""
    try:
        library = compilation.load(
            code, "cpp", cppargs=(*_FLAGS, _SELDOM) if seldom else _FLAGS, comm=comm
        )
    except (RuntimeError, OSError, compilation.CompilationError) as error:
        raise NoCompiler(
            "compiled chains need a working C++ compiler (PETSc's, usually mpicxx), and it failed: "
            "install one, or pass compiled=False to step through PETSc SNES instead"
        ) from error
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in (
        ("in", None, [pointer, number]), ("out", None, [pointer, number]),
        ("width", number, []), ("linearise", number, [pointer]),
        ("evaluate", None, [pointer]), ("update", None, [pointer]),
        ("apply", None, [pointer]), ("coupled", number, [pointer]), ("alone", ctypes.c_long, []),
        ("newton", number, [pointer, pointer, pointer]),
    ):  # fmt: skip
        function = getattr(library, f"fdgeom_chain_{name}")
        function.restype, function.argtypes = result, arguments
    if hasattr(library, "fdgeom_chain_advance"):
        library.fdgeom_chain_advance.restype = number
        library.fdgeom_chain_advance.argtypes = [
            pointer, pointer, ctypes.c_long, pointer, pointer, pointer, pointer, pointer,
        ]  # fmt: skip
    if hasattr(library, "fdgeom_chain_back"):
        library.fdgeom_chain_back.restype = number
        library.fdgeom_chain_back.argtypes = [pointer, pointer, pointer, ctypes.c_long]
    if hasattr(library, "fdgeom_chain_bordered"):
        for name in ("stand", "slope"):
            function = getattr(library, f"fdgeom_chain_{name}")
            function.restype, function.argtypes = number, [pointer]
        library.fdgeom_chain_bordered.restype = number
        library.fdgeom_chain_bordered.argtypes = [
            pointer, pointer, pointer, ctypes.c_double, pointer,
        ]  # fmt: skip
    return library


def coupled_in(library) -> np.ndarray:
    """The nonzero entries of the four blocks of a link."""
    which = ctypes.POINTER(ctypes.c_int)()
    number = library.fdgeom_chain_coupled(ctypes.byref(which))
    return np.array(which[:number], dtype=int)
