"""Reactions at the held ends of a beam that is moved by its strain and momentum."""

import numpy as np
import ufl
from firedrake import Function, TensorFunctionSpace, TestFunction

from fdgeom.beams.bracket import BeamBracket
from fdgeom.forms import simplify
from fdgeom.lie.arrays import quaternion
from fdgeom.solvers import VectorAssembly


class BeamReactions:
    """The wrench R at each held end, from the equation of its node:

        w D₁ζ̇ = f + R,   f·β = {(0, β), h} + (work of the loads),

    with the weight w of the node (a length) and ζ̇ given in the held components; R = 0 in the
    others.
    """

    def __init__(self, beam: BeamBracket) -> None:
        self._beam = beam
        space = beam.momentum.function_space()
        test, zero = TestFunction(space), ufl.zero(6)
        gradient = beam.gradient(beam.parts)
        work = beam.bracket((zero, test), gradient)
        work += beam.forcing((zero, test), gradient, ufl.as_ufl(0.0))
        self._force = VectorAssembly(simplify(work))
        self._weight = VectorAssembly(beam.at_nodes(ufl.dot(ufl.as_vector([1.0] * 6), test)))
        element = space.ufl_element().sub_elements[0]
        self._matrix = Function(TensorFunctionSpace(beam.mesh, element, shape=(6, 6)))

    def values(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Moment about the node and force at each held end, in space, two arrays of 3."""
        beam, found = self._beam, {}
        matrices = self._matrix.interpolate(beam.inertia).dat.data_ro
        forces, weights = (v.assemble().dat.data_ro for v in (self._force, self._weight))
        turns = beam.orientation.dat.data_ro
        for end in beam.bracket_ends:
            if not len(end.held):
                continue
            total, rates = np.zeros(6), end.accelerations()
            for node in end.nodes[end.nodes < len(forces)]:
                matrix = weights[node, 0] * matrices[node]
                wrench = _reaction(matrix, forces[node], end.held, rates)
                total += np.concatenate(
                    [quaternion.rotate(turns[node], part) for part in (wrench[:3], wrench[3:])]
                )
            total = beam.comm.allreduce(total)
            found[end.name] = (total[:3], total[3:])
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
