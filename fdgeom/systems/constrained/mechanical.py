"""Base class of systems with energies: configuration, velocity, constraint, values at rest."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
import ufl
from firedrake import Function
from ufl.classes import Expr, Form

from fdgeom.compat import given_value
from fdgeom.data import Snapshot
from fdgeom.operations import Prescribed, dofs_of
from fdgeom.operations.dependent import Sources
from fdgeom.systems.boundary_conditions import GivenValues, conditions, described
from fdgeom.systems.system import Model, System


class MechanicalModel(Model):
    """The energies, the constraint and its rate, and the boundary conditions."""

    def parameters(self):
        return described(self._system.bcs)

    def equations(self):
        return self._system.energies() | self._of_constraint()


class MechanicalSystem(System):
    """Base of systems of a configuration q, a momentum or velocity, and perhaps a constraint."""

    multiplier: Function | None = None
    #: Degrees of freedom that stay at rest.
    fixed: tuple[Prescribed, ...] = ()

    def __init__(self, q: Function, coordinates: Function | None = None) -> None:
        self.q = q
        self.space = q.function_space()
        part = self.space.sub(0) if len(self.space) > 1 else self.space
        super().__init__(part.mesh(), coordinates)

    def _hold(self, bcs, momentum: Function) -> None:
        """Set the homogeneous boundary conditions of the momentum or velocity."""
        self.bcs = conditions("bcs", bcs)
        for bc in self.bcs:
            of = bc.function_space()
            if (of if of.component is None else of.parent) != self.space:
                raise ValueError(
                    "bcs: a DirichletBC must be on the space of q (or a component of it)"
                )
        self.fixed = tuple(Prescribed(dofs_of(bc)) for bc in self.bcs)
        self._at_rest, self._given = momentum, GivenValues(self.bcs)
        values = map(given_value, self.bcs)
        self._read = Sources(*(value for value in values if isinstance(value, Expr)))
        self._check_zero()

    def _check_zero(self) -> None:
        """Raise ``ValueError`` if a value of a boundary condition is not zero, or no longer."""
        if self._read.changed():
            self._read.take()
            for bc in self.bcs:
                value = bc.function_arg
                if not (isinstance(value, ufl.classes.Zero) or _is_zero(value, bc)):
                    raise ValueError(
                        "bcs must be zero: they fix the velocity of q, and q keeps its start value there"
                    )

    def _check_at_rest(self, name: str) -> None:
        """Raise ``ValueError`` if the momentum or velocity is not zero where it is held."""
        values = self._at_rest.dat.data_ro_with_halos.reshape(-1)
        if self.comm.allreduce(int(any(np.any(values[e.dofs] != 0) for e in self.fixed))):
            raise ValueError(
                f"{name} must be zero where bcs hold q: set it, or call system.project()"
            )

    def _check_data(self) -> None:
        if self.bcs:
            self._given.check()
            self._check_zero()
        super()._check_data()

    def _nearest(self, pairing: Callable[[Expr, Expr], Form]) -> Callable[..., Form]:
        """The residual of the nearest q with g(q) = 0, for :meth:`_project`."""
        q, constraint = self.q, self.constraint

        def residual(x: Expr, mu: Expr, w: Expr, nu: Expr) -> Form:
            return pairing(x - q, w) - constraint.slope(mu, w, at=x) + constraint.value(nu, at=x)

        return residual

    def _project(self, *moves: tuple[Function, Callable[..., Form]]) -> None:
        """Change Functions one after another, each by a projection of the constraint."""
        if "projections" not in self._held:
            self._held["projections"] = [
                self.constraint.projection(function, residual, self.fixed)
                for function, residual in moves
            ]
        with Snapshot([function for function, _ in moves]).kept():
            for e in self.fixed:
                self._at_rest.dat.data_with_halos.reshape(-1)[e.dofs] = 0.0
            for project in self._held["projections"]:
                project()

    @abstractmethod
    def velocity(self) -> Expr:
        """q̇ at the present state."""

    model = cached_property(MechanicalModel)


def _is_zero(value, bc) -> bool:
    field = value if isinstance(value, Function) else Function(bc.function_space())
    if field is not value:
        field.interpolate(value)
    return not field.comm.allreduce(int(np.any(field.dat.data_ro != 0)))
