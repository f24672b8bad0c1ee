"""The conditions of joints as the steppers see a constraint: numbers, and checks of a start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from firedrake import TestFunction, TrialFunction, assemble
from mpi4py import MPI
from petsc4py import PETSc
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.beams.network.joint_set import JointSet
from fdgeom.solvers.assembly import VectorAssembly
from fdgeom.solvers.saddle import deficiency

if TYPE_CHECKING:
    from fdgeom.beams.network.assembly import Assembly

# Of the size of the beams and their velocities: what a start may miss the conditions by.
_CONSISTENT = 1e-9


class JointConstraint:
    """Φ(g) = 0 of all joints.

    Parameters
    ----------
    motion : Assembly
        What is joined.
    joints : JointSet
        How.
    """

    def __init__(self, motion: Assembly, joints: JointSet) -> None:
        self._motion, self._joints = motion, joints
        self.space = joints.space
        self._held: dict[str, object] = {}

    def forms(self) -> tuple[Form, ...]:
        """What states it."""
        return (self._joints.value(TestFunction(self.space), self._motion.configuration),)

    def _values(self, name: str) -> np.ndarray:
        motion, joints = self._motion, self._joints
        if name not in self._held:
            test, g = TestFunction(self.space), motion.configuration
            form = joints.value(test, g) if name == "value" else joints.slope(test, motion.v, g)
            self._held[name] = VectorAssembly(form)
        return self._held[name].assemble().dat.data_ro

    def _largest(self, values) -> float:
        return float(self._motion.comm.allreduce(np.abs(values).max(initial=0.0), op=MPI.MAX))

    def defect(self) -> float:
        """Largest \\|Φ(g)\\|: gaps in lengths, misalignments in radians."""
        return self._largest(self._values("value"))

    def rate(self, velocity: Expr | None = None) -> float:
        """Largest \\|dΦ/dt\\|."""
        return self._largest(self._values("rate"))

    def check_start(self) -> None:
        """Raise ``ValueError`` if the start contradicts the joints, or they contradict one another."""
        motion = self._motion
        size = max(1.0, self._largest(motion.position.dat.data_ro))
        speed = max(1.0, self._largest(motion.v.dat.data_ro))
        for what, defect, scale in (
            ("the conditions of the joints", self.defect(), size),
            ("their rates", self.rate(), size * speed),
        ):
            if not defect <= _CONSISTENT * scale:
                raise ValueError(
                    f"the start does not fulfil {what}: it is off by {defect:.3g}. Start where the "
                    "joints hold, with velocities that agree in them"
                )
        missing = self._missing()
        if missing:
            raise ValueError(
                f"joints: {missing} of their conditions follow from the others, or hold what the ends "
                "of the beams hold already: over-constrained. Leave them out"
            )

    def _missing(self) -> int:
        """How many conditions there are above the rank of B M⁻¹ Bᵀ."""
        motion, joints = self._motion, self._joints
        g, trial = motion.configuration, TrialFunction(motion.space)
        gradient = joints.slope(TestFunction(self.space), trial, g)
        gradient = assemble(gradient, mat_type="aij").petscmat
        mass = assemble(motion.inertia(TestFunction(motion.space), trial), diagonal=True)
        with mass.dat.vec_ro as diagonal:
            weight = diagonal.copy()
        values = weight.getArray()
        held = np.array([], dtype=int) if motion.given is None else motion.given.dofs[0]
        values[held[held < len(values)]] = np.inf
        # Nodes of the ground have no mass and are held.
        values[...] = np.where(values > 0, 1 / np.where(values > 0, values, 1.0), 0.0)
        rows = np.setdiff1d(np.arange(gradient.getLocalSize()[0]), joints.idle)
        rows = (gradient.getOwnershipRange()[0] + rows).astype(PETSc.IntType)
        wanted = PETSc.IS().createGeneral(rows, comm=gradient.comm)
        gradient = gradient.createSubMatrix(wanted, None)
        scaled = gradient.copy()
        scaled.diagonalScale(None, weight)
        scaled.transpose()
        return deficiency(gradient.matMult(scaled))
