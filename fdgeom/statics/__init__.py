"""Equilibrium of beams, and vibrations about it.

Newton's method with load steps and arc length, the paths of equilibria, their stability, and the
modes. The forms are those of the beam's or the assembly's motion.

- `equilibrium`: the class `StaticEquilibrium`; `problem`: its equations; `iterations`: Newton's method, in
  compiled code (`compiled`) or by SNES (`snes`); `path`: arc length, limit and bifurcation points;
- `stability`, `modes`, `pencil`: eigenvalues of the stiffness, vibrations, and their matrices;
- `rigid_motions`, `sensitivities`: what is not held, derivatives.
"""

from fdgeom.statics.equilibrium import StaticEquilibrium
from fdgeom.statics.modes import VibrationModes

__all__ = ["StaticEquilibrium", "VibrationModes"]
