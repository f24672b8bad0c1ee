"""Solves of variational steps: forces at the nodes, and impulses of joints."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from firedrake import Constant, Form, Function
from ufl.core.expr import Expr

from fdgeom.beams.rod.nodal_unknown import RodUnknown
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.forms import tidy
from fdgeom.solvers.data import Field, Number
from fdgeom.solvers.held_snes import defaults
from fdgeom.solvers.kept_snes import KeptSNES
from fdgeom.solvers.pointwise import PointwiseUpdate
from fdgeom.solvers.saddle import SaddleSNES
from fdgeom.steppers.beams.rod_unknown import rod_options
from fdgeom.steppers.substep import Solve, SolveOptions


class KeptSolve(Solve):
    """A linear solve at each node, whose matrix is assembled once."""

    snes = KeptSNES

    def _defaults(self) -> dict:
        return defaults(self.residual, self.stage.unknown, local=True)


class JointSolve:
    """A solve for a vector of each node and the impulses of the joints.

    Parameters
    ----------
    name : str
        What to call it in an error.
    system : RodMotion
        With joints.
    residual : callable
        ``residual(vector, multiplier, test, nu, dt)`` gives the form.
    assignments : callable
        ``assignments(vector, dt)`` gives the functions to set after the solve, and their values.
    options : SolveOptions
        The user's PETSc options.
    """

    def __init__(
        self,
        name: str,
        system: RodMotion,
        residual: Callable[..., Form],
        assignments: Callable[[Function, Expr], dict[Function, Expr]],
        *,
        options: SolveOptions,
    ) -> None:
        self.name, self._options = name, options
        self.dt = Constant(1.0, name="dt")
        self._number = Number(self.dt)
        self.unknown = unknown = RodUnknown(system)
        self._comm = system.comm
        self._vector = Field(Function(system.space, name=name))
        self._residual = tidy(
            residual(unknown.vector, unknown.multiplier, unknown.test, unknown.nu, self.dt)
        )
        self._update = PointwiseUpdate(assignments(self._vector.function, self.dt))
        if options.told:
            _ = self.solver  # so that an unknown option is refused now

    @cached_property
    def solver(self) -> SaddleSNES:
        """The SNES, made when it is first needed."""
        options, prefix, given = self._options(rod_options(self._comm))
        return SaddleSNES(
            self._residual,
            self.unknown.function,
            essential=self.unknown.essential,
            options=options,
            prefix=prefix,
            given=given,
            name=self.name,
        )

    def take(self, dt: float) -> None:
        """Solve from zero, and assign."""
        solver, unknown = self.solver, self.unknown
        self._number.set(dt)
        unknown.field.array[...] = 0.0
        unknown.field.written(ghosts_too=True)
        solver.solve()
        unknown.field.update_ghosts()
        self._vector.array[...] = unknown.vectors
        self._vector.written(ghosts_too=True)
        self._update.apply()
