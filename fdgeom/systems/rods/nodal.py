"""Inertia and lengths of rods as fields of the nodes, for methods that solve node by node."""

from __future__ import annotations

import numpy as np
import ufl
from firedrake import Function, FunctionSpace, TensorFunctionSpace, TestFunction, assemble
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.measures import vertex
from fdgeom.systems.rods.motion import RodMotion


class NodalInertia:
    """The inertia M of the nodes, 6×6 per length, and its inverse.

    Attributes
    ----------
    matrix, inverse : UFL expression, 6×6
        Constants, or fields of the nodes.
    separate : bool
        Whether all inertias are of the form diag(J, m I).
    """

    def __init__(self, motion: RodMotion) -> None:
        self._cells = motion.cells
        self.separate = all(inertia.separate for inertia in motion.inertias)
        beam = getattr(motion, "beam", None)
        if beam is not None and beam.end_weight == 0.5 and len(motion.inertias) == 1:
            self.matrix, self.inverse = beam.inertia, beam.compliance_of_inertia
            self._length = None
            return
        mesh = motion.mesh
        scalar = motion.position.function_space().ufl_element().sub_elements[0]
        test = TestFunction(FunctionSpace(mesh, scalar))
        there = _values(self._cells.at_nodes(test))
        rods = there > 0  # a node of the ground belongs to none
        self._length = Function(test.function_space(), name="length of the nodes")
        self._length.dat.data_wo_with_halos[...] = np.where(
            rods, there / _values(test * vertex(mesh)), 1.0
        )
        space = TensorFunctionSpace(mesh, scalar, shape=(6, 6))
        total = sum((i.matrix for i in motion.inertias), ufl.zero(6, 6))
        sums = _values(self._cells.at_nodes(ufl.inner(total, TestFunction(space))))
        self.matrix, self.inverse = (Function(space, name=n) for n in ("inertia", "mobility"))
        values = np.tile(np.eye(6), (len(there), 1, 1))
        values[rods] = sums[rods] / there[rods, None, None]
        self.matrix.dat.data_wo_with_halos[...] = values
        self.inverse.dat.data_wo_with_halos[...] = np.linalg.inv(values)

    def at_nodes(self, density: Expr) -> Form:
        """∫ density ds, lumped at the nodes; of fields of the nodes alone."""
        if self._length is None:
            return self._cells.at_nodes(density)
        return self._length * density * vertex(self._cells.mesh)


def _values(form: Form) -> np.ndarray:
    """The values of an assembled linear form at the nodes, ghosts included."""
    return np.array(assemble(form).dat.data_ro_with_halos)
