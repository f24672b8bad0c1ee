"""se(3) and SE(3) of UFL expressions: what `se3` has, to be imported by its names."""

from fdgeom.lie.in_ufl import se3 as _se3

__getattr__ = _se3.__getattribute__
