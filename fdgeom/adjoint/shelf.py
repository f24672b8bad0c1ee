"""Storage of inputs that checkpoint schedules drop too early."""

from pyadjoint import Block


class Shelf:
    """The inputs of the blocks of one time step of a tape at their last replay."""

    def __init__(self) -> None:
        self._timestep: int | None = None
        self._inputs: dict[int, list] = {}

    def put(self, timestep: int, block: Block, inputs: list) -> None:
        """Save the inputs of a block, and drop those of other time steps."""
        if timestep != self._timestep:
            self._timestep, self._inputs = timestep, {}
        self._inputs[id(block)] = inputs

    def of(self, block: Block) -> list | None:
        """The inputs of a block; None if they are not saved."""
        return self._inputs.get(id(block))
