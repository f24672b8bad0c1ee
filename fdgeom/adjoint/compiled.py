"""Compiled reverse sweeps through steps of a stepper."""

from collections.abc import Sequence, Set

from firedrake import Form, Function, FunctionSpace

from fdgeom.adjoint.lists import Derivatives, Places, cotangent_places, keys, tangents_of
from fdgeom.data import key
from fdgeom.errors import CannotCompile
from fdgeom.execution import Executor
from fdgeom.operations import Assemble, Operation, each_part, linearise
from fdgeom.operations.dependent import read_in


class CompiledSweep:
    """Steps of a stepper that are stored, and their compiled adjoint; CannotCompile if there is none."""

    # spare: memory that sweeps share. seeded: keys of functions that have a cotangent after the steps;
    # reached: keys of the coefficients whose cotangents are wanted; running: a functional evaluated after
    # each step, whose sum is `total` after the sweep; tangents: whether the steps propagate tangents, too.
    def __init__(
        self,
        stepper,
        spare: list,
        seeded: Set[int],
        reached: Set[int],
        running: Form | None = None,
        *,
        tangents: bool = False,
    ) -> None:
        # Inside of a function: methods can be read without the compiler.
        from fdgeom import compile as compiler

        self._compiled, self.total = stepper.ready_steps(), 0.0
        operations, live = list(stepper.operations), list(stepper.state_functions)
        #: Σ over the steps of what each cell gives to the running functional.
        self._sums: Function | None = None
        if running is not None:
            added = _running_operation(running, stepper.system.model.clocks)
            (self._sums,) = added.writes
            operations.append(added)
            live.append(self._sums)
        every = each_part([f for op in operations for f in (*op.reads, *op.writes)])
        active = seeded | reached | keys(live)
        seeds = [f for f in every if key(f) in seeded or f is self._sums]
        wanted = [f for f in every if key(f) in active]
        dots = None
        if tangents:
            written = keys(f for op in operations for f in op.writes)
            dots = tangents_of(operations, active | written)
            operations = linearise(operations, dots)
            live += [dots[f] for f in live if f in dots]
            seeds += [dots[f] for f in seeds if f in dots]
            wanted += [dots[f] for f in wanted if f in dots]
        layout = self._compiled.unit.layout
        self.trajectory = compiler.CompiledTrajectory(
            operations, seeds, wanted, live=live, spare=spare, layout=type(layout)(layout.mesh)
        )
        #: The same operations through PETSc, for a step that compiled code cannot take.
        self._petsc = Executor(operations, stepper.runs)
        bars = self.trajectory.cotangents
        values = [f for f in every if bars.is_active(f) and f is not self._sums]
        self._cotangents = cotangent_places(values, dots, bars)
        if dots is not None:
            moved = [f for f in every if f in dots]
            #: The tangents of all functions, those of coefficients included.
            self.tangents = Places(moved, moved, dots)

    def begin(self, steps: int, memory: int) -> None:
        """Make a store for the next steps, of so many bytes or more if needed."""
        if self._sums is not None:
            self._sums.assign(0.0)
        self.trajectory.begin(steps, memory)

    def recording(self):
        """The context in which the steps must run."""
        return self._compiled.recorded_by(self.trajectory, self._petsc)

    def reverse(self, d: Derivatives) -> None:
        """Replace the cotangents after the steps by those before them."""
        d.put(self._cotangents)
        if self._sums is not None:
            self.total = self._sums.comm.allreduce(float(self._sums.dat.data_ro.sum()))
            self.trajectory.cotangents[self._sums].assign(1.0)
        self.trajectory.pull()
        d.get(self._cotangents)


def _running_operation(running: Form, clocks: Sequence) -> Operation:
    """Adds what each cell gives to a functional at the end of a step."""
    space = FunctionSpace(running.ufl_domain(), "DG", 0)
    one, sums = Function(space, name="one").assign(1.0), Function(space, name="sums")
    work = Form([i.reconstruct(integrand=one * i.integrand()) for i in running.integrals()])
    read = {id(c) for c in read_in(running)}
    times = [clock for clock in clocks if id(clock) in read]
    if len(times) > 1:
        raise CannotCompile("a running functional of several times")
    return Assemble(
        work=work, by={one: sums}, adds=[sums], clock=times[0] if times else None, at=1.0
    )
