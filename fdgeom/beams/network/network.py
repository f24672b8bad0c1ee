"""Interval mesh of several beams: a cell for each cell of a beam, and one for each joint."""

from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import Cofunction, Constant, Function, FunctionSpace, Mesh
from firedrake.mesh import plex_from_cell_list
from ufl.core.expr import Expr

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.network.joints import Ground, Joint, Place
from fdgeom.forms import shaped_space
from fdgeom.line import Numbering, coordinates_of, is_cellwise
from fdgeom.messages import name_places
from fdgeom.operations import Broadcast
from fdgeom.operations.dependent import private, set_by


class Network:
    """Beams and joints on one interval mesh: an interval for each beam, a cell for each joint."""

    # `beams` numbers the nodes of each beam's own mesh; `starts` has the number of the first node
    # of each beam and of the ground, which has a node for each joint to it; `ends` (joints, 2) are
    # the nodes at the two places of each joint.
    def __init__(self, beams: Sequence[BeamFields], joints: Sequence[Joint]) -> None:
        self.beams = [Numbering(beam.position.function_space()) for beam in beams]
        self._index = {id(beam): k for k, beam in enumerate(beams)}
        self.starts = np.cumsum([0, *(len(n.coordinates) for n in self.beams)])
        self.ends = self._joined(joints)
        grounds = int((self.ends >= self.starts[-1]).sum())
        coordinates, self.offsets = self._layout(grounds)
        pieces = [
            np.arange(a, b - 1) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]
        first = np.concatenate(pieces)
        #: Numbers of the nodes of each cell: those of the beams first, then those of the joints.
        self.cells = np.vstack([np.column_stack([first, first + 1]), np.sort(self.ends, axis=1)])
        self.pieces = len(first)
        #: The number of the beam of each of the first cells.
        self.owner = np.repeat(np.arange(len(pieces)), [len(p) for p in pieces])
        plex = plex_from_cell_list(1, self.cells, coordinates[:, None], beams[0].mesh.comm)
        self.mesh = Mesh(plex, dim=1)
        self.numbering = Numbering(FunctionSpace(self.mesh, "CG", 1))
        size = len(coordinates)
        keys = self.cells[:, 0] * size + self.cells[:, 1]
        order = np.argsort(keys)
        pairs = self.numbering.pairs
        found = np.searchsorted(keys[order], pairs[:, 0] * size + pairs[:, 1])
        self.numbering.cells = order[found]
        name_places(self.mesh, self._words)
        self._numbers: dict[int, Function] = {}

    def _words(self, x: float) -> str:
        """Description of the node at a coordinate: its place on a beam, and its joints."""
        number = int(np.abs(self.numbering.coordinates - x).argmin())
        k = int(np.searchsorted(self.starts, number, "right")) - 1
        words = "the ground"
        if k < len(self.beams):
            arc = self.beams[k].coordinates[number - self.starts[k]]
            words = f"the node at {arc:.6g} of beams[{k}]"
        joints = np.flatnonzero((self.ends == number).any(axis=1))
        there = " and ".join(f"joints[{j}]" for j in joints)
        return f"{words} at {there}" if there else words

    def _joined(self, joints: Sequence[Joint]) -> np.ndarray:
        free = int(self.starts[-1])
        ends = []
        for joint in joints:
            pair = []
            for place in (joint.first, joint.second):
                if isinstance(place, Ground):
                    pair.append(free)
                    free += 1
                else:
                    pair.append(self.node(place))
            if pair[0] == pair[1]:
                raise ValueError(f"joints: {joint!r} joins a node to itself; give another place")
            ends.append(pair)
        return np.array(ends, dtype=int).reshape(-1, 2)

    def node(self, place: Place) -> int:
        """Number of the node at a place; ``ValueError`` if its beam is none of these."""
        if id(place.beam) not in self._index:
            raise ValueError(
                f"joints, bodies: {place}: its beam is not in the assembly; add it to beams=[...]"
            )
        k = self._index[id(place.beam)]
        return int(self.starts[k] + place.index(self.beams[k].coordinates))

    def _layout(self, grounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of all nodes, and the shift of each beam."""
        found, offsets, at = [], [], 0.0
        for numbering in self.beams:
            arcs = numbering.coordinates
            gap = (arcs[-1] - arcs[0]) / (len(arcs) - 1)
            offsets.append(at - arcs[0])
            found.append(arcs + offsets[-1])
            at = found[-1][-1] + gap
        found.append(at + gap * np.arange(grounds))
        return np.concatenate(found), np.array(offsets)

    # --- fields ------------------------------------------------------------------------------------
    def field(self, values: np.ndarray, name: str, *, cells: bool = False) -> Function:
        """A CG1 function from its values (n, ...) at all nodes, or a DG0 one from those in all cells."""
        place = ("DG", 0) if cells else ("CG", 1)
        function = private(Function(shaped_space(values.shape[1:], self.mesh, *place), name=name))
        self.numbering.scatter(values, function)
        return function

    def at_ends(self, function) -> np.ndarray:
        """Values (DG1) at the two ends of all cells, the smaller node first, on every rank."""
        space = function.function_space()
        element = space.ufl_element().sub_elements[0]
        place = coordinates_of(FunctionSpace(self.mesh, element))
        nodes = space.cell_node_map().values
        order = np.argsort(place[nodes], axis=1)
        nodes = np.take_along_axis(nodes, order, axis=1)
        own = function.dat.data_ro
        found = np.zeros((len(self.cells), 2, *own.shape[1:]))
        found[self.numbering.cells[: len(nodes)]] = own[nodes]
        return self.mesh.comm.allreduce(found)

    def places(self, beam: BeamFields, function: Function | Cofunction) -> np.ndarray:
        """Numbers in the network of the local nodes, or of the cells, of a beam's field."""
        k = self._index[id(beam)]
        return self._start(k, function) + self.beams[k].numbers(function)

    def all_values(self, beam: BeamFields, function: Function) -> tuple[slice, np.ndarray]:
        """The values of a beam's field at all nodes or in all cells, and their places in the network."""
        k = self._index[id(beam)]
        start, values = self._start(k, function), self.beams[k].gather(function)
        return slice(start, start + len(values)), values

    def _start(self, k: int, function: Function | Cofunction) -> int:
        """Number of the first node or cell of a beam, which has a cell less than nodes."""
        return int(self.starts[k]) - (k if is_cellwise(function.function_space()) else 0)

    def packed(self, values: np.ndarray, name: str, *, cells: bool) -> Expr:
        """A UFL tensor of values (n, ...) at nodes or in cells, without the components that are
        zero or constant, so that the tensors of the usual sections are as sparse in the forms as
        those of a single beam.
        """
        shape = values.shape[1:]
        flat = values.reshape(len(values), -1)
        varies = np.flatnonzero(np.any(flat != flat[0], axis=0))
        fixed = flat[0]
        constant = private(Constant(fixed))
        zero = ufl.as_ufl(0.0)
        entries = np.array([constant[k] if x else zero for k, x in enumerate(fixed)], dtype=object)
        if len(varies):
            field = self.field(flat[:, varies], name, cells=cells)
            entries[varies] = [field[i] for i in range(len(varies))]
        return ufl.as_tensor(entries.reshape(shape).tolist())

    def number(self, source: Function) -> Function:
        """A copy of a beam's number, a Function of a Real space, on the network, which follows it."""
        name = id(source)
        if name not in self._numbers:
            space = shaped_space(source.ufl_shape, self.mesh, "R", 0)
            made = Function(space, name=source.name())
            self._numbers[name] = set_by(Broadcast(source, made))
        return self._numbers[name]

    def local(self, number: int) -> np.ndarray:
        """Local indices of a node, on the ranks that have it."""
        return np.flatnonzero(self.numbering.nodes == number)
