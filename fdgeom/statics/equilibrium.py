"""Static equilibrium of beams under loads, and the path of equilibria as the loads grow."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from firedrake import Function
from pyadjoint.tape import annotate_tape, stop_annotating

from fdgeom import citations
from fdgeom.beams.beam import Beam
from fdgeom.beams.forces import Forces, StressResultants, from_space
from fdgeom.build_message import compiling
from fdgeom.data import Number
from fdgeom.errors import LoadStepFailed, SolveFailed
from fdgeom.execution import VectorAssembly
from fdgeom.execution.options import STATICS, Compiled, check_parameters
from fdgeom.interrupt import shielded
from fdgeom.messages import format_value
from fdgeom.statics.iterations import Iterations
from fdgeom.statics.path import EquilibriumPath, SingularPoint
from fdgeom.statics.problem import EquilibriumProblem, LoadProgram, motion_of
from fdgeom.statics.rigid_motions import free_motion, is_singular
from fdgeom.taping import OffTape, not_taped
from fdgeom.validation import NotCopied, number, whole

if TYPE_CHECKING:
    from fdgeom.beams import Assembly
    from fdgeom.beams.network.joints import Joint

_NOTHING_SCALED = (
    "steps scale loads and time, and neither changes here: bring what else has changed, such as a "
    "natural curvature or a load's numbers, to its value in parts, with a solve() after each"
)


class StaticEquilibrium(OffTape, Compiled, NotCopied):
    """Static equilibrium: internal work = λ · work of the loads, for all virtual displacements.

    In an assembly these are the displacements that its joints allow.

    Parameters
    ----------
    beam : Beam or Assembly
        The system, of degree 1, with its supports, joints and loads. Its position and orientation
        are moved to the equilibrium.
    solver_parameters : dict, optional
        PETSc options of the SNES (default: Newton with whole steps and a sparse LU).
    options_prefix : str, optional
        Prefix of options on the command line, which override ``solver_parameters``.
    compiled : bool, optional
        Whether :meth:`solve`, :meth:`follow` and :meth:`switch` run in compiled code. By default
        they do if ends and joints hold the beams and the options set only tolerances.
        False, like the option ``fdgeom_compiled 0``, selects PETSc SNES; it is also used if the
        problem cannot be compiled, and for a step that meets a singular matrix or fails in compiled
        code. Such steps are counted in :attr:`fallbacks`, with a warning the first time; with True
        they raise :class:`LoadStepFailed`.

    Attributes
    ----------
    load : float
        The load factor λ of the present configuration, a factor of all loads but contact.

    Raises
    ------
    TypeError, ValueError
        If the beam is of another degree or has no support, a load has no place on it, an end is
        given by its velocity, the joints of an assembly are violated or over-constrained, or an
        option is unknown.

    Notes
    -----
    The tangent is that of mixed integration points: see `EquilibriumProblem`. So one load step
    often reaches an equilibrium far away (unloading needs smaller steps). If several equilibria
    exist, smaller steps follow the path of the loads. Steps scale the loads, not the initial
    stress: a beam with a ``reference_strain`` should start near its shape at rest, by
    ``beam.strain.assign(beam.reference_strain)`` and ``beam.reconstruct()``. ``beam.time`` is the
    time of loads and given poses that depend on it. The strain of each beam becomes that of the
    equilibrium; velocity and momentum stay.

    The forces of joints are unknowns beside the displacements. In closed loops of beams all
    conditions can stay, since beams are elastic and the forces are determined. The assembly refuses
    a node that is held twice.

    Examples
    --------
    >>> beam = fg.Beam(mesh, section, left="clamped",
    ...                loads=fg.Load(force=(0, 0, 600), at="right"))  # doctest: +SKIP
    >>> statics = fg.StaticEquilibrium(beam)  # doctest: +SKIP
    >>> statics.solve()  # doctest: +SKIP
    >>> moment, force = statics.reactions()["left"]  # doctest: +SKIP
    """

    cites = ("Riks1979", "MagisanoLeonettiGarcea2017")

    @compiling("StaticEquilibrium")
    def __init__(
        self,
        beam: "Beam | Assembly",
        *,
        solver_parameters: dict | None = None,
        options_prefix: str | None = None,
        compiled: bool | None = None,
    ) -> None:
        self.beam, self._motion = beam, motion_of(beam)
        citations.cite(type(self))
        given, prefix = check_parameters(solver_parameters, options_prefix)
        self._motion.consistency.read_poses()
        self._motion.check_configuration()
        self._check_held()
        self._problem = EquilibriumProblem(self._motion)
        self._stresses: dict[Beam, VectorAssembly] = {}
        self._resultants: dict[Beam, StressResultants] = {}
        self._time = Number(self._motion.time)
        self._checked = False
        self._iterations = Iterations(self._problem, given, prefix, compiled)
        self._code = self._iterations.code
        self._path = EquilibriumPath(self._problem, self._iterations)
        #: The configuration before a call, and before a load step.
        self._start, self._before = self._problem.snapshot(), self._problem.snapshot()

    def _check_held(self) -> None:
        if sum(len(hold.components) for hold in self._motion.holds) >= 3:
            return
        if self._motion.joints is None:
            raise ValueError(
                "left, right: nothing holds the beam, so it has no equilibrium of its own; clamp an "
                "end, by left='clamped', or pin or slide both"
            )
        raise ValueError(
            "beam: nothing holds the assembly, so it has no equilibrium of its own; clamp an end of "
            "one of its beams, by left='clamped', or join it to fdgeom.ground"
        )

    @property
    def load(self) -> float:
        return self._problem.load

    # --- solving -------------------------------------------------------------------------------------
    def solve(
        self,
        load: float = 1.0,
        *,
        steps: int = 1,
        time: float | None = None,
        halvings: int = 4,
    ) -> None:
        """Go to the equilibrium at a load factor.

        While pyadjoint records it is a block on its tape, with the derivatives of the equilibrium
        by all Functions in its equations and by the poses of held ends.

        Parameters
        ----------
        load : float
            The load factor to reach, from the present one in equal steps.
        steps : int
            Number of steps.
        time : float, optional
            ``beam.time`` at the end, reached in the same steps, for given poses and loads that
            depend on it.
        halvings : int
            How often a step is halved before it fails, if it does not converge or turns the ends of
            a cell by more than 90 degrees against one another.

        Raises
        ------
        LoadStepFailed
            If a load step does not converge; configuration, load and time are then those before it.
        """
        number("load", load)
        whole("steps", steps, least=1)
        whole("halvings", halvings, least=0)
        end = self._time.value if time is None else number("time", time)
        program = LoadProgram(float(load), int(steps), end, int(halvings))
        if annotate_tape():
            self._put_on_tape(program)
        else:
            self._go(program)
        self._path.direction = None

    # Derivatives are imported where they are needed.
    def _put_on_tape(self, program: LoadProgram) -> None:
        from fdgeom.adjoint import given_after_failure, put_on_tape

        self._motion.consistency.refuse_strains()
        with given_after_failure(self._replay):
            put_on_tape(lambda: self._replay, program)

    @cached_property
    def _replay(self) -> Any:
        from fdgeom.statics.sensitivities import EquilibriumReplay

        with stop_annotating():
            return EquilibriumReplay(self._problem, self._go)

    def _go(self, program: LoadProgram) -> None:
        if program.point is not None:
            program.point.stand()
            self._motion.consistency.note_poses()
        start, begin, steps = self.load, self._time.value, program.steps

        def step(k: int) -> None:
            load = start + (program.load - start) * k / steps
            time = begin + (program.time - begin) * k / steps
            self._load_step(load, time, program.halvings)

        self._run_steps(step, steps, known=bool(self.solver_stats()["solves"]))

    def _load_step(self, load: float, time: float, halvings: int) -> None:
        start, begin = self.load, self._time.value
        self._before.take()
        turned = self._problem.turned()
        self._problem.load = load
        scaled = time != begin or (load != start and self._problem.is_loaded)
        try:
            self._problem.set_time(begin, time)
            self._iterations.solve(may_fail=bool(halvings) and scaled)
            self._problem.check_turned(turned)
            return
        except SolveFailed as failure:
            if not scaled:
                # Halves of it would be the same solve again.
                raise SolveFailed(str(failure), remedy=_NOTHING_SCALED) from failure
            if not halvings:
                raise
        # Not in the handler: a traceback would list the failures of all halves.
        self._before.restore()
        self._load_step((start + load) / 2, (begin + time) / 2, halvings - 1)
        self._load_step(load, time, halvings - 1)

    def follow(self, step: float, *, steps: int = 1, load_step: float | None = None) -> float:
        """Go along the path of equilibria by its arc length, past limits of the load.

        A step is taken in several parts if needed: a part is halved if the path turns by more than
        60 degrees in it, or leaves its tangent by more than half its length. The step ends early
        just behind a bifurcation, or when the load has changed by ``load_step``.

        Parameters
        ----------
        step : float
            Length of a step: the root of the mean over the beam of |rotation|² + |displacement|²/L²
            for its length L (over all beams of an assembly, L the sum of their lengths). The first
            step goes to higher loads (to lower ones if it is negative), later steps continue in the
            same sense (backwards if negative).
        steps : int
            Number of steps.
        load_step : float, optional
            Largest change of the load factor in a step.

        Returns
        -------
        float
            The load factor that has been reached.

        Raises
        ------
        LoadStepFailed
            If a step does not converge; configuration and load are then those before it.

        Notes
        -----
        Predictor along the tangent (du, dλ), corrector in the plane normal to it (Riks, Int. J.
        Solids Struct. 15, 1979): du₀·W (u - u₀) = step, an equation beside the others.

        If the number of negative pivots of the tangent stiffness (of its negative eigenvalues, if
        the loads are conservative) changes in a part, the first eigenvalue that changes its sign is
        followed to zero, and the point is added to :attr:`points`: a limit of the load or a
        bifurcation, with its load and its modes. Two changes that cancel within a part are not
        detected, nor is flutter. :meth:`switch` goes to a branch at a bifurcation.

        While pyadjoint records, the last point is a block on its tape: the equilibrium at its load,
        as of :meth:`solve`; replays start at that point. The load is given data and has no
        derivatives; the equilibrium has none at a limit of the load. Take one step at a time if all
        points matter.
        """
        number("step", step)
        whole("steps", steps, least=1)
        if step == 0:
            raise ValueError("step must not be zero")
        if load_step is not None:
            number("load_step", load_step, above=0)
        if not self._problem.is_loaded:
            what = "an assembly" if self._motion is self.beam else "a beam"
            raise ValueError(f"loads: {what} without loads has no path to follow; give it loads")
        self._along(lambda k: self._path.step(step, load_step), steps)
        return self.load

    def switch(self, step: float, *, point: SingularPoint | None = None, mode: int = 0) -> float:
        """Leave the path at a bifurcation for the branch along a mode, which `follow` then
        continues; ``beam.time`` is again that of the point.

        Parameters
        ----------
        step : float
            Length of the first step, as for :meth:`follow`; its sign chooses the side.
        point : SingularPoint, optional
            One of :attr:`points`, by default the last bifurcation.
        mode : int
            Number of its mode.

        Returns
        -------
        float
            The load factor that has been reached.

        Raises
        ------
        ValueError
            If there is no such point or mode.
        LoadStepFailed
            If the step does not converge; configuration and load are then those before it. This may
            happen if branches in many directions leave at one point, as for a round column, which
            can buckle to all sides: change its section a little.
        """
        number("step", step)
        if step == 0:
            raise ValueError("step must not be zero")
        if point is None:
            found = [p for p in self.points if p.kind == "bifurcation"]
            if not found:
                raise ValueError("point: follow() has found no bifurcation yet; call it first")
            point = found[-1]
        if not (
            isinstance(point, SingularPoint)
            and point.kind == "bifurcation"
            and point.modes[0].function_space() == self._problem.space
        ):
            raise ValueError(f"point must be a bifurcation of this path, not {format_value(point)}")
        whole("mode", mode, least=0, most=point.multiplicity - 1)
        self._along(lambda k: self._path.leave(point, mode, step), 1)
        return self.load

    @property
    def points(self) -> tuple[SingularPoint, ...]:
        """Limits and bifurcations that `follow` has passed, in this order."""
        return tuple(self._path.points)

    def _along(self, action: Callable[[int], None], steps: int) -> None:
        if not annotate_tape():
            self._run_steps(action, steps, known=self._path.direction is not None)
            return
        from fdgeom.adjoint import given_after_failure

        self._motion.consistency.refuse_strains()
        before, path = self._problem.snapshot(), self._path
        direction, points = path.direction, list(path.points)
        noted = [(s, s.values()) for s in (*self._replay.snapshots(), *self._replay.others())]
        with given_after_failure(self._replay), stop_annotating():
            point = self._replay.point()
            self._run_steps(action, steps, known=direction is not None)
            point.reach()
            self._motion.consistency.note_poses()
        program = LoadProgram(self.load, 1, self._time.value, 0, point)
        if path.at_limit:
            before.restore()
            path.direction, path.points = direction, points
            for snapshot, values in noted:
                snapshot.remember(values)
            raise NotImplementedError(
                "StaticEquilibrium.follow() has reached a limit point of the load, where the equilibrium "
                "has no derivatives by the load. The beam is again at the start of this call: take "
                "another step, which ends beside the limit point"
            )
        self._put_on_tape(program)

    def _run_steps(self, step: Callable[[int], None], steps: int, *, known: bool) -> None:
        """Take steps; unless the forms are known, they are compiled for the first one."""
        for k in range(1, steps + 1):
            with nullcontext() if known or k > 1 else compiling("StaticEquilibrium"):
                self._run_step(step, k)

    @STATICS
    def _run_step(self, step: Callable[[int], None], k: int) -> None:
        load, path = self.load, self._path
        self._motion.consistency.read_poses()
        direction, points = path.direction, list(path.points)
        self._start.take()
        try:
            self._check_start()
            step(k)
        except BaseException as failure:  # Ctrl-C too
            with shielded():
                self._start.restore()
                path.direction, path.points = direction, points
            if not isinstance(failure, SolveFailed):
                raise
            free = free_motion(self._motion)
            raise LoadStepFailed(
                str(failure), load=load, step=k - 1, free=free, remedy=failure.remedy
            ) from failure
        self._motion.consistency.write_poses()
        self._problem.found.take()

    def _check_start(self) -> None:
        """Refuse a mechanism with joints, whose singular tangent MUMPS may not detect."""
        if self._motion.joints is None or self._checked:
            return
        problem = self._problem
        if is_singular(self._motion, lambda: problem.stiffness(problem.tangent(problem.start()))):
            raise SolveFailed("the tangent stiffness is singular")
        self._checked = True

    def solver_stats(self) -> dict[str, int]:
        """Solves, those of them through PETSc SNES, Newton and Krylov iterations since this was made."""
        return self._iterations.stats()

    # --- what comes out ----------------------------------------------------------------------------------
    @not_taped
    def reactions(self):
        """Reactions at the supports; for joints to the ground use :meth:`force`.

        Returns
        -------
        dict, or tuple of dict
            For a beam, under "left" and "right", moment about the node and force in space, two
            arrays of 3; zeros at a free end. For an assembly such a dict of the held ends of each
            beam.

        Raises
        ------
        ValueError
            If the present configuration is no equilibrium that was found for the present data.
        """
        self._motion.consistency.read_poses()
        self._problem.check_found("reactions")
        found = self._motion.reactions_of(self._forces)
        if self._motion is self.beam:
            return found
        return {"left": (np.zeros(3), np.zeros(3)), "right": (np.zeros(3), np.zeros(3))} | found

    @not_taped
    def force(self, joint: "Joint", side: str = "second") -> np.ndarray:
        """Force (3, in space) of a joint with its spring on one of its places.

        Parameters
        ----------
        joint : Joint
            One of the assembly.
        side : {"second", "first"}
            The place that the force acts on.

        Raises
        ------
        ValueError
            If an argument is not as described, or as for :meth:`reactions`.
        """
        return self._exerted("force", joint, side)[3:]

    @not_taped
    def moment(self, joint: "Joint", side: str = "second") -> np.ndarray:
        """Moment (3, in space, about the node) of a joint on one of its places; see :meth:`force`."""
        return self._exerted("moment", joint, side)[:3]

    def _exerted(self, what: str, joint: "Joint", side: str) -> np.ndarray:
        """(moment, force) of a joint on one of its places."""
        self._motion.consistency.read_poses()
        found = self._forces.exerted(joint, side)  # which checks the arguments
        self._problem.check_found(what)
        return found

    @not_taped
    def stress(self) -> Function | tuple[Function, ...]:
        """Stress resultants (DG0, 6): moment and force of each cell's section, body frame.

        For an assembly a field for each of its beams.
        """
        found = tuple(map(self._stress_of, self._motion.members))
        return found if self._motion is self.beam else found[0]

    @not_taped
    def stress_at(self, s, beam: Beam | None = None) -> np.ndarray:
        """Stress resultants (moment, force) in the body frame, as ``beam.stress_at``.

        Parameters
        ----------
        s : float, or a sequence of n
            Arc length. The result has the shape (6,) or (n, 6).
        beam : Beam, optional
            A beam of an assembly; ``ValueError`` for any other.
        """
        members = self._motion.members
        beam = members[0] if beam is None and len(members) == 1 else beam
        if beam is None or not any(beam is other for other in members):
            raise ValueError("beam must be one of the beams of this equilibrium")
        if beam not in self._resultants:
            self._resultants[beam] = StressResultants(beam)
        return self._resultants[beam].of(self._stress_of(beam), s)

    def _stress_of(self, beam: Beam) -> Function:
        if beam not in self._stresses:
            stress = beam.rod.stress((beam.position, beam.orientation))
            self._stresses[beam] = VectorAssembly(beam.rod.cells.values(stress))
        result = Function(beam.strain.function_space(), name="stress")
        result.dat.data_wo[...] = self._stresses[beam].assemble().dat.data_ro
        return result

    @cached_property
    def _forces(self) -> Forces:
        """Forces of held ends and joints."""
        problem, (_, orientation) = self._problem, self._motion.configuration
        return Forces(
            self._motion,
            lambda test: problem.balance(from_space(orientation, test)),
            lambda test: problem.joint_work(from_space(orientation, test)),
        )

    def __repr__(self) -> str:
        return f"StaticEquilibrium({type(self.beam).__name__}, load = {self.load:g})"
