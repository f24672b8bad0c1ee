"""Fields of the beams of a network, copied from the network all at once."""

from collections.abc import Sequence
from functools import cached_property

from firedrake import Function, TestFunction, VectorFunctionSpace, dot

from fdgeom.beams.beam import Beam
from fdgeom.beams.consistency import DependentFields
from fdgeom.beams.network.copying import ToBeams
from fdgeom.beams.network.network import Network
from fdgeom.beams.rod.rod import Rod
from fdgeom.solvers import PointwiseUpdate, VectorAssembly

#: Fields that a beam and its piece of the network both have.
FIELDS = ("position", "orientation", "velocity")


class BeamsBehind:
    """Poses, velocities, momenta and strains of beams, copied from their network."""

    def __init__(
        self,
        network: Network,
        beams: Sequence[Beam],
        links: Sequence[DependentFields],
        rod: Rod,
        configuration: tuple[Function, Function],
        velocity: Function,
    ) -> None:
        self._network, self._beams, self._rod = network, beams, rod
        self._wholes = dict(zip(FIELDS, (*configuration, velocity), strict=True))
        # The momentum of an end with a weight of its own, and the strain of a beam whose shape at rest
        # is given in space, are not those of the network.
        alike = [beam.end_weight == 0.5 and not beam.shaped for beam in beams]
        self._alike = [beam for beam, is_so in zip(beams, alike, strict=True) if is_so]
        self._others = [link for link, is_so in zip(links, alike, strict=True) if not is_so]

    def put_poses(self) -> None:
        """Copy the poses of the network to the beams."""
        self._poses.apply()

    def settle(self) -> None:
        """Copy all fields of the network to the beams."""
        self._momenta.apply()
        self._strains.assemble()
        self._all.apply()
        for link in self._others:
            link.settle()

    @cached_property
    def _momentum(self) -> Function:
        return Function(self._wholes["velocity"].function_space())

    @cached_property
    def _momenta(self) -> PointwiseUpdate:
        product = dot(self._rod.inertia.matrix, self._wholes["velocity"])
        return PointwiseUpdate({self._momentum: product})

    @cached_property
    def _strains(self) -> VectorAssembly:
        """Assembly of the strains in the cells, tested with 1 / their length."""
        cells = self._rod.cells
        test = TestFunction(VectorFunctionSpace(cells.mesh, "DG", 0, dim=6))
        strain = self._rod.strain((self._wholes["position"], self._wholes["orientation"]))
        return VectorAssembly(cells.sum(dot(strain, test) / cells.length))

    @cached_property
    def _poses(self) -> ToBeams:
        return ToBeams(self._network, self._of("position"), self._of("orientation"))

    @cached_property
    def _all(self) -> ToBeams:
        found = [self._of(name) for name in FIELDS]
        found.append((self._momentum, [beam.momentum for beam in self._alike], self._alike))
        strain = self._strains.tensor
        found.append((strain, [beam.strain for beam in self._alike], self._alike))
        return ToBeams(self._network, *found)

    def _of(self, name: str) -> tuple:
        return self._wholes[name], [getattr(beam, name) for beam in self._beams], self._beams
