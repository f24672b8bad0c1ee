"""Stress resultants at any place along a beam, from those at its Gauss points."""

import numpy as np
from firedrake import Function
from mpi4py import MPI

from fdgeom.beams.fields import BeamFields
from fdgeom.messages import format_value
from fdgeom.numbering import Numbering
from fdgeom.solvers import PointwiseUpdate
from fdgeom.solvers.derived import derived_in


class Resultants:
    """Moment and force of a beam along its arc length, on every rank."""

    # Between the Gauss points: the polynomial through the nearest degree + 1 of them, of order
    # degree + 1. It smooths a point load over a cell.
    def __init__(self, beam: BeamFields) -> None:
        self._stress = Function(beam.strain.function_space(), name="stress")
        self._update = PointwiseUpdate({self._stress: beam.stress()})
        self._derived = derived_in(beam.stress())
        self._points = Numbering(self._stress.function_space())
        self._degree = beam.degree
        own, comm = beam.mesh.coordinates.dat.data_ro, beam.comm
        self._ends = (
            comm.allreduce(own.min(initial=np.inf), op=MPI.MIN),
            comm.allreduce(own.max(initial=-np.inf), op=MPI.MAX),
        )

    def at(self, s) -> np.ndarray:
        """(6,) at an arc length, or (n, 6) at n of them, from the strain of the beam."""
        for derived in self._derived:
            derived.refresh()
        self._update.apply()
        return self.of(self._stress, s)

    def of(self, values: Function, s) -> np.ndarray:
        """Values, as :meth:`at`, of any function with a value at each Gauss point."""
        places = np.asarray(s, dtype=float)
        arc = self._points.coordinates
        if places.ndim > 1 or not np.all(np.isfinite(places)):
            raise ValueError(
                f"s must be an arc length, or a sequence of them, not {format_value(s)}"
            )
        low, high = self._ends
        slack = 1e-9 * (high - low)
        if np.any(places < low - slack) or np.any(places > high + slack):
            raise ValueError(f"s must lie on the beam, from {low:g} to {high:g}, not at {s!r}")
        return _interpolated(arc, self._points.gather(values), places, self._degree + 1)


def _interpolated(arc: np.ndarray, values: np.ndarray, s: np.ndarray, count: int) -> np.ndarray:
    """Lagrange's polynomials through the ``count`` nearest points."""
    count = min(count, len(arc))
    # Even numbers stand on both sides of s, odd ones about the nearest.
    marks = arc if count % 2 == 0 else (arc[1:] + arc[:-1]) / 2
    first = np.clip(np.searchsorted(marks, s) - count // 2, 0, len(arc) - count)
    window = np.asarray(first)[..., None] + np.arange(count)
    x = arc[window]
    weights = np.ones_like(x)
    for j in range(count):
        for k in range(count):
            if k != j:
                weights[..., j] *= (s - x[..., k]) / (x[..., j] - x[..., k])
    return np.einsum("...j,...jc->...c", weights, values[window])
