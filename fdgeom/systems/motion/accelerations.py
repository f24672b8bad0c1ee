"""Accelerations and multipliers of a configuration and a velocity, and their rates."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property

import numpy as np
from firedrake import Constant, Form, Function, FunctionSpace, derivative
from petsc4py import PETSc
from ufl.algorithms import replace
from ufl.core.expr import Expr

from fdgeom.data import fields
from fdgeom.errors import CannotCompile, NoCompiler, SolveFailed
from fdgeom.execution import HeldSNES, Numerics, Run, banded, defaults, perform, saddle_defaults
from fdgeom.execution.options import Fallbacks
from fdgeom.forms import is_affine, simplify
from fdgeom.operations import ConvergenceTest, Map, Operation, Solve, parts
from fdgeom.systems.motion.motion import Motion
from fdgeom.systems.motion.nodal_unknown import NodalUnknown

# Of linear equations: largest ratio of the residual after two updates to the first one; largest relative
# error of the solution in the test of regularity.
_REDUCED, _REGULAR = 1e-6, 1e-3


class Accelerations:
    """v̇ and λ of a motion, from its equations and the derivatives of Φ(g) = 0 in time,

        r(g, v, v̇, t) + B(g)ᵀλ = 0,   B v̇ + Ḃ v = 0,

    and v̈ and λ̇ from one more derivative.
    """

    # The results are in `acceleration` and `multiplier`, by default those of the motion; `jerk` is
    # v̈ after `jerk_operations`. If `compiled`, equations of chains are solved in compiled code where
    # possible: `why_not_compiled` is the reason if not, `fallbacks` counts compiled solves that
    # failed.
    def __init__(
        self,
        motion: Motion,
        acceleration: Function | None = None,
        multiplier: Function | None = None,
        *,
        compiled: bool = True,
    ) -> None:
        self._motion, self._on_chain = motion, compiled and motion.traits.is_chain
        self._acceleration = motion.acceleration if acceleration is None else acceleration
        self._multiplier = motion.multiplier if multiplier is None else multiplier
        self.why_not_compiled: str | None = None
        self.fallbacks = Fallbacks(motion.mesh.comm, "an acceleration", required=False)
        self._linear: LinearSolve | None = None
        self._runs: dict[Operation, Run] = {}
        self.jerk = Function(motion.space, name="jerk")
        self._change = Function(motion.space, name="change")

    def solve(self) -> None:
        """Set v̇ and λ from the configuration and the velocity, at the motion's time;
        ``ValueError`` if the mass is singular or Newton's iteration does not converge.
        """
        perform(self._operations, self._runs)

    @cached_property
    def _operations(self) -> list[Operation]:
        return self.operations()

    def operations(self) -> list[Operation]:
        """:meth:`solve` as operations."""
        return self._for_acceleration.operations(self.find, self._acceleration, self._multiplier)

    def jerk_operations(self) -> list[Operation]:
        """The operations that set :attr:`jerk` from the state with its acceleration and multiplier;
        ``ValueError`` if it has no meaning for the motion.
        """
        if "jerk" not in self._motion.traits.can:
            raise ValueError(
                "start must be 'default' for beams; a consistent start needs the rate of the "
                "acceleration, which the stiff directions of a beam make huge"
            )
        return self._for_jerk.operations(self._find_jerk, self.jerk)

    def _find_jerk(self) -> None:
        if self._motion.held is not None:
            self._motion.held.update_jerk()
        self._for_jerk.solve()

    def normal_operations(self, change: Function) -> list[Operation]:
        """The operations that replace a change of the velocity by its part M⁻¹Bᵀ(B M⁻¹Bᵀ)⁻¹B normal
        to the conditions.
        """
        copied = zip(parts(self._change), parts(change), strict=True)
        solved = self._for_normal.operations(self._for_normal.solve, change)
        return [*(Map(values={c: f}) for c, f in copied), *solved]

    def find(self) -> None:
        """Find the unknown of :meth:`operations`."""
        held, equations = self._motion.held, self._for_acceleration
        if held is not None:
            held.update()
            equations.unknown.hold(held.a)
        if self._solve_compiled():
            return
        singular = "the acceleration: a matrix that is singular without exchanges of rows"
        failed = self._linear is not None
        with self.fallbacks.through_petsc(singular) if failed else nullcontext():
            equations.solve()
            # At rest there is nothing to solve, or round-off alone.
            if not equations.solver.snes.getIterationNumber() or not equations.ends.reduced:
                with _explained():
                    _check_regular(equations.solver)

    def _solve_compiled(self) -> bool:
        """Solve for the acceleration in compiled code; False if that fails."""
        if not self._on_chain:
            return False
        if self._linear is None:
            residual, unknown = self._for_acceleration.residual, self._for_acceleration.unknown
            try:
                self._linear = LinearSolve(residual, unknown.function, unknown.prescribed)
            except (CannotCompile, NoCompiler) as error:
                self._on_chain, self.why_not_compiled = False, str(error)
                return False
        # A failure there is repeated through PETSc, which gives the reason.
        return self._linear.solve()

    # --- the equations -----------------------------------------------------------------------------
    @cached_property
    def _for_acceleration(self) -> "_Equations":
        return _Equations("the acceleration", self._motion, self._balance)

    @cached_property
    def _for_jerk(self) -> "_Equations":
        return _Equations("the rate of the acceleration", self._motion, self._rate)

    @cached_property
    def _for_normal(self) -> "_Equations":
        # Once: the change may be round-off of the velocity, which no second step makes smaller.
        name = "the velocity at the start"
        return _Equations(name, self._motion, self._normal, refined=False)

    def _balance(self, a: Expr, multiplier: Expr | None, test: Expr, nu: Expr | None) -> Form:
        motion, condition = self._motion, self._motion.constraint
        form = motion.balance(motion.configuration, motion.v, a, motion.time, test)
        if condition is not None:
            form += condition.slope(multiplier, test)
            form += condition.turning(nu, motion.v) + condition.slope(nu, a)
        return form

    def _rate(self, jerk: Expr, multiplier: Expr | None, test: Expr, nu: Expr | None) -> Form:
        """d/dt of :meth:`_balance`, as everything moves."""
        motion, condition = self._motion, self._motion.constraint
        v, a, time = motion.v, motion.acceleration, motion.time
        # The time as a coefficient, so that UFL can differentiate by it.
        clock = Function(FunctionSpace(motion.mesh, "DG", 0), name="time")

        def balance(g) -> Form:
            form = motion.balance(g, v, a, clock, test)
            return form if condition is None else form + condition.slope(motion.multiplier, test, g)

        total = self._moving(balance, jerk)
        total += derivative(balance(motion.configuration), clock, Constant(1.0))
        if condition is not None:
            total += condition.slope(multiplier, test)
            total += self._moving(
                lambda g: condition.turning(nu, v, g) + condition.slope(nu, a, g), jerk
            )
        return replace(simplify(total), {clock: time})

    def _moving(self, f: Callable, jerk: Expr) -> Form:
        """d/dt of a form f(g) of g, v and v̇."""
        motion = self._motion
        v, a, form = motion.v, motion.acceleration, f(motion.configuration)
        rate = motion.rate(f, v) + derivative(form, v, a) + derivative(form, a, jerk)
        # The unknown is zero where the motion is given: there a is v̇, as after steps.
        return rate if motion.held is None else rate + derivative(form, a, motion.held.jerk)

    def _normal(self, change: Expr, multiplier: Expr, test: Expr, nu: Expr) -> Form:
        motion, condition = self._motion, self._motion.constraint
        return (
            motion.inertia(test, change)
            + condition.slope(multiplier, test)
            + condition.slope(nu, change - self._change)
        )


class _Equations:
    """Equations for a vector and the multipliers of a motion, solved from zero."""

    # `refined`: linear equations by two of Newton's steps.
    def __init__(
        self, name: str, motion: Motion, equations: Callable[..., Form], *, refined: bool = True
    ) -> None:
        self.unknown = u = NodalUnknown(motion, "found")
        self.residual = simplify(equations(u.vector, u.multiplier, u.test, u.nu))
        self._name, self._refined, self.ends = name, refined, _Twice()

    @cached_property
    def solver(self) -> HeldSNES:
        """The SNES."""
        unknown, residual, function = self.unknown, self.residual, self.unknown.function
        if unknown.multiplier is None or unknown.is_joined:
            options = defaults(residual, function, local=False)
            # In the order of the nodes no multiplier comes before what it acts on.
            options |= banded(function.comm) if unknown.is_joined else {}
        else:
            options = saddle_defaults(residual, function)
        twice = self._refined and is_affine(residual, function)
        if twice:
            options |= {"snes_type": "newtonls", "snes_linesearch_type": "basic"}
        return HeldSNES(
            residual,
            function,
            Numerics(options, self.ends if twice else ConvergenceTest()),
            essential=unknown.prescribed,
            name=self._name,
        )

    def solve(self) -> None:
        """Solve from zero."""
        for field in fields(self.unknown.function):
            field.array[...] = 0.0
            field.written(ghosts_too=True)
        with _explained():
            self.solver.solve()

    def operations(
        self, find: Callable[[], None], vector: Function, multiplier: Function | None = None
    ) -> list[Operation]:
        """The operations that find the unknown by a function, and copy its parts."""
        u = self.unknown
        copies = dict(zip(parts(vector), u.parts, strict=True))
        if multiplier is not None:
            copies[multiplier] = u.multiplier_part
        solve = Solve(work=self.residual, unknown=u.function, prescribed=u.prescribed, find=find)
        return [solve, *(Map(values={f: part}) for f, part in copies.items())]


class LinearSolve:
    """Linear equations F(u) = 0 in compiled code, solved by an update and others that refine it."""

    def __init__(self, residual: Form, unknown: Function, essential: Sequence) -> None:
        # Inside of the method: motions can be read without the compiler.
        from fdgeom.compile.executor import newton_of

        self._iteration = newton_of(residual, unknown, essential, linear=True)
        self._fields, self._essential = fields(unknown), list(essential)
        self._comm = unknown.comm

    def solve(self) -> bool:
        """Solve from zero; False, with an undefined unknown, if the matrix is singular or ill-conditioned."""
        first, last = self._updated([0.0 for _ in self._fields], 2)
        if not math.isfinite(last):
            return False
        # A zero right-hand side, or one of round-off, says nothing: then the matrix is tested.
        return (first > 0.0 and last <= _REDUCED * first) or self._is_regular()

    def _updated(self, values: Sequence, times: int) -> tuple[float, float]:
        """Do updates from some values; returns the norms of the first and of the last residual."""
        for field, new in zip(self._fields, values, strict=True):
            field.array[...] = new
        for e in self._essential:
            self._fields[e.part].array.reshape(-1)[e.dofs] = e.values()
        for field in self._fields:
            field.written(ghosts_too=True)
        iteration, norms = self._iteration, []
        iteration.begin()
        for number in range(times + 1):
            failed = iteration.run(old=number > 0)
            norms.append(math.nan if failed else iteration.report.norm)
            if failed:
                break
        iteration.end()
        return norms[0], norms[-1]

    def _is_regular(self) -> bool:
        """Whether an update recovers the solution after all unknowns were increased by 1."""
        found = [np.array(f.array) for f in self._fields]
        _, last = self._updated([values + 1.0 for values in found], 1)
        off, number = 0.0, 0
        for field, values in zip(self._fields, found, strict=True):
            own = field.owned
            off += float(np.sum((own - values[: len(own)]) ** 2))
            number += own.size
            field.array[...] = values
            field.written(ghosts_too=True)
        off, number = self._comm.allreduce(off), self._comm.allreduce(number)
        return math.isfinite(last) and off < _REGULAR**2 * number


class _Twice:
    """Ends Newton's iteration of linear equations at its second step, which refines the first."""

    #: Whether the first step has reduced the residual; not if it was round-off, or the matrix is
    #: singular.
    reduced = True

    def __call__(self, snes: PETSc.SNES, iteration: int, norms) -> int:
        f = norms[2]
        if not math.isfinite(f):
            return PETSc.SNES.ConvergedReason.DIVERGED_FUNCTION_NANORINF
        if iteration == 0:
            self._first = f
        self.reduced = f <= 1e-6 * self._first
        if f == 0.0 or iteration == 2:
            return PETSc.SNES.ConvergedReason.CONVERGED_FNORM_RELATIVE
        return PETSc.SNES.ConvergedReason.ITERATING


@contextmanager
def _explained() -> Iterator[None]:
    """Turns a failed solve into an error that names the start."""
    try:
        yield
    except SolveFailed as failure:
        raise ValueError(
            f"system: no acceleration belongs to this start: {failure}. The residual must "
            "determine it: is the mass (the derivative of the residual by a) regular, and is the "
            "state finite?"
        ) from failure


def _check_regular(solver: HeldSNES) -> None:
    """Solve with the matrix of a solver that had nothing to do, as at rest: it may be singular."""
    snes, x = solver.snes, solver.snes.getSolution()
    matrix, _ = snes.getJacobian()[:2]
    snes.computeJacobian(x, matrix)
    ones, product, found = (x.duplicate() for _ in range(3))
    ones.set(1.0)
    matrix.mult(ones, product)
    ksp = snes.getKSP()
    ksp.setOperators(matrix)
    ksp.solve(product, found)
    found.axpy(-1.0, ones)
    # Far above what round-off makes of any matrix that is good for a solve.
    if ksp.getConvergedReason() < 0 or not found.norm() < 1e-3 * ones.norm():
        raise SolveFailed(f"{solver.name}: its matrix is singular")
