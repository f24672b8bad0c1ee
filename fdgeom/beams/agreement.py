"""Consistency of strain and momentum of a beam with its configuration and velocity."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np
from firedrake import Function, dot
from mpi4py import MPI

from fdgeom.beams.chain import Chain, projection, reconstruction
from fdgeom.beams.fields import BeamFields
from fdgeom.operations import Map, Operation, Solve
from fdgeom.solvers import Field, PointwiseUpdate, Snapshot
from fdgeom.taping import not_taped

# Of the size of what is compared: fields set from one formula differ by round-off.
_SAME = 1e-9
_WHAT_TO_DO = (
    "set one of the two, or say which is meant: reconstruct() takes strain and momentum, project() "
    "takes configuration and velocity"
)


class Agreement:
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

    @cached_property
    def velocity_of_momentum(self) -> dict:
        """ζ = D₁⁻¹μ."""
        beam = self._beam
        return {beam.velocity: dot(beam.compliance_of_inertia, beam.momentum)}

    @cached_property
    def momentum_of_velocity(self) -> dict:
        """μ = D₁ζ."""
        return {self._beam.momentum: dot(self._beam.inertia, self._beam.velocity)}

    @cached_property
    def velocity_operation(self) -> Map:
        """The velocity of the momentum, as an operation."""
        return Map(values=self.velocity_of_momentum)

    @cached_property
    def momentum_operation(self) -> Map:
        """The momentum of the velocity, as an operation."""
        return Map(values=self.momentum_of_velocity)

    @cached_property
    def to_velocity(self) -> "PointwiseUpdate | _Product":
        """Writes the velocity of the momentum."""
        return self._update(self.velocity_of_momentum, self._beam.momentum, inverse=True)

    @cached_property
    def to_momentum(self) -> "PointwiseUpdate | _Product":
        """Writes the momentum of the velocity."""
        return self._update(self.momentum_of_velocity, self._beam.velocity, inverse=False)

    def _update(self, assignment: dict, source: Function, *, inverse: bool):
        """Writes the product of the inertia, or its inverse, and a field."""
        matrix, (target,) = self._beam.numbers_of_inertia, assignment
        if matrix is not None:
            return _Product(target, np.linalg.inv(matrix) if inverse else matrix, source)
        return PointwiseUpdate(assignment)

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

    def openings(self, touched: Sequence[bool]) -> list:
        """The changes that :meth:`restore_for_bracket` makes, for derivatives."""
        # `touched`: strain, momentum, position, orientation, velocity have derivatives, though
        # perhaps no new value now. NotImplementedError if the degree is above 1 and one follows the
        # other.
        strain, momentum, pose, velocity = self._set(touched)
        if not (strain or momentum or velocity or pose):
            # A section may change, and the momentum is what stays.
            varies = isinstance(self._beam.compliance_of_inertia, Function)
            return [self.velocity_operation] if varies else []
        made = [self.momentum_operation] if velocity and not momentum else []
        made.append(self.velocity_operation)
        if strain is not pose and self._chain.is_open:
            made += [self._projection] if pose else self._reconstruction
        return made

    @cached_property
    def _projection(self) -> Solve:
        return projection(self._beam, self._chain)

    @cached_property
    def _reconstruction(self) -> list[Operation]:
        find = partial(self._chain.followed, self._anchor)
        return reconstruction(self._beam, self._chain, find, self._anchor, moves=True)

    def restore_for_bracket(self) -> None:
        """Update the older description, for steps of strain and momentum."""
        if not self._is_finite():
            return  # the step will say so
        strain, momentum, position, orientation, velocity = self.noted.changed()
        self._restore_velocity(momentum, velocity)
        self.to_velocity.apply()
        chain, pose = self._chain, position or orientation
        # A ring has no first node from which its strain would say where the others are.
        # Where strain and configuration were both set, both are taken as they are: these steps move
        # the configuration beside the strain.
        if strain is not pose and chain.is_open:
            chain.follow(self._anchor) if strain else chain.project()
        self.note()

    def openings_for_configuration(self, touched: Sequence[bool], *, alone: bool = True) -> list:
        """The changes that :meth:`restore_for_configuration` makes, as :meth:`openings`."""
        strain, momentum, pose, velocity = self._set(touched)
        made: list = []
        if velocity and not momentum:
            made.append(self.momentum_operation)
        elif momentum and not velocity:
            made.append(self.velocity_operation)
        if strain and not pose:
            set_now = self.noted.changed()[0]
            if not alone and set_now:
                return made  # it is refused before the steps, whatever records
            if not alone:
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
            made += self._reconstruction
        return made

    def restore_for_configuration(self, measured: Callable[[], Function], *, alone: bool) -> None:
        """Update configuration and velocity, for steps that move these."""
        # `measured()` is the strain of the configuration in the measure of the steps; `alone`:
        # nothing else, such as the joints of a network, determines where the beam is.
        if not self._is_finite():
            return
        strain, momentum, position, orientation, velocity = self.noted.changed()
        self._restore_velocity(momentum, velocity)
        if not strain:
            if not (position or orientation):
                self.note()
            return  # else the strain follows after the steps
        if position or orientation:
            if not self._chain.agrees(measured()):
                raise ValueError(
                    "strain and configuration of a beam were both set and contradict one another: "
                    + _WHAT_TO_DO
                )
        elif alone:
            self._chain.follow(self._anchor)
        else:
            raise ValueError(
                "the strain of a beam in a network was set, but not its position: call its "
                "reconstruct(position=..., orientation=...)"
            )
        self.note()

    def _is_finite(self) -> bool:
        local = all(np.isfinite(f.dat.data_ro).all() for f in self._fields)
        return bool(self._beam.comm.allreduce(int(local), op=MPI.MIN))

    @property
    def _anchor(self) -> int:
        """The node that is fixed when the strain is set: the first, or a held last one."""
        left, right = (end.kind == "free" for end in self._beam.ends)
        return -1 if left and not right else 0

    def _restore_velocity(self, momentum: bool, velocity: bool) -> None:
        if velocity and not momentum:
            self.to_momentum.apply()
        elif momentum and not velocity:
            self.to_velocity.apply()
        elif momentum and self._contradiction() > _SAME:
            raise ValueError(
                "momentum and velocity of a beam were both set and contradict one another: "
                + _WHAT_TO_DO
            )

    @cached_property
    def _others(self) -> tuple[tuple[Function, Function], list]:
        """The momentum of the velocity and the velocity of the momentum, and the updates of both."""
        beam = self._beam
        momentum, velocity = (Function(beam.velocity.function_space()) for _ in range(2))
        (of_velocity,), (of_momentum,) = (
            group.values() for group in (self.momentum_of_velocity, self.velocity_of_momentum)
        )
        return (momentum, velocity), [
            self._update({momentum: of_velocity}, beam.velocity, inverse=False),
            self._update({velocity: of_momentum}, beam.momentum, inverse=True),
        ]

    def _contradiction(self) -> float:
        """Distance of the velocity from that of the momentum, in the norm of the kinetic energy."""
        (other_momentum, other_velocity), updates = self._others
        for update in updates:
            update.apply()
        p, P, v, V = (
            f.dat.data_ro
            for f in (self._beam.momentum, other_momentum, self._beam.velocity, other_velocity)
        )
        sums = np.array([np.sum((P - p) * (v - V)), np.sum(P * v), np.sum(p * V)])
        gap, *sizes = self._beam.comm.allreduce(sums, op=MPI.SUM)
        # Where neither moves, nothing can contradict; what is not finite fails in the step.
        return float(np.sqrt(abs(gap) / max(*sizes, np.finfo(float).tiny)))


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
