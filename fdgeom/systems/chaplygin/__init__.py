"""Chaplygin systems: velocity constraints embedded, and canonical equations where there are such."""

from fdgeom.systems.chaplygin.helmholtz import HelmholtzCondition
from fdgeom.systems.chaplygin.system import ChaplyginSystem

__all__ = ["ChaplyginSystem", "HelmholtzCondition"]
