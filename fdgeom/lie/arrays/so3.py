"""so(3) and SO(3) of NumPy arrays: what `so3` has, to be imported by its names."""

from fdgeom.lie.arrays.in_numpy import so3 as _so3

__getattr__ = _so3.__getattribute__
