"""What schedules of checkpoints drop too early."""

from pyadjoint import Block


class Shelf:
    """What the blocks of one time step of a tape began from when they were last taken again."""

    def __init__(self) -> None:
        self._timestep: int | None = None
        self._inputs: dict[int, list] = {}

    def put(self, timestep: int, block: Block, inputs: list) -> None:
        """Keep the inputs of a block, and forget those of another time step."""
        if timestep != self._timestep:
            self._timestep, self._inputs = timestep, {}
        self._inputs[id(block)] = inputs

    def of(self, block: Block) -> list | None:
        """The inputs of a block, if they are kept."""
        return self._inputs.get(id(block))
