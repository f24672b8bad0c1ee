"""Unit quaternions of UFL expressions: what `quaternion` has, to be imported by its names."""

from fdgeom.lie.in_ufl import quaternion as _quaternion

__getattr__ = _quaternion.__getattribute__
