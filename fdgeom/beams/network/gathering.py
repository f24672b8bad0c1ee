"""Data of several beams as one field on their network."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from firedrake import Cofunction, Function

from fdgeom.beams.network.network import Network
from fdgeom.line import Numbering
from fdgeom.operations import ArrayOperation


class Gathering:
    """Tensors of each beam, at its nodes or in its cells, one after another."""

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
    def changes(self, dots: Sequence[Function | None]) -> np.ndarray:
        """The derivative of :meth:`values` along changes of the fields; None is zero."""
        zero, given = np.zeros(self._shape), iter(dots)
        found = [next(given) if isinstance(f, Function) else zero for f in self._samples]
        return self._joined([zero if dot is None else dot for dot in found])

    def cotangents(self, bar: Function) -> list[Cofunction]:
        """The cotangents of the fields from those of a field of all tensors."""
        network = self._network
        every = network.get_cells(bar) if self._cells else network.numbering.gather(bar)
        put = Numbering.scatter_cells if self._cells else Numbering.scatter
        found = []
        for k, f in enumerate(self._samples):
            if isinstance(f, Function):
                piece = every[self._starts[k] : self._starts[k + 1]]
                if k == 0:  # whose first tensor stands at all places that belong to no beam
                    piece[0] += every[self._starts[-1] :].sum(axis=0)
                found.append(Cofunction(f.function_space().dual()))
                put(network.beams[k], piece, found[-1])
        return found


class Gather(ArrayOperation):
    """Sets a field of a network to the tensors of its beams."""

    def __init__(self, gathering: Gathering, target: Function) -> None:
        super().__init__()
        self._gathering, self._target = gathering, target

    @property
    def reads(self) -> list[Function]:
        return self._gathering.functions

    @property
    def writes(self) -> list[Function]:
        return [self._target]

    def run(self) -> None:
        self._gathering.put(self._gathering.values(), self._target)

    def tangents(self, dots):
        self._gathering.put(self._gathering.changes(dots), self._work)
        return [np.array(self._work.dat.data_ro)]

    def cotangents(self, bars):
        self._work.dat.data_wo[...] = bars[0]
        return self._gathering.cotangents(self._work)

    @cached_property
    def _work(self) -> Function:
        return Function(self._target.function_space())
