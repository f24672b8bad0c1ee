"""Beams as three-dimensional bodies of warped sections, with their stress."""

from collections.abc import Sequence

import finat.ufl
import numpy as np
from firedrake import ExtrudedMesh, Function, FunctionSpace, Mesh

from fdgeom.beams.beam import Beam
from fdgeom.forms import shaped_space
from fdgeom.lie.arrays import quaternion
from fdgeom.line import Numbering
from fdgeom.sections.drawn_section import DrawnSection
from fdgeom.sections.elasticity import broken_element
from fdgeom.sections.material import VonMises
from fdgeom.sections.outline import Tessellation

from .interpolated import chosen


class Solid:
    """A beam with a drawn section, as arrays over stations (nodes of the beam), cells and nodes."""

    def __init__(self, beam) -> None:
        # Steppers in configuration form have ``beam.motion`` as their system.
        beam = getattr(beam, "beam", beam)
        if not isinstance(beam, Beam):
            raise TypeError(f"a drawn solid needs a fdgeom.Beam, not {type(beam).__name__}")
        section = beam.section
        if not isinstance(section, DrawnSection):
            raise TypeError(
                "a drawn solid needs a section with a mesh: make it by fdgeom.Section.from_mesh"
            )
        self.beam, self.section = beam, section
        self.cut = cut = Tessellation(section.mesh, section.element)
        self._nodes = Numbering(beam.position.function_space())
        transverse = [k for k in range(3) if k != section.axis]
        self._places = np.zeros((*cut.places.shape[:2], 3))
        self._places[..., transverse] = cut.places - section.origin
        units = np.eye(6)
        self._stress = np.array([cut.values(section.recover(r)) for r in units])
        warping = Function(shaped_space((3,), section.mesh, section.element))
        self._warping = np.array(
            [cut.values(warping.interpolate(section.recover_warping(r))).copy() for r in units]
        )

    @property
    def stations(self) -> np.ndarray:
        """Arc lengths of the stations."""
        return self._nodes.coordinates

    def resultants(self) -> np.ndarray:
        """Moment and force at the stations, (stations, 6), from the strain of the beam."""
        return self.beam.stress_at(self._nodes.coordinates)

    def places(self, resultants: np.ndarray) -> np.ndarray:
        """Places x + R (X + warping) in space, (stations, cells, nodes, 3)."""
        x, q = self._nodes.gather(self.beam.position), self._nodes.gather(self.beam.orientation)
        body = self._places + np.tensordot(resultants, self._warping, axes=1)
        return x[:, None, None] + np.einsum("sij,scnj->scni", quaternion.matrix(q), body)

    def stress(self, resultants: np.ndarray) -> np.ndarray:
        """Saint-Venant's stress in the body frame, (stations, cells, nodes, 3, 3)."""
        return np.tensordot(resultants, self._stress, axes=1)


def von_mises(stress: np.ndarray) -> np.ndarray:
    """Von Mises' stress of matrices (..., 3, 3)."""
    return VonMises(1.0).index(np.moveaxis(stress, (-2, -1), (0, 1)))


class SolidMesh:
    """The body as a Firedrake mesh of prisms or bricks that follows the beam, for VTK files."""

    def __init__(self, beam, names: Sequence[str] | None = None) -> None:
        shapes = chosen(names or None, {"stress": (3, 3), "von_mises": ()})
        self._solid = Solid(beam)
        self._corners = self._solid.cut.corners()
        layers = len(self._solid.stations) - 1
        straight = ExtrudedMesh(self._solid.section.mesh, layers, layer_height=1 / layers)
        element = finat.ufl.TensorProductElement(
            broken_element(self._solid.section.mesh, 1),
            finat.ufl.FiniteElement("DG", "interval", 1, variant="equispaced"),
        )
        space = FunctionSpace(straight, element)
        count = self._solid.section.mesh.cell_set.size
        bottom = space.cell_node_list[:count]
        # Local nodes come in pairs, the lower and the upper of each corner of the section.
        above = space.offset * np.arange(layers)[:, None]
        self._nodes = bottom[None] + above[:, None]
        self.mesh = Mesh(Function(shaped_space((3,), straight, element)))
        self.functions = [
            Function(shaped_space(shape, self.mesh, element), name=name)
            for name, shape in shapes.items()
        ]

    def update(self) -> None:
        """Move the mesh to the beam's present configuration, and the stress to that of its strain."""
        resultants = self._solid.resultants()
        self._put(self.mesh.coordinates, self._solid.places(resultants))
        stress = self._solid.stress(resultants)
        for function in self.functions:
            self._put(function, von_mises(stress) if function.name() == "von_mises" else stress)

    def _put(self, function: Function, values: np.ndarray) -> None:
        corners = values[:, :, self._corners]
        both = np.stack([corners[:-1], corners[1:]], axis=3)
        layers, cells, nodes = both.shape[:3]
        function.dat.data_wo_with_halos[self._nodes] = both.reshape(
            layers, cells, 2 * nodes, *both.shape[4:]
        )
