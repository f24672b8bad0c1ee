"""Strain and momentum of a beam that is moved in configuration form: they follow it."""

from __future__ import annotations

from firedrake import TestFunction, dot

from fdgeom.beams.agreement import Agreement
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.rod import Rod
from fdgeom.forms import tidy
from fdgeom.solvers import Deed, Field, VectorAssembly


class FollowingFields:
    """The other fields of a beam that is moved in configuration form: they are made to agree.

    After steps ``beam.strain`` and ``beam.momentum`` are those of the configuration, in the strain
    measure of the rod: so the beam's own energies and momenta are those of the motion.

    Parameters
    ----------
    beam : BeamFields
        Of degree 1.
    rod : Rod
        Its forms.
    agreement : Agreement
        Of its two descriptions.
    alone : bool
        Whether the beam is in no network.
    """

    def __init__(
        self, beam: BeamFields, rod: Rod, agreement: Agreement, *, alone: bool = True
    ) -> None:
        self._agreement, self._alone = agreement, alone
        strain = rod.elastic_strain((beam.position, beam.orientation))
        if beam.reference_strain is not None:
            strain += beam.reference_strain
        test = TestFunction(beam.strain.function_space())
        # Over the length of the cell: then it is the value there.
        self._strain = VectorAssembly(rod.cells.sum(dot(strain, test) / rod.cells.length))
        self._target, self._source = Field(beam.strain), Field(self._strain.tensor)
        gap = rod.cells.sum(dot(beam.strain - strain, test) / rod.cells.length)
        #: What :meth:`settle` does, for derivatives.
        self.closings = [
            agreement.momentum_of_velocity,
            Deed(self._set_strain, residual=tidy(gap), unknown=beam.strain),
        ]

    def prepare(self) -> None:
        """Let the description that was not set since the last step follow the one that was.

        Where the inertia has changed the velocity is what stays. ``ValueError`` if both were set and
        contradict one another.
        """
        if not self._agreement.holds():
            self._agreement.restore_for_configuration(self._strain.assemble, alone=self._alone)

    def settle(self) -> None:
        """Make strain and momentum those of the configuration and the velocity."""
        self._agreement.to_momentum.apply()
        self._set_strain()
        self._agreement.note()

    def _set_strain(self) -> None:
        self._strain.assemble()
        self._target.owned[...] = self._source.owned
        self._target.written()
