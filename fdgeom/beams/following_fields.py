"""Strain and momentum of a beam in configuration form, computed from configuration and velocity."""

from functools import cached_property

from firedrake import Form, TestFunction, dot
from ufl.core.expr import Expr

from fdgeom.beams.agreement import Agreement
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.rod import Rod
from fdgeom.forms import simplify
from fdgeom.operations import Operation, Solve
from fdgeom.solvers import Field, VectorAssembly


class FollowingFields:
    """Sets strain and momentum of a beam from its configuration, in the rod's strain measure."""

    # So the beam's own energies and momenta are those of the motion.
    def __init__(
        self, beam: BeamFields, rod: Rod, agreement: Agreement, *, alone: bool = True
    ) -> None:
        self._beam, self._rod = beam, rod
        self._agreement, self._alone = agreement, alone

    # Forms of the strain: an assembly has many beams, and may never be settled.
    def _in_cells(self, value: Expr) -> Form:
        """The form whose assembled vector is the value in the cells: tested with 1 / their length."""
        test, cells = TestFunction(self._beam.strain.function_space()), self._rod.cells
        return cells.sum(dot(value, test) / cells.length)

    @cached_property
    def _of_configuration(self) -> Expr:
        beam = self._beam
        strain = self._rod.elastic_strain((beam.position, beam.orientation))
        return strain if beam.reference_strain is None else strain + beam.reference_strain

    @cached_property
    def _strain(self) -> VectorAssembly:
        return VectorAssembly(self._in_cells(self._of_configuration))

    @cached_property
    def _copy(self) -> tuple[Field, Field]:
        return Field(self._beam.strain), Field(self._strain.tensor)

    @cached_property
    def closings(self) -> list[Operation]:
        """The operations of :meth:`settle`, for derivatives."""
        gap = self._in_cells(self._beam.strain - self._of_configuration)
        return [
            self._agreement.momentum_operation,
            Solve(work=simplify(gap), unknown=self._beam.strain, find=self._set_strain),
        ]

    def prepare(self) -> None:
        """Update the description that was not set since the last step."""
        # Where the inertia has changed the velocity is kept.
        if not self._agreement.holds():
            self._agreement.restore_for_configuration(
                lambda: self._strain.assemble(), alone=self._alone
            )

    def settle(self) -> None:
        """Set strain and momentum to those of the configuration and the velocity."""
        self._agreement.to_momentum.apply()
        self._set_strain()
        self._agreement.note()

    def _set_strain(self) -> None:
        self._strain.assemble()
        target, source = self._copy
        target.owned[...] = source.owned
        target.written()
