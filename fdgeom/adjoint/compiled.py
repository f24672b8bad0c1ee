"""Compiled reverse sweeps through steps of a stepper."""

from collections.abc import Sequence, Set

from firedrake import Form, Function

from fdgeom.adjoint.lists import Derivatives
from fdgeom.adjoint.values import Kept, Vectors, fill
from fdgeom.data import key


class CompiledSweep:
    """A compiled reverse sweep through the next steps; ``CannotCompile`` if there is none."""

    # seeded: keys of functions with cotangents after the steps. reached: keys of coefficients whose
    # cotangents are needed. moving: all functions that steps change and read again. memory: bytes for
    # states. running: a functional evaluated after each step, whose sum is `total` after the sweep.
    # tangents: whether the steps propagate tangents, too.
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
        self._reached, self.total = set(reached), 0.0
        self._trail = self._sweep.trail(steps, memory)
        #: The state before the steps.
        self.before = Kept(moving)
        #: The context in which the steps must run.
        self.recording = compiled.leaving(self._trail)

    def load_tangents(self, tangents: Vectors) -> None:
        """Set the tangents before the steps, those of coefficients included."""
        for f, dot in self._sweep.tangents:
            fill(dot, tangents.of(f))

    def store_tangents(self, tangents: Vectors) -> None:
        """Read the tangents of all functions after the steps."""
        for f, dot in self._sweep.tangents:
            tangents.put(f, dot.dat.data_ro)

    def reverse(self, d: Derivatives) -> None:
        """Replace the cotangents after the steps by those before them."""
        sweep = self._sweep
        places = [(d.cotangents, sweep.given, sweep.found)]
        if d.tangents is not None:
            # The cotangents of tangents are the cotangents, and those of values are the rates.
            places = [
                (d.cotangents, sweep.given_of_tangents, sweep.found_of_tangents),
                (d.rates, sweep.given, sweep.found),
            ]
        for vectors, given, _ in places:
            for f, bar in given:
                fill(bar, None if key(f) in self._reached else vectors.take(f))
        self.total = self._trail.pull()
        for vectors, _, found in places:
            for f, bar in found:
                vectors.add(f, bar.dat.data_ro)
