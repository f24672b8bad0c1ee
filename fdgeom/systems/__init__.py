"""What is moved: Poisson systems, beams and their parts."""

from fdgeom.systems.beam import Beam
from fdgeom.systems.copies import copies
from fdgeom.systems.poisson import PoissonSystem
from fdgeom.systems.section import Section

__all__ = ["Beam", "PoissonSystem", "Section", "copies"]
