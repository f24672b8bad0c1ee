"""Checkpoint schedule of runs whose steps are needed again in reverse order."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from mpi4py import MPI


@dataclass(frozen=True)
class Strides:
    """A run of ``steps`` in strides: all states of the last stride are kept, of each other one the first."""

    # The reverse sweep repeats the steps of the other strides from their first states.
    steps: int
    #: Steps of a stride; the last one may have fewer.
    stride: int

    @classmethod
    def fitting(cls, steps: int, size: int, memory: int, comm: MPI.Comm) -> Self:
        """One stride if its states fit into ``memory`` bytes on each rank, else strides of about √steps."""
        # `size` is the number of bytes of one state.
        fits = comm.allreduce(int(size * steps <= memory), op=MPI.MIN)
        return cls(steps, steps if fits else min(steps, math.isqrt(steps) + 1))

    @property
    def last(self) -> int:
        """The number of the last stride, which is the number of saved first states."""
        return -(-self.steps // self.stride) - 1

    def place(self, step: int) -> tuple[int, int]:
        """The stride of a step, and the number of the step in it."""
        return divmod(step, self.stride)

    def backwards(self) -> Iterator[tuple[int, int, int]]:
        """Number, first step and number of steps of each stride, the last stride first."""
        for number in reversed(range(self.last + 1)):
            first = number * self.stride
            yield number, first, min(self.stride, self.steps - first)
