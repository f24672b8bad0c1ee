"""Default solvers and convergence tests for each kind of equations."""

from collections.abc import Mapping
from dataclasses import dataclass

from firedrake import Form, Function

from fdgeom.operations import ConvergenceTest
from fdgeom.solvers.held_snes import HeldSNES, defaults
from fdgeom.solvers.kept_snes import KeptSNES
from fdgeom.solvers.saddle import saddle_defaults
from fdgeom.solvers.structure import is_local


@dataclass(frozen=True)
class Numerics:
    """PETSc options, convergence test and caching of the matrix for one kind of equations."""

    #: Flat PETSc options; those of the user override them.
    options: Mapping
    #: The convergence test of Newton's method; None for PETSc's own.
    converged: ConvergenceTest | None = None
    #: Whether matrix and factors are kept while the data of the matrix do not change.
    kept: bool = False

    @property
    def snes(self) -> type[HeldSNES]:
        """The class of the solver."""
        return KeptSNES if self.kept else HeldSNES


def plain(residual: Form, unknown: Function) -> Numerics:
    """Linear or Newton solves, node by node for local equations, otherwise with one LU."""
    options = defaults(residual, unknown, is_local(residual, unknown))
    return Numerics(options, ConvergenceTest())


def saddle(residual: Form, unknown: Function) -> Numerics:
    """The numerics for a motion together with the multiplier of its constraint."""
    return Numerics(saddle_defaults(residual, unknown), ConvergenceTest())
