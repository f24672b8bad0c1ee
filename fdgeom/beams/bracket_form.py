"""Strain and momentum of a beam that follow its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firedrake import TestFunction, dot

from fdgeom.beams.rod.rod import Rod
from fdgeom.solvers.assembly import VectorAssembly
from fdgeom.solvers.data import fields

if TYPE_CHECKING:
    from fdgeom.beams.beam import Beam


class BeamInSpace:
    """A beam that is moved in configuration form: its other fields are made to agree.

    After steps ``beam.strain`` and ``beam.momentum`` are those of the configuration, in the strain
    measure of the rod: so the beam's own energies and momenta are those of the motion.

    Parameters
    ----------
    beam : Beam
        Of degree 1.
    rod : Rod, optional
        Its forms, if others than ``beam.rod``.
    alone : bool
        Whether the beam is in no network.
    """

    def __init__(self, beam: Beam, rod: Rod | None = None, *, alone: bool = True) -> None:
        self._beam, rod = beam, beam.rod if rod is None else rod
        self._alone = alone
        strain = rod.elastic_strain((beam.position, beam.orientation))
        if beam.reference_strain is not None:
            strain += beam.reference_strain
        test = TestFunction(beam.strain.function_space())
        # Over the length of the cell: then it is the value there.
        self._strain = VectorAssembly(rod.cells.sum(dot(strain, test) / rod.cells.length))

    def prepare(self) -> None:
        """Let the description that was not set since the last step follow the one that was.

        Where the inertia has changed the velocity is what stays. ``ValueError`` if both were set and
        contradict one another.
        """
        agreement = self._beam.agreement
        if not agreement.holds():
            agreement.restore_for_configuration(self._strain.assemble, alone=self._alone)

    def settle(self) -> None:
        """Make strain and momentum those of the configuration and the velocity."""
        beam = self._beam
        beam.agreement.to_momentum.apply()
        (target,), (source,) = fields(beam.strain), fields(self._strain.assemble())
        target.owned[...] = source.owned
        target.written()
        beam.settle()
