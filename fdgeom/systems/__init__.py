"""What is moved: Poisson systems, beams and their parts."""

from fdgeom.systems.beam import Beam
from fdgeom.systems.copies import copies
from fdgeom.systems.hamiltonian import HamiltonianSystem
from fdgeom.systems.poisson import PoissonSystem
from fdgeom.systems.section import Section

__all__ = [
    "Beam",
    "HamiltonianSystem",
    "PoissonSystem",
    "Section",
    "copies",
]
