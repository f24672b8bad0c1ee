"""Chaplygin systems: velocity constraints embedded, and canonical equations where there are such.

SymPy all through, up to the Hamiltonian system that it hands to the steppers; no Function is made
here, and nothing is solved.
"""

from fdgeom.systems.chaplygin.helmholtz import HelmholtzCondition
from fdgeom.systems.chaplygin.system import ChaplyginSystem
