"""so(3) and SO(3) of UFL expressions: what `so3` has, to be imported by its names."""

from fdgeom.lie.in_ufl import so3 as _so3

__getattr__ = _so3.__getattribute__
