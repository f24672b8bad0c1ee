"""Value and derivatives of a functional that is evaluated after each step."""

from collections.abc import Callable

from firedrake import Form, Function, FunctionSpace
from pyop2 import op2
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr

from fdgeom.forms import simplify, slope_by
from fdgeom.solvers.compiled.problem import is_nodal, nodal_weight, pieces
from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.compiled.terms import terms_of
from fdgeom.solvers.reverse.node_pull import NodePull


class Running:
    """A running functional, split into integrals over cells and terms at boundary nodes."""

    def __init__(self, functional: Form, is_active: Callable[[Function], bool]) -> None:
        functional = simplify(functional)
        integrals = functional.integrals()
        inside = Form([i for i in integrals if i.integral_type() == "cell"])
        others = Form([i for i in integrals if i.integral_type() != "cell"])
        # Every rank that sees a cell has an equal share of it in `cells`; slopes: (f, derivative by f).
        self.cells, self.slopes = None, []
        if not inside.empty():
            self.cells = _shared(inside)
            for f in inside.coefficients():
                if is_active(f) and (slope := slope_by(inside, f)) is not None:
                    self.slopes.append((f, slope))
        works: dict[int, tuple[Function, Expr]] = {}
        for term in terms_of(others):
            found = [p for f in extract_coefficients(term.rest) for p in pieces(f)]
            if not found or not is_nodal(term, found[0]):
                raise CannotCompile(f"this term is neither nodal nor inside the cells: {term}")
            work = nodal_weight(found[0], [term]) * term.rest
            nodes = id(found[0].function_space().node_set)
            if nodes in works:
                work = works[nodes][1] + work
            works[nodes] = found[0], work
        self.nodes = [(f, NodePull(work, is_active)) for f, work in works.values()]


def _shared(functional: Form) -> Form:
    """The functional with each cell divided equally among the ranks that see it."""
    mesh = functional.ufl_domain()
    if mesh.comm.size == 1:
        return functional
    share = Function(FunctionSpace(mesh, "DG", 0), name="share")
    share.dat.data_wo_with_halos[...] = 1.0
    share.dat.local_to_global_begin(op2.INC)
    share.dat.local_to_global_end(op2.INC)
    share.dat.data[...] = 1.0 / share.dat.data_ro
    return Form([i.reconstruct(integrand=share * i.integrand()) for i in functional.integrals()])
