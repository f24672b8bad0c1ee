"""Assignments at nodes in compiled code."""

import ctypes
from collections.abc import Mapping
from importlib.resources import files

from firedrake import Function
from pyop2 import compilation
from ufl.core.expr import Expr

from fdgeom.compile.from_tsfc import Kernel
from fdgeom.errors import NoCompiler
from fdgeom.solvers.compiled.expressions import expression_kernel
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.data import Field
from fdgeom.solvers.derived import Dependents

# Fast arithmetic must preserve NaN. Python calls an update once a step at the most.
_FLAGS = ("-fno-finite-math-only", "-fno-math-errno", "-O1")


class _FieldOfFunction(ctypes.Structure):
    """The struct Field of update.hpp."""

    _fields_ = (("p", ctypes.c_void_p), ("count", ctypes.c_long))


class _Context(ctypes.Structure):
    """The struct Context of update.hpp."""

    _fields_ = (("F", ctypes.c_void_p), ("C", ctypes.c_void_p))


class NodalUpdate:
    """Assigns expressions to functions at all nodes, ghosts included; CannotCompile with the reason."""

    # Owners may change coefficients between two calls in any way. Those that are functions of the mesh
    # alone are made anew when its coordinates have changed.
    def __init__(self, assignments: Mapping[Function, Expr]) -> None:
        targets = list(assignments)
        mesh = targets[0].function_space().mesh()
        tables = Tables(mesh)
        kernel = expression_kernel(assignments, "fdgeom_expressions")
        self._library = _load(_text(targets, kernel, tables), mesh.comm)
        fields = [Field(f) for f in tables.functions]
        self._ghosted = fields if mesh.comm.size > 1 else []
        self._written = [fields[tables.field(f)] for f in targets]
        self._dependents = Dependents((*tables.functions, *tables.constants), mesh)
        addresses = [(f.array.ctypes.data, len(f.array)) for f in fields]
        self._kept = (
            (_FieldOfFunction * len(fields))(*addresses),
            (ctypes.c_void_p * max(len(tables.constants), 1))(
                *(c.dat.data_ro.ctypes.data for c in tables.constants)
            ),
            fields,
        )
        self._context = _Context(*map(ctypes.addressof, self._kept[:2]))

    def apply(self) -> None:
        """Do the assignments with the present values."""
        self._dependents.refresh()
        for field in self._ghosted:
            field.update_ghosts()
        self._library.fdgeom_update(ctypes.byref(self._context))
        for field in self._written:
            field.written(ghosts_too=True)


def _text(targets: list[Function], kernel: Kernel, tables: Tables) -> str:
    """The C++ text: loads of the coefficients at a node, the kernel, stores of the targets."""

    def place(f: Function) -> str:
        return f"X->F[{tables.field(f)}]"

    lines, names = [], {}
    for f in dict.fromkeys(kernel.coefficients):
        size = f.function_space().block_size
        names[f] = f"f{tables.field(f)}"
        lines.append(f"T {names[f]}[{size}]; node_load<{size}>({names[f]}, {place(f)}, i);")
    sizes = [t.function_space().block_size for t in targets]
    arguments = ["A", "xy", *(names[f] for f in kernel.coefficients)]
    arguments += [f"X->C[{tables.constant(c)}]" for c in kernel.constants]
    # The nodes of a mesh of one cell: the kernel is that of a form on it.
    lines += [
        f"T A[{sum(sizes)}]; for (int k = 0; k < {sum(sizes)}; ++k) A[k] = 0.0;",
        "const T xy[2] = {0.0, 1.0};",
        f"{kernel.name}<T>({', '.join(arguments)});",
    ]
    start = 0
    for target, size in zip(targets, sizes, strict=True):
        lines.append(f"node_store<{size}>({place(target)}, i, A + {start});")
        start += size
    body = "\n    ".join(lines)
    return f"""{header("simd.hpp")}
{header("update.hpp")}
namespace {{
{kernel.code}
}}
extern "C" void fdgeom_update(const Context *X) {{
  typedef {"vec" if kernel.vectorises else "double"} T;
  const long n = {place(targets[0])}.count;
  for (long i = 0; i < n; i += lanes<T>::count) {{
    {body}
  }}
}}
"""


def header(name: str) -> str:
    """The text of a header file of this package."""
    return files("fdgeom.solvers.compiled").joinpath(name).read_text()


def _load(code: str, comm) -> ctypes.CDLL:
    """Compile C++ text, or find it compiled in PyOP2's cache on disk."""
    try:
        library = compilation.load(code, "cpp", cppargs=_FLAGS, comm=comm)
    except (RuntimeError, OSError, compilation.CompilationError) as error:
        raise NoCompiler(
            "compiled assignments need a working C++ compiler (PETSc's, usually mpicxx), and it failed: "
            "install one"
        ) from error
    library.fdgeom_update.restype, library.fdgeom_update.argtypes = None, [ctypes.c_void_p]
    return library
