"""Sections of beams: drawn as plane meshes, their materials, their shapes, their stress.

From a drawing to the two 6×6 matrices and back to stress in three dimensions; matrices along a
beam, tables of other programs. The user's `Section` is in :mod:`fdgeom.beams`.
"""

from .material import Isotropic, Orthotropic, Ply, TsaiWu, VonMises
from .shapes import (
    Shape,
    angle,
    box,
    channel,
    circle,
    ellipse,
    half_tube,
    i_beam,
    rectangle,
    spar_box,
    tube,
)
