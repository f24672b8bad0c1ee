"""Compiled code of lists of operations.

- `program`, `from_ufl`, `differentiate`: scalar operations of one place, made from UFL, and their
  derivatives;
- `terms`: terms of functionals, as sums over nodes and cells; `lower`: operations as scalar programs;
- `chain`: the same for solves that couple neighbours along a chain; `tree`: where chains meet;
- `emit`: their C++ text; `build`: its compilation; `cpp`: loops, Newton's method and elimination;
- `layout`: the order of values on chains of cells, and values of other ranks;
- `map_layout`, `lower_map`, `emit_map`: the same for nodes of general meshes, with TSFC's kernels in
  cells;
- `unit`: lists of operations as compiled units; `values`: the values of Functions for them;
  `executor`: their runs, and iterations of Newton's method from Python; `trajectory`: steps whose
  values are stored, and their adjoint steps;
- `snes_types`: types of SNES and PC, for chains and for solves node by node or cell by cell.
"""

from fdgeom.compile.executor import CompiledExecutor
from fdgeom.compile.layout import layout_of
from fdgeom.compile.trajectory import CompiledTrajectory
