"""Chaplygin systems: embedded velocity constraints, and canonical equations where they exist.

All is SymPy, up to the Hamiltonian system for the steppers; nothing is assembled or solved
numerically here.
"""

from fdgeom.systems.chaplygin.chaplygin import ChaplyginSystem
from fdgeom.systems.chaplygin.inverse import HelmholtzCondition
