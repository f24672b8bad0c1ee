"""Inertia and lengths of rods as fields of the nodes, for methods that solve node by node."""

from functools import cached_property

import numpy as np
import ufl
from firedrake import Function, FunctionSpace, TensorFunctionSpace, TestFunction, assemble
from ufl.algorithms import extract_coefficients
from ufl.classes import Expr, Form

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.measures import vertex
from fdgeom.solvers import VectorAssembly
from fdgeom.solvers.derived import Derived, Interpolation, derived_in
from fdgeom.solvers.rules import Interpolated, Summed


class NodalInertia:
    """The inertia M of the nodes, 6×6 per length, and the mobility, which follow the sections."""

    # The mobility, `inverse`, gives the velocity of a momentum of the free components: M⁻¹ where
    # nothing is held; at a held node the inverse of the block M_ff of the free components, and zero
    # else, as the momentum M_hf v_f of the held ones is that of the reaction. `separate`: all
    # inertias are of the form diag(J, m I).
    def __init__(self, motion: RodMotion) -> None:
        self._cells = motion.cells
        self.separate = all(inertia.separate for inertia in motion.inertias)
        beam = getattr(motion, "beam", None)
        if beam is not None and beam.end_weight == 0.5 and len(motion.inertias) == 1:
            self.matrix, self.inverse = beam.inertia, beam.compliance_of_inertia
            self._length = None
        else:
            self._sum_up(motion)
        # diag(J, m I) has no block between what is held and what is free.
        held = None if self.separate else motion.held
        if held is not None or self._length is not None:
            self.inverse = self._mobility(motion, held)

    def _sum_up(self, motion: RodMotion) -> None:
        """Sum all inertias at a node, over the length that belongs to it."""
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
        matrix = self.matrix = Function(space, name="inertia")
        still = np.where(rods[:, None, None], 0.0, np.eye(6))
        weights = np.where(rods, 1 / np.where(rods, there, 1.0), 0.0)[:, None, None]

        def sums(test: Expr) -> Form:
            return self._cells.at_nodes(ufl.inner(total, test))

        assembly = VectorAssembly(sums(TestFunction(space)))

        def make() -> None:
            found = assembly.assemble().dat.data_ro_with_halos
            matrix.dat.data_wo_with_halos[...] = still + weights * found

        made = Derived([matrix], [total], make, private=True)
        made.rule = Summed(sums, weights[: len(matrix.dat.data_ro)])

    def version(self) -> int:
        """A number that changes with the inertia."""
        for derived in self._derived:
            derived.refresh()
        return sum(dat.dat_version for dat in self._dats)

    @cached_property
    def _derived(self) -> tuple[Derived, ...]:
        return derived_in(self.matrix)

    @cached_property
    def _dats(self) -> list:
        return [f.dat for f in extract_coefficients(self.matrix)]

    def _mobility(self, motion: RodMotion, held) -> Function:
        """The inverse of the block of the free components at each node."""
        element = motion.position.function_space().ufl_element().sub_elements[0]
        space = TensorFunctionSpace(motion.mesh, element, shape=(6, 6))
        mobility, found = Function(space, name="mobility"), Interpolation(self.matrix, space)
        free = np.ones((len(mobility.dat.data_ro_with_halos), 6))
        if held is not None:
            (dofs,) = held.dofs
            free.reshape(-1)[dofs] = 0.0
        both = free[:, :, None] * free[:, None, :]

        def make() -> None:
            matrices = found.apply().dat.data_ro_with_halos
            blocks = both * matrices + np.eye(6) * (1 - free)[:, None, :]
            mobility.dat.data_wo_with_halos[...] = both * np.linalg.inv(blocks)

        # The derivative -X dM X of an inverse is that of this X too.
        made = Derived([mobility], [self.matrix], make, private=True)
        made.rule = Interpolated(self.matrix, inverse=True)
        return mobility

    def at_nodes(self, density: Expr) -> Form:
        """∫ density ds, lumped at the nodes, for fields of the nodes only."""
        if self._length is None:
            return self._cells.at_nodes(density)
        return self._length * density * vertex(self._cells.mesh)


def _values(form: Form) -> np.ndarray:
    """The values of an assembled linear form at the nodes, ghosts included."""
    return np.array(assemble(form).dat.data_ro_with_halos)
