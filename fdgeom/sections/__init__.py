"""Sections of beams: drawn as plane meshes, their materials, their shapes, their stress."""

from .failure import TsaiWu, VonMises
from .material import Isotropic, Orthotropic
from .ply import Ply
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

__all__ = [
    "Isotropic",
    "Orthotropic",
    "Ply",
    "Shape",
    "TsaiWu",
    "VonMises",
    "angle",
    "box",
    "channel",
    "circle",
    "ellipse",
    "half_tube",
    "i_beam",
    "rectangle",
    "spar_box",
    "tube",
]
