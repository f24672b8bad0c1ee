"""Is the variational derivative δh/δz a pointwise expression of the state?"""

from collections.abc import Callable, Sequence

import numpy as np
import ufl
from firedrake import Function, LinearVariationalProblem, LinearVariationalSolver
from firedrake.assemble import get_assembler
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Form, Zero

from fdgeom.forms import MATRIX_COMPILER, parts_of
from fdgeom.solvers import Snapshot
from fdgeom.systems.poisson.poisson_forms import PoissonForms
from fdgeom.taping import off_the_tape

# Agreement to round-off of sums over cells; a wrong gradient is off by orders of magnitude.
TOLERANCE = 1e-11
_DIRECT = {"ksp_type": "preonly", "pc_type": "lu"}


def variational_derivative(system: PoissonForms) -> Function:
    """δh/δz at the present state as a function of its space: the solution b of ⟨b, w⟩ = dh(z)[w]."""
    return _Riesz(system).solve()


def pointwise_gradient(system: PoissonForms) -> Callable | None:
    """A callable giving δh/δz pointwise, or None if there is none that stands the test.

    The candidate is the derivative of the energy density, which is right where energy and pairing
    are collocated (or where no quadrature matters, as in DG0). It is accepted if, at states near
    the present one, ⟨g, w⟩ = dh(z)[w] and {w, g} = {w, b} to round-off with b the true one.
    """
    candidate = _density_derivative(system)
    if candidate is None or not defect(system, candidate) <= TOLERANCE:
        return None
    return candidate


def check_gradient(system: PoissonForms, given: Callable) -> None:
    """Raise ``ValueError`` if a callable does not stand the same test."""
    found = defect(system, given)
    if not found <= TOLERANCE:
        raise ValueError(
            "gradient: it is not the δh/δz of the energy and the pairing: at states near the present "
            f"one ⟨gradient, w⟩ - dh(z)[w], or the bracket with it, is off by {found:.2g} of its "
            "size. Leave it out: fdgeom then finds δh/δz itself"
        )


@off_the_tape
def defect(system: PoissonForms, candidate: Callable) -> float:
    """How far a candidate for δh/δz is off at states near the present one, relative to the true one."""
    given = candidate(system.parts if len(system.parts) > 1 else system.parts[0])
    given = parts_of(given, system.shapes, "gradient")
    riesz, w = _Riesz(system), system.test
    exact = riesz.solution
    pairs = [
        (get_assembler(one), get_assembler(other))
        for one, other in (
            (system.pairing(w, given), system.energy_derivative(w)),
            (system.bracket(w, given), system.bracket(w, exact)),
        )
    ]
    keep, worst = Snapshot(system.parts), 0.0
    keep.take()
    try:
        for seed in (1, 2):
            # Nearer to the present state, where the energy is not defined so far from it.
            for amplitude in (0.1, 1e-3, 0.0):
                keep.restore()
                _disturb(system.parts, seed, amplitude)
                riesz.solve()
                if _norm(exact) < np.inf:
                    break
            for one, other in pairs:
                worst = max(worst, _difference(one.assemble(), other.assemble()))
    finally:
        keep.restore()
        system.update_auxiliary()
    return worst


def riesz(system: PoissonForms, form: Form, target: Function) -> LinearVariationalSolver:
    """What solves ⟨target, w⟩ = form(w)."""
    problem = LinearVariationalProblem(
        system.pairing(system.trial, system.test),
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


def _disturb(parts: Sequence[Function], seed: int, amplitude: float) -> None:
    """Move a little from the present state, so that a positive quantity stays positive."""
    rng = np.random.default_rng(seed)
    for part in parts:
        values = part.dat.data
        noise = amplitude * rng.uniform(-1, 1, values.shape)
        values[...] = values * (1 + noise) + np.where(values == 0, noise, 0)


def _norm(b) -> float:
    with b.dat.vec_ro as x:
        size = x.norm()
    return size if np.isfinite(size) else np.inf


def _difference(a, b) -> float:
    """The norm of a - b relative to that of b; infinite where one is not finite."""
    with a.dat.vec_ro as x, b.dat.vec_ro as y:
        difference, scale = (x - y).norm(), y.norm()
    if not np.isfinite(difference) or not np.isfinite(scale):
        return np.inf
    if not difference:
        return 0.0
    return difference / scale if scale else np.inf
