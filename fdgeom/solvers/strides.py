"""Runs whose steps are wanted again, the last one first: which of their states are kept."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from mpi4py import MPI


@dataclass(frozen=True)
class Strides:
    """A run in strides: of the last one all states are kept, of each other the first.

    On the way back those between are made again, stride by stride, by the same steps.

    Attributes
    ----------
    steps : int
        Of the run.
    stride : int
        Steps of a stride; those of the last one may be fewer.
    """

    steps: int
    stride: int

    @classmethod
    def fitting(cls, steps: int, size: int, memory: int, comm: MPI.Comm) -> Self:
        """All in one if what they keep, ``size`` bytes each, takes up to ``memory`` bytes on each rank.

        Else of k steps each, k² being their number.
        """
        fits = comm.allreduce(int(size * steps <= memory), op=MPI.MIN)
        return cls(steps, steps if fits else min(steps, math.isqrt(steps) + 1))

    @property
    def last(self) -> int:
        """The number of the last stride, and of the states kept of the others."""
        return -(-self.steps // self.stride) - 1

    def place(self, step: int) -> tuple[int, int]:
        """Of which stride a step is, and which one of it."""
        return divmod(step, self.stride)

    def backwards(self) -> Iterator[tuple[int, int, int]]:
        """Number, first step and number of steps of each, the last one first."""
        for number in reversed(range(self.last + 1)):
            first = number * self.stride
            yield number, first, min(self.stride, self.steps - first)
