"""Hermite–Simpson: fourth order for second-order systems of any kind."""

from fdgeom.steppers.alpha.two_accelerations import TwoAccelerations


class HermiteSimpson(TwoAccelerations):
    """Fourth order for nonlinear, damped and forced second-order systems M v̇ = F(q, v, t).

        q_m = (q⁰ + q¹)/2 - h²/16 (a⁰ + a¹),   v_m = (v⁰ + v¹)/2 - h/8 (a¹ - a⁰),
        q¹ = q⁰ + h v⁰ + h²/6 (a⁰ + 2 a_m),    v¹ = v⁰ + h/6 (a⁰ + 4 a_m + a¹),

    with the true accelerations a at both ends and a_m in the middle, each from the balance of
    forces there: Hermite's interpolation of the end values, Simpson's rule for the integrals. For
    linear undamped systems it is :class:`FourthOrderAlpha` with κ = 0, to round-off. One solve
    gives both a_m and a¹, twice as many unknowns as in :class:`GeneralizedAlpha`.

    Symmetric. An undamped oscillation keeps its amplitude for Ω = ω h ≤ √12 and is unstable above:
    use this method for accuracy in time with steps that resolve the fastest motion of the mesh.

    Parameters
    ----------
    system : SecondOrderSystem
        The system to integrate, without constraint. For given degrees of freedom a_m and a¹ are
        given too.
    dt : float
        Time step h.
    solver_parameters, options_prefix, compiled
        As for every stepper; the default is an LU of both unknowns, reused while the matrix does
        not change.

    Raises
    ------
    TypeError, ValueError
        If the system is not a SecondOrderSystem or has a constraint, or its start determines no
        acceleration.
    """

    order = 4
    symmetric = True

    def _residual(self, h, unknowns, tests):
        system, (a_m, a1), (test_m, test) = self.system, unknowns, tests
        q, v, a, t = system.q, system.v, system.acceleration, system.time
        q1 = q + h * v + h**2 / 6 * (a + 2 * a_m)
        v1 = v + h / 6 * (a + 4 * a_m + a1)
        q_m = (q + q1) / 2 - h**2 / 16 * (a + a1)
        v_m = (v + v1) / 2 - h / 8 * (a1 - a)
        middle = system.balance((q_m,), v_m, a_m, t - h / 2, test_m)
        return middle + system.balance((q1,), v1, a1, t, test)

    def _guess(self, h, q, v, a, algorithmic):
        return a, a

    def _new_state(self, h, q, v, a, algorithmic, a_m, a1):
        return {
            q: q + h * v + h**2 / 6 * (a + 2 * a_m),
            v: v + h / 6 * (a + 4 * a_m + a1),
            a: a1,
            algorithmic: a1,
        }
