"""The ways in which fdgeom takes the same step, on one beam that they share."""

from __future__ import annotations

import numpy as np
from case import (
    DENSITY,
    END_WEIGHT,
    FIELDS,
    LENGTH,
    POISSON_RATIO,
    SIDE,
    YOUNGS_MODULUS,
    State,
    start,
    step,
)
from firedrake import COMM_WORLD, Function, FunctionSpace, IntervalMesh, SpatialCoordinate

import fdgeom as fg

LOCAL_NEWTON = {"snes_type": "python", "snes_python_type": "fdgeom.LocalNewton"}


def make_beam(cells: int, comm=COMM_WORLD) -> fg.Beam:
    """The beam of the paper, unstrained and at rest."""
    section = fg.Section.rectangle(
        SIDE,
        SIDE,
        density=DENSITY,
        youngs_modulus=YOUNGS_MODULUS,
        poisson_ratio=POISSON_RATIO,
        torsion_constant=SIDE**4 / 6,
        shear_factor=1.0,
        axis=1,
    )
    return fg.Beam(IntervalMesh(cells, LENGTH, comm=comm), section, end_weight=END_WEIGHT)


class Values:
    """Puts a state into a beam and takes it out, along the beam whatever the numbering."""

    def __init__(self, beam: fg.Beam, cells: int) -> None:
        self._beam, self._cells = beam, cells
        self._places = {name: self._place(getattr(beam, name), cells) for name in FIELDS}

    @staticmethod
    def _place(function: Function, cells: int) -> np.ndarray:
        """Number along the beam of each local node or cell of a function."""
        space = function.function_space()
        element = space.ufl_element().sub_elements[0]
        scalar = FunctionSpace(space.mesh(), element)
        x = Function(scalar).interpolate(SpatialCoordinate(space.mesh())[0])
        return np.rint(np.floor(x.dat.data_ro * cells / LENGTH + 0.25)).astype(int)

    def put(self, state: State) -> None:
        # Compiled calls have left the fields as they are without telling the beam.
        self._beam.consistency.settle()
        for name, place in self._places.items():
            getattr(self._beam, name).dat.data_wo[...] = getattr(state, name)[place]
        self._beam.consistency.prepare()

    def take(self) -> State:
        """The state; on more than one rank only this rank's part, NaN elsewhere."""
        out = {}
        for name, place in self._places.items():
            length = self._cells if name == "strain" else self._cells + 1
            out[name] = np.full((length, FIELDS[name]), np.nan)
            out[name][place] = getattr(self._beam, name).dat.data_ro
        return State(**out)


class SharedBeam:
    """One beam with its steppers, and where the run has got to."""

    def __init__(self, cells: int, comm=COMM_WORLD) -> None:
        self.cells, self.dt = cells, step(cells)
        self.beam = make_beam(cells, comm)
        self.values = Values(self.beam, cells)
        self._steppers: dict[str, fg.PoissonIntegrator] = {}
        self.values.put(start(cells))

    def stepper(self, kind: str) -> fg.PoissonIntegrator:
        """The stepper of a kind: "compiled", "local" (SNES LocalNewton) or "snes"."""
        if kind not in self._steppers:
            options = {
                "compiled": {"compiled": True},
                "local": {"compiled": False, "solver_parameters": LOCAL_NEWTON},
                "snes": {"compiled": False},
            }[kind]
            self._steppers[kind] = fg.PoissonIntegrator(self.beam, self.dt, **options)
        return self._steppers[kind]


class _OnSharedBeam:
    """A way to step the shared beam."""

    def __init__(self, shared: SharedBeam, kind: str) -> None:
        self._shared, self._stepper = shared, shared.stepper(kind)

    def restart(self, state: State) -> None:
        self._shared.values.put(state)

    def state(self) -> State:
        return self._shared.values.take()


class CompiledBeam(_OnSharedBeam):
    """Many steps in one compiled call.

    What is timed is the steps; ``begin`` and ``end`` are what a call of ``advance`` adds, the
    copying into the order of the chain and back.
    """

    def __init__(self, shared: SharedBeam) -> None:
        super().__init__(shared, "compiled")
        steps = self._stepper.ready_steps()
        executor, unit = steps._executor, steps.unit
        self.begin, self.end = executor.fields.load, executor.fields.store
        self._run = lambda n: unit.advance(n, 0.0, self._shared.dt)

    def advance(self, steps: int) -> None:
        reason, _, _ = self._run(steps)
        if reason:
            raise RuntimeError("a compiled step failed")


class SingleSteps(_OnSharedBeam):
    """One call of ``advance`` a step."""

    def advance(self, steps: int) -> None:
        one = self._stepper.advance
        for _ in range(steps):
            one()
