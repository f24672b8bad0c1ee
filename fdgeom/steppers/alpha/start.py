"""Accelerations at the start of a second-order motion, from its equations and their derivatives."""

from __future__ import annotations

from collections.abc import Callable

from firedrake import (
    Constant,
    Form,
    Function,
    FunctionSpace,
    TestFunction,
    TestFunctions,
    derivative,
    split,
)
from ufl.algorithms import replace
from ufl.core.expr import Expr

from fdgeom.forms import copy_into, is_affine, tidy
from fdgeom.solvers.data import fields
from fdgeom.solvers.essential import GivenValues
from fdgeom.solvers.held_snes import SolveFailed, defaults
from fdgeom.solvers.saddle import SaddleSNES, saddle_defaults
from fdgeom.systems.motion.motion import Motion


class MotionStart:
    """Accelerations, multipliers and their rates that belong to a configuration and a velocity.

    With a constraint all follow from the equations and the derivatives of Φ(g) = 0 in time,

        r(g, v, v̇, t) + Bᵀλ = 0,   B v̇ + Ḃ v = 0,

    and one more derivative gives v̈ and λ̇.

    Parameters
    ----------
    system : Motion
        What is to start.
    """

    def __init__(self, system: Motion) -> None:
        self._system = system
        self._held: dict[str, SaddleSNES] = {}
        space, self._constraint = system.space, system.constraint
        constrained = self._constraint is not None
        self._whole = space * self._constraint.space if constrained else space
        #: v̈, after :meth:`solve_jerk`.
        self.jerk = Function(space, name="jerk")

    # --- the solves ------------------------------------------------------------------------------
    def solve_acceleration(self) -> None:
        """Set v̇ and λ of the system from its configuration and velocity, at its time.

        Raises
        ------
        ValueError
            If they cannot be found: the mass is singular, or Newton's iteration does not end.
        """
        system = self._system
        if "acceleration" not in self._held:
            self._held["acceleration"] = self._solver("the acceleration", self._balance)
        parts = self._solve("acceleration", given=lambda g: g.a)
        _copy_parts(system.acceleration, parts)
        if self._constraint is not None:
            copy_into(system.multiplier, parts[-1])

    def solve_jerk(self) -> None:
        """Set :attr:`jerk` from the state with its acceleration and multiplier."""
        if "jerk" not in self._held:
            self._held["jerk"] = self._solver("the rate of the acceleration", self._rate)
        _copy_parts(self.jerk, self._solve("jerk", given=None))

    def solve_normal(self, change: Function) -> None:
        """Replace a change of the velocity by its part normal to the constraint.

        It becomes M⁻¹Bᵀ(B M⁻¹Bᵀ)⁻¹B of it.
        """
        if "normal" not in self._held:
            self._change = Function(self._system.space, name="change")
            self._held["normal"] = self._solver(
                "the velocity at the start", self._normal, once=True
            )
        copy_into(self._change, change)
        _copy_parts(change, self._solve("normal", given=None))

    # --- the equations -----------------------------------------------------------------------------
    def _balance(self, a: Expr, multiplier: Expr | None, test: Expr, nu: Expr | None) -> Form:
        system, constraint = self._system, self._constraint
        form = system.balance(system.configuration, system.v, a, system.time, test)
        if constraint is not None:
            rate = constraint.slope(nu, system.v)
            form += constraint.slope(multiplier, test)
            form += system.along(rate, system.v) + constraint.slope(nu, a)
        return form

    def _rate(self, jerk: Expr, multiplier: Expr | None, test: Expr, nu: Expr | None) -> Form:
        """d/dt of :meth:`_balance`, as everything moves."""
        system, constraint = self._system, self._constraint
        v, a, time = system.v, system.acceleration, system.time
        # The time as a coefficient, so that UFL can differentiate by it.
        clock = Function(FunctionSpace(system.mesh, "DG", 0), name="time")
        balance = system.balance(system.configuration, v, a, clock, test)
        if constraint is not None:
            balance += constraint.slope(system.multiplier, test)
        total = self._moving(balance, jerk) + derivative(balance, clock, Constant(1.0))
        if constraint is not None:
            total += constraint.slope(multiplier, test)
            second = system.along(constraint.slope(nu, v), v) + constraint.slope(nu, a)
            total += self._moving(second, jerk)
        return replace(tidy(total), {clock: time})

    def _moving(self, form: Form, jerk: Expr) -> Form:
        """d/dt of a form of g, v and v̇."""
        system = self._system
        v, a = system.v, system.acceleration
        return system.along(form, v) + derivative(form, v, a) + derivative(form, a, jerk)

    def _normal(self, change: Expr, multiplier: Expr, test: Expr, nu: Expr) -> Form:
        system, constraint = self._system, self._constraint
        return (
            system.inertia(test, change)
            + constraint.slope(multiplier, test)
            + constraint.slope(nu, change - self._change)
        )

    # --- how they are solved -----------------------------------------------------------------------
    def _solver(self, name: str, equations: Callable, once: bool = False) -> SaddleSNES:
        unknown = Function(self._whole, name=name)
        if self._constraint is None:
            residual = tidy(equations(unknown, None, TestFunction(self._whole), None))
            options = defaults(residual, unknown, local=False)
        else:
            (a, multiplier), (test, nu) = split(unknown), TestFunctions(self._whole)
            residual = tidy(equations(a, multiplier, test, nu))
            options = saddle_defaults(residual, unknown)
        # ``once``: the change may be round-off of the velocity, which no second step makes smaller.
        if is_affine(residual, unknown) and not once:
            # Newton's second step refines the first, and notices a matrix that is singular.
            options |= {
                "snes_type": "newtonls",
                "snes_rtol": 1e-13,
                "snes_linesearch_type": "basic",
            }
        given = self._system.given
        essential = () if given is None else [GivenValues(k, d) for k, d in enumerate(given.dofs)]
        return SaddleSNES(residual, unknown, essential=essential, options=options, name=name)

    def _solve(self, key: str, given: Callable | None) -> tuple[Function, ...]:
        solver = self._held[key]
        unknown = solver.unknown
        for field in fields(unknown):
            field.array[...] = 0.0
            field.written(ghosts_too=True)
        held = self._system.given
        if held is not None:
            values = fields(given(held)) if given else None
            for e in solver._rows._essential:
                e.now = values[e.part].array.reshape(-1)[e.dofs] if values else 0.0
        try:
            solver.solve()
            if key == "acceleration" and not solver.snes.getIterationNumber():
                _check_regular(solver)
        except SolveFailed as failure:
            raise ValueError(
                f"system: no acceleration belongs to this start: {failure}. The residual must "
                "determine it: is the mass (the derivative of the residual by a) regular, and is the "
                "state finite?"
            ) from failure
        return unknown.subfunctions


def _check_regular(solver: SaddleSNES) -> None:
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


def _copy_parts(target: Function, parts) -> None:
    for to, origin in zip(target.subfunctions, parts, strict=False):
        copy_into(to, origin)
