"""What mechanical systems share that are stated by their energies: numbers, output, checks."""

from __future__ import annotations

import numpy as np
from firedrake import Constant, Function
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.solvers.essential import EssentialValues
from fdgeom.systems.constrained.constraint import Constraint
from fdgeom.systems.energies import Energies


class MechanicalSystem(Energies):
    """Base of systems of a configuration q, a momentum or velocity, and perhaps a constraint."""

    q: Function
    multiplier: Function | None
    constraint: Constraint | None
    fixed: tuple[EssentialValues, ...]

    def __init__(self, q: Function, coordinates: Function | None = None) -> None:
        self.q = q
        self.space = q.function_space()
        part = self.space.sub(0) if len(self.space) > 1 else self.space
        self.mesh, self.comm = part.mesh(), self.space.comm
        if not (coordinates is None or isinstance(coordinates, Function)):
            raise TypeError(
                f"coordinates must be a firedrake Function, not {type(coordinates).__name__}"
            )
        self._coordinates = coordinates
        self._held: dict[str, object] = {}

    def functions(self) -> dict[str, Function]:
        """Everything that a step changes, by name."""
        raise NotImplementedError

    def parameters(self) -> dict[str, object]:
        """What makes the system beside its class and its equations, by name: a checkpoint says so."""
        return {}

    def equations(self) -> dict[str, Form]:
        """The forms that state it, by name: a checkpoint says of which it is."""
        return self.energies() | self._condition()

    def _condition(self) -> dict[str, Form]:
        """The rate of the constraint, if there is one."""
        constraint = self.constraint
        if constraint is None:
            return {}
        return {"constraint": constraint.slope(constraint.test, self.velocity())}

    def velocity(self) -> Expr:
        """q̇ at the present state."""
        raise NotImplementedError

    def check_start(self) -> None:
        """Raise ``ValueError`` if no step can start from the present state."""
        raise NotImplementedError

    def momenta(self) -> dict[str, tuple[Form, ...]]:
        """Momentum functionals by name (none in general)."""
        return {}

    # --- numbers -------------------------------------------------------------------------------
    def constraint_defect(self) -> float:
        """Largest \\|g(q)\\|, averaged with each test function of the multiplier's space."""
        return self.constraint.defect() if self.constraint else 0.0

    def velocity_defect(self) -> float:
        """Largest \\|Dg(q) q̇\\|, averaged in the same way."""
        return self.constraint.rate(self.velocity()) if self.constraint else 0.0

    # --- what the recording reads ----------------------------------------------------------------
    def output_fields(self) -> dict[str, Expr]:
        """Fields worth drawing, by name."""
        return self.functions()

    def output_coordinates(self) -> Function | None:
        """Where in space the nodes are, if elsewhere than on the mesh."""
        return self._coordinates

    # --- what the steppers ask -------------------------------------------------------------------
    #: Constants that the steppers set to the time.
    clocks: tuple[Constant, ...] = ()

    def prepare(self) -> None:
        """Bring what depends on the state up to date before a step (nothing)."""

    def settle(self) -> None:
        """Note that all fields belong together, after steps (nothing to do)."""

    def set_time(self, t: float) -> None:
        """Tell the system the time at the end of the coming step (it is autonomous)."""

    def set_clock(self, t: float) -> None:
        """Set the time that coefficients are read at (it is autonomous)."""

    def _check_finite(self) -> None:
        for name, f in self.functions().items():
            if self.comm.allreduce(int(not np.all(np.isfinite(f.dat.data_ro)))):
                raise ValueError(f"{name} holds values that are not finite: set a finite start")
