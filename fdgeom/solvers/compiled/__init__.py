"""Assignments at nodes, compiled from UFL.

- `update`: an assignment in compiled code, by `expressions` and `tables`;
- `nodes`: names of nodes in messages;
- `refused`: the fallback when compilation fails.
"""

from fdgeom.errors import CannotCompile, NoCompiler
from fdgeom.solvers.compiled.nodes import (
    describe,
    name_places,
    pieces,
)
from fdgeom.solvers.compiled.refused import falling_back
