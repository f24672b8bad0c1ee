"""Rod of several beams: their sections, loads and other data as fields on their network."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import ufl
from firedrake import Constant, Function, SpatialCoordinate
from ufl.algorithms import extract_coefficients, replace
from ufl.core.expr import Expr
from ufl.domain import extract_domains
from ufl.utils.stacks import StackDict

from fdgeom.beams.beam import Beam
from fdgeom.beams.law import LINEAR, LawOfParts, SectionLaw, TranslatedLaw, law_data
from fdgeom.beams.network.joints import Place, PointBody
from fdgeom.beams.network.network import Network
from fdgeom.beams.network.network_consistency import BeamCopy
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import AppliedLoad, BodyLoad, PartOfRod, along_all
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod_of_beam import placed, point_density, radius_of
from fdgeom.forms import is_real, shaped_space
from fdgeom.line import mark_links
from fdgeom.operations.dependent import dependents_in, set_by
from fdgeom.operations.interpolate import sampled


class NetworkRod:
    """Sections, shapes at rest, damping and loads of several beams as fields on their network."""

    def __init__(
        self, network: Network, beams: Sequence[Beam], bodies: Sequence[PointBody]
    ) -> None:
        self._network, self._beams = network, beams
        inside = np.arange(len(network.cells)) < network.pieces
        inside = (
            network.field(inside.astype(float), "inside", cells=True) if not inside.all() else None
        )
        self.cells = Cells(network.mesh, inside=inside)
        mark_links(network.mesh, inside)
        rods = [beam.rod for beam in beams]
        matrix = self._gathered([rod.inertia.matrix for rod in rods], "inertia", cells=False)
        sections = Inertia(matrix, separate=all(rod.inertia.separate for rod in rods))
        self._sections, self._inertia = sections, self._with_bodies(sections, bodies)

    def rod(self, common: Sequence[BodyLoad], time: Constant) -> Rod:
        """The rod of the network, with the loads of the beams and those common to all."""
        rods, optional = [beam.rod for beam in self._beams], {}
        if any(rod.viscosity is not None for rod in rods):
            values = [ufl.zero(6, 6) if r.viscosity is None else r.viscosity for r in rods]
            optional["viscosity"] = self._in_cells(values, "viscosity")
        if any(rod.reference is not None for rod in rods):
            values = [ufl.zero(6) if r.reference is None else r.reference for r in rods]
            optional["reference"] = self._in_cells(values, "reference strain")
        return Rod(
            cells=self.cells,
            stiffness=self._in_cells([rod.stiffness for rod in rods], "stiffness"),
            law=self._law(),
            inertia=self._inertia,
            section_inertia=self._sections,
            tangent=self._in_cells([rod.tangent for rod in rods], "tangent"),
            measure=self._beams[0].strain_measure,
            loads=tuple(self._loads(common)),
            time=time,
            **optional,
        )

    def _law(self) -> SectionLaw:
        """Each beam's law in its own cells."""
        laws = {id(beam.law): beam.law for beam in self._beams}
        if list(laws.values()) == [LINEAR]:
            return LINEAR
        network, parts = self._network, []
        joints = np.zeros(len(network.ends), dtype=bool)
        for law in laws.values():
            having = np.array([beam.law is law for beam in self._beams])
            cells = np.concatenate([having[network.owner], joints])
            mask = network.field(cells.astype(float), "law", cells=True)
            meanings = {d: self._law_datum(d, having) for d in law_data(law)}
            parts.append((mask, TranslatedLaw(law, meanings) if meanings else law))
        return LawOfParts(parts)

    def _law_datum(self, datum: Expr, having: np.ndarray) -> Expr:
        """A Function or coordinate that the law of some beams reads, in their cells."""
        # In other cells a value that the law is made for: it may divide by its data.
        own = self._beams[int(np.argmax(having))].sampled_law.meanings[datum]
        known = own.comm.allgather(own.dat.data_ro[:1])
        number = np.concatenate(known)[0].reshape(datum.ufl_shape).tolist()
        other = ufl.as_tensor(number) if datum.ufl_shape else ufl.as_ufl(number)
        values = [
            beam.sampled_law.meanings[datum] if has else other
            for beam, has in zip(self._beams, having, strict=True)
        ]
        return self._in_cells(values, "law")

    def _in_cells(self, values: Sequence[Expr], name: str) -> Expr:
        return self._gathered(values, name, cells=True)

    def _gathered(self, values: Sequence[Expr], name: str, *, cells: bool) -> Expr:
        """A tensor of each beam as one of the network, which follows those that may change."""
        network = self._network
        # Beams of one section have one matrix.
        each = {id(value): value for value in values}
        numbers = {k: _numbers(value) for k, value in each.items()}
        found, fields, owners = [], [], []
        for value, beam, numbering in zip(values, self._beams, network.beams, strict=True):
            sample = numbers[id(value)]
            if sample is None:
                space = shaped_space(
                    value.ufl_shape, beam.mesh, *(("DG", 0) if cells else ("CG", 1))
                )
                fields.append(sampled(name, value, space, private=True))
                owners.append(beam)
                # Vectors of one component are stored as numbers.
                found.append(numbering.gather(fields[-1]).reshape(-1, *value.ufl_shape))
            else:
                count = len(numbering.coordinates) - cells
                found.append(np.broadcast_to(sample, (count, *sample.shape)))
        # Nodes of the ground and cells of joints belong to no beam: any finite value does.
        size = len(network.cells) if cells else len(network.numbering.coordinates)
        rest = size - sum(map(len, found))
        tensors = np.concatenate([*found, found[0][[0] * rest]])
        if not any(map(_may_change, each.values())):
            return network.packed(tensors, name, cells=cells)
        whole = network.field(tensors, name, cells=cells)
        return set_by(BeamCopy(network, (whole, fields, owners), gathers=True))

    def _with_bodies(self, sections: Inertia, bodies: Sequence[PointBody]) -> Inertia:
        """The inertia of the sections and, per length at their nodes, of bodies."""
        if not bodies:
            return sections
        network = self._network
        values = np.zeros((len(network.numbering.coordinates), 6, 6))
        for body in bodies:
            node = network.node(body.at)
            density = network.numbering.gather(point_density(self.cells, network.local(node)))
            values[node] += body.matrix * density[node]
        own, more = sections.matrix, network.packed(values, "bodies", cells=False)
        total = ufl.as_matrix([[own[i, j] + more[i, j] for j in range(6)] for i in range(6)])
        return Inertia(total, separate=sections.separate and Inertia.is_separate(values))

    def _loads(self, common: Sequence[BodyLoad]) -> Iterator[AppliedLoad]:
        network = self._network
        arc = SpatialCoordinate(network.mesh)[0]
        radii = [beam.section.radius for beam in self._beams]
        same = all(radius is radii[0] or radius == radii[0] for radius in radii)
        radius = radius_of(self._beams[0].section) if same else None
        ends = np.array([numbering.coordinates[[0, -1]] for numbering in network.beams])
        places = np.column_stack([network.offsets, ends])[network.owner]
        places = np.concatenate([places, places[[0] * len(network.ends)]])
        along = _clamped(arc, *network.packed(places, "places of the beams", cells=True))
        meshes = {beam.mesh for beam in self._beams}
        translate = partial(self._translated, mesh=meshes.pop() if len(meshes) == 1 else None)
        for load in common:
            part = PartOfRod(along_all, along, self._inertia, radius)
            yield AppliedLoad(load, part, translate=translate)
        for k, beam in enumerate(self._beams):
            if not beam.loads:
                continue
            inside = np.concatenate([network.owner == k, np.zeros(len(network.ends), dtype=bool)])
            mask = network.field(inside.astype(float), "beam", cells=True)

            def nodes(at, beam=beam):
                return network.local(network.node(Place(beam, at)))

            along = _clamped(arc, *map(float, (network.offsets[k], *ends[k])))
            translate = partial(self._translated, mesh=beam.mesh)
            place, radius = placed(self.cells, nodes), radius_of(beam.section)
            part = PartOfRod(place, along, self._inertia, radius)
            for load in beam.loads:
                yield AppliedLoad(load, part, mask, translate)

    def _translated(self, load: BodyLoad, arc: Expr, density: Expr, *, mesh) -> Expr:
        """A load's density with the coordinate of a beam's mesh, and numbers, replaced by the network's."""
        network = self._network
        numbers = (f for f in extract_coefficients(density) if is_real(f))
        meanings = {f: network.number(f) for f in numbers if _mesh(f) is not network.mesh}
        if mesh is not None:
            meanings[SpatialCoordinate(mesh)] = ufl.as_vector([arc])
        density = replace(density, meanings)
        if any(domain is not network.mesh for domain in extract_domains(density)):
            raise ValueError(
                f"{load!r}: a Function on the mesh of a beam, or the coordinate of another mesh, cannot "
                "load beams in an assembly; give a function of (s, t) that returns an expression, or "
                "numbers as Functions of a Real space"
            )
        return density


def _clamped(arc: Expr, offset: Expr | float, first: Expr | float, last: Expr | float) -> Expr:
    """The arc length along a beam; that of its ends elsewhere, where a load need not be a number."""
    return ufl.min_value(ufl.max_value(arc - offset, first), last)


def _mesh(function: Function):
    return function.function_space().mesh()


def _numbers(value: Expr) -> np.ndarray | None:
    """The values of a constant tensor; None for a field."""
    if dependents_in(value) or extract_coefficients(value) or list(extract_domains(value)):
        return None
    found = np.empty(value.ufl_shape)
    for component in np.ndindex(found.shape):
        found[component] = value.evaluate((), {}, component, StackDict())
    return found


def _may_change(value: Expr) -> bool:
    """Whether a tensor depends on Functions and Constants that users may change between steps."""
    return any(not d.private or d.follows_a_user for d in dependents_in(value))
