"""The residual of a generalized-α step, and its solve."""

from firedrake import Constant, Form, Function

from fdgeom.execution.options import SolveOptions
from fdgeom.operations import Copy, Map, Operation, Solve, parts, with_assignments
from fdgeom.steppers.alpha.scheme import AlphaScheme
from fdgeom.steppers.host_operations import PrescribeMotion
from fdgeom.systems.motion.motion import Motion
from fdgeom.systems.motion.nodal_unknown import NodalUnknown


class AlphaSolve:
    """The operations of a generalized-α step: a solve for the increment D and Λ = wλ,

        w r(g∘D, v_c + v_D D, a_c + a_D D, t) + B(g∘D)ᵀΛ = 0,   Φ(g∘D) = 0,   w = βh²,

    with the parts v_c, a_c of the new velocity and acceleration that do not depend on D.
    """

    # With the factor w the matrix is near the mass for a small step, and that of the conditions
    # does not depend on h.
    def __init__(self, motion: Motion, scheme: AlphaScheme, options: SolveOptions) -> None:
        self._motion, self._unknown = motion, NodalUnknown(motion, tests=Function)
        self._v_c, self._a_c = (Function(motion.space, name=name) for name in ("v_c", "a_c"))
        symbols = _Kinematics(*map(Constant, (scheme.beta, scheme.A, scheme.B1, scheme.B2)))
        dt, unknown = Constant(0.0, name="dt"), self._unknown
        self._timed = {"dt": dt, "clock": motion.clocks}
        function = unknown.function
        space = function.function_space()
        first, other = Function(space, name="first guess"), Function(space, name="other guess")
        residual = self._residual(*symbols.slopes(dt))
        defaults = motion.solver_defaults(first, other)
        solve = Solve(
            work=residual,
            test=unknown.whole_test,
            unknown=function,
            prescribed=unknown.prescribed,
            options=options,
            # An error of D over βh² shows in the accelerations: round-off shall be all there is.
            extra_updates=1,
            name="the motion",
            **defaults,
            **self._timed,
        )
        before = [self._map(group) for group in self._prediction(symbols, dt, first)]
        if solve.attempts and unknown.multiplier is not None:
            before.append(self._map({other: unknown.without_increment(first)}))
        given, kept = self._given(symbols, dt)
        after = with_assignments(solve, self._update(symbols, dt))
        #: The operations of a step.
        self.operations = [*before, *given, *after, *kept]

    def _map(self, values) -> Map:
        return Map(values=values, **self._timed)

    def _residual(self, w, v_D, a_D) -> Form:
        motion, unknown = self._motion, self._unknown
        D, g = unknown.vector, motion.moved(unknown.vector)
        v, a = self._v_c + v_D * D, self._a_c + a_D * D
        form = w * motion.balance(g, v, a, motion.time, unknown.test)
        if motion.constraint is not None:
            form += motion.constraint.slope(unknown.multiplier, unknown.test, g)
            form += motion.constraint.value(unknown.nu, g)
        return form

    # --- around the solve, part by part ------------------------------------------------------------
    def _states(self):
        """v, a and v̇, for each part of their space."""
        motion = self._motion
        state = motion.v, motion.algorithmic, motion.acceleration
        return list(zip(*(parts(f) for f in state), strict=True))

    def _constants(self):
        """v_c and a_c, for each part of their space."""
        return list(zip(parts(self._v_c), parts(self._a_c), strict=True))

    def _prediction(self, symbols: "_Kinematics", dt: Constant, first: Function) -> list[dict]:
        """First guess: the motion continues with the present a."""
        going_on = [dt * (v + 0.5 * dt * a) for v, a, _ in self._states()]
        multiplier = self._motion.multiplier
        scaled = None if multiplier is None else symbols.slopes(dt)[0] * multiplier
        groups = self._unknown.assignments(first, going_on, scaled)
        for group, targets, state in zip(groups, self._constants(), self._states(), strict=False):
            group |= dict(zip(targets, symbols.constants(dt, *state), strict=True))
        return groups

    def _update(self, symbols: "_Kinematics", dt: Constant) -> list[dict]:
        motion, unknown = self._motion, self._unknown
        w, v_D, a_D = symbols.slopes(dt)
        groups = motion.displacements(unknown.parts)
        every = zip(groups, self._states(), self._constants(), unknown.parts, strict=True)
        for group, (v, a, rate), (v_c, a_c), D in every:
            new = a_c + a_D * D
            group |= {v: v_c + v_D * D, a: symbols.algorithmic(new, a, rate), rate: new}
        if motion.multiplier is not None:
            found = {motion.multiplier: unknown.multiplier_part / w}
            groups = [groups[0] | found] if unknown.is_joined else [*groups, found]
        return groups

    # --- what is held --------------------------------------------------------------------------------
    def _given(self, symbols: "_Kinematics", dt: Constant) -> tuple[list, list]:
        """Operations before and after the solve that prescribe the given motion."""
        held = self._motion.held
        if held is None:
            return [], []
        before: list[Operation] = [PrescribeMotion(unknown=self._unknown, held=held, **self._timed)]
        if not held.varies:
            return before, []
        # v_c and a_c that make the new velocity and acceleration the given ones.
        _, *slopes = symbols.slopes(dt)
        for constant, slope, value in zip(
            (self._v_c, self._a_c), slopes, (held.v, held.a), strict=True
        ):
            given = Function(self._motion.space, name=f"{constant.name()} of a given motion")
            values = zip(*map(parts, (given, value, held.increment)), strict=True)
            before += [self._map({g: new - slope * D}) for g, new, D in values]
            before += self._copies(given, constant)
        # The control force is of no use where the motion is given.
        return before, self._copies(self._motion.acceleration, self._motion.algorithmic)

    def _copies(self, source: Function, target: Function) -> list[Copy]:
        """Copies at the given degrees of freedom."""
        copied = zip(parts(source), parts(target), self._motion.held.dofs, strict=True)
        return [Copy(source=s, target=t, rows=dofs) for s, t, dofs in copied]


class _Kinematics:
    """Velocity and accelerations after an increment D, in expressions or numbers alike:

    a¹ = (D - h v⁰ - h² (½ - β) a⁰)/βh²,   v¹ = v⁰ + h ((1 - A) a⁰ + A a¹),
    a¹ = (1 + B₁) v̇¹ - (B₁ + B₂) v̇⁰ + B₂ a⁰.
    """

    def __init__(self, beta, A, B1, B2) -> None:
        self.parameters = beta, A, B1, B2

    def slopes(self, dt):
        """w, v_D and a_D."""
        beta, A, B1, _ = self.parameters
        # Products, not powers: those are slow in compiled code.
        w = beta * dt * dt
        return w, A / (beta * dt), 1 / (w * (1 + B1))

    def constants(self, dt, v, a, rate):
        """v_c and a_c."""
        beta, A, B1, B2 = self.parameters
        new = -(v / dt + (0.5 - beta) * a) / beta
        return v + dt * ((1 - A) * a + A * new), (new - B2 * a + (B1 + B2) * rate) / (1 + B1)

    def algorithmic(self, new, a, rate):
        """a¹ for the new v̇¹."""
        _, _, B1, B2 = self.parameters
        return (1 + B1) * new - (B1 + B2) * rate + B2 * a
