"""Potentials of the loads that have one: gravity and dead forces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ufl
from ufl.core.expr import Expr

from fdgeom.lie import quaternion
from fdgeom.systems.rods.loads import BodyLoad, Gravity, Load, vector

if TYPE_CHECKING:
    from fdgeom.systems.rods.inertia import Inertia
    from fdgeom.systems.rods.rod import Rod


def potential_density(load: BodyLoad, rod: Rod, configuration) -> Expr:
    """Potential per length at a node: zero for moments and for loads that follow the section.

    That of a load which changes in time is the one at the present time.
    """
    if isinstance(load, Gravity):
        field = vector("acceleration", load.acceleration, rod)
        return -ufl.dot(field, first_moment(rod.inertia, configuration))
    if isinstance(load, Load) and load.force is not None and load.frame == "space":
        force = vector("force", load.force, rod)
        return -rod.place(load.at) * ufl.dot(force, configuration[0])
    return ufl.as_ufl(0.0)


def first_moment(inertia: Inertia, configuration) -> Expr:
    """Mass per length times the position of the centre of mass, in space."""
    position, orientation = configuration
    moment = inertia.matrix[3, 3] * position
    if inertia.separate:
        return moment
    return moment + quaternion.rotate(orientation, offset_moment(inertia))


def offset_moment(inertia: Inertia) -> Expr:
    """Mass per length times where the centre of mass is seen from the node, body frame."""
    matrix = inertia.matrix
    return ufl.as_vector([matrix[4, 2], matrix[5, 0], matrix[3, 1]])
