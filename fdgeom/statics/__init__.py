"""Equilibrium of beams, and vibrations about it.

Newton's method with load steps and arc length, the paths of equilibria, their stability, and the
modes. The forms are those of the beam's or the assembly's motion.
"""

from fdgeom.statics.equilibrium import StaticEquilibrium
from fdgeom.statics.modes import VibrationModes

__all__ = ["StaticEquilibrium", "VibrationModes"]
