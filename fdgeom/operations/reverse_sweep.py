"""The adjoint of a list of operations, the values that it reads, and the checkpoints of many steps."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from firedrake import Function
from mpi4py import MPI

from fdgeom.operations.explicit import Copy
from fdgeom.operations.operation import Cotangents, Operation, parts
from fdgeom.operations.solve import Solve


class AdjointStep:
    """The operations that compute the cotangents before a step from those after it.

    ``seeds`` are the Functions with cotangents after the last step, ``wanted`` those by which
    derivatives are computed. With ``once`` the adjoint is that of a single step, and omits what only
    several steps need.
    """

    # An operation that writes a Function makes a new version of it. The adjoint of an operation reads the
    # versions before it, except the solution of a solve.
    def __init__(
        self, step: Sequence[Operation], seeds: Iterable[Function], wanted: Iterable[Function],
        *, once: bool = False,
    ) -> None:  # fmt: skip
        self.step, seeds = tuple(step), list(seeds)
        self.cotangents = Cotangents([*_reached(self.step, list(wanted)), *seeds])
        # Cotangents that may differ from zero after a step: the walk adds to them until it ends.
        # In a fixed order: the text of compiled adjoints follows it.
        alive = [part for f in seeds for part in parts(f)]
        while True:
            back = self._reverse(alive)
            more = [f for f in self.cotangents.nonzero if f not in alive]
            if once or not more:
                break
            alive += more
        #: The Functions whose cotangents are zero before the step.
        self.zeroed = [f for f in dict.fromkeys(alive) if f not in self.cotangents]
        #: The operations, and the number of the operation of the step that each belongs to.
        self.operations = [op for _, op in back]
        self.places = [place for place, _ in back]
        self._writes = [{id(part.dat) for f in op.writes for part in parts(f)} for op in self.step]
        self._last = {name: k for k, names in enumerate(self._writes) for name in names}

    def _reverse(self, alive: Sequence[Function]) -> list[tuple[int, Operation]]:
        self.cotangents.drop(self.cotangents.nonzero)
        self.cotangents.add(alive)
        return [
            (k, made)
            for k, op in reversed(list(enumerate(self.step)))
            for made in op.vjp(self.cotangents)
        ]

    @property
    def zeroes(self) -> list[Operation]:
        """The operations that set the cotangents in ``zeroed``."""
        return [Copy(source=None, target=self.cotangents[f]) for f in self.zeroed]

    def is_written(self, f: Function) -> bool:
        """Whether the step writes a Function."""
        return id(f.dat) in self._last

    def writer_before(self, place: int, f: Function) -> tuple[int, int]:
        """The version of a Function that an operation of the step reads.

        That is the step in which it is written (0 for the same, -1 for the one before) and the number
        of the operation that writes it.
        """
        before = [k for k in range(place) if id(f.dat) in self._writes[k]]
        return (0, before[-1]) if before else (-1, self._last[id(f.dat)])

    def writer_for_adjoint(self, place: int, f: Function) -> tuple[int, int]:
        """The version that the adjoint of an operation of the step reads."""
        if isinstance(self.step[place], Solve) and id(f.dat) in self._writes[place]:
            return 0, place
        return self.writer_before(place, f)

    def is_last(self, place: int, f: Function) -> bool:
        """Whether an operation makes the last version of a Function in a step."""
        return self._last[id(f.dat)] == place


def _reached(operations: Sequence[Operation], wanted: Sequence[Function]) -> list[Function]:
    """The Functions that depend on the wanted ones, with the whole of mixed ones."""
    found = {id(part.dat): part for f in wanted for part in parts(f)}
    whole = [f for f in wanted if len(f.function_space()) > 1]
    while True:
        count = len(found)
        for op in operations:
            if any(id(part.dat) in found for f in op.reads for part in parts(f)):
                found |= {id(part.dat): part for f in op.writes for part in parts(f)}
        if len(found) == count:
            break
    for op in operations:
        for f in (*op.reads, *op.writes):
            if len(f.function_space()) > 1 and any(id(p.dat) in found for p in parts(f)):
                whole.append(f)
    return [*dict.fromkeys(whole), *found.values()]


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
