"""Is the variational derivative δh/δz a pointwise expression of the state?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import ufl
from firedrake import Function, LinearVariationalProblem, LinearVariationalSolver, assemble
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Zero

from fdgeom.forms import MATRIX_COMPILER, parts_of
from fdgeom.solvers.data import Snapshot
from fdgeom.taping import off_the_tape

if TYPE_CHECKING:
    from fdgeom.systems.poisson import PoissonSystem

# Agreement to round-off of sums over cells; a wrong gradient is off by orders of magnitude.
TOLERANCE = 1e-11
_DIRECT = {"ksp_type": "preonly", "pc_type": "lu"}


def variational_derivative(system: PoissonSystem) -> Function:
    """δh/δz at the present state as a function of its space: the solution b of ⟨b, w⟩ = dh(z)[w]."""
    riesz = Function(system.space)
    problem = LinearVariationalProblem(
        system.pairing(system._trial, system._test),
        system.energy_derivative(system._test),
        riesz,
        form_compiler_parameters=MATRIX_COMPILER,
    )
    LinearVariationalSolver(problem, solver_parameters=_DIRECT).solve()
    return riesz


@off_the_tape
def pointwise_gradient(system: PoissonSystem) -> Callable | None:
    """A callable giving δh/δz pointwise, or None if there is none that stands the test.

    The candidate is the derivative of the energy density, which is right where energy and pairing
    are collocated (or where no quadrature matters, as in DG0). It is accepted if, at states near
    the present one, ⟨g, w⟩ = dh(z)[w] and {w, g} = {w, b} to round-off with b the true one.
    """
    candidate = _density_derivative(system)
    if candidate is None:
        return None
    keep = Snapshot(system.parts)
    keep.take()
    try:
        for seed in (1, 2):
            keep.restore()
            _disturb(system.parts, seed)
            if not _holds(system, candidate):
                return None
    finally:
        keep.restore()
    return candidate


def _density_derivative(system: PoissonSystem) -> Callable | None:
    """∂e/∂z of the energy density e, part by part, if the energy is of cell integrals only."""
    slopes = [None] * len(system.parts)
    for integral in system.energy_form().integrals():
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


def _disturb(parts: Sequence[Function], seed: int) -> None:
    """Move a little from the present state, so that a positive quantity stays positive."""
    rng = np.random.default_rng(seed)
    for part in parts:
        values = part.dat.data
        noise = rng.uniform(-0.1, 0.1, values.shape)
        values[...] = values * (1 + noise) + np.where(values == 0, noise, 0)


def _holds(system: PoissonSystem, candidate: Callable) -> bool:
    given = candidate(system.parts if len(system.parts) > 1 else system.parts[0])
    given = parts_of(given, system.shapes, "gradient")
    exact = variational_derivative(system)
    w = system._test
    pairs = (
        (system.pairing(w, given), system.energy_derivative(w)),
        (system.bracket(w, given), system.bracket(w, exact)),
    )
    return all(_agree(assemble(a), assemble(b)) for a, b in pairs)


def _agree(a, b) -> bool:
    with a.dat.vec_ro as x, b.dat.vec_ro as y:
        difference, scale = (x - y).norm(), y.norm()
    return bool(difference <= TOLERANCE * scale)
