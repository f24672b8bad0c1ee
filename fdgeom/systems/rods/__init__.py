"""Rods in configuration form: strains, energies, inertia and loads from the poses of the nodes."""

from fdgeom.systems.rods.ends import GivenPose, Sliding
from fdgeom.systems.rods.loads import Gravity, Load

__all__ = ["GivenPose", "Gravity", "Load", "Sliding"]
