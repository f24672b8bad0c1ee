"""Consistency of strain and momentum of a beam with its configuration and velocity."""

from collections.abc import Sequence, Set
from functools import cached_property, partial

import numpy as np
from firedrake import Form, Function, TestFunction, dot
from mpi4py import MPI
from ufl.core.expr import Expr

from fdgeom.beams.chain import Chain, Reconstruct, projection
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.rod import Rod
from fdgeom.data import Field, Snapshot, key
from fdgeom.execution import VectorAssembly, perform
from fdgeom.operations import Assemble, Map, Operation, Performed
from fdgeom.operations.dependent import Dependents, dependents_in
from fdgeom.systems.system import Consistency
from fdgeom.taping import refuse_annotation

# Of the size of what is compared: fields set from one formula differ by round-off.
_SAME = 1e-9
_WHAT_TO_DO = (
    "set one of the two, or say which is meant: reconstruct() takes strain and momentum, project() "
    "takes configuration and velocity"
)


class BeamConsistency(Consistency):
    """Keeps strain and momentum of a beam consistent with its configuration and velocity."""

    # Momentum and velocity are one pair, strain and configuration the other: the one that was set
    # by hand since they last agreed is the newer one, and the other is computed from it.
    def __init__(self, beam: BeamFields) -> None:
        super().__init__(beam)
        self._beam, self.chain = beam, Chain(beam)
        # In the order in which `changed` is read.
        pose = beam.position, beam.orientation
        self._fields = (beam.strain, beam.momentum, *pose, beam.velocity)
        self._of_shape = {key(f) for f in (beam.strain, *pose)}
        #: Their values when they last agreed.
        self.noted = Snapshot(self._fields)
        self.snapshots = (self.noted,)

    # --- operations --------------------------------------------------------------------------------
    @cached_property
    def velocity_of_momentum(self) -> Operation:
        """ζ = D₁⁻¹μ."""
        return self._velocity_of(self._beam.momentum, self._beam.velocity)

    @cached_property
    def momentum_of_velocity(self) -> Operation:
        """μ = D₁ζ."""
        return self._momentum_of(self._beam.velocity, self._beam.momentum)

    def _velocity_of(self, momentum: Function, target: Function) -> Operation:
        return self._product(target, self._beam.compliance_of_inertia, momentum, np.linalg.inv)

    def _momentum_of(self, velocity: Function, target: Function) -> Operation:
        return self._product(target, self._beam.inertia, velocity, np.array)

    def _product(self, target: Function, matrix: Expr, source: Function, made) -> Operation:
        """The product of a matrix and a field, ``made`` of the inertia where that is of numbers."""
        product = Map(values={target: dot(matrix, source)})
        _, numbers = self._beam.section.read_by_beams
        if not isinstance(numbers, np.ndarray):
            return product
        # A thousand beams of one section need no kernel each.
        factor, read, written = np.array(made(numbers).T), Field(source), Field(target)

        def multiply() -> None:
            refuse_annotation("a product with the inertia")
            read.update_ghosts()
            np.matmul(read.array, factor, out=written.array)
            written.written(ghosts_too=True)

        return Performed(do=multiply, operations=[product])

    @cached_property
    def _projection(self) -> Operation:
        return projection(self._beam, self.chain)

    @cached_property
    def _reconstruction(self) -> Operation:
        """The configuration of the strain, from the first node or from a held last one."""
        beam, chain = self._beam, self.chain
        left, right = (end.kind == "free" for end in beam.ends)
        anchor = -1 if left and not right else 0
        return Reconstruct(beam, chain, partial(chain.followed, anchor), anchor, moves=True)

    def from_pose(self, position, orientation) -> list[Operation]:
        """The configuration with this pose of the first node, and the velocity, of strain and momentum."""
        find = partial(self.chain.from_pose, position, orientation)
        shape = Reconstruct(self._beam, self.chain, find, 0, moves=False)
        return [shape, self.velocity_of_momentum]

    def projected(self) -> list[Operation]:
        """Strain and momentum of configuration and velocity."""
        return [self._projection, self.momentum_of_velocity]

    # --- values set by hand ------------------------------------------------------------------------
    def synchronised(self, *, strain_follows: bool = False) -> None:
        """Note that all fields agree; not if the strain of a new configuration follows after steps."""
        if self.noted.holds() or not self.noted.sees_finite():
            return
        strain, _, pose, _ = self._set()
        if strain or not (pose and strain_follows):
            self.noted.take()

    def _set(self, modified: Set[int] = frozenset()) -> tuple[bool, bool, bool, bool]:
        """Whether strain, momentum, pose and velocity were set, or have ``modified`` keys."""
        changed = self.noted.changed()
        if modified:
            pairs = zip(self._fields, changed, strict=True)
            changed = [now or key(f) in modified for f, now in pairs]
        strain, momentum, position, orientation, velocity = changed
        return strain, momentum, position or orientation, velocity

    def is_placed(self) -> bool:
        strain, _, pose, _ = self._set()
        return strain or pose

    @cached_property
    def _dependents(self) -> Dependents:
        """The dependent fields in the beam's own forms."""
        return dependents_in(self._beam.stress(), self._beam.compliance_of_inertia)

    def synchronise(self, modified: Sequence[Set[int]] | None = None) -> list[Operation]:
        """The operations that update the older description, for steps of strain and momentum.

        ``ValueError`` if momentum and velocity were both set and contradict one another.
        """
        super().synchronise(modified)  # which checks data
        self._dependents.refresh()
        given = modified[0] if modified else frozenset()
        if not given and self.noted.holds():
            # A section may change, and the momentum is what stays.
            varies = isinstance(self._beam.compliance_of_inertia, Function)
            return [self.velocity_of_momentum] if varies else []
        if not self.noted.sees_finite():
            return []  # the step will say so
        self._refuse_contradiction()
        strain, momentum, pose, velocity = self._set(given)
        found = [self.momentum_of_velocity] if velocity and not momentum else []
        found.append(self.velocity_of_momentum)
        # Where strain and configuration were both set, both are taken as they are: these steps move
        # the configuration beside the strain.
        if strain is not pose:
            found.append(self._projection if pose else self._reconstruction)
        return found

    def for_configuration(
        self, rod: Rod, modified: Set[int] = frozenset(), *, alone: bool
    ) -> list[Operation]:
        """The operations that update configuration and velocity, for steps that move these."""
        # Strains of the configuration are in the measure of the rod; `alone`: nothing else, such as
        # the joints of a network, determines where the beam is. Where the inertia has changed the
        # velocity is kept.
        if (not modified and self.noted.holds()) or not self.noted.sees_finite():
            return []
        self._refuse_contradiction()
        set_now, _, pose_now, _ = self._set()
        if set_now and pose_now:
            measured = VectorAssembly(self._strain(rod)).assemble()
            if not self.chain.agrees(measured):
                raise ValueError(
                    "strain and configuration of a beam were both set and contradict one another: "
                    + _WHAT_TO_DO
                )
        if set_now and not pose_now and not alone:
            raise ValueError(
                "the strain of a beam in a network was set, but not its position: call its "
                "reconstruct(position=..., orientation=...)"
            )
        strain, momentum, pose, velocity = self._set(modified)
        if strain and not pose and not set_now:
            self._refuse_derivatives(alone)
        found = []
        if velocity is not momentum:
            found.append(self.momentum_of_velocity if velocity else self.velocity_of_momentum)
        return [*found, self._reconstruction] if strain and not pose else found

    @property
    def strain_was_set(self) -> bool:
        """Whether the strain was set by hand, and the configuration was not."""
        strain, _, pose, _ = self._set()
        return strain and not pose

    def of_configuration(self, rod: Rod) -> list[Operation]:
        """The operations that set strain and momentum to those of the configuration and the velocity."""
        # So the beam's own energies and momenta are those of the motion, in the rod's measure.
        return [self.momentum_of_velocity, self.strain_of_configuration(rod)]

    def strain_of_configuration(self, rod: Rod) -> Operation:
        """The operation that sets the strain to that of the configuration, in the rod's measure."""
        strain = self._beam.strain
        test = TestFunction(strain.function_space())
        return Assemble(work=self._strain(rod, test), by={test: strain})

    def note_configuration(self) -> None:
        """Note that strain and configuration agree, whatever was set of momentum and velocity."""
        self.noted.take(of=self._of_shape)

    def _strain(self, rod: Rod, test: Expr | None = None) -> Form:
        """The form whose vector is the strain of the configuration."""
        beam = self._beam
        strain = rod.elastic_strain((beam.position, beam.orientation))
        if beam.reference_strain is not None:
            strain += beam.reference_strain
        return rod.cells.values(strain, test)

    def _refuse_derivatives(self, alone: bool) -> None:
        """Raise ``NotImplementedError`` if setting the strain would not move the beam as it is now."""
        if not alone:
            raise NotImplementedError(
                "gradients by the strain of a beam in a network are not available, since the strain "
                "does not determine its position; take position, orientation and velocity"
            )
        if not self.chain.agrees():
            raise NotImplementedError(
                "gradients by a strain that statics or steps in configuration form computed are not "
                "available, since they use another strain measure, and setting it would move the beam; take "
                "position, orientation and velocity"
            )

    def _refuse_contradiction(self) -> None:
        """Raise ``ValueError`` if momentum and velocity were set and contradict one another."""
        _, momentum, _, velocity = self._set()
        if momentum and velocity and self._contradiction() > _SAME:
            raise ValueError(
                "momentum and velocity of a beam were both set and contradict one another: "
                + _WHAT_TO_DO
            )

    def _contradiction(self) -> float:
        """Distance of the velocity from that of the momentum, in the norm of the kinetic energy."""
        beam, space = self._beam, self._beam.velocity.function_space()
        momentum, velocity = Function(space), Function(space)
        found = (
            self._momentum_of(beam.velocity, momentum),
            self._velocity_of(beam.momentum, velocity),
        )
        perform(found, {})
        p, P, v, V = (f.dat.data_ro for f in (beam.momentum, momentum, beam.velocity, velocity))
        sums = np.array([np.sum((P - p) * (v - V)), np.sum(P * v), np.sum(p * V)])
        gap, *sizes = beam.comm.allreduce(sums, op=MPI.SUM)
        # Where neither moves, nothing can contradict; what is not finite fails in the step.
        return float(np.sqrt(abs(gap) / max(*sizes, np.finfo(float).tiny)))
