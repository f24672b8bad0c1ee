"""Compiled reverse sweep through steps of a stepper."""

from collections.abc import Sequence, Set

from firedrake import Form, Function

from fdgeom.adjoint.values import Kept, Vectors, fill
from fdgeom.solvers import key


class WayBack:
    """A compiled reverse sweep through the next steps; ``CannotCompile`` if there is none."""

    # seeded: keys of functions with cotangents after the steps. reached: keys of coefficients whose
    # cotangents are needed. moving: all functions that steps change and read again. memory: bytes for
    # states. running: a functional evaluated after each step, whose sum is `total` after `pull`.
    def __init__(
        self,
        compiled,
        steps: int,
        seeded: Set[int],
        reached: Set[int],
        moving: Sequence[Function],
        memory: int,
        running: Form | None = None,
        *,
        tangents: bool = False,
    ) -> None:
        self._sweep = compiled.sweep(seeded, reached, running, tangents=tangents)
        self._reached = set(reached)
        self._trail = self._sweep.trail(steps, memory)
        self.total = 0.0
        #: The state before the steps.
        self.before = Kept(moving)
        #: The context in which the steps must run.
        self.taken = compiled.leaving(self._trail)

    def pull(self, bars: Vectors) -> None:
        """The cotangents before the steps from those after them."""
        for f, bar in self._sweep.given:
            fill(bar, None if key(f) in self._reached else bars.take(f))
        self.total = self._trail.pull()
        for f, bar in self._sweep.found:
            bars.add(f, bar.dat.data_ro)

    def put_tangents(self, tangents: Vectors) -> None:
        """Set the tangents before the steps, those of coefficients included."""
        for f, dot in self._sweep.tangents:
            fill(dot, tangents.of(f))

    def get_tangents(self, tangents: Vectors) -> None:
        """Replace the tangents of all functions by those after the steps."""
        for f, dot in self._sweep.tangents:
            tangents.put(f, dot.dat.data_ro)

    def pull_both(self, bars: Vectors, rates: Vectors) -> None:
        """The cotangents before the steps, and their rates along the tangents, from those after them."""
        sweep = self._sweep
        for vectors, places in ((bars, sweep.given_of_tangents), (rates, sweep.given)):
            for f, bar in places:
                fill(bar, None if key(f) in self._reached else vectors.take(f))
        self._trail.pull()
        for vectors, places in ((bars, sweep.found_of_tangents), (rates, sweep.found)):
            for f, bar in places:
                vectors.add(f, bar.dat.data_ro)
