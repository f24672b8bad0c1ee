"""Inertia of a rod's section and of its nodes: kinetic energy, inertial forces, weight, mobility."""

import numpy as np
import ufl
from firedrake import Function, FunctionSpace, TensorFunctionSpace
from ufl.classes import Expr, Form

from fdgeom.beams.rod.variation import in_body
from fdgeom.beams.sampling import nodal_lengths, nodal_mean
from fdgeom.lie import halves, join, quaternion, se3, so3
from fdgeom.measures import vertex
from fdgeom.operations import Interpolation
from fdgeom.operations.dependent import Dependent, Sources, dependents_in
from fdgeom.operations.interpolate import inverse_of
from fdgeom.systems.motion.motion import Motion


class Inertia:
    """6×6 inertia per length of a section in the body frame, for velocities, accelerations and
    virtual displacements (angular in the body frame, linear in the space frame).
    """

    def __init__(self, matrix: Expr, *, separate: bool = False) -> None:
        self.matrix = matrix
        # Whether the body frame is at the centre of mass, so that the matrix is diag(J, m I): then
        # the translation needs no rotation.
        self.separate = separate
        self.spin = ufl.as_matrix([[matrix[i, j] for j in range(3)] for i in range(3)])
        self.mass = matrix[3, 3]

    @staticmethod
    def is_separate(matrix) -> bool:
        """Whether an array (..., 6, 6) is of the form diag(J, m I) to the last digit."""
        if not isinstance(matrix, np.ndarray):
            return False
        mass = matrix[..., 3, 3][..., None, None] * np.eye(3)
        return (
            np.array_equal(matrix[..., 3:, 3:], mass)
            and not matrix[..., :3, 3:].any()
            and not matrix[..., 3:, :3].any()
        )

    def kinetic(self, orientation: Expr, velocity: Expr) -> Expr:
        """½ V·M V with the body velocity V."""
        return 0.5 * self.mass_product(orientation, velocity, velocity)

    def work(self, orientation: Expr, velocity: Expr, acceleration: Expr, virtual: Expr) -> Expr:
        """Virtual work of M V̇ - ad*_V(M V)."""
        spin, _ = halves(velocity, "velocity")
        rotation, translation = halves(virtual, "virtual")
        spin_rate, linear_rate = halves(acceleration, "acceleration")
        if self.separate:
            torque = self.spin * spin_rate - so3.coadjoint(spin, self.spin * spin)
            return ufl.dot(torque, rotation) + self.mass * ufl.dot(linear_rate, translation)
        body = in_body(orientation, velocity)
        turned = halves(body, "body")[1]
        rate = join(
            spin_rate,
            quaternion.rotate_inverse(orientation, linear_rate) - ufl.cross(spin, turned),
        )
        force = self.matrix * rate - se3.coadjoint(body, self.matrix * body)
        return ufl.dot(force, in_body(orientation, virtual))

    def mass_product(self, orientation: Expr, a: Expr, b: Expr) -> Expr:
        """a·M b for two velocities or displacements."""
        if self.separate:
            (spin, linear), (rotation, translation) = halves(a, "a"), halves(b, "b")
            return ufl.dot(rotation, self.spin * spin) + self.mass * ufl.dot(linear, translation)
        return ufl.dot(in_body(orientation, b), self.matrix * in_body(orientation, a))

    def first_moment(self, configuration) -> Expr:
        """Mass per length times the position of the centre of mass, in space."""
        position, orientation = configuration
        moment = self.mass * position
        if self.separate:
            return moment
        return moment + quaternion.rotate(orientation, self.offset_moment)

    @property
    def offset_moment(self) -> Expr:
        """Mass per length times the vector from the node to the centre of mass, body frame."""
        return ufl.as_vector([self.matrix[4, 2], self.matrix[5, 0], self.matrix[3, 1]])

    def beside_masses(self) -> tuple[Expr, Expr]:
        """The blocks of M for translations, angular and linear, less those of masses, mĉ and m I."""
        M, moment = self.matrix, so3.hat(self.offset_moment)
        spin = [[M[i, 3 + j] - moment[i, j] for j in range(3)] for i in range(3)]
        # The diagonal of masses is that of the first entry.
        linear = [[M[3 + i, 3 + j] - (self.mass if i == j else 0) for j in range(3)]
                  for i in range(3)]  # fmt: skip
        linear[0][0] = ufl.as_ufl(0.0)
        return ufl.as_matrix(spin), ufl.as_matrix(linear)

    def momentum(self, orientation: Expr, velocity: Expr) -> tuple[Expr, Expr]:
        """Angular momentum about the node's position and linear momentum, both in space."""
        body = self.matrix * in_body(orientation, velocity)
        spin, linear = halves(body, "body")
        return quaternion.rotate(orientation, spin), quaternion.rotate(orientation, linear)


class NodalInertia:
    """The inertia M of the nodes, 6×6 per length, and the mobility, which follow the sections."""

    # The mobility, `inverse`, gives the velocity of a momentum of the free components: M⁻¹ where
    # nothing is held; at a held node the inverse of the block M_ff of the free components, and zero
    # else, as the momentum M_hf v_f of the held ones is that of the reaction. `separate`: the
    # inertia is of the form diag(J, m I).
    def __init__(self, motion: Motion) -> None:
        self._cells, inertia = motion.rod.cells, motion.rod.inertia
        self.separate = inertia.separate
        beam = getattr(motion, "beam", None)
        if beam is not None and beam.end_weight == 0.5:
            self.matrix, self.inverse = beam.inertia, beam.compliance_of_inertia
            self._length = None
        else:
            self._lump(motion, inertia.matrix)
        self._read, self._dependents = Sources(self.matrix), dependents_in(self.matrix)
        # diag(J, m I) has no block between what is held and what is free.
        held = None if self.separate else motion.held
        if held is not None or self._length is not None:
            self.inverse = self._mobility(motion, held)

    def _lump(self, motion: Motion, inertia: Expr) -> None:
        """Make the inertia a field, over the length that belongs to each node."""
        mesh = motion.mesh
        scalar = motion.position.function_space().ufl_element().sub_elements[0]
        space = FunctionSpace(mesh, scalar)
        there = nodal_lengths(self._cells.at_nodes, space)
        whole = nodal_lengths(lambda density: density * vertex(mesh), space)
        rods = there > 0  # a node of the ground belongs to none
        self._length = Function(space, name="length of the nodes")
        self._length.dat.data_wo_with_halos[...] = np.where(rods, there / whole, 1.0)
        matrix = Function(TensorFunctionSpace(mesh, scalar, shape=(6, 6)), name="inertia")
        still = np.where(rods[:, None, None], 0.0, np.eye(6))
        self.matrix = nodal_mean(inertia, matrix, self._cells.at_nodes, still)

    def changed(self) -> bool:
        """Whether the inertia has changed since the last :meth:`take`."""
        self._dependents.refresh()
        return self._read.changed()

    def take(self) -> None:
        """Save the present values."""
        self._dependents.refresh()
        self._read.take()

    def forget(self) -> None:
        """Let the inertia count as changed."""
        self._read.forget()

    def _mobility(self, motion: Motion, held) -> Function:
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

        made = Dependent([mobility], [self.matrix], make, private=True)
        made.expression = self.matrix
        made.operations = inverse_of(self.matrix, mobility)
        return mobility

    def at_nodes(self, density: Expr) -> Form:
        """∫ density ds, lumped at the nodes, for fields of the nodes only."""
        if self._length is None:
            return self._cells.at_nodes(density)
        return self._length * density * vertex(self._cells.mesh)
