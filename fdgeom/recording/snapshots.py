"""Shapes of a beam during a run, kept in memory for pictures."""

from __future__ import annotations

import numpy as np
from firedrake import Function, FunctionSpace, SpatialCoordinate

from .arguments import positive_integer


class Snapshots:
    """Node positions of a beam, in order along it, at some times: an output for `run`.

    Parameters
    ----------
    every : int
        Number of steps between two snapshots; the first and the last state are always taken.

    Attributes
    ----------
    times : list of float
    positions : list of numpy.ndarray, shape (nodes, 3) each
        Space frame; on rank 0 only, empty on other ranks.
    s : numpy.ndarray, shape (nodes,)
        Mesh coordinate (arc length) of the nodes; on rank 0 only.
    closed : bool
        Whether the mesh is periodic, so that the last node is joined to the first.
    """

    def __init__(self, every: int = 1) -> None:
        self.every = positive_integer(every, "every")
        self.times: list[float] = []
        self.positions: list[np.ndarray] = []

    def open(self, stepper) -> None:
        """Find the order of the nodes; TypeError when the system has no curve in space."""
        system = stepper.system
        position = system.output_coordinates()
        if position is None:
            raise TypeError(
                f"Snapshots needs a system with output_coordinates(), and "
                f"{type(system).__name__} has none"
            )
        mesh = system.mesh
        scalar = FunctionSpace(mesh, position.function_space().ufl_element().sub_elements[0])
        s = Function(scalar).interpolate(SpatialCoordinate(mesh)[0])
        gathered = mesh.comm.gather(s.dat.data_ro.copy())
        self._system = system
        self.closed = mesh.coordinates.function_space().finat_element.is_dg()
        if mesh.comm.rank == 0:
            s = np.concatenate(gathered)
            self._order = np.argsort(s, kind="stable")
            self.s = s[self._order]

    def write(self, stepper) -> None:
        """Take one snapshot at the stepper's time."""
        local = self._system.output_coordinates().dat.data_ro.copy()
        gathered = self._system.mesh.comm.gather(local)
        self.times.append(float(stepper.t))
        if gathered is not None:
            self.positions.append(np.concatenate(gathered)[self._order])

    def close(self) -> None:
        """Nothing to close."""

    def __len__(self) -> int:
        return len(self.times)
