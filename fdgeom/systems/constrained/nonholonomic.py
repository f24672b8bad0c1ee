"""Mechanical systems with constraints on their velocities."""

from collections.abc import Callable

from firedrake import Form, Function

from fdgeom.systems.constrained.constraint import VelocityConstraint
from fdgeom.systems.constrained.lagrangian import LagrangianMechanics
from fdgeom.taping import not_taped


class NonholonomicSystem(LagrangianMechanics):
    """A Lagrangian system with constraints that are linear in the velocities (Lagrange–d'Alembert).

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
        self.multiplier = multiplier
        self.constraint = VelocityConstraint(q, velocity, constraint, multiplier)

    def constraint_defect(self) -> float:
        """The same as :meth:`velocity_defect`, since the configuration has no constraint."""
        return self.velocity_defect()

    def velocity_defect(self) -> float:
        """Largest |A(q) q̇|, averaged with each test function of the multiplier's space."""
        return super().velocity_defect()

    @not_taped
    def project(self) -> None:
        """Change the velocity by a reaction, ∂L/∂q̇(v) = ∂L/∂q̇(v⁰) + A(q)ᵀμ, so that A(q) q̇ = 0.

        If L is quadratic in q̇ this is the nearest velocity in the norm of the kinetic energy.

        Raises
        ------
        ValueError
            If there is no such velocity, or the constraints depend on one another.
        """
        self._project((self._v, self._consistent_velocity))
