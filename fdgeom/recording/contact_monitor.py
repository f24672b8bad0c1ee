"""Monitor of contact: present values, and the energy balance of friction and moving obstacles."""

from itertools import product

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace, TestFunction

from fdgeom.beams.contact import contacts_of, penetration
from fdgeom.beams.rod.mean_directors import MeanStep
from fdgeom.data import largest
from fdgeom.execution import FunctionalAssembly, VectorAssembly
from fdgeom.forms import copy_into
from fdgeom.lie import join, quaternion

from .monitors import FormMonitor


class ContactMonitor(FormMonitor):
    """Contact of a beam or assembly with obstacles (`Contact`), and its energy balance.

    "touching_length" is the length of the rods at nodes that touch, "contact_depth" the greatest
    depth, "normal_force" the sum of the normal forces; "dissipated" is the energy that friction has
    dissipated since the start of the run, and "obstacle_work" the work of moving obstacles on the
    rods. With `EnergyMomentum` and `DiscreteGradient` energy + dissipated - obstacle_work is constant
    to round-off, if no other load or support does work; with other methods to their order.

    The run takes its steps one by one, so that the balance contains each of them. A resumed run counts
    "dissipated" and "obstacle_work" from its own start; a table that it appends to jumps there.
    """

    def _forms(self, system) -> dict:
        rod = getattr(system, "rod", None)
        if rod is None or not contacts_of(rod):
            raise TypeError(
                "ContactMonitor() needs a beam or an assembly with a fdgeom.Contact among its loads, "
                f"and {type(system).__name__} has none"
            )
        pose = system.position, system.orientation
        force = sum(load.density("normal_force", pose, rod.time) for load in contacts_of(rod))
        touching = ufl.conditional(ufl.gt(penetration(rod, pose), 0), 1.0, 0.0)
        at_nodes = rod.cells.at_nodes
        return {"touching_length": at_nodes(touching), "normal_force": at_nodes(force)}

    def bind(self, system) -> None:
        """TypeError if the system has no contact."""
        super().bind(system)
        rod, self._pose = system.rod, (system.position, system.orientation)
        self._time, at_nodes = rod.time, rod.cells.at_nodes
        self._before = tuple(Function(f.function_space()) for f in self._pose)
        self._begin = Constant(0.0)
        dissipated, work = (at_nodes(density) for density in self._works(contacts_of(rod)))
        self._dissipation, self._work = FunctionalAssembly(dissipated), FunctionalAssembly(work)
        self._dissipated = self._obstacle_work = 0.0
        # Depth times length, and the length that belongs to it, at the nodes.
        space = system.position.function_space()
        test = TestFunction(FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0]))
        values = penetration(rod, self._pose), 1.0
        self._depth = [VectorAssembly(at_nodes(value * test)) for value in values]
        self._start()

    def _works(self, contacts) -> tuple:
        """Dissipation and work of obstacles in a step, per length, with the middle of `EnergyMomentum`."""
        before, now, begin, end = self._before, self._pose, self._begin, self._time
        turn = quaternion.product(quaternion.conjugate(before[1]), now[1])
        increment = join(quaternion.cay_inverse(turn), now[0] - before[0])
        dt, middle = end - begin, 0.5 * (begin + end)
        step = MeanStep(before, ufl.zero(6), increment, dt, True).nodal(middle, increment)
        dissipated, work = (
            dt * sum(sign * load.density("friction_power", step, velocity) for load in contacts)
            for sign, velocity in ((-1, "slip"), (1, "surface"))
        )
        moving = [load for load in contacts if load.load.moves]
        changes = (1, now, end), (-1, now, middle), (1, before, middle), (-1, before, begin)
        for load, (sign, pose, time) in product(moving, changes):
            work += sign * load.density("potential", pose, time)
        return dissipated, work

    def _start(self) -> None:
        """Begin a step at the present configuration and time."""
        for before, now in zip(self._before, self._pose, strict=True):
            copy_into(before, now)
        self._begin.assign(float(self._time))

    def step(self) -> None:
        """Add the works of the last step."""
        self._dissipated += self._dissipation.assemble()
        self._obstacle_work += self._work.assemble()
        self._start()

    def sample(self) -> dict[str, float | np.ndarray]:
        """Return the present values by name."""
        depth, length = (np.array(v.assemble().dat.data_ro) for v in self._depth)
        depths = depth / np.where(length > 0, length, 1.0)
        return super().sample() | {
            "contact_depth": largest(self._before[0].comm, depths),
            "dissipated": self._dissipated,
            "obstacle_work": self._obstacle_work,
        }
