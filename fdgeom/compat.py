"""Private names of Firedrake and petsctools that have no public counterpart."""

from typing import Any

import petsctools
from firedrake import DirichletBC
from firedrake.output import VTKFile
from petsc4py import PETSc


def given_value(bc: DirichletBC) -> Any:
    """The value that a user gave a boundary condition; the public ``function_arg`` is its interpolant."""
    return bc._original_arg


def options_read(solver: PETSc.SNES | PETSc.KSP) -> set[str]:
    """The options that PETSc has looked up; petsctools itself only warns, at the end of a run."""
    return petsctools.get_options(solver)._used_options


def set_topology(file: VTKFile, topology: tuple) -> None:
    """Give a file its cells; no argument of VTKFile does, it lists those of the mesh in its own order."""
    file._topology = topology
