"""Kernels that evaluate expressions of nodal values at one node."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import ufl
from firedrake import Function, TestFunction, dx, inner
from ufl.algorithms import extract_arguments, extract_coefficients
from ufl.algorithms import replace as put
from ufl.constantvalue import Zero
from ufl.core.expr import Expr

from fdgeom.compile.from_tsfc import Kernel, cell_kernels
from fdgeom.errors import CannotCompile
from fdgeom.forms import has_nodal_values
from fdgeom.solvers.one_node import one_node_mesh, one_node_space


def expression_kernel(assignments: Mapping[Function, Expr], name: str) -> Kernel:
    """The kernel that evaluates all expressions at one node, one after another in its output."""
    targets = list(assignments)
    expressions = [ufl.as_ufl(assignments[t]) for t in targets]
    coefficients = _check(targets, expressions)
    stand_ins = {f: Function(one_node_space(f.ufl_shape)) for f in coefficients}
    originals = {there: here for here, there in stand_ins.items()}
    flat = [
        e[i] if i else e
        for e in (put(x, stand_ins) for x in expressions)
        for i in np.ndindex(e.ufl_shape)
    ]
    if all(isinstance(e, Zero) for e in flat):
        # UFL makes no form of zeros, and the output is zero before the kernel adds to it.
        nothing = f"template <class T> static void {name}(T *, const T *) {{}}"
        return Kernel(name, nothing, (), (), vectorises=True)
    test = TestFunction(one_node_space((len(flat),)))
    form = inner(ufl.as_vector(flat), test) * dx(degree=0, domain=one_node_mesh())
    kernel = cell_kernels(form, name)[0]
    return replace(kernel, coefficients=tuple(originals[c] for c in kernel.coefficients))


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
        if not has_nodal_values(f.function_space()):
            raise CannotCompile(f"the degrees of freedom of {f.name()} are not values at nodes")
        if f.function_space().node_set is not nodes:
            raise ValueError(
                f"{f.name()} has other nodes than {targets[0].name()}: interpolate it first"
            )
    return list(coefficients)
