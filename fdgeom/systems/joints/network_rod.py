"""The forms of several beams as those of one rod on their network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import Constant, Function, SpatialCoordinate, TensorFunctionSpace
from ufl.core.expr import Expr

from fdgeom.systems.beam import Beam
from fdgeom.systems.joints.bodies import PointBody
from fdgeom.systems.joints.loads import LoadInNetwork
from fdgeom.systems.joints.network import Network
from fdgeom.systems.joints.places import Place
from fdgeom.systems.rods.cells import Cells
from fdgeom.systems.rods.inertia import Inertia
from fdgeom.systems.rods.loads import BodyLoad
from fdgeom.systems.rods.of_beam import point_density
from fdgeom.systems.rods.rod import Rod


class NetworkRod:
    """Sections, shapes at rest, damping and loads of several beams as fields on their network.

    Parameters
    ----------
    network : Network
        The mesh of all.
    beams : sequence of Beam
        The beams.
    bodies : sequence of PointBody
        Rigid bodies at nodes.

    Attributes
    ----------
    cells : Cells
        The pieces of the beams; joints are none.
    inertias : list of Inertia
        That of the sections, and that of the bodies, if there are any.
    """

    def __init__(
        self, network: Network, beams: Sequence[Beam], bodies: Sequence[PointBody]
    ) -> None:
        self._network, self._beams = network, beams
        inside = np.arange(len(network.cells)) < network.pieces
        inside = network.cellwise(inside.astype(float), "inside") if not inside.all() else None
        self.cells = Cells(network.mesh, inside=inside)
        rods = [beam.rod for beam in beams]
        matrix = self._at_nodes([rod.inertia.matrix for rod in rods], "inertia")
        sections = Inertia(matrix, separate=all(rod.inertia.separate for rod in rods))
        self.inertias = [sections, *self._bodies(bodies)]

    def rod(self, common: Sequence[BodyLoad], time: Constant) -> Rod:
        """The rod of the network, with the loads of the beams and those common to all."""
        rods, optional = [beam.rod for beam in self._beams], {}
        if any(rod.viscosity is not None for rod in rods):
            values = [rod.viscosity or ufl.zero(6, 6) for rod in rods]
            optional["viscosity"] = self._in_cells(values, "viscosity")
        if any(rod.reference is not None for rod in rods):
            values = [rod.reference or ufl.zero(6) for rod in rods]
            optional["reference"] = self._in_cells(values, "reference strain")
        return Rod(
            self.cells,
            stiffness=self._in_cells([rod.stiffness for rod in rods], "stiffness"),
            inertia=self.inertias[0],
            tangent=self._in_cells([rod.tangent for rod in rods], "tangent"),
            strain=self._beams[0].strain_measure,
            loads=tuple(self._loads(common, time)),
            time=time,
            **optional,
        )

    def _in_cells(self, values: Sequence[Expr], name: str) -> Expr:
        network, found = self._network, []
        for value, beam, numbering in zip(values, self._beams, network.beams, strict=True):
            space = TensorFunctionSpace(beam.mesh, "DG", 0, shape=value.ufl_shape)
            field = Function(space).interpolate(value)
            found.append(numbering.gather_cells(field))
        rest = [found[0][:1]] * (len(network.cells) - network.pieces)
        return network.packed(np.concatenate([*found, *rest]), name, cells=True)

    def _at_nodes(self, values: Sequence[Expr], name: str) -> Expr:
        network, found = self._network, []
        for value, beam, numbering in zip(values, self._beams, network.beams, strict=True):
            space = TensorFunctionSpace(beam.mesh, "CG", 1, shape=value.ufl_shape)
            found.append(numbering.gather(Function(space).interpolate(value)))
        total = len(network.numbering.coordinates)
        rest = [found[0][:1]] * (total - network.starts[-1])
        return network.packed(np.concatenate([*found, *rest]), name, cells=False)

    def _bodies(self, bodies: Sequence[PointBody]) -> list[Inertia]:
        """The bodies' inertia per length at their nodes."""
        if not bodies:
            return []
        network = self._network
        values = np.zeros((len(network.numbering.coordinates), 6, 6))
        for body in bodies:
            node = network.node(body.at)
            density = network.numbering.gather(point_density(self.cells, network.local(node)))
            values[node] += body.matrix * density[node]
        separate = Inertia.is_separate(values)
        return [Inertia(network.packed(values, "bodies", cells=False), separate=separate)]

    def _loads(self, common: Sequence[BodyLoad], time):
        network, cells = self._network, self.cells
        arc = SpatialCoordinate(network.mesh)[0]
        everywhere = ufl.as_ufl(1.0)
        for load in common:
            yield LoadInNetwork(load, self.inertias, everywhere, None, arc, time, None)
        for k, beam in enumerate(self._beams):
            if not beam.loads:
                continue
            inside = np.concatenate([network.owner == k, np.zeros(len(network.ends), dtype=bool)])
            mask = network.cellwise(inside.astype(float), "beam")

            def place(at, beam=beam, mask=mask):
                if at is None:
                    return mask
                node = network.node(Place(beam, at))
                return point_density(cells, network.local(node), f"at {at}")

            here = arc - float(network.offsets[k])
            for load in beam.loads:
                yield LoadInNetwork(load, self.inertias, mask, place, here, time, beam)
