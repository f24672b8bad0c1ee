"""The generating-function method of order four: the midpoint rule with a corrected energy."""

from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import Constant
from ufl.algorithms import expand_derivatives, replace
from ufl.core.expr import Expr

from fdgeom.execution import FunctionalAssembly
from fdgeom.identities import Identity
from fdgeom.operations import Interpolation
from fdgeom.steppers.runge_kutta import StagesStepper, stages
from fdgeom.systems.poisson.hamiltonian import HamiltonianSystem


class GeneratingFunction4(StagesStepper):
    """Symplectic method of order four from a generating function, in one solve a step.

        z¹ = z⁰ + τ J⁻¹∇H(z̄) - τ³/24 J⁻¹∇((∇H)ᵀ J H_zz J ∇H)(z̄),    z̄ = (z⁰ + z¹)/2,

    scheme (10) of Liu et al., "Symplectic schemes for a special Chaplygin system" (Feng Kang's
    generating functions): the midpoint rule for the energy H + τ²/24 H_zz(X, X), X = J⁻¹∇H. The
    third derivatives of H come from UFL. Conserves every quadratic invariant of the flow that the
    corrected energy shares, such as angular momenta.

    Parameters
    ----------
    system : HamiltonianSystem
        The system to integrate; its energy must be pointwise (DG0 on :func:`copies`, or any space
        with a quadrature at its nodes and no derivatives in space).
    dt : float
        Time step.
    t0, solver_parameters, options_prefix, compiled
        As for every :class:`Stepper`.

    Raises
    ------
    TypeError, ValueError
        If the system is not a :class:`HamiltonianSystem`, or its energy is not pointwise.

    Notes
    -----
    H is differentiated four times (the last for Newton's method). If that is costly,
    ``Composition(ImplicitMidpoint, order=4)`` has the same order.
    """

    moves = HamiltonianSystem
    needs = "a HamiltonianSystem(q, p, energy)"
    order = 4
    symmetric = True
    symplectic = True
    cites = ("LiuLiuChangWangGuo",)

    def flows(self):
        system = self.system
        gradient = system.gradient(system.parts)
        if gradient is None or not _is_in_space(system, gradient).holds:
            raise ValueError(
                "system: GeneratingFunction4 needs an energy whose derivatives δh/δq and δh/δp are "
                "pointwise and in the space of q and p (no derivatives in space, quadrature at the "
                "nodes); use Composition(ImplicitMidpoint, order=4) or GaussLegendre(2) instead"
            )
        unknown, dt = stages(system, 1), Constant(0.0, name="dt")
        (change,), (middle,), (w,) = unknown.changes, unknown.states, unknown.tests
        h_q, h_p = gradient
        c_q, c_p = correction(system, h_q, h_p)
        slope = (h_q + dt**2 / 24 * c_q, h_p + dt**2 / 24 * c_p)
        to_middle = dict(zip(system.parts, middle, strict=True))
        slope = tuple(replace(expand_derivatives(part), to_middle) for part in slope)
        residual = system.pairing(w, change) - 0.5 * dt * system.bracket(w, slope)
        new = [
            {old: old + 2 * half}
            for old, half in zip(system.parts, unknown.nodal_changes[0], strict=True)
        ]
        return [self._solve(unknown, dt, residual, new)]


def _is_in_space(system: HamiltonianSystem, gradient: Sequence[Expr]) -> Identity:
    """Whether δh/δq and δh/δp are equal to their interpolants, in the pairing."""

    # The correction reads δh/δz at points, the midpoint rule its projection to the space.
    def equation(put):
        given = [put(slope) for slope in gradient]
        nodal = [
            Interpolation(g, z.function_space()) for g, z in zip(given, system.parts, strict=True)
        ]
        rest = tuple(g - n.values for g, n in zip(given, nodal, strict=True))
        gap, size = (FunctionalAssembly(system.pairing(v, v)) for v in (rest, tuple(given)))

        def defect() -> float:
            for interpolation in nodal:
                interpolation.apply()
            return float(np.sqrt(gap.assemble() / max(size.assemble(), np.finfo(float).tiny)))

        return defect

    return Identity(system.parts, (system.energy_form(),), equation, values="all")


def correction(system: HamiltonianSystem, h_q: Expr, h_p: Expr) -> tuple[Expr, Expr]:
    """∇c of c(q, p) = H_zz(X, X) with X = (H_p, -H_q), given H_q and H_p."""
    field = (h_p, -h_q)
    turned = [
        sum(ufl.derivative(slope, z, X) for z, X in zip(system.parts, field, strict=True))
        for slope in (h_q, h_p)
    ]
    c = expand_derivatives(sum(ufl.inner(X, Y) for X, Y in zip(field, turned, strict=True)))
    return tuple(expand_derivatives(ufl.diff(c, z)) for z in system.parts)
