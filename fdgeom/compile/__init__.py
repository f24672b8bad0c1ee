"""Compiled code of lists of operations on interval meshes.

- `program`, `from_ufl`, `differentiate`: scalar operations of one place, made from UFL, and their
  derivatives;
- `terms`, `lower`: functionals as sums over nodes and cells, and operations as scalar programs;
- `emit`: their C++ text; `build`: its compilation; `cpp`: loops, Newton's method and elimination;
- `layout`: the order of values on chains of cells;
- `unit`, `executor`: lists of operations as compiled units, and the exchange of values with Functions.
"""

from fdgeom.compile.build import NoCompiler
from fdgeom.compile.executor import Executor
from fdgeom.compile.program import CannotCompile
