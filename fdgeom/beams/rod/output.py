"""Output fields of rods in configuration form, updated from the poses."""

import ufl
from firedrake import Function, FunctionSpace, VectorFunctionSpace
from ufl.core.expr import Expr

from fdgeom.beams.contact.contact import contact_fields
from fdgeom.execution import VectorAssembly
from fdgeom.lie import halves, join, quaternion
from fdgeom.systems.motion.motion import Motion


class RodOutput:
    """Strain, stress (with its viscous part) and momentum in the motion's own measure as fields
    that are constant in each cell and zero in joints, and other output as expressions.
    """

    def __init__(self, motion: Motion) -> None:
        rod, g, v = motion.rod, motion.configuration, motion.v
        space = VectorFunctionSpace(motion.mesh, "DG", 0, dim=6)
        self._strain, self._stress = (Function(space, name=name) for name in ("strain", "stress"))
        scalar = FunctionSpace(motion.mesh, "DG", 0)
        self.energy = Function(scalar, name="strain_energy")
        density = rod.law.energy(rod.elastic_strain(g), rod.stiffness)
        # Over the length of the cell: then it is the value there.
        self._updates = [
            (field, VectorAssembly(rod.cells.values(value)))
            for field, value in (
                (self._strain, rod.strain(g)),
                (self._stress, rod.stress(g, v)),
                (self.energy, density),
            )
        ]
        self._motion = motion

    def refresh(self) -> None:
        """Update strain, stress and energy from the present state."""
        for field, assembly in self._updates:
            field.dat.data_wo[...] = assembly.assemble().dat.data_ro

    def fields(self) -> dict[str, Expr]:
        """The fields by name, as :func:`shown` has them."""
        motion = self._motion
        spin, linear = halves(motion.v, "velocity")
        body = join(spin, quaternion.rotate_inverse(motion.orientation, linear))
        momentum = ufl.dot(motion.rod.inertia.matrix, body)
        pose = motion.position, motion.orientation
        fields = shown(pose, self._strain, self._stress, momentum, body)
        return fields | contact_fields(motion.rod, pose, motion.v)


def shown(pose, strain: Expr, stress: Expr, momentum: Expr, velocity: Expr) -> dict[str, Expr]:
    """Fields of a beam by name, for drawing: position, directors and velocities in space, strain,
    stress, momentum per length and ``body_velocity`` (angular, linear) in the body frame.
    """
    position, orientation = pose
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    directors = {
        f"director{k + 1}": quaternion.rotate(orientation, ufl.as_vector(axis))
        for k, axis in enumerate(axes)
    }
    curvature, stretch = halves(strain, "strain")
    moment, force = halves(stress, "stress")
    angular, linear = halves(momentum, "momentum")
    spin, drift = (quaternion.rotate(orientation, part) for part in halves(velocity, "velocity"))
    return {
        "position": position,
        **directors,
        "curvature": curvature,
        "stretch": stretch,
        "moment": moment,
        "force": force,
        "angular_momentum": angular,
        "linear_momentum": linear,
        "velocity": drift,
        "angular_velocity": spin,
        "body_velocity": velocity,
    }
