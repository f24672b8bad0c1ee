"""The one solve of a generalized-α step."""

from __future__ import annotations

from functools import cached_property

from firedrake import Constant, Function, TestFunction, TestFunctions, split
from ufl.core.expr import Expr

from fdgeom.forms import tidy
from fdgeom.solvers.data import fields
from fdgeom.solvers.essential import GivenValues
from fdgeom.solvers.held import defaults
from fdgeom.solvers.kept import KeptSNES
from fdgeom.solvers.saddle import saddle_defaults
from fdgeom.solvers.structure import is_local
from fdgeom.steppers.substep import Solve, options_for
from fdgeom.systems.stage import Stage


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
        constraint = system.constraint
        space = system.space if constraint is None else system.space * constraint.space
        unknown = Function(space, name="increment")
        essential = ()
        if self._given is not None:
            essential = tuple(GivenValues(k, d) for k, d in enumerate(self._given.dofs))
        super().__init__(
            "the motion",
            Stage(unknown, (), (), (), (), essential=essential),
            dt,
            self._equations(unknown, space, dt),
            {},
            [],
            options=options_for(stepper, "", ()),
            given=stepper._given,
        )

    def _equations(self, unknown: Function, space, dt: Constant):
        system, constraint = self._system, self._system.constraint
        if constraint is None:
            D, test = unknown, TestFunction(space)
        else:
            (D, multiplier), (test, nu) = split(unknown), TestFunctions(space)
        g = system.moved(D)
        v, a = self._kinematics(D, dt)
        form = self._beta * dt**2 * system.balance(g, v, a, system.time, test)
        if constraint is not None:
            form += constraint.slope(multiplier, test, at=g) + constraint.value(nu, at=g)
        return tidy(form)

    def _kinematics(self, D: Expr, dt: Constant) -> tuple[Expr, Expr]:
        """v¹ and v̇¹ of an increment."""
        system = self._system
        beta, A, B1, B2 = self._beta, self._A, self._B1, self._B2
        v0, a0, true0 = system.v, system.algorithmic, system.acceleration
        a = (D - dt * v0 - dt**2 * (0.5 - beta) * a0) / (beta * dt**2)
        v = v0 + dt * ((1 - A) * a0 + A * a)
        true = (a - B2 * a0 + (B1 + B2) * true0) / (1 + B1)
        if self._late:
            v, true = v + self._gaps[0], true + self._gaps[1]
        return v, true

    @cached_property
    def solver(self) -> KeptSNES:
        """The SNES, made when it is first needed."""
        self.dt.assign(1.0)
        unknown = self.stage.unknown
        if self._system.constraint is None:
            base = defaults(self.residual, unknown, is_local(self.residual, unknown))
        else:
            base = saddle_defaults(self.residual, unknown)
        options, prefix, given = self.options(base)
        return KeptSNES(
            self.residual,
            unknown,
            essential=self.stage.essential,
            options=options,
            prefix=prefix,
            given=given,
            name=self.name,
        )

    def take(self, dt: float) -> None:
        """Move by ``dt``: the motion goes on with a as it is, and the solve corrects that."""
        solver = self.solver
        self.dt.assign(dt)
        self._predict(dt)
        if self._given is not None:
            self._prescribe(dt)
        solver.solve()
        self._accept(dt)

    def _increment(self) -> tuple:
        count = len(self._system.space)
        return fields(self.stage.unknown)[:count]

    def _predict(self, dt: float) -> None:
        system = self._system
        for d, v, a in self._together(self._increment(), system.v, system.algorithmic):
            d.array[...] = dt * v.array + dt**2 / 2 * a.array
            d.written(ghosts_too=True)
        if system.constraint is not None:
            (target,), (source,) = (
                fields(self.stage.unknown.subfunctions[-1]),
                fields(system.multiplier),
            )
            source.update_ghosts()
            target.array[...] = self._scheme.beta * dt**2 * source.array
            target.written(ghosts_too=True)

    def _prescribe(self, dt: float) -> None:
        """Set the given increments, and by how much the formulas miss the given velocities."""
        given, (q,) = self._given, self._system.configuration
        given.update()
        for e, target, old in zip(self.stage.essential, fields(given.q), fields(q), strict=True):
            old.update_ghosts()
            e.now = target.array.reshape(-1)[e.dofs] - old.array.reshape(-1)[e.dofs]
        if not self._late:
            return
        for e, d in zip(self.stage.essential, self._increment(), strict=True):
            d.array.reshape(-1)[e.dofs] = e.now
        new = self._evaluate(dt)
        for gap, target, found in zip(self._gaps, (given.v, given.a), new[1:], strict=True):
            parts = zip(self.stage.essential, fields(gap), fields(target), found, strict=True)
            for e, g, t, f in parts:
                g.array.reshape(-1)[e.dofs] = (t.array - f).reshape(-1)[e.dofs]
                g.written(ghosts_too=True)

    def _evaluate(self, dt: float) -> tuple[list, list, list]:
        """a¹, v¹ and v̇¹ of the increment, without what is given."""
        s, system = self._scheme, self._system
        fields_ = self._together(
            self._increment(), system.v, system.algorithmic, system.acceleration
        )
        found = ([], [], [])
        for d, v, a0, true0 in fields_:
            a = (d.array - dt * v.array - dt**2 * (0.5 - s.beta) * a0.array) / (s.beta * dt**2)
            found[0].append(a)
            found[1].append(v.array + dt * ((1 - s.A) * a0.array + s.A * a))
            found[2].append((a - s.B2 * a0.array + (s.B1 + s.B2) * true0.array) / (1 + s.B1))
        return found

    def _accept(self, dt: float) -> None:
        system = self._system
        a, v, true = self._evaluate(dt)
        if self._late:
            v = [x + g.array for x, g in zip(v, fields(self._gaps[0]), strict=True)]
            true = [x + g.array for x, g in zip(true, fields(self._gaps[1]), strict=True)]
            for e, mine, exact in zip(self.stage.essential, a, true, strict=True):
                mine.reshape(-1)[e.dofs] = exact.reshape(-1)[e.dofs]
        parts = self.stage.unknown.subfunctions
        if system.constraint is None:
            system.displace(self.stage.unknown)
        else:
            system.displace(parts[0])
            (source,), (target,) = fields(parts[-1]), fields(system.multiplier)
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

    @staticmethod
    def _together(*things):
        parts = [t if isinstance(t, tuple) else fields(t) for t in things]
        for part in parts:
            for field in part:
                field.update_ghosts()
        return zip(*parts, strict=True)
