"""Assignments at nodes in compiled code, on the arrays of Firedrake's Functions."""

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np
import ufl
from firedrake import Constant, Function
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import expand_derivatives, extract_arguments, extract_coefficients
from ufl.core.expr import Expr

from fdgeom.compile.build import NodalValues, array_of, header, load
from fdgeom.compile.emit import statements
from fdgeom.compile.from_ufl import Scalars
from fdgeom.compile.program import ScalarProgram
from fdgeom.data import Field
from fdgeom.errors import CannotCompile
from fdgeom.forms import has_nodal_values, is_real
from fdgeom.operations.dependent import DependentInputs

# Python calls an update once a step at the most.
_LEVEL = "-O1"


class NodalUpdate:
    """Assigns expressions to functions at all nodes, ghosts included; CannotCompile with the reason."""

    # Owners may change coefficients between two calls in any way. Those that are functions of the mesh
    # alone are made anew when its coordinates have changed.
    def __init__(self, assignments: Mapping[Function, Expr]) -> None:
        expressions = {t: ufl.as_ufl(e) for t, e in assignments.items()}
        functions, numbers = _values_in(expressions)
        mesh = next(iter(expressions)).function_space().mesh()
        text = _text(expressions, functions, numbers)
        self._library = load(
            text, mesh.comm, {"fdgeom_update": (None, [ctypes.c_void_p, ctypes.c_void_p])},
            level=_LEVEL, work="compiled assignments",
        )  # fmt: skip
        fields = [Field(f) for f in functions]
        self._ghosted = fields if mesh.comm.size > 1 else []
        self._written = fields[: len(expressions)]
        self._dependents = DependentInputs((*functions, *numbers), mesh)
        arrays = [Field(c).array if isinstance(c, Function) else c.dat.data_ro for c in numbers]
        self._kept = fields, arrays
        self._values = array_of(
            NodalValues, [NodalValues(f.array.ctypes.data, len(f.array)) for f in fields]
        )
        self._numbers = array_of(ctypes.c_void_p, [array.ctypes.data for array in arrays])

    def apply(self) -> None:
        """Do the assignments with the present values."""
        self._dependents.refresh()
        for field in self._ghosted:
            field.update_ghosts()
        self._library.fdgeom_update(self._values, self._numbers)
        for field in self._written:
            field.written(ghosts_too=True)


def _values_in(
    expressions: Mapping[Function, Expr],
) -> tuple[list[Function], list[Constant | Function]]:
    """The Functions with values at the nodes, targets first, and the numbers."""
    if not expressions:
        raise ValueError("assignments must not be empty")
    first = next(iter(expressions))
    nodes = first.function_space().node_set
    read: dict[Function, None] = dict.fromkeys(expressions)
    numbers: list[Constant | Function] = []
    for target, expression in expressions.items():
        name = target.name()
        if expression.ufl_shape != target.ufl_shape:
            raise ValueError(
                f"the expression for {name} has shape {expression.ufl_shape}, not {target.ufl_shape}"
            )
        if extract_arguments(expression):
            raise ValueError(f"the expression for {name} holds a test or trial function")
        read.update(dict.fromkeys(extract_coefficients(expression)))
        numbers += extract_firedrake_constants(expression)
    functions = [f for f in read if f in expressions or not is_real(f)]
    for f in functions:
        if not has_nodal_values(f.function_space()):
            raise CannotCompile(f"the degrees of freedom of {f.name()} are not values at nodes")
        if f.function_space().node_set is not nodes:
            raise ValueError(
                f"{f.name()} has other nodes than {first.name()}: interpolate it first"
            )
    numbers += [f for f in read if f not in functions]
    return functions, list({id(c): c for c in numbers}.values())


def _text(
    expressions: Mapping[Function, Expr],
    functions: Sequence[Function],
    numbers: Sequence[Constant | Function],
) -> str:
    """The C++ text: loads of the values at some nodes, the expressions, stores of the targets."""
    program, places = ScalarProgram(), {id(c): k for k, c in enumerate(numbers)}

    def terminal(e, derivatives: int) -> np.ndarray:
        if derivatives or not isinstance(e, Constant | Function):
            raise CannotCompile(f"{type(e).__name__} at single nodes")
        key = ("N", places[id(e)]) if id(e) in places else ("F", functions.index(e))
        size = int(np.prod(e.ufl_shape, dtype=int))
        inputs = [program.input((*key, k)) for k in range(size)]
        return np.array(inputs, dtype=object).reshape(e.ufl_shape)

    read: set[int] = set()

    def loaded(key: Sequence) -> str:
        kind, number, component = key
        if kind == "N":
            return f"lanes(N[{number}][{component}])"
        read.add(number)
        return f"f{number}[{component}]"

    scalars, outputs, stores = Scalars(program, terminal), [], []
    for k, expression in enumerate(expressions.values()):
        found = scalars(expand_derivatives(expression)).reshape(-1)
        outputs += [(f"o{k}[{i}]", node) for i, node in enumerate(found)]
        stores.append(f"store_nodes<{len(found)}>(F[{k}], i, o{k});")
    lines = statements(program, outputs, loaded)
    size = [f.function_space().block_size for f in functions]
    loads = [f"raw f{k}[{size[k]}]; load_nodes<{size[k]}>(f{k}, F[{k}], i);" for k in sorted(read)]
    results = [f"raw o{k}[{size[k]}];" for k in range(len(expressions))]
    body = "\n    ".join([*loads, *results, *lines, *stores])
    return f"""{header("lanes.hpp")}
{header("sine.hpp")}
{header("update.hpp")}
extern "C" void fdgeom_update(const NodalValues *F, const double *const *N) {{
  for (long i = 0; i < F[0].count; i += W) {{
    {body}
  }}
}}
"""
