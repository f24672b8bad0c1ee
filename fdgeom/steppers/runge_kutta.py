"""The classical Runge–Kutta method, a baseline without structure."""

from firedrake import Constant

from fdgeom.steppers.stages import StagesStepper, defining_gradients, flow, stages


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
