"""so(3), se(3) and their groups: as UFL expressions, and as NumPy arrays.

The formulas are stated once, for any arithmetic (`rotations`, `quaternions`, `motions`): `so3`,
`quaternion` and `se3` are they for UFL expressions, those of `arrays` for NumPy arrays of any
leading shape, beside the prefix product of a chain of poses. `groups` has what a time stepper
needs of a group: `groups.SO3`, `groups.R3xSO3`, `groups.SE3`. Meshes, Functions and forms do not
belong here: formulas only.

Vectors of R^6 have the rotation first and the translation last (`halves` splits such a UFL vector,
`join` makes it), quaternions their scalar first.
Tangent maps are left trivialised: they give velocities in the body frame. An argument of another
shape raises ValueError, one of another kind TypeError; both name it.
"""

from fdgeom.lie import arrays, groups
from fdgeom.lie.in_ufl import quaternion, se3, so3
from fdgeom.lie.operands import halves, join

__all__ = ["arrays", "groups", "halves", "join", "quaternion", "se3", "so3"]
