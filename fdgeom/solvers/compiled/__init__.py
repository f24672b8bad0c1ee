"""Local solves and pointwise updates, compiled from UFL into loops over nodes and cells.

A `Program` says what is to be done in which order, a `Unit` is that program compiled with its data.
What is not local is refused with a reason (`refused`); methods that need it solve it by PETSc.
"""

from fdgeom.solvers.compiled.collocation import has_nodal_values, scalar_space
from fdgeom.solvers.compiled.layout import describe, name_places
from fdgeom.solvers.compiled.problem import pieces
from fdgeom.solvers.compiled.program import Program
from fdgeom.solvers.compiled.refused import CannotCompile, NoCompiler, falling_back
from fdgeom.solvers.compiled.unit import REASONS, Unit
