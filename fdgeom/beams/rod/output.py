"""Output of beams and networks of rods: total momenta, and what is drawn of them."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import ufl
from firedrake import Form, Function, SpatialCoordinate
from ufl.core.expr import Expr

from fdgeom.beams.contact import Contact, contact_fields
from fdgeom.beams.rod.variation import body_translation, in_body
from fdgeom.execution import VectorAssembly
from fdgeom.forms import shaped_space
from fdgeom.lie import halves, quaternion
from fdgeom.operations.dependent import MadeOnce, assembled, refresh
from fdgeom.systems.system import Output, System


class RodSystem(System):
    """Base class of beams and networks of rods: total momenta in space."""

    @cached_property
    def _mesh_as_made(self) -> list[MadeOnce]:
        """The meshes of its beams as they were when the beams were made."""
        if hasattr(self, "members"):
            made = {id(beam.mesh): beam._mesh_as_made for beam in self.members}
            return [mesh for meshes in made.values() for mesh in meshes]
        text = (
            "the mesh of a beam has moved since the beam was made, which lengths, loads and sections "
            "would follow in part: make another beam"
        )
        return [MadeOnce(text, SpatialCoordinate(self.mesh))]

    def _check_data(self) -> None:
        for mesh in self._mesh_as_made:
            mesh.refresh()
        super()._check_data()
        for contact in self._contacts:
            contact.check_data(stepped=self.consistency.stepped)

    @cached_property
    def _contacts(self) -> list[Contact]:
        loads = [load for beam in getattr(self, "members", (self,)) for load in beam.loads]
        loads += getattr(self, "common_loads", ())
        return list(dict.fromkeys(load for load in loads if isinstance(load, Contact)))

    def linear_momentum(self) -> np.ndarray:
        """Total linear momentum in space, shape (3,): ∫ R n of the momentum (m, n)."""
        return self._momentum_named("linear_momentum")

    def angular_momentum(self) -> np.ndarray:
        """Total angular momentum about the origin, in space, shape (3,): ∫ R m + x × R n."""
        return self._momentum_named("angular_momentum")


def total_momenta(
    at_nodes: Callable[[Expr], Form], position: Expr, spin: Expr, linear: Expr
) -> dict[str, tuple[Form, ...]]:
    """Linear and angular momentum by component, from those about the nodes per length, in space."""
    angular = spin + ufl.cross(position, linear)
    return {
        "linear_momentum": tuple(at_nodes(linear[k]) for k in range(3)),
        "angular_momentum": tuple(at_nodes(angular[k]) for k in range(3)),
    }


class BeamOutput(Output):
    """What is drawn of a beam in strain and momentum."""

    def __init__(self, beam: Any) -> None:
        super().__init__(beam, beam.position)
        self.orientation, self.beams = beam.orientation, (beam,)

    def fields(self):
        beam = self._system
        pose = beam.position, beam.orientation
        fields = shown(pose, beam.strain, beam.stress(), beam.momentum, beam.velocity)
        if not beam.loads:
            return fields
        v = body_translation(beam.orientation, beam.velocity)
        return fields | contact_fields(beam.rod, pose, v)

    def strain_energy(self) -> Expr:
        """Elastic energy per length."""
        beam = self._system
        return beam.sampled_law.energy(beam.elastic_strain(), beam.stiffness)


class RodOutput(Output):
    """What is drawn of rods in configuration form."""

    def __init__(self, motion: Any) -> None:
        super().__init__(motion, motion.position)
        self.orientation, self.beams = motion.orientation, motion.members

    @cached_property
    def _in_cells(self) -> dict[str, Function]:
        """Strain, stress and elastic energy per length, in the motion's own measure, as dependent fields
        that are constant in each cell and zero in joints.
        """
        rod, g, found = self._system.rod, self._system.configuration, {}
        for name, value in (
            ("strain", rod.strain(g)),
            ("stress", rod.stress(g, self._system.v)),
            ("strain_energy", rod.law.energy(rod.elastic_strain(g), rod.stiffness)),
        ):
            space = shaped_space(value.ufl_shape, self._system.mesh, "DG", 0)
            # Over the length of the cell: then it is the value there.
            form = rod.cells.values(value)
            found[name] = assembled(Function(space, name=name), form, VectorAssembly(form).assemble)
        return found

    def fields(self):
        self.refresh()
        motion = self._system
        strain, stress = (self._in_cells[name] for name in ("strain", "stress"))
        pose, body = motion.configuration, in_body(motion.orientation, motion.v)
        momentum = ufl.dot(motion.rod.section_inertia.matrix, body)
        fields = shown(pose, strain, stress, momentum, body)
        return fields | contact_fields(motion.rod, pose, motion.v)

    def strain_energy(self) -> Expr:
        """Elastic energy per length; outside of fdgeom as of the last :meth:`refresh`."""
        return self._in_cells["strain_energy"]

    def refresh(self) -> None:
        self._system.consistency.prepare()
        refresh(*self._in_cells.values())


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
