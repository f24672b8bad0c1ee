"""Moments and forces of supports and joints on the nodes of rods."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from firedrake import FiniteElement, Function, TestFunction, VectorFunctionSpace
from ufl.classes import Expr, Form

from fdgeom.forms import simplify
from fdgeom.lie import halves, join, quaternion
from fdgeom.solvers import VectorAssembly
from fdgeom.systems.motion.accelerations import Accelerations
from fdgeom.systems.motion.motion import Motion


class Forces:
    """Forces of supports and joints, each from a virtual work."""

    # Virtual displacements are (rotation, translation), both in space: so the works are moments
    # about the nodes, and forces, in space. `balance(test)` is the work of inertia, strains, loads
    # and joints, `joint_work(test)` that of joints, their springs and dampers, against the motion.
    def __init__(
        self,
        motion: Motion,
        balance: Callable[[Expr], Form],
        joint_work: Callable[[Expr], Form],
    ) -> None:
        self._motion, self._balance, self._joint_work = motion, balance, joint_work

    def supports(self) -> np.ndarray:
        """(moment, force) at the nodes that this rank owns, (nodes, 6), valid where they are held."""
        return np.array(self._supports.assemble().dat.data_ro)

    def joints(self) -> np.ndarray:
        """(moment, force) on the first and the second place of each joint, (joints, 2, 6)."""
        return -self._motion.constraint.at_sides(self._joints.assemble())

    @cached_property
    def _supports(self) -> VectorAssembly:
        return VectorAssembly(simplify(self._balance(TestFunction(self._motion.space))))

    @cached_property
    def _joints(self) -> VectorAssembly:
        # Values of their own on each side of a node: so each joint is seen by itself.
        mesh = self._motion.mesh
        element = FiniteElement("DG", mesh.ufl_cell(), 1, variant="equispaced")
        test = TestFunction(VectorFunctionSpace(mesh, element, dim=6))
        return VectorAssembly(simplify(self._joint_work(test)))


class PresentForces(Forces):
    """Forces of the equations of motion at the present state, for known v̇ and λ: r(g, v, v̇, t) +
    B(g)ᵀλ at the supports, B(g)ᵀλ with springs and dampers at the joints.
    """

    def __init__(self, motion: Motion, acceleration: Function, multiplier: Function | None) -> None:
        g, v, joints = motion.configuration, motion.v, motion.constraint

        def balance(test: Expr) -> Form:
            test = from_space(motion.configuration[1], test)
            form = motion.balance(g, v, acceleration, motion.time, test)
            return form if joints is None else form + joints.slope(multiplier, test, g)

        def joint_work(test: Expr) -> Form:
            test = from_space(motion.configuration[1], test)
            return joints.slope(multiplier, test, g) + motion.spring_work(g, v, test)

        super().__init__(motion, balance, joint_work)


class SolvedForces(PresentForces):
    """Forces of the equations of motion at a state without known accelerations."""

    def __init__(self, motion: Motion) -> None:
        acceleration, multiplier = Function(motion.space, name="acceleration"), None
        if motion.constraint is not None:
            multiplier = Function(motion.constraint.space, name="multiplier")
        super().__init__(motion, acceleration, multiplier)
        #: Finds v̇ and λ of the present state.
        self.accelerations = Accelerations(motion, acceleration, multiplier)


class StepForces(PresentForces):
    """Forces of the step that led to the present state, with its accelerations and multipliers."""

    belong: Callable[[], bool]

    def __init__(self, motion: Motion) -> None:
        super().__init__(motion, motion.acceleration, motion.multiplier)


def from_space(orientation: Expr, displacement: Expr) -> Expr:
    """A virtual displacement in space as (rotation in the body frame, translation in space)."""
    rotation, translation = halves(displacement, "displacement")
    return join(quaternion.rotate_inverse(orientation, rotation), translation)
