"""What is moved: Poisson systems, beams and their parts."""

from fdgeom.systems.beam import Beam
from fdgeom.systems.chaplygin import ChaplyginSystem
from fdgeom.systems.constrained import ConstrainedSystem
from fdgeom.systems.copies import copies
from fdgeom.systems.hamiltonian import HamiltonianSystem
from fdgeom.systems.joints.assembly import Assembly
from fdgeom.systems.joints.bodies import PointBody
from fdgeom.systems.joints.joint import Prismatic, Revolute, Rigid, Spherical
from fdgeom.systems.lagrangian import LagrangianSystem
from fdgeom.systems.nonholonomic import NonholonomicSystem
from fdgeom.systems.poisson import PoissonSystem
from fdgeom.systems.rigid_bodies import RigidBodies
from fdgeom.systems.rods import GivenPose, Gravity, Load, Sliding
from fdgeom.systems.second_order import SecondOrderSystem
from fdgeom.systems.section import Section

__all__ = [
    "Assembly",
    "Beam",
    "ChaplyginSystem",
    "ConstrainedSystem",
    "GivenPose",
    "Gravity",
    "HamiltonianSystem",
    "LagrangianSystem",
    "Load",
    "NonholonomicSystem",
    "PointBody",
    "PoissonSystem",
    "Prismatic",
    "Revolute",
    "Rigid",
    "RigidBodies",
    "SecondOrderSystem",
    "Section",
    "Sliding",
    "Spherical",
    "copies",
]
