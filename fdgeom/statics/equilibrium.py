"""Static equilibrium of beams under loads, and the path of equilibria as the loads grow."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from numbers import Integral

import numpy as np
from firedrake import Function
from pyadjoint.tape import annotate_tape, stop_annotating

from fdgeom import citations
from fdgeom.adjoint import put_on_tape
from fdgeom.beams.beam import Beam
from fdgeom.beams.network.assembly import Assembly
from fdgeom.beams.network.joint import Joint
from fdgeom.call import NotCopied
from fdgeom.errors import LoadStepFailed
from fdgeom.solvers import Snapshot, SolveFailed
from fdgeom.solvers.compiling import compiling
from fdgeom.solvers.options import check_parameters
from fdgeom.statics.freedom import free_motion, is_singular
from fdgeom.statics.iterations import Iterations
from fdgeom.statics.passage import Course, EquilibriumPassage
from fdgeom.statics.path import EquilibriumPath, SingularPoint
from fdgeom.statics.problem import EquilibriumProblem, finite_number, motion_of, number_of
from fdgeom.statics.resultants import Resultants
from fdgeom.taping import not_taped, off_the_tape
from fdgeom.words import shown

_NOTHING_SCALED = (
    "steps scale loads and time, and neither changes here: bring what else has changed, such as a "
    "natural curvature or a load's numbers, to its value in parts, with a solve() after each"
)


class StaticEquilibrium(NotCopied):
    """Equilibrium: internal work = λ · work of the loads, for all virtual displacements.

    Those of an assembly are those that its joints allow.

    Parameters
    ----------
    beam : Beam or Assembly
        Of degree 1. Position and orientation are moved to the equilibrium; what holds the ends, what
        joins beams, and what loads them was said when they were made.
    solver_parameters : dict, optional
        PETSc options of the SNES (default: Newton with whole steps and a sparse LU).
    options_prefix : str, optional
        Prefix under which the command line is read; it wins over ``solver_parameters``.
    compiled : bool, optional
        Whether :meth:`solve`, :meth:`follow` and :meth:`switch` run in compiled code: the default on
        one rank where ends and joints hold the beams, if no option asks for more than other
        tolerances. False, like the option ``fdgeom_compiled 0``, goes through PETSc SNES, and so does
        by itself whatever cannot be compiled, and a step that meets a singular matrix or fails for
        good in compiled code: that is counted in :attr:`fallbacks`, with a warning the first time,
        and with True it raises :class:`LoadStepFailed`.

    Attributes
    ----------
    load : float
        The load factor λ of the present configuration, by which all loads are multiplied.

    Raises
    ------
    TypeError, ValueError
        If the beam is of another degree or has nothing that holds it, a load has no place on it, an
        end is given by its velocity, the joints of an assembly do not hold or say something twice,
        or an option is unknown.

    Notes
    -----
    The tangent is that of mixed integration points: see `EquilibriumProblem`. So one load step
    often reaches an equilibrium far away (the way back takes smaller ones); where several exist,
    smaller steps choose the one that the path leads to. Steps scale the loads, not the stress of the
    start: a beam with a ``reference_strain`` should start near its shape at rest, by
    ``beam.strain.assign(beam.reference_strain)`` and ``beam.reconstruct()``. ``beam.time`` is the
    time of loads and given poses that depend on it. Strain and momentum of a beam are not touched:
    ``beam.project()`` fills them.

    The forces of joints are unknowns beside the displacements. Closed loops of beams need no
    conditions to be left out: beams are elastic, so the forces are determined. What is held twice at
    one node is refused, by the assembly.

    Examples
    --------
    >>> beam = fg.Beam(mesh, section, left="clamped",
    ...                loads=fg.Load(force=(0, 0, 600), at="right"))  # doctest: +SKIP
    >>> statics = fg.StaticEquilibrium(beam)  # doctest: +SKIP
    >>> statics.solve()  # doctest: +SKIP
    >>> moment, force = statics.reactions()["left"]  # doctest: +SKIP
    """

    @off_the_tape
    @compiling("StaticEquilibrium")
    def __init__(
        self,
        beam: Beam | Assembly,
        *,
        solver_parameters: dict | None = None,
        options_prefix: str | None = None,
        compiled: bool | None = None,
    ) -> None:
        self.beam, self._motion = beam, motion_of(beam)
        citations.cite(type(self))
        given, prefix = check_parameters(solver_parameters, options_prefix)
        self._motion.read_poses()
        self._motion.check_configuration()
        if self._motion.constraint is not None:
            self._motion.constraint.check_position()
        self._check_held()
        self._problem = EquilibriumProblem(self._motion)
        self._resultants = Resultants(self._problem)
        self._checked = False
        self._iterations = Iterations(self._problem, given, prefix, compiled)

    def _check_held(self) -> None:
        holds = () if self._motion.held is None else self._motion.held.holds
        if sum(len(hold.components) for hold in holds) >= 3:
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

    @property
    def is_compiled(self) -> bool:
        """Whether :meth:`solve`, :meth:`follow` and :meth:`switch` run in compiled code."""
        return self.why_not_compiled is None

    @property
    def why_not_compiled(self) -> str | None:
        """Why they go through PETSc SNES, in a sentence; None if they are compiled."""
        return self._iterations.why_not

    @property
    def fallbacks(self) -> dict[str, int]:
        """For each reason how often PETSc SNES has solved what compiled code did not solve."""
        return dict(self._iterations.fallbacks)

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

        While pyadjoint records it is a block on its tape: the derivatives are those of the
        equilibrium, by all that it is made of and by where held ends are.

        Parameters
        ----------
        load : float
            The load factor to reach, from the present one in equal steps.
        steps : int
            How many.
        time : float, optional
            ``beam.time`` to reach, in the same steps: for given poses and loads that depend on it.
        halvings : int
            How often a step that does not converge, or turns the ends of a cell by more than 90
            degrees against one another, is cut in halves before it fails.

        Raises
        ------
        LoadStepFailed
            If a load step does not converge; configuration, load and time are then those before it.
        """
        finite_number("load", load)
        _count("steps", steps)
        _count("halvings", halvings, least=0)
        end = number_of(self._motion.time) if time is None else finite_number("time", time)
        course = Course(float(load), int(steps), end, int(halvings))
        if annotate_tape():
            put_on_tape(self._passage, course)
        else:
            self._go(course)
        if self._iterations.has_path:
            self._iterations.path.direction = None

    @cached_property
    def _passage(self) -> EquilibriumPassage:
        with stop_annotating():
            return EquilibriumPassage(self._problem, self._go)

    def _go(self, course: Course) -> None:
        if course.point is not None:
            course.point.stand()
        start, begin, steps = self.load, number_of(self._motion.time), course.steps
        # Forms are compiled for the first one.
        with nullcontext() if self.solver_stats()["solves"] else compiling("StaticEquilibrium"):
            for k in range(1, steps + 1):
                self._take(
                    lambda k=k: self._load_step(
                        start + (course.load - start) * k / steps,
                        begin + (course.time - begin) * k / steps,
                        course.halvings,
                    ),
                    k,
                )

    def _load_step(self, load: float, time: float, halvings: int) -> None:
        start, begin = self.load, number_of(self._motion.time)
        before = Snapshot(self._problem.functions)
        before.take()
        turned = self._motion.turned()
        self._problem.load = load
        self._motion.set_time(time)
        scaled = time != begin or (load != start and self._problem.is_loaded)
        try:
            self._iterations.equilibrate(may_fail=bool(halvings) and scaled)
            self._motion.check_turned(turned)
        except SolveFailed as failure:
            if not scaled:
                # Halves of it would be the same solve again.
                raise SolveFailed(str(failure), remedy=_NOTHING_SCALED) from failure
            if not halvings:
                raise
            before.restore()
            self._problem.load = start
            self._motion.set_time(begin)
            self._load_step((start + load) / 2, (begin + time) / 2, halvings - 1)
            self._load_step(load, time, halvings - 1)

    def follow(self, step: float, *, steps: int = 1, load_step: float | None = None) -> float:
        """Go along the path of equilibria by its arc length, past limits of the load.

        A step is made in as many parts as the path asks for: where it turns by more than 60 degrees
        in one, or leaves its tangent by more than half the way, the part is halved. It ends early
        just behind a bifurcation, or where the load has changed by ``load_step``.

        Parameters
        ----------
        step : float
            Length of a step: the root of the mean over the beam of |rotation|² + |displacement|²/L²
            for its length L (over all beams of an assembly, L the sum of their lengths). The first
            step goes to higher loads (to lower ones if it is negative), later ones go on in the same
            sense (backwards if it is negative).
        steps : int
            How many.
        load_step : float, optional
            By how much the load factor changes in a step at most.

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

        Where the factors of the tangent stiffness have another number of negative pivots at the end
        of a part (of negative eigenvalues, if the loads are conservative), the first eigenvalue to
        change its sign is followed to zero, and the point put into :attr:`points`: a limit of the
        load or a bifurcation, with its load and its modes. Two that undo one another within a part
        are not seen, nor is flutter. :meth:`switch` goes to the branch that leaves a bifurcation.

        While pyadjoint records, the last point is a block on its tape: the equilibrium at its load,
        as of :meth:`solve`, which replays find from that point on. The load is given data, and has no
        derivatives; nor has the equilibrium where the load is at a limit. Take one step at a time
        where all points matter.
        """
        finite_number("step", step)
        _count("steps", steps)
        if step == 0:
            raise ValueError("step must not be zero")
        if load_step is not None and not finite_number("load_step", load_step) > 0:
            raise ValueError(f"load_step must be positive, not {shown(load_step)}")
        if not self._problem.is_loaded:
            what = "an assembly" if self._motion is self.beam else "a beam"
            raise ValueError(f"loads: {what} without loads has no path to follow")
        self._along(lambda path: path.step(step, load_step), steps)
        return self.load

    def switch(self, step: float, *, point: SingularPoint | None = None, mode: int = 0) -> float:
        """Leave the path at a bifurcation for the branch along a mode; `follow` then goes on there.

        Parameters
        ----------
        step : float
            Length of the first step, as for :meth:`follow`; its sign chooses the side.
        point : SingularPoint, optional
            Which of :attr:`points`; the last bifurcation if not given.
        mode : int
            Which of its modes.

        Returns
        -------
        float
            The load factor that has been reached.

        Raises
        ------
        ValueError
            If there is no such point or mode.
        LoadStepFailed
            If the step does not converge; configuration and load are then those before it. So it
            may be where several branches leave in one direction, as from a round column, which
            buckles to all sides at once: make its section differ a little.
        """
        finite_number("step", step)
        if step == 0:
            raise ValueError("step must not be zero")
        if point is None:
            found = [p for p in self.points if p.kind == "bifurcation"]
            if not found:
                raise ValueError("point: follow has met no bifurcation yet")
            point = found[-1]
        if not isinstance(point, SingularPoint) or point.kind != "bifurcation":
            raise ValueError(f"point must be a bifurcation of this path, not {shown(point)}")
        if isinstance(mode, bool) or mode not in range(point.multiplicity):
            raise ValueError(
                f"mode must be a whole number from 0 to {point.multiplicity - 1}, not {shown(mode)}"
            )
        self._along(lambda path: path.leave(point, mode, step), 1)
        return self.load

    @property
    def points(self) -> tuple[SingularPoint, ...]:
        """Limits and bifurcations that `follow` has gone over, in this order."""
        return tuple(self._iterations.path.points) if self._iterations.has_path else ()

    def _along(self, action: Callable[[EquilibriumPath], None], steps: int) -> None:
        if not annotate_tape():
            self._steps_along(action, steps)
            return
        begin, time = self.load, number_of(self._motion.time)
        direction = self._iterations.path.direction if self._iterations.has_path else None
        with stop_annotating():
            point = self._passage.point()
            self._steps_along(action, steps)
            point.reach()
        if self._iterations.path.at_limit:
            self._problem.load, self._iterations.path.direction = begin, direction
            raise NotImplementedError(
                "StaticEquilibrium.follow() has come to a limit of the load, where the equilibrium at "
                "a fixed load has no derivatives; it is back where it began: take another step, to a "
                "point beside the limit"
            )
        put_on_tape(self._passage, Course(self.load, 1, time, 0, point))

    def _steps_along(self, action: Callable[[EquilibriumPath], None], steps: int) -> None:
        for k in range(1, steps + 1):
            # Forms are compiled for the first step.
            known = self._iterations.has_path
            with nullcontext() if known else compiling("StaticEquilibrium"):
                self._take(lambda: action(self._iterations.path), k)

    def _take(self, action: Callable[[], None], k: int) -> None:
        load, time = self.load, number_of(self._motion.time)
        self._motion.read_poses()
        path = self._iterations.path if self._iterations.has_path else None
        before = None if path is None else (path.direction, list(path.points))
        self._problem.snapshot.take()
        try:
            self._check_start()
            action()
        except SolveFailed as failure:
            self._problem.snapshot.restore()
            self._problem.load = load
            self._motion.set_time(time)
            if self._iterations.has_path:
                path = self._iterations.path
                path.direction, path.points = before or (None, [])
            free = free_motion(self._motion)
            raise LoadStepFailed(
                str(failure), load=load, step=k - 1, free=free, remedy=failure.remedy
            ) from failure
        finally:
            self._motion.write_poses()

    def _check_start(self) -> None:
        """Refuse a mechanism. Without joints the LU finds its zero pivot; MUMPS need not."""
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
        """What holds ends: moment about the node, and force, in space, two arrays of 3.

        Of a beam a dict with both ends by name; of an assembly such a dict of the held ends for each
        of its beams, as `Assembly.reactions`. Joints to the ground are joints: see :meth:`force`.
        """
        self._motion.read_poses()
        found = self._motion.reactions_of(self._resultants.forces)
        if self._motion is self.beam:
            return found
        return {"left": (np.zeros(3), np.zeros(3)), "right": (np.zeros(3), np.zeros(3))} | found

    @not_taped
    def force(self, joint: Joint, side: str = "second") -> np.ndarray:
        """Force (3, in space) of a joint with its spring on one of its places.

        Parameters
        ----------
        joint : Joint
            One of the assembly.
        side : {"second", "first"}
            On which place.
        """
        self._motion.read_poses()
        return self._motion.exerted(joint, side, self._resultants.forces)[3:]

    @not_taped
    def moment(self, joint: Joint, side: str = "second") -> np.ndarray:
        """Moment (3, in space, about the node) of a joint on one of its places; see :meth:`force`."""
        self._motion.read_poses()
        return self._motion.exerted(joint, side, self._resultants.forces)[:3]

    @not_taped
    def stress(self) -> Function | tuple[Function, ...]:
        """Stress resultants (DG0, 6): moment and force of each cell's section, body frame.

        Of an assembly those of each of its beams.
        """
        found = tuple(map(self._resultants.stress, self._motion.members))
        return found if self._motion is self.beam else found[0]

    def stress_at(self, s, beam: Beam | None = None) -> np.ndarray:
        """Stress resultants at an arc length (6,), or at n of them (n, 6): as ``beam.stress_at``.

        ``beam`` says on which beam of an assembly.
        """
        return self._resultants.stress_at(s, beam)

    def __repr__(self) -> str:
        return f"<StaticEquilibrium of {type(self.beam).__name__}: load = {self.load:g}>"


def _count(name: str, value, least: int = 1) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {shown(value)}")
