"""How equations are solved, unless the user says otherwise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from firedrake import Form, Function

from fdgeom.solvers.held_snes import HeldSNES, defaults
from fdgeom.solvers.kept_snes import KeptSNES
from fdgeom.solvers.saddle import saddle_defaults
from fdgeom.solvers.settled import Settled
from fdgeom.solvers.structure import is_local


@dataclass(frozen=True)
class Numerics:
    """How one kind of equations is solved.

    Attributes
    ----------
    options : dict
        Flat PETSc options; those of the user go over them.
    converged : callable, optional
        PETSc's test of convergence of a Newton iteration, such as :class:`Settled`; without it that
        of PETSc, by tolerances alone.
    kept : bool
        Whether matrix and factors are kept as long as nothing in the matrix changes.
    """

    options: Mapping
    converged: Callable | None = None
    kept: bool = False

    @property
    def snes(self) -> type[HeldSNES]:
        """What solves."""
        return KeptSNES if self.kept else HeldSNES


def plain(residual: Form, unknown: Function) -> Numerics:
    """Linear or Newton, node by node where the equations are local, else by an LU of everything."""
    return Numerics(defaults(residual, unknown, is_local(residual, unknown)))


def saddle(residual: Form, unknown: Function) -> Numerics:
    """For a motion and the multiplier of its constraint at once."""
    return Numerics(saddle_defaults(residual, unknown), Settled())
