"""The matrices of a drawn section on pyadjoint's tape, by what its materials are made of."""

from collections.abc import Callable, Sequence

import numpy as np
from firedrake import Function
from mpi4py import MPI
from pyadjoint import Block
from pyadjoint.tape import get_working_tape, stop_annotating

from fdgeom.forms import copy_into
from fdgeom.solvers import Snapshot
from fdgeom.solvers.compiled import pieces


class MatricesBlock(Block):
    """The 6×6 of a drawn section that is made anew, in the Functions that hold them.

    Parameters
    ----------
    section : DrawnSection
        It.
    sources : list of Function
        What its materials are made of.
    anew : callable
        ``anew()`` makes such a section of what they hold.
    """

    def __init__(self, section, sources: list[Function], anew: Callable) -> None:
        super().__init__()
        self._section, self._sources, self._anew = section, sources, anew
        self._held = list(section.held)
        for f in sources:
            self.add_dependency(f)

    def __str__(self) -> str:
        return "a drawn section made anew"

    def take(self) -> None:
        """Do it, and add it to the tape."""
        with stop_annotating():
            self._made, self._values = self._anew(), _values(self._sources)
            self._section.take_over(self._made)
        get_working_tape().add_block(self)
        for pair in self._held:
            for f in pair:
                self.add_output(f.create_block_variable())

    def _at(self, inputs):
        """The section of these values; the last one is kept."""
        values, comm = _values(inputs), self._section.mesh.comm
        if comm.allreduce(not all(map(np.array_equal, values, self._values)), op=MPI.LOR):
            with stop_annotating():
                kept = Snapshot(self._sources)
                kept.take()
                try:
                    for f, given in zip(self._sources, inputs, strict=True):
                        copy_into(f, given)
                    self._made, self._values = self._anew(), values
                finally:
                    kept.restore()
        return self._made

    def prepare_recompute_component(self, inputs, relevant_outputs):
        made = self._at(inputs)
        return [
            holding(Function(f.function_space(), name=f.name()), matrix)
            for pair in self._held
            for f, matrix in zip(pair, (made.stiffness, made.inertia), strict=True)
        ]

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return prepared[idx]

    def prepare_evaluate_adj(self, inputs, adj_inputs, relevant_dependencies):
        stiffness, inertia = (
            sum((_matrix(bar) for bar in bars if bar is not None), np.zeros((6, 6)))
            for bars in (adj_inputs[::2], adj_inputs[1::2])
        )
        wanted = [self._sources[k] for k, _ in relevant_dependencies]
        with stop_annotating():
            found = self._at(inputs).pulled(stiffness, inertia, wanted)
        return {k: found[self._sources[k]] for k, _ in relevant_dependencies}

    def evaluate_adj_component(self, inputs, adj_inputs, block_variable, idx, prepared=None):
        return prepared[idx]

    def prepare_evaluate_tlm(self, inputs, tlm_inputs, relevant_outputs):
        changes = {f: v for f, v in zip(self._sources, tlm_inputs, strict=True) if v is not None}
        with stop_annotating():
            rates = self._at(inputs).pushed(changes)
        return [
            holding(Function(f.function_space()), rate)
            for pair in self._held
            for f, rate in zip(pair, rates, strict=True)
        ]

    def evaluate_tlm_component(self, inputs, tlm_inputs, block_variable, idx, prepared=None):
        return prepared[idx]

    def prepare_evaluate_hessian(self, *args):
        raise NotImplementedError(
            "second derivatives by what the materials of a drawn section are made of are not there: "
            "take differences of gradients"
        )


def holding(function: Function, matrix: np.ndarray) -> Function:
    """A (6, 6) Function with these values everywhere."""
    function.dat.data_wo_with_halos[...] = matrix
    return function


def _values(functions: Sequence[Function]) -> list[np.ndarray]:
    return [np.array(part.dat.data_ro) for f in functions for part in pieces(f)]


def _matrix(bar) -> np.ndarray:
    return bar.function_space().mesh().comm.allreduce(bar.dat.data_ro.sum(axis=0))
