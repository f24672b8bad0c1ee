"""Forces of supports and joints in a step of the energy-momentum method, as means over the step."""

from collections.abc import Callable

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.classes import Expr, Form

from fdgeom.beams.rod.mean_directors import MeanStep
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.beams.rod.support_forces import Forces
from fdgeom.lie import halves


class MeanForces(Forces):
    """The forces whose impulses are the changes of the momenta in the last step:

    (change of the momenta)/Δt + σ̄·δε̄ - (loads of the middle) + λ·DΦ(mean).
    """

    def __init__(
        self, motion: RodMotion, increment: Function, dt: Constant, belong: Callable[[], bool]
    ) -> None:
        self.belong, self._dt = belong, dt
        separate = all(inertia.separate for inertia in motion.inertias)
        # The step backwards from its end: the method is symmetric, so the means are the same.
        back = MeanStep(motion.configuration, motion.v, -increment, -dt, separate)
        before = back.configuration[1], motion.v - dt * motion.acceleration
        after = motion.orientation, motion.v
        _, shift = halves(increment, "increment")

        def change(test: Expr) -> Expr:
            eta, delta = halves(test, "test")
            work = ufl.as_ufl(0.0)
            for inertia in motion.inertias:
                (m0, n0), (m1, n1) = (inertia.momentum(*at) for at in (before, after))
                work += ufl.dot(m1 - m0, eta) + ufl.dot(n1 - n0, delta)
                if not inertia.separate:
                    # About the node, which moves on.
                    work += 0.5 * ufl.dot(ufl.cross(shift, n0 + n1), eta)
            return work

        def joint_work(test: Expr) -> Form:
            return back.joint_work(motion.constraint, motion.multiplier, test)

        def balance(test: Expr) -> Form:
            nodal = (change(test) + back.external(motion.rod, test)) / dt
            form = motion.cells.at_nodes(nodal) + back.internal(motion.rod, -test / dt)
            return form if motion.constraint is None else form + joint_work(test)

        super().__init__(motion, balance, joint_work)

    def supports(self) -> np.ndarray:
        # Loads that change in time act with their values in the middle.
        time, end = self._motion.time, float(self._motion.time)
        time.assign(end - 0.5 * float(self._dt))
        try:
            return super().supports()
        finally:
            time.assign(end)
