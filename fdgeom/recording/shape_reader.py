"""The present shape of a system: nodes in order along it, their directors, and fields between them."""

from dataclasses import dataclass, field
from itertools import pairwise

import finat.ufl
import numpy as np
import ufl
from firedrake import Function, FunctionSpace, SpatialCoordinate

from .interpolated import following

#: A rectangle of width b bends by E A b²/12.
_RECTANGLE = 12.0


@dataclass
class Shape:
    """What is read at one time, on rank 0."""

    position: np.ndarray
    orientation: np.ndarray | None
    values: dict[str, np.ndarray] = field(default_factory=dict)


class ShapeReader:
    """Reads shapes of one system."""

    def __init__(self, system, fields) -> None:
        position = system.output_coordinates()
        if position is None:
            raise TypeError(
                f"Snapshots needs a system with output_coordinates(), and "
                f"{type(system).__name__} has none"
            )
        self.system, mesh = system, system.mesh
        self._comm = mesh.comm
        self.is_root = mesh.comm.rank == 0
        self.closed = mesh.coordinates.function_space().finat_element.is_dg()
        element = position.function_space().ufl_element().sub_elements[0]
        self._order, self.s = self._sorted(element)
        beams = system.drawn_beams()
        self.parts = self._parts(beams)
        sections = [beam.section for beam in beams]
        self.axis = sections[0].axis if sections else 0
        self.sizes = [size_of(section) for section in sections]
        self._orientation = system.output_orientation()
        self._fields = self._follow(fields, element) if fields else {}

    def read(self) -> Shape | None:
        """The present shape; None on ranks other than 0."""
        # Rods in configuration form bring their fields up to date when they are asked to.
        self.system.refresh_output()
        position = self._gather(self.system.output_coordinates(), self._order)
        turned = self._orientation
        turned = None if turned is None else self._gather(turned, self._order)
        values = {}
        for name, (function, update) in self._fields.items():
            update()
            values[name] = self._gather(function, self._pieces)
        if not self.is_root:
            return None
        # Behind the nodes of the beams come those of the ground, in joints.
        last = self.parts[-1][1]
        return Shape(position[:last], None if turned is None else turned[:last], values)

    def _gather(self, function: Function, order) -> np.ndarray | None:
        gathered = self._comm.gather(function.dat.data_ro.copy())
        return None if gathered is None else np.concatenate(gathered)[order]

    def _sorted(self, element, keep=None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The order of an element's nodes along the mesh, and where they are; those that are kept."""
        space = FunctionSpace(self.system.mesh, element)
        s = Function(space).interpolate(SpatialCoordinate(self.system.mesh)[0])
        there = s.dat.data_ro.copy()
        if keep is not None:
            nodes = space.cell_node_map().values[~keep]
            there[nodes] = np.inf
        gathered = self._comm.gather(there)
        if gathered is None:
            return None, None
        s = np.concatenate(gathered)
        order = np.argsort(s, kind="stable")[: np.isfinite(s).sum()]
        return order, s[order]

    def _parts(self, beams) -> list[tuple[int, int]]:
        """First and last node of each beam: joints lie between them."""
        counts = [beam.position.function_space().dim() // 3 for beam in beams]
        ends = np.cumsum([0, *counts]).tolist()
        if not beams:
            ends = [0, self.system.output_coordinates().function_space().dim() // 3]
        return list(pairwise(ends))

    def _follow(self, names, element) -> dict:
        system = self.system
        known = system.output_fields()
        energy = system.strain_energy_density()
        if energy is not None:
            known = known | {"strain_energy": energy}
        # As many values in a cell as it has pieces between nodes.
        pieces = finat.ufl.FiniteElement(
            "DG", system.mesh.ufl_cell(), element.degree() - 1, variant="equispaced"
        )
        drawn = system.output_cells()
        self._pieces, _ = self._sorted(pieces, drawn)
        found = {}
        for name in names:
            if name not in known:
                raise ValueError(f"fields: unknown '{name}'; known are {', '.join(known)}")
            value = known[name]
            length = ufl.sqrt(ufl.dot(value, value)) if value.ufl_shape else value
            found[name] = following(length, pieces, system.mesh)
        return found


def size_of(section) -> tuple[float, float]:
    """Sides of the rectangle that bends like the section, at the beam's middle if it changes."""
    if not section.is_constant:
        at = getattr(section.stiffness, "stations", None)
        if at is None:
            return (0.0, 0.0)
        section = section.at(float(np.mean(at)))
    stiffness, axis = section.stiffness, section.axis
    across = [k for k in range(3) if k != axis]
    stretch = stiffness[3 + axis, 3 + axis]
    # Bending about the second axis is that of the extent along the first.
    return tuple(float(np.sqrt(_RECTANGLE * stiffness[k, k] / stretch)) for k in reversed(across))
