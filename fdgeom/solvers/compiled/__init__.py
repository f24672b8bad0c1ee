"""Assignments at nodes, compiled from UFL.

- `update`: an assignment in compiled code, by `expressions` and `tables`;
- `refused`: the fallback when compilation fails.
"""

from fdgeom.solvers.compiled.refused import falling_back
