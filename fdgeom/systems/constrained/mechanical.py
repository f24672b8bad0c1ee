"""Base class of systems with energies: configuration, velocity, constraint, values at rest."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import Function
from ufl.classes import Expr, Form

from fdgeom.compat import given_value
from fdgeom.operations import EssentialValues, dofs_of
from fdgeom.operations.dependent import Sources
from fdgeom.systems.boundary_conditions import conditions, described
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

    def synchronise(self, modified=None):
        self._at_rest.check()
        return super().synchronise(modified)

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


class FixedValues:
    """Boundary conditions that hold at rest: given degrees of freedom of the momentum ``old``."""

    def __init__(self, bcs, space, old: Function) -> None:
        self.bcs = conditions("bcs", bcs)
        self.dofs = _fixed_dofs(self.bcs, space, old)
        values = map(given_value, self.bcs)
        self._read = Sources(*(value for value in values if isinstance(value, Expr)))
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a value is not zero, or no longer."""
        if self._read.changed():
            self._read.take()
            for bc in self.bcs:
                value = bc.function_arg
                if not (isinstance(value, ufl.classes.Zero) or _is_zero(value, bc)):
                    raise ValueError(
                        "bcs must be zero: they fix the velocity of q, and q keeps its start value there"
                    )


def _fixed_dofs(bcs, space, old: Function) -> tuple[EssentialValues, ...]:
    held = []
    for bc in bcs:
        of = bc.function_space()
        whole = of if of.component is None else of.parent
        if whole != space:
            raise ValueError("bcs: a DirichletBC must be on the space of q (or a component of it)")
        held.append(EssentialValues(part=0, dofs=dofs_of(bc), old=old))
    return tuple(held)


def _is_zero(value, bc) -> bool:
    field = value if isinstance(value, Function) else Function(bc.function_space())
    if field is not value:
        field.interpolate(value)
    return not field.comm.allreduce(int(np.any(field.dat.data_ro != 0)))


def check_at_rest(name: str, function: Function, fixed: Sequence[EssentialValues]) -> None:
    """Raise ``ValueError`` if a function is not zero where it is held."""
    values = function.dat.data_ro_with_halos.reshape(-1)
    moving = any(np.any(values[e.dofs] != 0) for e in fixed)
    if function.comm.allreduce(int(moving)):
        raise ValueError(f"{name} must be zero where bcs hold q: set it, or call system.project()")
