"""Data of several beams as one field on their network."""

from collections.abc import Sequence

import numpy as np
from firedrake import Cofunction, Function

from fdgeom.beams.network.network import Network
from fdgeom.line import Numbering
from fdgeom.solvers import key


class Gathering:
    """Tensors of each beam, at its nodes or in its cells, one after another, with the transpose."""

    # Linear in them: a rule of fields that follow others.
    inverse = False

    def __init__(
        self, network: Network, samples: Sequence[Function | np.ndarray], *, cells: bool
    ) -> None:
        self._network, self._samples, self._cells = network, samples, cells
        first = samples[0]
        self._shape = first.ufl_shape if isinstance(first, Function) else first.shape
        self._starts = np.cumsum([0, *(len(n.coordinates) - cells for n in network.beams)])
        size = len(network.cells) if cells else len(network.numbering.coordinates)
        # Nodes of the ground and cells of joints: they belong to no beam.
        self._rest = size - int(self._starts[-1])

    @property
    def functions(self) -> list[Function]:
        """The fields among the samples."""
        return [f for f in self._samples if isinstance(f, Function)]

    def values(self) -> np.ndarray:
        """The tensors at all nodes or in all cells of the network, on every rank."""
        return self._joined(self._samples)

    def _joined(self, samples: Sequence[Function | np.ndarray]) -> np.ndarray:
        found = [
            self._of_beam(numbering, sample)
            if isinstance(sample, Function)
            else np.tile(sample, (count, *[1] * sample.ndim))
            for numbering, sample, count in zip(
                self._network.beams, samples, np.diff(self._starts), strict=True
            )
        ]
        return np.concatenate([*found, *([found[0][:1]] * self._rest)]).reshape(-1, *self._shape)

    def put(self, values: np.ndarray, field: Function) -> None:
        """Set a field of the network to all tensors."""
        network = self._network
        put = network.put_cells if self._cells else network.numbering.scatter
        put(values.reshape(len(values), -1), field)

    def _of_beam(self, numbering: Numbering, function: Function) -> np.ndarray:
        collect = Numbering.gather_cells if self._cells else Numbering.gather
        return collect(numbering, function).reshape(-1, *self._shape)

    # --- derivatives -----------------------------------------------------------------------------
    def along(self, field: Function, source: Function, change: Function) -> np.ndarray:
        """Derivative of the field along a change of a beam's field."""
        samples: list = [np.zeros(self._shape)] * len(self._samples)
        samples[self._number(source)] = change
        changed = Function(field.function_space())
        self.put(self._joined(samples), changed)
        return np.array(changed.dat.data_ro)

    def across(self, field: Function, source: Function, bar: np.ndarray) -> Cofunction:
        """The cotangent of the field of a beam from that of the network's."""
        network, work = self._network, Function(field.function_space())
        work.dat.data_wo[...] = bar
        found = network.get_cells(work) if self._cells else network.numbering.gather(work)
        k = self._number(source)
        piece = found[self._starts[k] : self._starts[k + 1]]
        if k == 0:
            piece[0] += found[self._starts[-1] :].sum(axis=0)
        numbering, result = network.beams[k], Cofunction(source.function_space().dual())
        put = Numbering.scatter_cells if self._cells else Numbering.scatter
        put(numbering, piece, result)
        return result

    def bent(self, source: Function, change: Function) -> None:
        """Zero, since it is linear."""
        return None

    def _number(self, source: Function) -> int:
        """The number of the beam that a field belongs to."""
        return next(
            k
            for k, f in enumerate(self._samples)
            if isinstance(f, Function) and key(f) == key(source)
        )
