"""Steps that leave a trail, and their cotangents taken back along it, in compiled code."""

from collections.abc import Sequence, Set

from firedrake import Form, Function

from fdgeom.adjoint.values import Kept, Vectors, fill
from fdgeom.solvers import key


class WayBack:
    """The way back through steps that are coming, from where the stepper stands now.

    Of ``seeded`` functions, by their keys, there are cotangents after the steps; those of the
    coefficients ``reached`` are wanted. ``moving`` is all that steps change and read again, and
    ``memory`` says how many bytes may be kept. ``running`` is a functional that is taken after
    each step, ``total`` its sum after :meth:`pull`. ``CannotCompile`` if it is not there.
    """

    def __init__(
        self,
        compiled,
        steps: int,
        seeded: Set[int],
        reached: Set[int],
        moving: Sequence[Function],
        memory: int,
        running: Form | None = None,
    ) -> None:
        self._sweep, self._reached = compiled.sweep(seeded, reached, running), set(reached)
        self._trail = self._sweep.trail(steps, memory)
        self.total = 0.0
        #: Where the steps begin.
        self.before = Kept(moving)
        #: Context that the steps are to be taken in.
        self.taken = compiled.leaving(self._trail)

    def pull(self, bars: Vectors) -> None:
        """The cotangents before the steps, from those after them."""
        for f, bar in self._sweep.given:
            fill(bar, None if key(f) in self._reached else bars.take(f))
        self.total = self._trail.pull()
        for f, bar in self._sweep.found:
            bars.add(f, bar.dat.data_ro)
