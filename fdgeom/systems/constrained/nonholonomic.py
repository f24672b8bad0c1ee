"""Mechanical systems with constraints on their velocities."""

from collections.abc import Callable

from firedrake import Form, Function, TestFunctions, split

from fdgeom.forms import copy_into, simplify
from fdgeom.solvers import SaddleSNES, SolveFailed
from fdgeom.systems.constrained.constraint import VelocityConstraint
from fdgeom.systems.constrained.lagrangian import LagrangianMechanics
from fdgeom.taping import not_taped


class NonholonomicSystem(LagrangianMechanics):
    """A Lagrangian system with constraints that are linear in the velocities (Lagrange–d'Alembert):

        d/dt ∂L/∂q̇ - ∂L/∂q = A(q)ᵀλ,   A(q) q̇ = 0.

    Parameters
    ----------
    q, velocity : Function
        Configuration and velocity, of one space: DG0 on :func:`copies` for many small systems, CG
        for a field theory.
    lagrangian : UFL functional
        L of ``q`` and ``velocity``, without constraints; any mass matrix ∂²L/∂q̇² that is not
        singular.
    constraint : callable
        ``constraint(λ, v)`` gives the form ∫ λ·A(q)v dx, linear in both of its arguments; it may
        use the function q. Several constraints are the components of a vector λ.
    multiplier : Function
        λ, of a space with one component for each constraint: the reaction.
    bcs : sequence of DirichletBC, optional
        Homogeneous conditions on the velocity: q is constant there.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described. A stepper checks that the start satisfies the
        constraints, and that they are independent there.

    Examples
    --------
    A particle with ż = yẋ:

    >>> system = NonholonomicSystem(
    ...     q, v, lagrangian=0.5*dot(v, v)*dx,
    ...     constraint=lambda mult, v: mult*(v[2] - q[1]*v[0])*dx, multiplier=mult)  # doctest: +SKIP
    """

    def __init__(
        self,
        q: Function,
        velocity: Function,
        lagrangian: Form,
        constraint: Callable,
        multiplier: Function,
        *,
        bcs=(),
    ) -> None:
        super().__init__(q, velocity, lagrangian, bcs)
        if len(self.space) > 1:
            raise ValueError("q must not be of a mixed space: take one vector-valued space")
        self.multiplier = multiplier
        self.constraint = VelocityConstraint(q, velocity, constraint, multiplier)

    def constraint_defect(self) -> float:
        """The same as :meth:`velocity_defect`, since the configuration has no constraint."""
        return self.velocity_defect()

    def velocity_defect(self) -> float:
        """Largest \\|A(q) q̇\\|, averaged with each test function of the multiplier's space."""
        return self.constraint.rate(self._v)

    @not_taped
    def project(self) -> None:
        """Change the velocity by a reaction, ∂L/∂q̇(v) = ∂L/∂q̇(v⁰) + A(q)ᵀμ, so that A(q) q̇ = 0.

        If L is quadratic in q̇ this is the nearest velocity in the norm of the kinetic energy.

        Raises
        ------
        ValueError
            If there is no such velocity, or the constraints depend on one another.
        """
        for e in self.fixed:
            self._v.dat.data_wo_with_halos.reshape(-1)[e.dofs] = 0.0
        if "projection" not in self._held:
            self._held["projection"] = self._make_projection()
        solver = self._held["projection"]
        velocity, reaction = solver.unknown.subfunctions
        copy_into(velocity, self._v)
        reaction.dat.data_wo_with_halos[...] = 0.0
        try:
            solver.solve()
        except SolveFailed as failure:
            raise ValueError(
                f"project: no velocity on the constraints was found: {failure}. Check that they "
                "are independent"
            ) from failure
        copy_into(self._v, velocity)

    def _make_projection(self) -> SaddleSNES:
        space = self.space * self.constraint.space
        unknown, (w, test) = Function(space, name="projected"), TestFunctions(space)
        x, reaction = split(unknown)
        residual = simplify(
            self.momentum(w, v=x)
            - self.momentum(w)
            - self.constraint.slope(reaction, w)
            + self.constraint.slope(test, x)
        )
        return SaddleSNES(residual, unknown, essential=self.fixed, name="the projection")
