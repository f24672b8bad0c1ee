"""The NumPy twin of `fdgeom.lie`: the same names for arrays, vectorised over leading axes.

Vectors have shapes (..., 3) and (..., 6), quaternions (..., 4), rotations (..., 3, 3), motions
(..., 4, 4) and poses are pairs (..., 3), (..., 4). Leading axes broadcast. `scan` and `pose_scan`
multiply a chain up.
"""

from fdgeom.lie.arrays.in_numpy import quaternion, se3, so3
from fdgeom.lie.arrays.scan import pose_scan, scan

__all__ = ["pose_scan", "quaternion", "scan", "se3", "so3"]
