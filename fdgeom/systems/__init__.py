"""Poisson, constrained and second-order systems, rigid bodies, Chaplygin systems.

`system` is the base class of all of them. Beams are systems too; they are in :mod:`fdgeom.beams`.
Time integration is in :mod:`fdgeom.steppers`.

- `poisson`: a bracket, an energy, Casimirs; `chaplygin`: systems on vector spaces and groups with the
  equations of a Lagrangian;
- `constrained`: holonomic and nonholonomic constraints; `motion`: second-order systems and rigid bodies;
- `boundary_conditions`: an argument that systems share.
"""

from fdgeom.systems.chaplygin import ChaplyginSystem
from fdgeom.systems.constrained.constrained import ConstrainedSystem
from fdgeom.systems.constrained.lagrangian import LagrangianSystem, NonholonomicSystem
from fdgeom.systems.motion.condition import Condition
from fdgeom.systems.motion.motion import Motion
from fdgeom.systems.motion.rigid_bodies import RigidBodies
from fdgeom.systems.motion.second_order import SecondOrderSystem
from fdgeom.systems.poisson.hamiltonian import HamiltonianSystem
from fdgeom.systems.poisson.poisson import PoissonSystem
from fdgeom.systems.system import copies

__all__ = [
    "ChaplyginSystem",
    "Condition",
    "ConstrainedSystem",
    "HamiltonianSystem",
    "LagrangianSystem",
    "Motion",
    "NonholonomicSystem",
    "PoissonSystem",
    "RigidBodies",
    "SecondOrderSystem",
    "copies",
]
