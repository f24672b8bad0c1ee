"""Updates that act at each node by itself, compiled from their UFL expressions."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

import loopy
import numpy as np
import ufl
from firedrake import (
    COMM_SELF,
    Function,
    TensorFunctionSpace,
    TestFunction,
    UnitIntervalMesh,
    VectorFunctionSpace,
    dx,
    inner,
)
from firedrake import FunctionSpace as ScalarSpace
from firedrake.tsfc_interface import compile_form
from pyop2 import compilation
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import extract_arguments, extract_coefficients, replace
from ufl.core.expr import Expr

from fdgeom.solvers.data import Field

_LOOP = """
{kernel}
void update(int n, double *const *out, const double *const *w, const double *const *c)
{{
  const double coords[2] = {{0.0, 1.0}};
  for (int i = 0; i < n; ++i) {{
    double A[{size}] = {{0.0}};
    {name}(A, coords{arguments});
{stores}
  }}
}}
"""


class PointwiseUpdate:
    """Assign expressions to functions, node by node, all at once.

    Parameters
    ----------
    assignments : dict of Function to UFL expression
        Targets and what they get. All functions, on both sides, must have the same nodes (a target
        may occur in the expressions: the old value is meant); no derivatives in space. Firedrake
        Constants may be changed between two calls.

    Raises
    ------
    ValueError
        If an expression has the wrong shape, an argument, or functions with other nodes.

    Notes
    -----
    The expressions are compiled once (TSFC's kernel for one node in a loop over all nodes, ghosts
    included), so :meth:`apply` costs microseconds and nothing needs to be communicated after it.
    """

    def __init__(self, assignments: Mapping[Function, Expr]) -> None:
        targets = list(assignments)
        expressions = [ufl.as_ufl(assignments[t]) for t in targets]
        coefficients = _check(targets, expressions)
        form, placeholders = _one_cell_form(targets, expressions, coefficients)
        (kernel,) = compile_form(form, "pointwise")
        info = kernel.kinfo
        used = [form.coefficients()[k] for k, _ in info.coefficient_numbers]
        original = {p: f for f, p in placeholders.items()}
        constants = extract_firedrake_constants(form)

        self._out = [Field(t) for t in targets]
        self._in = [Field(original[p]) for p in used]
        self._constants = [constants[k] for k in info.constant_numbers]
        self._nodes = targets[0].function_space().node_set.total_size
        code = _code(info.kernel, self._out, self._in, len(self._constants))
        library = compilation.load(code, "c", comm=targets[0].function_space().comm)
        self._function = library.update
        self._function.argtypes = [ctypes.c_int] + [ctypes.c_void_p] * 3
        self._function.restype = None
        self._pointers = [
            _pointers([f.array for f in self._out]),
            _pointers([f.array for f in self._in]),
            _pointers([c.dat._data for c in self._constants]),
        ]

    def apply(self) -> None:
        """Do the assignments."""
        for field in self._in:
            field.update_ghosts()
        self._function(self._nodes, *(p.ctypes.data for p in self._pointers))
        for field in self._out:
            field.written(ghosts_too=True)


def _check(targets, expressions) -> list[Function]:
    if not targets:
        raise ValueError("assignments must not be empty")
    nodes = targets[0].function_space().node_set
    coefficients = {}
    for target, expression in zip(targets, expressions, strict=True):
        name = target.name()
        if expression.ufl_shape != target.ufl_shape:
            raise ValueError(
                f"the expression for {name} has shape {expression.ufl_shape}, not {target.ufl_shape}"
            )
        if extract_arguments(expression):
            raise ValueError(f"the expression for {name} holds a test or trial function")
        coefficients.update(dict.fromkeys(extract_coefficients(expression)))
    for f in (*targets, *coefficients):
        if f.function_space().node_set is not nodes:
            raise ValueError(
                f"{f.name()} has other nodes than {targets[0].name()}: interpolate it first"
            )
    return list(coefficients)


@cache
def _cell():
    """A mesh of one cell, on which DG0 values stand for the values at one node."""
    return UnitIntervalMesh(1, comm=COMM_SELF)


def _one_node_space(shape: tuple[int, ...]):
    if shape == ():
        return ScalarSpace(_cell(), "DG", 0)
    if len(shape) == 1:
        return VectorFunctionSpace(_cell(), "DG", 0, dim=shape[0])
    return TensorFunctionSpace(_cell(), "DG", 0, shape=shape)


def _one_cell_form(targets, expressions, coefficients):
    """The expressions, all in one vector, at one node: ∫ over a cell of length one."""
    placeholders = {f: Function(_one_node_space(f.ufl_shape)) for f in coefficients}
    flat = [
        e[i] if i else e
        for e in (replace(x, placeholders) for x in expressions)
        for i in np.ndindex(e.ufl_shape)
    ]
    test = TestFunction(_one_node_space((len(flat),)))
    return inner(ufl.as_vector(flat), test) * dx(degree=0, domain=_cell()), placeholders


def _code(kernel, targets, sources, constants: int) -> str:
    """C of the loop over nodes round TSFC's kernel."""
    arguments = "".join(f", w[{k}] + {f.block} * i" for k, f in enumerate(sources))
    arguments += "".join(f", c[{k}]" for k in range(constants))
    stores, start = [], 0
    for k, f in enumerate(targets):
        stores.append(
            f"    for (int j = 0; j < {f.block}; ++j) out[{k}][{f.block} * i + j] = A[{start} + j];"
        )
        start += f.block
    text = (
        loopy.generate_code_v2(kernel.code)
        .device_code()
        .replace(f"void {kernel.name}", f"static void {kernel.name}")
    )
    return _LOOP.format(
        kernel=text, name=kernel.name, size=start, arguments=arguments, stores="\n".join(stores)
    )


def _pointers(arrays) -> np.ndarray:
    return np.array([a.ctypes.data for a in arrays] or [0], dtype=np.uintp)
