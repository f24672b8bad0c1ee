"""The one solve of a generalized-α step."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from firedrake import Constant, Form, Function
from scipy.linalg.blas import daxpy
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.core.expr import Expr

from fdgeom.forms import flatten, tidy
from fdgeom.solvers.compiled import CannotCompile
from fdgeom.solvers.data import fields
from fdgeom.solvers.essential import GivenValues
from fdgeom.solvers.held_snes import defaults
from fdgeom.solvers.numerics import Numerics
from fdgeom.solvers.saddle import saddle_defaults
from fdgeom.solvers.settled import Settled
from fdgeom.solvers.structure import is_local
from fdgeom.steppers.alpha.unknown import AlphaUnknown
from fdgeom.steppers.solve import Solve


class AlphaSolve(Solve):
    """The solve of a generalized-α step: for the increment D and Λ = βh²λ, with all rows over βh².

    So the matrix is near the mass for a small step, and that of the constraints does not depend on h.
    """

    def __init__(self, stepper) -> None:
        system, scheme = stepper.system, stepper.scheme
        self._system, self._scheme = system, scheme
        dt = Constant(0.0, name="dt")
        self._beta, self._A = Constant(scheme.beta), Constant(scheme.A)
        self._B1, self._B2 = Constant(scheme.B1), Constant(scheme.B2)
        self._given = system.given
        self._late = self._given is not None and self._given.moves
        #: What v¹ and v̇¹ are off the formulas where the motion is given.
        self._gaps = [Function(system.space) for _ in range(2)] if self._late else []
        self._unknown = AlphaUnknown(system)
        unknown = self._unknown.function
        essential = ()
        if self._given is not None:
            essential = tuple(GivenValues(k, d) for k, d in enumerate(self._given.dofs))
        super().__init__(
            "the motion",
            unknown,
            dt,
            self._equations(dt),
            {},
            [],
            essential=essential,
            options=stepper._options(),
            numerics=self._how,
        )

    def _equations(self, dt: Constant):
        system, unknown = self._system, self._unknown
        g = system.moved(unknown.D)
        _, v, a = self._kinematics(unknown.D, dt)
        form = self._beta * dt**2 * system.balance(g, v, a, system.time, unknown.test)
        if system.constraint is not None:
            form += system.constraint.slope(unknown.multiplier, unknown.test, at=g)
            form += system.constraint.value(unknown.nu, at=g)
        return tidy(form)

    def _kinematics(self, D: Expr, dt: Constant) -> tuple[Expr, Expr, Expr]:
        """a¹, v¹ and v̇¹ of an increment."""
        system, parameters = self._system, (self._beta, self._A, self._B1, self._B2)
        state = system.v, system.algorithmic, system.acceleration
        a, v, true = _kinematics(parameters, dt, D, *state)
        if self._late:
            v, true = v + self._gaps[0], true + self._gaps[1]
        return a, v, true

    def _how(self, residual: Form, unknown: Function) -> Numerics:
        local = is_local(residual, unknown)
        if self._system.constraint is None or local:
            base = defaults(residual, unknown, local)
        else:
            base = saddle_defaults(residual, unknown)
        if local and base["snes_type"] == "newtonls":
            # The matrix takes ten times as long as the residual, and hardly changes in a step.
            base["snes_lag_jacobian"] = 4
        return Numerics(base, Settled(), kept=True)

    def take(self, dt: float) -> None:
        """Move by ``dt``: the motion goes on with a as it is, and the solve corrects that."""
        solver = self.solver
        self.dt.assign(dt)
        self._predict(dt)
        if self._given is not None:
            self._prescribe(dt)
        solver.solve()
        self._accept(dt)

    def _predict(self, dt: float) -> None:
        system = self._system
        for d, v, a in self._together(self._unknown.increment, system.v, system.algorithmic):
            np.multiply(a.array, dt / 2, out=d.array)
            d.array += v.array
            d.array *= dt
            d.written(ghosts_too=True)
        if system.constraint is not None:
            (target,), (source,) = self._unknown.multiplier_values, fields(system.multiplier)
            source.update_ghosts()
            target.array[...] = self._scheme.beta * dt**2 * source.array
            target.written(ghosts_too=True)

    def _prescribe(self, dt: float) -> None:
        """Set the given increments, and by how much the formulas miss the given velocities."""
        given, (q,) = self._given, self._system.configuration
        given.update()
        for e, target, old in zip(self.essential, fields(given.q), fields(q), strict=True):
            old.update_ghosts()
            e.now = target.array.reshape(-1)[e.dofs] - old.array.reshape(-1)[e.dofs]
        if not self._late:
            return
        for e, d in zip(self.essential, self._unknown.increment, strict=True):
            d.array.reshape(-1)[e.dofs] = e.now
        new = self._evaluate(dt)
        for gap, target, found in zip(self._gaps, (given.v, given.a), new[1:], strict=True):
            parts = zip(self.essential, fields(gap), fields(target), found, strict=True)
            for e, g, t, f in parts:
                g.array.reshape(-1)[e.dofs] = (t.array - f).reshape(-1)[e.dofs]
                g.written(ghosts_too=True)

    def _evaluate(self, dt: float) -> tuple[list, list, list]:
        """a¹, v¹ and v̇¹ of the increment, without what is given."""
        s, system = self._scheme, self._system
        # The formulas are linear: applied to unit vectors they give their coefficients.
        rows = np.array(_kinematics((s.beta, s.A, s.B1, s.B2), dt, *np.eye(4)))
        states = list(
            self._together(
                self._unknown.increment, system.v, system.algorithmic, system.acceleration
            )
        )
        for state, new in zip(states, self._buffers, strict=True):
            first, *others = (field.array.reshape(-1) for field in state)
            for row, out in zip(rows, new, strict=True):
                np.multiply(first, row[0], out=out.reshape(-1))
                for factor, values in zip(row[1:], others, strict=True):
                    if factor:
                        daxpy(values, out.reshape(-1), a=factor)
        return tuple(list(values) for values in zip(*self._buffers, strict=True))

    @cached_property
    def _buffers(self) -> list[np.ndarray]:
        """For each part of the velocity a¹, v¹ and v̇¹: new arrays would cost more than the sums."""
        return [np.empty((3, *field.array.shape)) for field in fields(self._system.v)]

    def _accept(self, dt: float) -> None:
        system = self._system
        a, v, true = self._evaluate(dt)
        if self._late:
            v = [x + g.array for x, g in zip(v, fields(self._gaps[0]), strict=True)]
            true = [x + g.array for x, g in zip(true, fields(self._gaps[1]), strict=True)]
            for e, mine, exact in zip(self.essential, a, true, strict=True):
                mine.reshape(-1)[e.dofs] = exact.reshape(-1)[e.dofs]
        system.displace(self._unknown.moved())
        if system.constraint is not None:
            (source,), (target,) = self._unknown.multiplier_values, fields(system.multiplier)
            source.update_ghosts()
            target.array[...] = source.array / (self._scheme.beta * dt**2)
            target.written(ghosts_too=True)
        for function, values in (
            (system.v, v),
            (system.algorithmic, a),
            (system.acceleration, true),
        ):
            for field, value in zip(fields(function), values, strict=True):
                field.array[...] = value
                field.written(ghosts_too=True)

    # --- the same as pointwise assignments, for compiled steps -----------------------------------
    def make_compilable(self) -> None:
        """State the first guess and what follows the solve as assignments.

        Raises
        ------
        CannotCompile
            If a step is more than a local solve and pointwise assignments.
        """
        system, unknown, dt = self._system, self._unknown, self.dt
        if self._given is not None or not unknown.is_one_vector:
            raise CannotCompile(f"{self.name}: the unknowns are not one to a cell (DG0)")
        if system.time in extract_firedrake_constants(self.residual):
            raise CannotCompile(f"{self.name}: the forces depend on the time")
        scale = self._beta * dt**2
        guess = [dt * system.v + 0.5 * dt**2 * system.algorithmic]
        a, v, true = self._kinematics(unknown.D, dt)
        after = dict(zip(system.configuration, system.moved(unknown.D), strict=True))
        after |= {system.v: v, system.algorithmic: a, system.acceleration: true}
        if system.constraint is not None:
            guess.append(scale * system.multiplier)
            after[system.multiplier] = unknown.multiplier / scale
        space = unknown.function.function_space()
        first = Function(space, name="first guess")
        self.guess = {unknown.function: first}
        # An error of D over βh² shows in the accelerations: round-off shall be all there is.
        self.more = 1
        self.preparations = [{first: flatten(guess) if space.value_shape else guess[0]}]
        self.assignments = [after]

    @staticmethod
    def _together(*things):
        parts = [t if isinstance(t, list) else fields(t) for t in things]
        for part in parts:
            for field in part:
                field.update_ghosts()
        return zip(*parts, strict=True)


def _kinematics(parameters, dt, D, v0, a0, true0):
    """a¹, v¹ and v̇¹ of an increment D, of expressions or arrays alike."""
    beta, A, B1, B2 = parameters
    a = (D - dt * v0 - dt**2 * (0.5 - beta) * a0) / (beta * dt**2)
    v = v0 + dt * ((1 - A) * a0 + A * a)
    true = (a - B2 * a0 + (B1 + B2) * true0) / (1 + B1)
    return a, v, true
