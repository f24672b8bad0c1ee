"""One solve of a step: preparations, residual, and assignments of its result."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property

from firedrake import Constant, Form, Function
from ufl.core.expr import Expr

from fdgeom.solvers import (
    EssentialValues,
    Field,
    HeldSNES,
    Number,
    Numerics,
    PointwiseUpdate,
    plain,
)
from fdgeom.solvers.linked import Linked
from fdgeom.solvers.options import SolveOptions

Assignments = Mapping[Function, Expr]


@dataclass(frozen=True)
class Following:
    """Given motion of degrees of freedom in steps that are compiled as a whole."""

    #: The given values of the unknown's first components.
    values: Function
    #: Evaluates them for the end of the coming step; comes first in it.
    given: Assignments
    #: Assignments after the preparations, and (``finished``) after the assignments.
    prepared: Assignments = field(default_factory=dict)
    finished: Assignments = field(default_factory=dict)


@dataclass(frozen=True)
class AtLinks:
    """A solve that couples only the nodes of joints, for compiled steps."""

    #: Equations of the nodes and of the joints.
    equations: Linked
    #: Assignments at all nodes.
    assignments: Sequence[Assignments]


class Solve:
    """One solve of a step in an unknown of its own, between pointwise assignments.

    The same statement serves steps through PETSc SNES and compiled ones. One solve may occur
    several times in a step.

    Parameters
    ----------
    name : str
        Name in error messages.
    unknown : Function
        The unknown.
    dt : Constant
        The symbol for the step length in the residual and the assignments.
    residual : Form
        The form to solve for zero.
    guess : dict
        First guess of the unknown's parts: for each the function to copy. Other parts begin with
        the result of the last solve.
    assignments : sequence of dict
        Groups of functions and the expressions assigned to them after the solve.
    preparations : sequence of dict
        Such groups assigned before the solve; then the guess is copied.
    essential : sequence of EssentialValues
        Degrees of freedom of the unknown that are not solved for.
    options : SolveOptions
        The user's PETSc options.
    numerics : callable, optional
        ``numerics(residual, unknown)`` gives the default :class:`Numerics`, under the user's
        options.
    run : callable, optional
        ``run(solver)`` solves from the present unknown, if that takes more than one call of the
        SNES, such as from several guesses. Compiled steps use its attributes ``attempt`` and
        ``other``: ``other`` are assignments that make another guess; ``attempt`` is "contracting"
        (from the first guess, as long as updates get smaller, then from the other one, then from
        the first without that condition) or "smaller" (first from the guess of the smaller
        residual). If these fail, ``run`` solves again.
    exact : bool
        Whether two such solves, one after another, equal one for the sum of the times.
    more : int
        Newton updates after convergence, in compiled steps only.
    uncompilable : str, optional
        The reason why the solve cannot be compiled, if it is known before its form.
    not_local : str, optional
        The reason why it is not a local solve with pointwise assignments, if it is known.
    following : Following, optional
        Replaces a method's own preparations if whole steps are compiled and the motion of some
        degrees of freedom is given.
    linked : AtLinks, optional
        Replaces residual and assignments in compiled steps of local solves.
    """

    def __init__(
        self,
        name: str,
        unknown: Function,
        dt: Constant,
        residual: Form,
        guess: Mapping[Function, Function],
        assignments: Sequence[Assignments],
        *,
        preparations: Sequence[Assignments] = (),
        essential: Sequence[EssentialValues] = (),
        options: SolveOptions,
        numerics: Callable[[Form, Function], Numerics] = plain,
        run: Callable[[HeldSNES], None] | None = None,
        exact: bool = False,
        more: int = 0,
        uncompilable: str | None = None,
        not_local: str | None = None,
        following: Following | None = None,
        linked: AtLinks | None = None,
    ) -> None:
        self.name, self.unknown, self.dt, self.residual = name, unknown, dt, residual
        self.guess, self.essential = dict(guess), tuple(essential)
        self.preparations, self.assignments = tuple(preparations), tuple(assignments)
        self.options, self.exact, self.more = options, exact, more
        self.uncompilable, self.not_local = uncompilable, not_local
        self.following, self.linked = following, linked
        self.attempt, self.other = getattr(run, "attempt", None), getattr(run, "other", None)
        #: ``remedy()``: advice for a failed step.
        self.remedy: Callable[[], str] = getattr(run, "remedy", str)
        self._numerics, self._run, self._dt = numerics, run, Number(dt)
        #: A context that each :meth:`take` is done in, made of its ``dt``: what looks on.
        self.around: Callable[[float], AbstractContextManager] | None = None
        #: Check of the rotations of a beam's cells, if the assignments write its orientation.
        self.turns = None
        self._solver: HeldSNES | None = None
        if options.told:
            _ = self.solver  # so that an unknown option is refused now

    # --- what solves -----------------------------------------------------------------------------
    @property
    def solver(self) -> HeldSNES:
        """The SNES, made when it is first needed."""
        if self._solver is None:
            self._dt.set(1.0)
            numerics = self.numerics()
            options, prefix, wrote = self.options.over(numerics.options)
            self._solver = numerics.snes(
                self.residual,
                self.unknown,
                essential=self.essential,
                options=options,
                prefix=prefix,
                wrote=wrote,
                converged=numerics.converged,
                name=self.name,
            )
        return self._solver

    def numerics(self) -> Numerics:
        """The numerics of the solve without the user's options."""
        return self._numerics(self.residual, self.unknown)

    @property
    def is_run(self) -> bool:
        """Whether more than one call of the SNES may be needed."""
        return self._run is not None

    @property
    def made(self) -> HeldSNES | None:
        """The SNES if it has been made; compiled steps need none."""
        return self._solver

    @property
    def written(self) -> list[Function]:
        """The functions that its preparations and assignments write."""
        return [f for group in (*self.preparations, *self.assignments) for f in group]

    # --- through PETSc SNES ----------------------------------------------------------------------
    def take(self, dt: float) -> None:
        """Move by ``dt``."""
        if self.around is None:
            self._take(dt)
            return
        with self.around(dt):
            self._take(dt)

    def _take(self, dt: float) -> None:
        solver = self.solver
        self._dt.set(dt)
        self._prepare()
        if self._run is None:
            solver.solve()
        else:
            self._run(solver)
        self._follow()

    def _prepare(self) -> None:
        """The preparations and the first guess."""
        for update in self._before:
            update.apply()
        self.put_given()
        for target, source in self._copies:
            source.update_ghosts()
            target.array[...] = source.array
            target.written(ghosts_too=True)

    def _follow(self) -> None:
        """The assignments."""
        before = None if self.turns is None else self.turns.relative()
        for update in self._after:
            update.apply()
        if before is not None:
            self.turns.check(before)
        self.keep_given()

    def put_given(self) -> None:
        """Set the degrees of freedom that are given in time, beside the preparations.

        It changes nothing else, so derivatives ignore it: they are zero there.
        """

    def keep_given(self) -> None:
        """Set the degrees of freedom that are given in time, beside the assignments."""

    @cached_property
    def _before(self) -> list[PointwiseUpdate]:
        return [PointwiseUpdate(group) for group in self.preparations]

    @cached_property
    def _copies(self) -> list[tuple[Field, Field]]:
        return [(Field(target), Field(source)) for target, source in self.guess.items()]

    @cached_property
    def _after(self) -> list[PointwiseUpdate]:
        return [PointwiseUpdate(group) for group in self.assignments]
