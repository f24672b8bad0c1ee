"""A beam in configuration form in a strain measure that is not its own."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from fdgeom.beams.beam_motion import BeamMotion
from fdgeom.beams.bracket_form import BeamInSpace
from fdgeom.beams.configuration import shape_in_measure
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.strains import STRAINS

if TYPE_CHECKING:
    from fdgeom.beams.beam import Beam


class MeasuredBeam(BeamMotion):
    """A beam in configuration form, its strains, stresses and elastic energy by another measure.

    Parameters
    ----------
    beam : Beam
        Of degree 1.
    measure : str
        Name of the measure.
    """

    def __init__(self, beam: Beam, measure: str) -> None:
        super().__init__(beam)
        self._measure = measure
        if measure != beam.strain_measure:
            self.rod = in_measure(beam, measure)
            self._fields = BeamInSpace(beam, self.rod)

    def parameters(self) -> dict[str, object]:
        """Those of the beam in this measure."""
        return super().parameters() | {"strain measure": self._measure}


def in_measure(beam: Beam, measure: str) -> Rod:
    """The beam's rod in another strain measure, with the same shape at rest."""
    rod = copy.copy(beam.rod)
    rod._measure = STRAINS[measure]
    if beam.shape_strain is not None:
        rod.reference = shape_in_measure(beam, measure)
    return rod
