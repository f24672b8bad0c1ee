"""Base class of all time steppers."""

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

from firedrake import Constant, Function
from pyadjoint.tape import annotate_tape
from ufl.classes import Expr

from fdgeom import citations
from fdgeom.build_message import compiling
from fdgeom.clock import Clock
from fdgeom.data import Snapshot
from fdgeom.errors import CannotCompile, SolveFailed, StepFailed
from fdgeom.execution import Executor, Run, perform
from fdgeom.execution.options import (
    COMPILED_STEPS,
    SNES_STEPS,
    Compiled,
    CompiledCode,
    SolveOptions,
    check_parameters,
    list_on_help,
)
from fdgeom.forms import paused_collection
from fdgeom.interrupt import INT, delayed, shielded
from fdgeom.operations import Flow, Operation, Solve, check_state, completed, flattened, merged
from fdgeom.steppers.method import Method, Restart
from fdgeom.taping import OffTape, recorders
from fdgeom.validation import NotCopied, present_number, whole

if TYPE_CHECKING:
    from fdgeom.recording import Checkpoint, CSVFile, History
    from fdgeom.steppers.compiled import ListSteps

# Where signs must not change, so many compiled steps go by between two looks at them.
_LOOKS = 8
_SILENT = nullcontext()

# Steppers of each kind of system, the most special kind first; names need no import.
_STEPPERS_OF = {
    "Beam": "SymmetricPoissonIntegrator, GeneralizedAlpha, EnergyMomentum or VariationalIntegrator",
    "Assembly": "GeneralizedAlpha, EnergyMomentum or VariationalIntegrator",
    "HamiltonianSystem": "StormerVerlet, ImplicitMidpoint or GaussLegendre(2)",
    "PoissonSystem": "ImplicitMidpoint, DiscreteGradient or GaussLegendre(2)",
    "ConstrainedSystem": "RATTLE",
    "LagrangianSystem": "DiscreteLagrangian",
    "NonholonomicSystem": "NonholonomicMidpoint",
    "SecondOrderSystem": "GeneralizedAlpha",
    "RigidBodies": "GeneralizedAlpha",
    "Motion": "GeneralizedAlpha",
}


class StepperOptions(TypedDict, total=False):
    """Keyword arguments of the constructors of all steppers."""

    t0: float
    solver_parameters: dict | None
    options_prefix: str | None
    compiled: bool | None


class Stepper(OffTape, Method, Restart, Compiled, NotCopied):
    """A time stepper: holds its solvers and advances a system in place.

    Parameters
    ----------
    system : object
        The system to integrate; each method states the class that it needs.
    dt : float
        Time step; may be changed between two steps. A scalar Constant is read before every step.
    t0 : float, optional
        Time of the initial state (default 0).
    solver_parameters : dict, optional
        PETSc options of the solves, as in Firedrake.
    options_prefix : str, optional
        Prefix of options on the command line, which override ``solver_parameters``.
    compiled : bool, optional
        Whether the steps run in compiled code. By default they do if all solves of the method are
        local, or if it has one solve that couples neighbours on an interval mesh, and the options
        set only tolerances. Everything else goes through PETSc SNES, and :attr:`why_not_compiled`
        gives the reason. False, like the option ``fdgeom_compiled 0``, selects PETSc SNES. True
        raises if steps cannot be compiled. A compiled step that fails is repeated through PETSc
        SNES, with a warning the first time, and counted in :attr:`fallbacks`; with True it raises
        :class:`StepFailed`.

    Raises
    ------
    TypeError, ValueError
        If the system lacks what the method needs, ``dt`` is not positive, or an option is unknown.

    Notes
    -----
    Between two calls of :meth:`advance` you may change the state and every coefficient: Functions
    and Constants in the system's forms, the expressions that define them, and the coordinates of
    its mesh, except that of a beam; by Firedrake, a PETSc Vec or a NumPy view. The next step uses
    the new values, in compiled code and through PETSc SNES alike, and accelerations that a method
    carries are solved for again. A field counts as set if its values differ from those after the
    last step, or at the beginning of a run or of a restart file; recorded runs and replays use the
    same rule.

    The stepper has the only clock: t is t₀ + n Δt, not a sum. The system's time is set to it when
    the stepper is made, before and after steps, after a failure and by :func:`fdgeom.resume`.

    However :meth:`advance` ends (a failed step, Ctrl-C, an error in a callback, no memory), the
    state is that after a completed step. The clock, the fields that the method carries from step to
    step and the dependent fields belong to that state.

    For authors: the methods of a new stepper are those of `Method` (``steppers/method.py``). Others:
    ``begin_steps``, ``clock``, ``operations``, ``prepare``, ``ready_steps``, ``replay``, ``runs``,
    ``solve_options``, ``state_functions``, ``step_flows``, ``take_steps``, ``take_up``.
    """

    def __init__(
        self,
        system,
        dt: float,
        *,
        t0: float = 0.0,
        solver_parameters: dict | None = None,
        options_prefix: str | None = None,
        compiled: bool | None = None,
    ) -> None:
        self._given_dt, dt = dt, present_number("dt", dt, above=0)
        citations.cite(type(self))
        #: Time, time step and number of steps.
        self.clock = Clock(begin=present_number("t0", t0), dt=dt, last_dt=dt)
        self._user, self._prefix = check_parameters(solver_parameters, options_prefix)
        with paused_collection(), compiling(type(self).__name__):
            self.system = self._form_of(system)
            if not isinstance(self.system, self.moves):
                raise _wrong_system(type(self), system)
            comm, name = self.system.mesh.comm, type(self).__name__
            self._code = CompiledCode(
                self._user, self._prefix, compiled, comm, what="this stepper",
                solve=f"a step of {name}", instead="the steps go through PETSc SNES",
            )  # fmt: skip
            self.system.model.set_time(self.t)
            #: The calls that perform operations.
            self.runs: dict[Operation, Run] = {}
            self._setup()
            self._take_apart(self.flows())
            #: The functions that a step changes and that make the state.
            self.state_functions: tuple[Function, ...] = (
                *self.system.functions().values(),
                *self.functions().values(),
            )
            check_state(self.operations, self.state_functions)
            self._snapshot = Snapshot(self.state_functions)
            #: Its steps as a function, for derivatives; made when they are first asked for.
            self.replay: Any = None
            solves = [op.options.name for op in self._with_options()]
            list_on_help(name, self._prefix, solves, comm)
            if self._code.why_not is None:
                self._fuse()

    def __setattr__(self, name: str, value) -> None:
        """Set an attribute; after construction public ones only if steps read them again."""
        if self._is_made and not name.startswith("_"):
            known = name in self.__dict__ or hasattr(type(self), name)
            if not known or name in self._unchangeable:
                does = "cannot be changed: make another stepper" if known else "does not exist"
                raise AttributeError(f"{type(self).__name__}.{name} {does}; dt and t may be set")
        super().__setattr__(name, value)

    @cached_property
    def _unchangeable(self) -> set[str]:
        return {"system", "operations", *self.parameters()}

    # --- the clock -----------------------------------------------------------------------------
    @property
    def t(self) -> float:
        """Time. It may be set: the state is then that of another time."""
        return self.clock.t

    @t.setter
    def t(self, value: float) -> None:
        self.clock = self.clock.set_to(present_number("t", value))
        self.system.model.set_time(self.t)

    @property
    def dt(self) -> float:
        """Time step; the present value if it is a Constant."""
        self._follow_dt()
        return self.clock.dt

    @dt.setter
    def dt(self, value: float) -> None:
        self._given_dt, self.clock = value, self.clock.with_dt(present_number("dt", value, above=0))

    def _follow_dt(self) -> None:
        """Read Δt again, if it was given as an expression such as a Constant."""
        if isinstance(self._given_dt, Expr):
            self.dt = self._given_dt

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return self.clock.steps

    def take_up(self, clock: Clock, *, changed: bool = False) -> None:
        """Continue from a state that was restored with all carried fields, at its time.

        :func:`fdgeom.resume` does so; ``changed`` tells that coefficients have changed since then.
        """
        self.clock = clock
        self.system.model.set_time(self.t)
        self.system.consistency.settle()
        self.system.consistency.stepped = self.steps > 0
        self.restored()
        if changed:
            self.forget_coefficients()

    # --- stepping ------------------------------------------------------------------------------
    def advance(self, steps: int = 1) -> None:
        """Take ``steps`` steps.

        While pyadjoint records they are one block on its tape (see :func:`fdgeom.gradient` for
        gradients without a tape); if a step fails, the completed ones before it are.

        Ctrl-C takes effect between two steps (in compiled code after several steps), a second
        Ctrl-C at once; in both cases the state is that after ``self.steps`` completed steps.

        Raises
        ------
        NotImplementedError
            While pyadjoint records, for methods and systems without derivatives.
        StepFailed
            If a step cannot be taken; the state is then the one before that step.
        """
        steps = whole("steps", steps, least=0)
        if not steps:
            return
        self._follow_dt()
        if annotate_tape():
            recorders["steps"](self, steps)
        else:
            self.take_steps(steps)

    def take_steps(self, steps: int) -> None:
        """Take steps, whether pyadjoint records or not."""
        first = self.clock.steps
        last = first + steps
        # Solvers are made when they are first needed.
        saying = _SILENT if first else compiling(type(self).__name__)
        with saying, delayed(self.system.comm, INT) as signals:
            self.prepare()
            compiled = self.ready_steps()
            try:
                with SNES_STEPS if compiled is None else COMPILED_STEPS:
                    while True:
                        self._take(last - self.clock.steps)
                        if self.clock.steps == last:
                            break
                        signals.check()
            finally:
                with shielded():
                    self.system.model.set_time(self.t)
                    if operations := self.finish():
                        self._perform(operations)
                    self.finished()
                    self.system.consistency.settle()
                    self.system.consistency.stepped |= self.clock.steps > first

    def prepare(self) -> None:
        """Update the time, dependent fields and what the method carries, after changes by hand."""
        with shielded():
            self.system.model.set_time(self.t)
            self.system.consistency.prepare()
        self._start()

    def begin_steps(self) -> None:
        """The actions before the first of some steps, without a step."""
        self.prepare()
        clock = self.clock
        if clock.dt != clock.last_dt:
            self._rescale(clock.dt / clock.last_dt)
            self.clock = clock.begun()

    def _start(self) -> None:
        if operations := self.start():
            with self._snapshot.kept():
                self._perform(operations)
        if self.begins(operations):
            self.clock = self.clock.begun()
        self.started(operations)

    def _rescale(self, ratio: float) -> None:
        value, operations = self._rescaling
        value.assign(ratio)
        self._perform(operations)

    @cached_property
    def _rescaling(self) -> tuple[Constant, list[Operation]]:
        ratio = Constant(1.0)
        return ratio, self.rescale(ratio)

    def _perform(self, operations: Sequence[Operation]) -> None:
        perform(operations, self.runs)

    def _take(self, most: int) -> None:
        """Take a step, or up to ``most`` compiled ones, or none if that fails."""
        before, why, done, again, turns = self.clock, None, 0, 0, self.system.turns
        branch = None if turns is None else turns.branch()
        finite = None
        most = most if branch is None else min(most, _LOOKS)
        self._snapshot.take()
        try:
            if before.dt != before.last_dt:
                self._rescale(before.dt / before.last_dt)
            if (compiled := self._code.made) is None:
                done = 1
                self._step(self.t, self.clock.dt)
            else:
                done, why = compiled.advance(most, before.dt)
                finite = compiled.finite
            if done and branch is not None:
                turns.check_branch(branch)
            clock = before
            if done:
                clock = before.after(done, self.carried_for(before.dt))
                # Not through `__setattr__`, whose checks of names are for users.
                vars(self)["clock"] = clock
            if not (math.isfinite(clock.t) and self._snapshot.sees_finite(finite)):
                raise SolveFailed("the new state or its time is not finite")
            if why is not None and not done:
                raise why  # so that the rescaling is undone
        except BaseException as failure:  # also Ctrl-C and a lack of memory leave a completed step
            with shielded():
                self.clock = before
                self._snapshot.restore()
            if not isinstance(failure, SolveFailed):
                raise
            if done < 2:
                raise self._failed(failure) from failure
            again = done
        for _ in range(again):
            self._take(1)  # one by one, to come to the last good state
        if why is not None:
            raise self._failed(why)

    def _failed(self, failure: SolveFailed) -> StepFailed:
        return StepFailed(
            str(failure), t=self.t, step=self.steps, residual=failure.residual,
            remedy=failure.remedy,
        )  # fmt: skip

    # --- its operations ------------------------------------------------------------------------
    def _take_apart(self, flows: Sequence[Flow]) -> None:
        """Complete the flows, and list the operations of a step."""
        #: The parts of one step, with times and checks.
        self.step_flows = completed(flows, self.system)
        #: The operations of one step, in order.
        self.operations = flattened(merged(self.step_flows))
        self._executor = Executor(self.operations, self.runs)
        for op in self._with_options():
            if op.options.told:
                self._executor.make(op)  # so that an unknown option is refused now

    def _with_options(self) -> list[Solve]:
        """The solves of which the user may set options."""
        return [op for op in self.operations if isinstance(op, Solve) and op.options is not None]

    def _step(self, t: float, dt: float) -> None:
        """Move the system from ``t`` by ``dt`` through PETSc."""
        self.system.model.set_time(t + dt)
        self._executor.step(t, dt)

    def solve_options(self, name: str = "", names: Sequence[str] = ()) -> SolveOptions:
        """The user's options for a solve, by its name among the names of all solves of the method.

        :meth:`flows` passes them to each ``Solve``; a method of one solve needs no names.
        """
        return SolveOptions(self._user, self._prefix, name, tuple(names))

    def run(
        self,
        until: float | None = None,
        *,
        steps: int | None = None,
        monitors=(),
        every: int = 1,
        keep: int = 1,
        output=(),
        csv: "str | os.PathLike | CSVFile | None" = None,
        checkpoint: "str | os.PathLike | Checkpoint | None" = None,
        progress: bool | str = True,
        units: str | Mapping[str, str] | None = None,
    ) -> "History":
        """Advance to a time with monitors and output; see :func:`fdgeom.run`."""
        from fdgeom import recording

        return recording.run(
            self, until, steps=steps, monitors=monitors, every=every, keep=keep, output=output,
            csv=csv, checkpoint=checkpoint, progress=progress, units=units,
        )  # fmt: skip

    def solver_stats(self) -> dict[str, int]:
        """Steps, solves, Newton and Krylov iterations since the stepper was made.

        Steps through PETSc SNES are counted as well: all steps of a stepper that is not compiled,
        otherwise those of :attr:`fallbacks`. Steps of gradients count, but not what a reverse sweep
        repeats from checkpoints.

        A local solve counts once for all nodes, with the iterations of the node that took most
        (which may depend a little on the number of nodes solved at a time).
        """
        solvers = self._executor.solvers
        fused, through_petsc = {"solves": 0, "newton_iterations": 0}, self.steps
        if self._code.made is not None:
            fused, through_petsc = self._code.made.stats(), sum(self._code.fallbacks.values())
        return {
            "steps": self.steps,
            "steps_through_petsc": through_petsc,
            "solves": fused["solves"] + sum(s.solves for s in solvers),
            "newton_iterations": fused["newton_iterations"]
            + sum(s.newton_iterations for s in solvers),
            "krylov_iterations": sum(s.krylov_iterations for s in solvers),
        }

    def _fuse(self) -> None:
        """Make compiled steps, if that can be done."""
        with self._code.making():
            if why := self.uncompilable():
                raise CannotCompile(why)
            # Inside of a function: methods can be read without the compiler.
            from fdgeom.steppers.compiled import ListSteps

            self._code.made = ListSteps(self, self._step, self._code.fallbacks)

    def ready_steps(self) -> "ListSteps | None":
        """The compiled steps, ready to run; None if the steps go through PETSc SNES."""
        steps = self._code.made
        if steps is not None and not steps.unit.is_ready:
            with self._code.making():
                steps.unit.make_ready()
        return self._code.made

    def __repr__(self) -> str:
        name, system = type(self).__name__, type(self.system).__name__
        return f"{name}({system}, order {self.order}, t = {self.t:g}, dt = {self.clock.dt:g})"


def _wrong_system(method: type[Method], system: object) -> TypeError:
    """The error for a system of another kind."""
    stepper, kind = method.__name__, method.moves.__name__
    needs = method.needs or f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
    if isinstance(system, type):
        return TypeError(
            f"system: {stepper} needs {needs}, not the class {system.__name__} itself: make one"
        )
    name = type(system).__name__
    kinds = [base.__name__ for base in type(system).__mro__ if base.__name__ in _STEPPERS_OF]
    if kinds:
        hint = f"; that is moved by {_STEPPERS_OF[kinds[0]]}"
    elif name in ("Function", "Form"):
        hint = "; state a system first, such as PoissonSystem(state, energy, bracket, pairing)"
    else:
        hint = ""
    return TypeError(f"system: {stepper} needs {needs}, not {name}{hint}")
