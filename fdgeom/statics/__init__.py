"""Equilibrium of beams, and vibrations about it.

Newton's method with load steps and arc length, the paths of equilibria, their stability, and the
modes. Forms come from the motion that is at rest; none are written here.
"""

from fdgeom.statics.equilibrium import StaticEquilibrium
from fdgeom.statics.modes import VibrationModes

__all__ = ["StaticEquilibrium", "VibrationModes"]
