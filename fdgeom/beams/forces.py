"""Forces at supports and joints in both forms, and stress resultants along a beam."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import ufl
from firedrake import (
    FiniteElement,
    Function,
    TensorFunctionSpace,
    TestFunction,
    VectorFunctionSpace,
)
from ufl.classes import Expr, Form

from fdgeom.execution import PointwiseUpdate, VectorAssembly
from fdgeom.forms import simplify
from fdgeom.lie import arrays, halves, join, quaternion
from fdgeom.line import Numbering, bounds
from fdgeom.messages import format_value
from fdgeom.operations.dependent import dependents_in, refresh
from fdgeom.systems.motion.motion import Motion
from fdgeom.validation import array, choice

if TYPE_CHECKING:
    from fdgeom.beams.fields import BeamFields

#: The places of a joint.
SIDES = ("first", "second")


class Forces:
    """Forces of supports and joints, each from a virtual work."""

    #: Whether those of a step belong to the present state.
    belong: Callable[[], bool]

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

    def exerted(self, joint, side: str) -> np.ndarray:
        """(moment, force) of a joint on its "first" or "second" place."""
        choice("side", side, SIDES)
        joints = () if self._motion.constraint is None else self._motion.constraint.joints
        index = next((k for k, j in enumerate(joints) if j is joint), None)
        if index is None:
            raise ValueError(f"joint must be a joint of this assembly, not {joint!r}")
        return self.joints()[index, SIDES.index(side)]

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
            return joints.slope(multiplier, test, g) + joints.spring_work(g, v, test)

        super().__init__(motion, balance, joint_work)


def from_space(orientation: Expr, displacement: Expr) -> Expr:
    """A virtual displacement in space as (rotation in the body frame, translation in space)."""
    rotation, translation = halves(displacement, "displacement")
    return join(quaternion.rotate_inverse(orientation, rotation), translation)


class BeamReactions:
    """The wrench R at each held end, from the equation of its node:

        w D₁ζ̇ = f + R,   f·β = {(0, β), h} + (work of the loads),

    with the weight w of the node (a length) and ζ̇ given in the held components; R = 0 in the
    others.
    """

    # beam: a `Beam`, whose file imports this one.
    def __init__(self, beam: Any) -> None:
        self._beam = beam
        space = beam.momentum.function_space()
        test, zero = TestFunction(space), ufl.zero(6)
        gradient = beam.gradient(beam.parts)
        work = beam.bracket((zero, test), gradient)
        work += beam.substeps.forcing((zero, test), gradient, ufl.as_ufl(0.0))
        self._force = VectorAssembly(simplify(work))
        self._weight = VectorAssembly(beam.at_nodes(ufl.dot(ufl.as_vector([1.0] * 6), test)))
        element = space.ufl_element().sub_elements[0]
        self._matrix = Function(TensorFunctionSpace(beam.mesh, element, shape=(6, 6)))

    def values(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Moment about the node and force at each held end, in space, two arrays of 3."""
        beam, found = self._beam, {}
        refresh(beam.inertia)
        matrices = self._matrix.interpolate(beam.inertia).dat.data_ro
        forces, weights = (v.assemble().dat.data_ro for v in (self._force, self._weight))
        turns = beam.orientation.dat.data_ro
        for end in beam.ends:
            if not len(end.held):
                continue
            total, rates = np.zeros((2, 3)), end.accelerations()
            for node in end.nodes[end.nodes < len(forces)]:
                matrix = weights[node, 0] * matrices[node]
                wrench = _reaction(matrix, forces[node], end.held, rates)
                total += arrays.quaternion.rotate(turns[node], wrench.reshape(2, 3))
            moment, force = beam.comm.allreduce(total)
            found[end.name] = (moment, force)
        return found


def _reaction(matrix, force, held, rates) -> np.ndarray:
    """R of M a = f + R, with a given where R may be, and R zero elsewhere."""
    free = np.setdiff1d(np.arange(6), held)
    a = np.zeros(6)
    a[held] = rates
    if len(free):
        known = force[free] - matrix[np.ix_(free, held)] @ rates
        a[free] = np.linalg.solve(matrix[np.ix_(free, free)], known)
    wrench = np.zeros(6)
    wrench[held] = matrix[held] @ a - force[held]
    return wrench


class StressResultants:
    """Moment and force of a beam along its arc length, on every rank."""

    # Between the Gauss points: the polynomial through the nearest degree + 1 of them, of order
    # degree + 1. It smooths a point load over a cell.
    def __init__(self, beam: "BeamFields") -> None:
        self._stress = Function(beam.strain.function_space(), name="stress")
        self._update = PointwiseUpdate({self._stress: beam.stress()})
        self._dependents = dependents_in(beam.stress())
        self._points = Numbering(self._stress.function_space())
        self._degree = beam.degree
        self._ends = bounds(beam.mesh)

    def at(self, s) -> np.ndarray:
        """(6,) at an arc length, or (n, 6) at n of them, from the strain of the beam."""
        self._dependents.refresh()
        self._update.apply()
        return self.of(self._stress, s)

    def of(self, values: Function, s) -> np.ndarray:
        """Values, as :meth:`at`, of any function with a value at each Gauss point."""
        wanted = "an arc length, or a sequence of them"
        places, arc = array("s", s, wanted=wanted), self._points.coordinates
        if places.ndim > 1:
            raise ValueError(f"s must be {wanted}, not {format_value(s)}")
        low, high = self._ends
        slack = 1e-9 * (high - low)
        if np.any(places < low - slack) or np.any(places > high + slack):
            raise ValueError(f"s must lie on the beam, from {low:g} to {high:g}, not at {s!r}")
        return _interpolated(arc, self._points.gather(values), places, self._degree + 1)


def _interpolated(arc: np.ndarray, values: np.ndarray, s: np.ndarray, count: int) -> np.ndarray:
    """Lagrange's polynomials through the ``count`` nearest points."""
    count = min(count, len(arc))
    # Even numbers stand on both sides of s, odd ones about the nearest.
    marks = arc if count % 2 == 0 else (arc[1:] + arc[:-1]) / 2
    first = np.clip(np.searchsorted(marks, s) - count // 2, 0, len(arc) - count)
    window = np.asarray(first)[..., None] + np.arange(count)
    x = arc[window]
    weights = np.ones_like(x)
    for j in range(count):
        for k in range(count):
            if k != j:
                weights[..., j] *= (s - x[..., k]) / (x[..., j] - x[..., k])
    return np.einsum("...j,...jc->...c", weights, values[window])
