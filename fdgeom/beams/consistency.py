"""Consistency of strain and momentum of a beam with its configuration and velocity."""

from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial

import numpy as np
from firedrake import Function, TestFunction, dot
from mpi4py import MPI
from ufl.core.expr import Expr

from fdgeom.beams.chain import Chain, projection, reconstruction
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.rod import Rod
from fdgeom.execution import PointwiseUpdate, VectorAssembly
from fdgeom.forms import simplify
from fdgeom.operations import Map, Operation, Solve
from fdgeom.solvers import Field, Snapshot
from fdgeom.taping import not_taped

# Of the size of what is compared: fields set from one formula differ by round-off.
_SAME = 1e-9
_WHAT_TO_DO = (
    "set one of the two, or say which is meant: reconstruct() takes strain and momentum, project() "
    "takes configuration and velocity"
)
_NOTHING = (False,) * 5


class Change:
    """A change of fields: :meth:`run`, and :attr:`operations` with its derivatives, made when needed."""

    def __init__(
        self, run: Callable[[], None], operations: Callable[[], Sequence[Operation]]
    ) -> None:
        self.run, self._operations = run, operations

    @cached_property
    def operations(self) -> Sequence[Operation]:
        """The change as operations."""
        return self._operations()


class Consistency:
    """Keeps strain and momentum of a beam consistent with its configuration and velocity."""

    # Momentum and velocity are one pair, strain and configuration the other: the one that was set
    # by hand since they last agreed is the newer one, and the other is computed from it.
    def __init__(self, beam: BeamFields, chain: Chain) -> None:
        self._beam, self._chain = beam, chain
        # In the order in which `changed` is read.
        pose = beam.position, beam.orientation
        self._fields = (beam.strain, beam.momentum, *pose, beam.velocity)
        #: Their values when they last agreed.
        self.noted = Snapshot(self._fields)

    # --- changes -----------------------------------------------------------------------------------
    @cached_property
    def velocity_of_momentum(self) -> Change:
        """ζ = D₁⁻¹μ."""
        return self._velocity_of(self._beam.momentum, self._beam.velocity)

    @cached_property
    def momentum_of_velocity(self) -> Change:
        """μ = D₁ζ."""
        return self._momentum_of(self._beam.velocity, self._beam.momentum)

    def _velocity_of(self, momentum: Function, target: Function) -> Change:
        return self._product(target, self._beam.compliance_of_inertia, momentum, np.linalg.inv)

    def _momentum_of(self, velocity: Function, target: Function) -> Change:
        return self._product(target, self._beam.inertia, velocity, np.array)

    def _product(self, target: Function, matrix: Expr, source: Function, made) -> Change:
        """The product of a field and a matrix, ``made`` of the inertia where that is of numbers."""
        values, numbers = {target: dot(matrix, source)}, self._beam.numbers_of_inertia

        @cache
        def update() -> "PointwiseUpdate | _Product":
            if numbers is not None:
                return _Product(target, made(numbers), source)
            return PointwiseUpdate(values)

        return Change(lambda: update().apply(), lambda: [Map(values=values)])

    @cached_property
    def _projection(self) -> Change:
        return Change(self._chain.project, lambda: [projection(self._beam, self._chain)])

    @cached_property
    def _reconstruction(self) -> Change:
        """The configuration of the strain, from the first node or from a held last one."""
        beam, chain = self._beam, self._chain
        left, right = (end.kind == "free" for end in beam.ends)
        anchor = -1 if left and not right else 0
        find = partial(chain.followed, anchor)
        return Change(
            partial(chain.follow, anchor),
            lambda: reconstruction(beam, chain, find, anchor, moves=True),
        )

    # --- values set by hand ------------------------------------------------------------------------
    def holds(self) -> bool:
        """Whether nothing was set since the fields last agreed."""
        return self.noted.holds()

    def note(self) -> None:
        """Note that all fields agree now."""
        self.noted.take()

    def _set(self, touched: Sequence[bool]) -> tuple[bool, bool, bool, bool]:
        """Whether strain, momentum, pose and velocity were set, or are changed for derivatives."""
        found = (a or b for a, b in zip(self.noted.changed(), touched, strict=True))
        strain, momentum, position, orientation, velocity = found
        return strain, momentum, position or orientation, velocity

    def openings(self, touched: Sequence[bool]) -> list[Operation]:
        """The changes that :meth:`restore_for_bracket` makes, for derivatives."""
        # `touched`: strain, momentum, position, orientation, velocity have derivatives, though
        # perhaps no new value now. NotImplementedError if the degree is above 1 and one follows the
        # other.
        return [op for change in self._for_bracket(touched) for op in change.operations]

    def _for_bracket(self, touched: Sequence[bool] = _NOTHING) -> list[Change]:
        strain, momentum, pose, velocity = self._set(touched)
        if not (strain or momentum or velocity or pose):
            # A section may change, and the momentum is what stays.
            varies = isinstance(self._beam.compliance_of_inertia, Function)
            return [self.velocity_of_momentum] if varies else []
        made = [self.momentum_of_velocity] if velocity and not momentum else []
        made.append(self.velocity_of_momentum)
        # A ring has no first node from which its strain would say where the others are.
        # Where strain and configuration were both set, both are taken as they are: these steps move
        # the configuration beside the strain.
        if strain is not pose and self._chain.is_open:
            made.append(self._projection if pose else self._reconstruction)
        return made

    def restore_for_bracket(self) -> None:
        """Update the older description, for steps of strain and momentum."""
        if not self._is_finite():
            return  # the step will say so
        self._refuse_contradiction()
        for change in self._for_bracket():
            change.run()
        self.note()

    def openings_for_configuration(
        self, touched: Sequence[bool], *, alone: bool = True
    ) -> list[Operation]:
        """The changes that :meth:`restore_for_configuration` makes, as :meth:`openings`."""
        changes, (strain, _, pose, _) = self._for_configuration(touched), self._set(touched)
        if strain and not pose:
            set_now = self.noted.changed()[0]
            if not alone and not set_now:
                raise NotImplementedError(
                    "gradients by the strain of a beam in a network are not available, since the strain "
                    "does not determine its position; take position, orientation and velocity"
                )
            if not set_now and not self._chain.agrees():
                raise NotImplementedError(
                    "gradients by a strain that steps in configuration form computed are not available, "
                    "since they use another strain measure, and setting it would move the beam; take "
                    "position, orientation and velocity"
                )
            if not alone:
                changes = changes[:-1]  # it is refused before the steps, whatever records
        return [op for change in changes for op in change.operations]

    def _for_configuration(self, touched: Sequence[bool] = _NOTHING) -> list[Change]:
        strain, momentum, pose, velocity = self._set(touched)
        made: list[Change] = []
        if velocity is not momentum:
            made.append(self.momentum_of_velocity if velocity else self.velocity_of_momentum)
        return [*made, self._reconstruction] if strain and not pose else made

    def restore_for_configuration(self, measured: Callable[[], Function], *, alone: bool) -> None:
        """Update configuration and velocity, for steps that move these."""
        # `measured()` is the strain of the configuration in the measure of the steps; `alone`:
        # nothing else, such as the joints of a network, determines where the beam is.
        if not self._is_finite():
            return
        self._refuse_contradiction()
        strain, _, pose, _ = self._set(_NOTHING)
        if strain and pose and not self._chain.agrees(measured()):
            raise ValueError(
                "strain and configuration of a beam were both set and contradict one another: "
                + _WHAT_TO_DO
            )
        if strain and not pose and not alone:
            raise ValueError(
                "the strain of a beam in a network was set, but not its position: call its "
                "reconstruct(position=..., orientation=...)"
            )
        for change in self._for_configuration():
            change.run()
        if strain or not pose:  # else the strain follows after the steps
            self.note()

    def _is_finite(self) -> bool:
        local = all(np.isfinite(f.dat.data_ro).all() for f in self._fields)
        return bool(self._beam.comm.allreduce(int(local), op=MPI.MIN))

    def _refuse_contradiction(self) -> None:
        """Raise ``ValueError`` if momentum and velocity were set and contradict one another."""
        _, momentum, _, velocity = self._set(_NOTHING)
        if momentum and velocity and self._contradiction() > _SAME:
            raise ValueError(
                "momentum and velocity of a beam were both set and contradict one another: "
                + _WHAT_TO_DO
            )

    def _contradiction(self) -> float:
        """Distance of the velocity from that of the momentum, in the norm of the kinetic energy."""
        beam, space = self._beam, self._beam.velocity.function_space()
        momentum, velocity = Function(space), Function(space)
        self._momentum_of(beam.velocity, momentum).run()
        self._velocity_of(beam.momentum, velocity).run()
        p, P, v, V = (f.dat.data_ro for f in (beam.momentum, momentum, beam.velocity, velocity))
        sums = np.array([np.sum((P - p) * (v - V)), np.sum(P * v), np.sum(p * V)])
        gap, *sizes = beam.comm.allreduce(sums, op=MPI.SUM)
        # Where neither moves, nothing can contradict; what is not finite fails in the step.
        return float(np.sqrt(abs(gap) / max(*sizes, np.finfo(float).tiny)))


class DependentFields:
    """Sets strain and momentum of a beam from its configuration, in the rod's strain measure."""

    # So the beam's own energies and momenta are those of the motion.
    def __init__(
        self, beam: BeamFields, rod: Rod, consistency: Consistency, *, alone: bool = True
    ) -> None:
        self._beam, self._rod = beam, rod
        self._consistency, self._alone = consistency, alone

    # Forms of the strain are made late: an assembly has many beams, and may never be settled.
    @cached_property
    def _of_configuration(self) -> Expr:
        beam = self._beam
        strain = self._rod.elastic_strain((beam.position, beam.orientation))
        return strain if beam.reference_strain is None else strain + beam.reference_strain

    @cached_property
    def _strain(self) -> VectorAssembly:
        return VectorAssembly(self._rod.cells.values(self._of_configuration))

    @cached_property
    def _copy(self) -> tuple[Field, Field]:
        return Field(self._beam.strain), Field(self._strain.tensor)

    @cached_property
    def closings(self) -> list[Operation]:
        """The operations of :meth:`settle`, for derivatives."""
        strain = self._beam.strain
        test = TestFunction(strain.function_space())
        gap = self._rod.cells.values(strain - self._of_configuration, test)
        return [
            *self._consistency.momentum_of_velocity.operations,
            Solve(work=simplify(gap), unknown=strain, find=self._set_strain),
        ]

    def prepare(self) -> None:
        """Update the description that was not set since the last step."""
        # Where the inertia has changed the velocity is kept.
        if not self._consistency.holds():
            self._consistency.restore_for_configuration(
                lambda: self._strain.assemble(), alone=self._alone
            )

    def settle(self) -> None:
        """Set strain and momentum to those of the configuration and the velocity."""
        self._consistency.momentum_of_velocity.run()
        self._set_strain()
        self._consistency.note()

    def _set_strain(self) -> None:
        self._strain.assemble()
        target, source = self._copy
        target.owned[...] = source.owned
        target.written()


class _Product:
    """A constant matrix times the values of a field at each node, without a kernel."""

    def __init__(self, target: Function, matrix: np.ndarray, source: Function) -> None:
        self._target, self._source = Field(target), Field(source)
        self._matrix = np.array(matrix.T)

    @not_taped
    def apply(self) -> None:
        """Compute the product; ``NotImplementedError`` while pyadjoint records."""
        self._source.update_ghosts()
        np.matmul(self._source.array, self._matrix, out=self._target.array)
        self._target.written(ghosts_too=True)
