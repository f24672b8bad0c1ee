"""Local solves and nodal updates, compiled from UFL into loops over nodes and cells.

A `Program` lists solves and updates in order; a `Unit` is a compiled program with its data. Equations
that are not local raise `CannotCompile` with a reason, and methods that need them use PETSc.
"""

from fdgeom.solvers.compiled.collocation import has_nodal_values, scalar_space
from fdgeom.solvers.compiled.layout import describe, name_places
from fdgeom.solvers.compiled.problem import pieces
from fdgeom.solvers.compiled.program import Program
from fdgeom.solvers.compiled.refused import CannotCompile, NoCompiler, falling_back
from fdgeom.solvers.compiled.unit import REASONS, Unit
