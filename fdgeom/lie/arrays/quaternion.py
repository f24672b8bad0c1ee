"""Unit quaternions of NumPy arrays: what `quaternion` has, to be imported by its names."""

from fdgeom.lie.arrays.in_numpy import quaternion as _quaternion

__getattr__ = _quaternion.__getattribute__
