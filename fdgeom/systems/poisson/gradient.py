"""The variational derivative δh/δz as a pointwise expression of the state, where that is exact."""

from collections.abc import Callable, Sequence

import numpy as np
import ufl
from firedrake import ConvergenceError, Function, LinearVariationalProblem, LinearVariationalSolver
from firedrake.assemble import get_assembler
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Form, Zero

from fdgeom.forms import MATRIX_COMPILER, check_arguments, parts_of
from fdgeom.identities import Identity, difference
from fdgeom.messages import reported_as
from fdgeom.systems.poisson.poisson_forms import PoissonForms

_DIRECT = {"ksp_type": "preonly", "pc_type": "lu"}


def variational_derivative(system: PoissonForms) -> Function:
    """δh/δz at the present state as a function of its space: the solution b of ⟨b, w⟩ = dh(z)[w]."""
    return _Riesz(system).solve()


def pointwise_gradient(system: PoissonForms) -> Callable | None:
    """A callable that gives δh/δz pointwise, the derivative of the energy density, or None if that
    fails ⟨g, w⟩ = dh(z)[w] or {w, g} = {w, b} with the true b for some state or coefficients.
    """
    # It is exact where energy and pairing are collocated, or for any quadrature in DG0.
    candidate = _density_derivative(system)
    if candidate is None or not is_gradient(system, candidate, values="all").holds:
        return None
    return candidate


def check_gradient(system: PoissonForms, given: Callable) -> Identity:
    """Raise ``ValueError`` if a callable fails the test of a gradient; otherwise return the test."""
    symbols = tuple(Function(part.function_space()) for part in system.parts)
    with reported_as("gradient: it gives no UFL expression of the state"):
        found = parts_of(_at(given, symbols), system.shapes, "gradient")
    check_arguments("gradient", found, system.state, *system.parts)
    test = is_gradient(system, given)
    if test.fails:
        raise ValueError(
            "gradient: it is not the δh/δz of the energy and the pairing: at states near the present "
            f"one ⟨gradient, w⟩ - dh(z)[w], or the bracket with it, is off by {test.defect:.2g} of "
            "its size. Leave it out: fdgeom then finds δh/δz itself"
        )
    return test


def is_gradient(system: PoissonForms, candidate: Callable, values: str = "either") -> Identity:
    """Whether a candidate is δh/δz."""
    given = parts_of(_at(candidate, system.parts), system.shapes, "gradient")
    w, slope = system.test, system.energy_derivative(system.test)
    own = system.pairing(w, given), system.bracket(w, given)

    def equation(put):
        exact = Function(system.space)
        solver = riesz(system, put(slope), exact, put(system.pairing(system.trial, w)))
        true = put(slope), put(system.bracket(w, exact))
        pairs = [
            (get_assembler(put(one)), get_assembler(other))
            for one, other in zip(own, true, strict=True)
        ]

        def defect() -> float:
            exact.assign(0.0)  # what was not defined elsewhere would stay so
            try:
                solver.solve()
            except ConvergenceError:
                return np.nan  # a pairing that is not defined there
            found = [difference(one.assemble(), other.assemble()) for one, other in pairs]
            return float(np.max(found))  # NaN if one of them is

        return defect

    return Identity(system.parts, (*own, slope), equation, values=values)


def _at(gradient: Callable, parts: Sequence):
    return gradient(tuple(parts) if len(parts) > 1 else parts[0])


def riesz(
    system: PoissonForms, form: Form, target: Function, pairing: Form | None = None
) -> LinearVariationalSolver:
    """The solver of ⟨target, w⟩ = form(w)."""
    problem = LinearVariationalProblem(
        pairing or system.pairing(system.trial, system.test),
        form,
        target,
        form_compiler_parameters=MATRIX_COMPILER,
    )
    return LinearVariationalSolver(problem, solver_parameters=_DIRECT)


class _Riesz:
    """The solve of ⟨b, w⟩ = dh(z)[w] for b."""

    def __init__(self, system: PoissonForms) -> None:
        self._system, self.solution = system, Function(system.space)
        self._solver = riesz(system, system.energy_derivative(system.test), self.solution)

    def solve(self) -> Function:
        self._system.update_auxiliary()
        self._solver.solve()
        return self.solution


def _density_derivative(system: PoissonForms) -> Callable | None:
    """∂e/∂z of the energy density e, part by part, if the energy is of cell integrals only."""
    slopes = [None] * len(system.parts)
    for integral in system.lagrangian_form().integrals():
        for k, part in enumerate(system.parts):
            slope = expand_derivatives(ufl.diff(integral.integrand(), part))
            if isinstance(slope, Zero):
                continue
            if integral.integral_type() != "cell":
                return None
            slopes[k] = slope if slopes[k] is None else slopes[k] + slope
    found = tuple(
        (ufl.zero(*s) if s else ufl.as_ufl(0.0)) if slope is None else slope
        for s, slope in zip(system.shapes, slopes, strict=True)
    )

    def gradient(state):
        state = state if isinstance(state, tuple) else (state,)
        mapping = dict(zip(system.parts, state, strict=True))
        plain = tuple(replace(expr, mapping) for expr in found)
        return plain if len(plain) > 1 else plain[0]

    return gradient
