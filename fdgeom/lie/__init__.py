"""so(3), se(3) and their groups: as UFL expressions, and as NumPy arrays.

`so3`, `quaternion` and `se3` take UFL expressions, those of `arrays` take NumPy arrays of any
leading shape: each formula is stated once, for any arithmetic. `arrays` also has the prefix
products of a chain of poses. `groups` has the groups for time steppers: `groups.SO3`,
`groups.R3xSO3`, `groups.SE3`. Meshes, Functions and forms do not belong here: formulas only.

Vectors of R^6 have the rotation first and the translation last (`halves` splits such a UFL vector,
`join` makes it), quaternions their scalar first.
Tangent maps are left trivialised: they give velocities in the body frame. An argument of another
shape raises ValueError, one of another kind TypeError; both name it.
"""

from fdgeom.lie import arrays, groups
from fdgeom.lie.quaternion import quaternion
from fdgeom.lie.se3 import se3
from fdgeom.lie.so3 import so3
from fdgeom.lie.ufl_operations import halves, join

__all__ = ["arrays", "groups", "halves", "join", "quaternion", "se3", "so3"]
