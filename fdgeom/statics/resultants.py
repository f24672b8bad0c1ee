"""Forces on ends and joints and stress resultants of beams in an equilibrium."""

from functools import cached_property

import numpy as np
from firedrake import Function

from fdgeom.beams.beam import Beam
from fdgeom.beams.forces import Forces, StressResultants, from_space
from fdgeom.execution import VectorAssembly
from fdgeom.statics.problem import EquilibriumProblem


class Resultants:
    """Forces and stress of a problem at the present configuration."""

    def __init__(self, problem: EquilibriumProblem) -> None:
        self._problem, self._motion = problem, problem.motion
        self._stresses: dict[int, VectorAssembly] = {}
        self._along: dict[int, StressResultants] = {}

    @cached_property
    def forces(self) -> Forces:
        """Forces of held ends and joints."""
        problem, (_, orientation) = self._problem, self._motion.configuration
        return Forces(
            self._motion,
            lambda test: problem.balance(from_space(orientation, test)),
            lambda test: problem.joint_work(from_space(orientation, test)),
        )

    def stress(self, beam: Beam) -> Function:
        """Stress resultants in the cells of a beam (DG0, 6)."""
        rod, space = beam.rod, beam.strain.function_space()
        if id(beam) not in self._stresses:
            pose = beam.position, beam.orientation
            self._stresses[id(beam)] = VectorAssembly(rod.cells.values(rod.stress(pose)))
        result = Function(space, name="stress")
        result.dat.data_wo[...] = self._stresses[id(beam)].assemble().dat.data_ro
        return result

    def stress_at(self, s, beam: Beam | None) -> np.ndarray:
        """Stress resultants at arc lengths; of the only beam if none is named."""
        members = self._motion.members
        if beam is None and len(members) == 1:
            (beam,) = members
        if not any(beam is other for other in members):
            raise ValueError("beam must be one of the beams of this equilibrium")
        if id(beam) not in self._along:
            self._along[id(beam)] = StressResultants(beam)
        return self._along[id(beam)].of(self.stress(beam), s)
