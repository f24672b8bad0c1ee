"""The discrete-gradient method: energy to round-off, for any energy."""

from __future__ import annotations

import numpy as np

from fdgeom.steppers.substep import MIDPOINT, Rule
from fdgeom.steppers.sweep import Move, Sweep, everything
from fdgeom.words import shown

# Sixteenth order in the step: round-off for any step that Newton can take.
_POINTS_OF_A_GENERAL_ENERGY = 8


class DiscreteGradient(Sweep):
    """Discrete gradient by the averaged vector field: conserves the energy.

    ⟨w, z¹ - z⁰⟩ = Δt {w, h}  with the bracket at (z⁰+z¹)/2 and δh/δz replaced by its mean
    b̄ = ∫₀¹ δh/δz(z⁰ + τ(z¹-z⁰)) dτ, so that h(z¹) - h(z⁰) = ⟨b̄, z¹-z⁰⟩ = Δt {h, h} = 0
    (McLachlan, Quispel & Robidoux 1999; Quispel & McLaren 2008). The integral is taken by Gauss
    points: as many as a polynomial energy needs, or ``points``.

    Parameters
    ----------
    system : PoissonSystem
        What is moved.
    dt : float
        Time step.
    points : int, optional
        Gauss points for an energy that is no polynomial (default 8).
    configuration, solver_parameters, options_prefix
        As for the other methods.

    Notes
    -----
    For a quadratic energy this is the implicit midpoint rule.
    """

    order = 2
    symmetric = True
    conserves = ("energy", "quadratic Casimirs")

    def __init__(self, system, dt, *, points: int | None = None, **options) -> None:
        if points is not None and (not isinstance(points, int) or points < 1):
            raise ValueError(f"points must be a whole number of at least 1, not {shown(points)}")
        self.points = points
        super().__init__(system, dt, **options)

    def parameters(self):
        return super().parameters() | {"points": self.points}

    def moves(self):
        degree = self.system.energy_degree
        if degree is not None and degree <= 2:
            return [Move(everything(self.system), MIDPOINT)]
        if degree is not None:
            self.points = -(-degree // 2)
        elif self.points is None:
            self.points = _POINTS_OF_A_GENERAL_ENERGY
        return [Move(everything(self.system), averaged_vector_field(self.points))]


def averaged_vector_field(points: int) -> Rule:
    """The rule with the gradient averaged over ``points`` Gauss points between old and new."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    nodes, weights = (0.5 + 0.5 * nodes).tolist(), (0.5 * weights).tolist()

    def residual(system, stage, dt):
        old, new = system.parts, stage.state

        def between(tau):
            return tuple(a + tau * (b - a) for a, b in zip(old, new, strict=True))

        if stage.gradient_test is None:
            slopes = [system.gradient(between(tau)) for tau in nodes]
            mean = tuple(
                sum(w * b for w, b in zip(weights, part, strict=True))
                for part in zip(*slopes, strict=True)
            )
            defining = None
        else:
            mean, test = stage.gradient, stage.gradient_test
            defining = system.pairing(test, mean)
            for w, tau in zip(weights, nodes, strict=True):
                defining -= w * system.energy_derivative(test, between(tau))
        change = tuple(b - a for a, b in zip(old, new, strict=True))
        flow = system.bracket(stage.test, mean, at=between(0.5))
        flow += system.forcing(stage.test, mean, dt)
        form = system.pairing(stage.test, change) - dt * flow
        return form if defining is None else form + defining

    return Rule(residual, reach=1.0)
