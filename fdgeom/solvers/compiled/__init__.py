"""Assignments at nodes, compiled from UFL.

- `update`: an assignment in compiled code, by `expressions`, `kernel` and `tables`;
- `nodes`: nodes of spaces, and their names in messages;
- `refused`: the fallback when compilation fails.
"""

from fdgeom.errors import CannotCompile, NoCompiler
from fdgeom.solvers.compiled.nodes import (
    describe,
    has_nodal_values,
    name_places,
    pieces,
    scalar_space,
)
from fdgeom.solvers.compiled.refused import falling_back
