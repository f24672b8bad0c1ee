"""Mechanical systems stated by a Lagrangian of position and velocity."""

from collections.abc import Callable

from firedrake import Form, Function, dx, inner

from fdgeom.systems.constrained.constraint import Constraint
from fdgeom.systems.constrained.lagrangian_mechanics import LagrangianMechanics
from fdgeom.systems.constrained.projection import Projection
from fdgeom.taping import not_taped


class LagrangianSystem(LagrangianMechanics):
    """A system with the Lagrangian L(q, q̇), with or without holonomic constraints g(q) = 0:

        d/dt ∂L/∂q̇ = ∂L/∂q + Dg(q)ᵀλ,   g(q) = 0.

    Parameters
    ----------
    q, velocity : Function
        Configuration and velocity, of one space.
    lagrangian : UFL functional
        L of ``q`` and ``velocity``; any mass matrix ∂²L/∂q̇² that is not singular.
    constraint : callable, optional
        ``constraint(λ)`` gives the form ∫ λ·g(q) dx, linear in λ.
    multiplier : Function, optional
        λ, of a space with one component for each constraint; it has the value of the last step.
    bcs : sequence of DirichletBC, optional
        Homogeneous conditions on the velocity: q is constant there.
    coordinates : Function, optional
        Positions of the nodes in space, for output: ``q`` itself for a chain in space.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.

    Examples
    --------
    A plane double pendulum in its two angles (``v`` their rates):

    >>> system = LagrangianSystem(
    ...     q, v, (v[0]**2 + 0.5*v[1]**2 + v[0]*v[1]*cos(q[0] - q[1])
    ...            + 2*cos(q[0]) + cos(q[1]))*dx)  # doctest: +SKIP
    """

    def __init__(
        self,
        q: Function,
        velocity: Function,
        lagrangian: Form,
        *,
        constraint: Callable | None = None,
        multiplier: Function | None = None,
        bcs=(),
        coordinates: Function | None = None,
    ) -> None:
        if (constraint is None) != (multiplier is None):
            raise ValueError("give constraint and multiplier together, or neither")
        super().__init__(q, velocity, lagrangian, bcs, coordinates)
        if multiplier is not None:
            why = "depends on the velocity, so it is not holonomic"
            self.multiplier = multiplier
            self.constraint = Constraint(q, constraint, multiplier, {velocity: why})

    @not_taped
    def project(self) -> None:
        """Move to the nearest configuration with g(q) = 0, and remove the part of the velocity that
        violates it.

        The configuration moves orthogonally in L², the momentum ∂L/∂q̇ by a multiplier.

        Raises
        ------
        ValueError
            If Newton's iteration does not find such a configuration.
        """
        if self.constraint is None:
            return
        if "projection" not in self._held:
            self._held["projection"] = Projection(
                self.constraint,
                self._v,
                lambda a, b: inner(a, b) * dx,
                momentum=lambda v, w: self.momentum(w, self.q, v),
                velocity=lambda v: v,
                fixed=self.fixed,
            )
        self._held["projection"].apply()
