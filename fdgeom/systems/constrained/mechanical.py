"""Base class of systems with energies: configuration, velocity, constraint."""

from abc import abstractmethod

from firedrake import Function
from ufl.classes import Expr, Form

from fdgeom.systems.conjugates import described
from fdgeom.systems.constrained.fixed_values import FixedValues
from fdgeom.systems.system import System


class MechanicalSystem(System):
    """Base of systems of a configuration q, a momentum or velocity, and perhaps a constraint."""

    multiplier: Function | None = None
    #: Degrees of freedom that stay at rest.
    fixed: tuple = ()

    def __init__(self, q: Function, coordinates: Function | None = None) -> None:
        self.q = q
        self.space = q.function_space()
        part = self.space.sub(0) if len(self.space) > 1 else self.space
        super().__init__(part.mesh(), coordinates)

    def _hold(self, bcs, momentum: Function) -> None:
        """Set the homogeneous boundary conditions of the momentum or velocity."""
        self._at_rest = FixedValues(bcs, self.space, momentum)
        self.fixed = self._at_rest.dofs

    def prepare(self) -> None:
        super().prepare()
        self._at_rest.check()

    @abstractmethod
    def velocity(self) -> Expr:
        """q̇ at the present state."""

    def parameters(self):
        return described(self._at_rest.bcs)

    def equations(self) -> dict[str, Form]:
        """The energies, the constraint and its rate."""
        return self.energies() | self._condition()

    def all_forms(self) -> tuple[Form | Expr, ...]:
        return tuple(self.equations().values())

    def _condition(self) -> dict[str, Form]:
        """The constraint and its rate, if there is one."""
        constraint = self.constraint
        if constraint is None:
            return {}
        found = {"constraint": constraint.slope(constraint.test, self.velocity())}
        return found | {f"condition {k}": form for k, form in enumerate(constraint.forms())}
