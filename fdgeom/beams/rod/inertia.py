"""Inertia of a rod's section: kinetic energy, inertial forces and weight, per length."""

import numpy as np
import ufl
from ufl.core.expr import Expr

from fdgeom.lie import halves, join, quaternion, se3, so3


class Inertia:
    """6×6 inertia per length of a section in the body frame, for velocities, accelerations and
    virtual displacements (angular in the body frame, linear in the space frame).
    """

    def __init__(self, matrix: Expr, *, separate: bool = False) -> None:
        self.matrix = matrix
        # Whether the body frame is at the centre of mass, so that the matrix is diag(J, m I): then
        # the translation needs no rotation.
        self.separate = separate
        self._spin = ufl.as_matrix([[matrix[i, j] for j in range(3)] for i in range(3)])
        self._mass = matrix[3, 3]

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
        if self.separate:
            spin, linear = halves(velocity, "velocity")
            return 0.5 * (ufl.dot(spin, self._spin * spin) + self._mass * ufl.dot(linear, linear))
        body = _in_body(orientation, velocity)
        return 0.5 * ufl.dot(body, self.matrix * body)

    def work(self, orientation: Expr, velocity: Expr, acceleration: Expr, virtual: Expr) -> Expr:
        """Virtual work of M V̇ - ad*_V(M V)."""
        spin, _ = halves(velocity, "velocity")
        rotation, translation = halves(virtual, "virtual")
        spin_rate, linear_rate = halves(acceleration, "acceleration")
        if self.separate:
            torque = self._spin * spin_rate - so3.coadjoint(spin, self._spin * spin)
            return ufl.dot(torque, rotation) + self._mass * ufl.dot(linear_rate, translation)
        body = _in_body(orientation, velocity)
        turned = halves(body, "body")[1]
        rate = join(
            spin_rate,
            quaternion.rotate_inverse(orientation, linear_rate) - ufl.cross(spin, turned),
        )
        force = self.matrix * rate - se3.coadjoint(body, self.matrix * body)
        return ufl.dot(force, _in_body(orientation, virtual))

    def mass_product(self, orientation: Expr, a: Expr, b: Expr) -> Expr:
        """a·M b for two velocities or displacements."""
        if self.separate:
            (spin, linear), (rotation, translation) = halves(a, "a"), halves(b, "b")
            return ufl.dot(rotation, self._spin * spin) + self._mass * ufl.dot(linear, translation)
        return ufl.dot(_in_body(orientation, b), self.matrix * _in_body(orientation, a))

    def weight(self, orientation: Expr, gravity: Expr, virtual: Expr) -> Expr:
        """Virtual work of the weight in a field of gravity (3, space frame)."""
        return self.mass_product(orientation, join(ufl.zero(3), gravity), virtual)

    def first_moment(self, configuration) -> Expr:
        """Mass per length times the position of the centre of mass, in space."""
        position, orientation = configuration
        moment = self._mass * position
        if self.separate:
            return moment
        return moment + quaternion.rotate(orientation, self.offset_moment)

    @property
    def offset_moment(self) -> Expr:
        """Mass per length times the vector from the node to the centre of mass, body frame."""
        return ufl.as_vector([self.matrix[4, 2], self.matrix[5, 0], self.matrix[3, 1]])

    def momentum(self, orientation: Expr, velocity: Expr) -> tuple[Expr, Expr]:
        """Angular momentum about the node's position and linear momentum, both in space."""
        body = self.matrix * _in_body(orientation, velocity)
        spin, linear = halves(body, "body")
        return quaternion.rotate(orientation, spin), quaternion.rotate(orientation, linear)


def _in_body(orientation: Expr, velocity: Expr) -> Expr:
    """(rotation in the body frame, translation in the space frame) ↦ all in the body frame."""
    rotation, translation = halves(velocity, "velocity")
    return join(rotation, quaternion.rotate_inverse(orientation, translation))
