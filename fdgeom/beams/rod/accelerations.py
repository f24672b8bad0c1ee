"""The accelerations and multipliers that belong to a configuration and velocity of rods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from firedrake import Cofunction, TrialFunction
from petsc4py import PETSc

from fdgeom.beams.rod.nodal_unknown import RodUnknown, halved
from fdgeom.forms import tidy
from fdgeom.solvers.assembly import MatrixAssembly, VectorAssembly
from fdgeom.solvers.banded import banded

if TYPE_CHECKING:
    from fdgeom.beams.rod.rod_motion import RodMotion


class Accelerations:
    """v̇ and λ of rods and joints, from the balance and the second derivative of the conditions:

        M v̇ + Bᵀλ = -r(g, v, 0, t),   B v̇ = -(d²Φ/dt² without v̇).

    Parameters
    ----------
    motion : RodMotion
        What moves.
    unknown : RodUnknown
        What is solved for.
    """

    def __init__(self, motion: RodMotion, unknown: RodUnknown) -> None:
        self._motion, self.unknown = motion, unknown
        g, trial = motion.configuration, TrialFunction(unknown.function.function_space())
        a, multiplier = halved(trial, unknown.size)
        form, self._turning = motion.inertia(unknown.test, a), None
        if motion.joints is not None:
            form += motion.joints.slope(multiplier, unknown.test, g)
            form += motion.joints.slope(unknown.nu, a, g)
            turning = tidy(motion.joints.turning(unknown.nu, motion.v, g))
            # Spherical joints alone are linear: nothing turns.
            self._turning = None if turning.empty() else VectorAssembly(turning)
        self._matrix = MatrixAssembly(tidy(form), "aij")
        self._rows = np.concatenate([[], *(e.dofs for e in unknown.essential)]).astype(int)
        self._ksp = PETSc.KSP().create(comm=motion.comm)
        self._ksp.setOptionsPrefix("fdgeom_rod_start_")
        options = PETSc.Options("fdgeom_rod_start_")
        for key, value in banded(motion.comm).items():
            if key != "mat_type":
                options[key] = value
        self._ksp.setFromOptions()

    def solve(self, load: Cofunction) -> np.ndarray:
        """v̇ and λ at all local nodes, in the unknown, for r(g, v, 0, t) as ``load``.

        Raises
        ------
        ValueError
            If they cannot be found.
        """
        motion, unknown = self._motion, self.unknown
        matrix = self._matrix.assemble()
        own = self._rows[self._rows < unknown.field.owned.size]
        first = matrix.getOwnershipRange()[0]
        matrix.zeroRows((first + own).astype(PETSc.IntType), diag=1.0)
        with load.dat.vec_ro as f:
            right = -f
        values = right.getArray()
        size = 6 + unknown.size
        # Φ vanishes at the start; its second derivative stands in its place.
        values.reshape(-1, size)[:, 6:] = 0.0
        if self._turning is not None:
            values -= self._turning.assemble().dat.data_ro.reshape(-1)
        values[own] = 0.0
        if motion.given is not None:
            (dofs,), held = motion.given.dofs, unknown.held.dofs
            mine = held < len(values)
            values[held[mine]] = motion.given.a.dat.data_ro_with_halos.reshape(-1)[dofs[mine]]
        self._ksp.setOperators(matrix)
        found = right.duplicate()
        self._ksp.solve(right, found)
        if self._ksp.getConvergedReason() < 0 or not np.isfinite(found.norm()):
            raise ValueError(
                "system: no acceleration belongs to this start: the matrix of mass and joints is "
                "singular. Is every node of the beams of positive mass, and is the state finite?"
            )
        with unknown.function.dat.vec_wo as target:
            found.copy(target)
        return unknown.function.dat.data_ro_with_halos
