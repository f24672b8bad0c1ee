"""Energy balance of contact: dissipation by friction and work of moving obstacles, step by step."""

from itertools import product

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace, TestFunction
from mpi4py import MPI
from ufl.classes import Form

from fdgeom.beams.contact.contact import contacts_of, penetration
from fdgeom.beams.rod.mean_directors import MeanStep
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.variation import Pose
from fdgeom.execution import FunctionalAssembly, VectorAssembly
from fdgeom.forms import copy_into
from fdgeom.lie import join, quaternion
from fdgeom.solvers import Number


class ContactEnergy:
    """Contact of a rod or a network of rods: present values, and works of the steps so far.

    With the middle of each step as `EnergyMomentum` and `DiscreteGradient` use it, energy +
    ``dissipated`` - ``work`` is constant to round-off, for rods with contact and loads that have a
    potential.
    """

    def __init__(self, rod: Rod, pose: Pose) -> None:
        self._rod, self._pose, contacts = rod, pose, contacts_of(rod)
        #: Energy that friction has dissipated, and the work of moving obstacles on the rod.
        self.dissipated = self.work = 0.0
        self._before = before = tuple(Function(f.function_space()) for f in pose)
        begin, dt = Constant(0.0), Constant(1.0)
        self._begin, self._dt = Number(begin), Number(dt)
        increment = join(
            quaternion.cay_inverse(quaternion.product(quaternion.conjugate(before[1]), pose[1])),
            pose[0] - before[0],
        )
        step = MeanStep(before, ufl.zero(6), increment, dt, True).nodal(begin + dt / 2, increment)
        at_nodes = rod.cells.at_nodes
        frictional = [load for load in contacts if load.load.has_friction]
        moving = [load for load in contacts if load.load.moves]
        dissipated, work = (
            dt * sum(sign * load.density("friction_power", step, velocity) for load in frictional)
            for sign, velocity in ((-1, "slip"), (1, "surface"))
        )
        middle, end = begin + dt / 2, begin + dt
        changes = (1, pose, end), (-1, pose, middle), (1, before, middle), (-1, before, begin)
        for load, (sign, g, t) in product(moving, changes):
            work += sign * load.density("potential", g, t)
        self._dissipation = FunctionalAssembly(at_nodes(dissipated)) if frictional else None
        self._work = FunctionalAssembly(at_nodes(work)) if frictional or moving else None
        # Depth times length, and the length that belongs to it, at the nodes.
        space = pose[0].function_space()
        test = TestFunction(FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0]))
        values = penetration(contacts, pose, rod.time), 1.0
        self._depth = [VectorAssembly(at_nodes(value * test)) for value in values]
        self.start()

    def start(self) -> None:
        """Begin a step at the present configuration and time."""
        for before, now in zip(self._before, self._pose, strict=True):
            copy_into(before, now)
        self._time = float(self._rod.time)

    def step(self) -> None:
        """Add the works of the step that led to the present configuration, and begin another."""
        self._begin.set(self._time)
        self._dt.set(float(self._rod.time) - self._time)
        if self._dissipation is not None:
            self.dissipated += self._dissipation.assemble()
        if self._work is not None:
            self.work += self._work.assemble()
        self.start()

    def greatest_depth(self) -> float:
        """The greatest depth at a node of any rank; 0 if nothing touches."""
        depth, length = (np.array(v.assemble().dat.data_ro) for v in self._depth)
        own = (depth / np.where(length > 0, length, 1.0)).max(initial=0.0)
        return self._rod.cells.mesh.comm.allreduce(float(own), op=MPI.MAX)


def contact_forms(rod: Rod, pose: Pose) -> dict[str, Form]:
    """The touching length and the sum of the normal forces."""
    contacts, time = contacts_of(rod), rod.time
    touching = ufl.conditional(ufl.gt(penetration(contacts, pose, time), 0), 1.0, 0.0)
    force = sum(load.density("normal_force", pose, time) for load in contacts)
    at_nodes = rod.cells.at_nodes
    return {"touching_length": at_nodes(touching), "normal_force": at_nodes(force)}
