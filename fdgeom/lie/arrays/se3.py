"""se(3) and SE(3) of NumPy arrays: what `se3` has, to be imported by its names."""

from fdgeom.lie.arrays.in_numpy import se3 as _se3

__getattr__ = _se3.__getattribute__
