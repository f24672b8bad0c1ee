"""Equilibrium of beams, and vibrations about it."""

from fdgeom.statics.equilibrium import StaticEquilibrium
from fdgeom.statics.modes import VibrationModes

__all__ = ["StaticEquilibrium", "VibrationModes"]
