"""Runge–Kutta methods: Gauss–Legendre of the highest order, and the classical one as a baseline."""

from functools import cache
from typing import ClassVar

import numpy as np
from firedrake import Constant

from fdgeom.steppers.stages import StagesStepper, defining_gradients, flow, stages
from fdgeom.steppers.stepper import Stepper
from fdgeom.validation import choice

_STAGES = (1, 2, 3, 4)


def tableau(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix A, weights b and nodes c of the Gauss–Legendre method with ``number`` stages."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    c, b = 0.5 + 0.5 * nodes, 0.5 * weights
    # Collocation: Σ_j a_ij c_j^k = c_i^(k+1)/(k+1).
    k = np.arange(number)
    powers = c[:, None] ** k
    A = np.linalg.solve(powers.T, (c[:, None] ** (k + 1) / (k + 1)).T).T
    return A, b, c


def GaussLegendre(stages: int = 2) -> type[Stepper]:
    """The stepper class of the Gauss–Legendre method with a number of stages.

        Z_i = z⁰ + Δt Σ_j a_ij f(Z_j),    z¹ = z⁰ + Δt Σ_i b_i f(Z_i),    ⟨w, f(Z)⟩ = {w, h}(Z),

    of order 2s with s stages (Hairer, Lubich & Wanner, Geometric Numerical Integration, sections
    II.1.3, IV.2, VI.4). Symplectic for constant brackets; conserves every quadratic invariant. One
    solve gives all stages, coupled node by node if the energy is pointwise.

    Parameters
    ----------
    stages : {1, 2, 3, 4}
        Number of stages; one is the implicit midpoint rule.

    Returns
    -------
    type
        A stepper class, to be called with ``(system, dt, ...)`` like any other, for any
        :class:`PoissonSystem` without a configuration beside its state.

    Raises
    ------
    ValueError
        If there is no such method.

    Examples
    --------
    >>> stepper = GaussLegendre(stages=3)(system, dt=0.1)  # doctest: +SKIP
    """
    return _class_of(choice("stages", stages, _STAGES))


@cache
def _class_of(stages: int) -> type[Stepper]:
    traits = {
        "__doc__": f"Gauss–Legendre method of {stages} stages; see :func:`GaussLegendre`.",
        "__module__": __name__,
        "order": 2 * stages,
        "_stages": stages,
    }
    return type(f"GaussLegendre{stages}", (_Gauss,), traits)


class _Gauss(StagesStepper):
    """A Gauss–Legendre method."""

    symmetric = True
    symplectic = True
    conserves = ("quadratic energy", "quadratic Casimirs")
    cites = ("HairerLubichWanner2006",)
    _stages: ClassVar[int]

    def flows(self):
        system = self.system
        A, b, _ = tableau(self._stages)
        inverse = np.linalg.inv(A)
        unknown, dt = stages(system, self._stages), Constant(0.0, name="dt")
        residual = defining_gradients(system, unknown, unknown.states)
        # Σ_j (A⁻¹)_ij (Z_j - z⁰) = Δt f(Z_i): each f only once.
        for i, w in enumerate(unknown.tests):
            mean = _combination(inverse[i], unknown.changes)
            b_i = None if unknown.gradients is None else unknown.gradients[i]
            motion = flow(system, w, unknown.states[i], b_i)
            residual += system.pairing(w, mean, at=unknown.states[i]) - dt * motion
        # z¹ = z⁰ + Σ_i (bᵀA⁻¹)_i (Z_i - z⁰)
        moved = _combination(b @ inverse, unknown.nodal_changes)
        new = [{part: part + change} for part, change in zip(system.parts, moved, strict=True)]
        return [self._solve(unknown, dt, residual, new)]


def _combination(weights, changes):
    """Σ_i w_i z_i, part by part."""
    parts = zip(*changes, strict=True)
    return tuple(sum(float(w) * z for w, z in zip(weights, part, strict=True)) for part in parts)


class RungeKutta4(StagesStepper):
    """The classical Runge–Kutta method of order four: an explicit baseline for comparison.

        Z₂ = z⁰ + Δt/2 f(z⁰),   Z₃ = z⁰ + Δt/2 f(Z₂),   Z₄ = z⁰ + Δt f(Z₃),
        z¹ = z⁰ + Δt/6 (f(z⁰) + 2f(Z₂) + 2f(Z₃) + f(Z₄)),        ⟨w, f(Z)⟩ = {w, h}(Z).

    It preserves no structure: it is not symplectic, and the energy drifts with time. Only linear
    invariants are conserved. Stability limits the step, Δt ω < 2.8.

    Parameters
    ----------
    system : PoissonSystem
        The system to integrate, without a configuration beside its state.
    dt : float
        Time step.
    solver_parameters, options_prefix, compiled
        As for every :class:`Stepper`. Each stage is a solve with the matrix of the pairing.
    """

    order = 4

    def flows(self):
        system = self.system
        sequence, changes, at = [], [], system.parts
        for fraction in (1 / 2, 1 / 2, 1.0, 1 / 6):
            unknown, dt = stages(system, 1), Constant(0.0, name="dt")
            (change,), (w,) = unknown.changes, unknown.tests
            b = None if unknown.gradients is None else unknown.gradients[0]
            residual = system.pairing(w, change, at=at) - dt * flow(system, w, at, b)
            residual += defining_gradients(system, unknown, [at])
            changes += unknown.nodal_changes
            new = _sums(system.parts, changes) if len(changes) == 4 else []
            sequence.append(self._solve(unknown, dt, residual, new).scaled(fraction))
            (at,) = unknown.nodal_states
        return sequence


def _sums(parts, changes) -> list[dict]:
    """The new parts, from the changes Δt/2 f(z⁰), Δt/2 f(Z₂), Δt f(Z₃) and Δt/6 f(Z₄)."""
    return [
        {z: z + (c2 + 2 * c3 + c4) / 3 + last}
        for z, c2, c3, c4, last in zip(parts, *changes, strict=True)
    ]
