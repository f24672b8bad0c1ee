"""Generalized-α for rods and joints: the solve of a step and of the accelerations at the start."""

from __future__ import annotations

from functools import cached_property

from firedrake import Constant, Function

from fdgeom.beams.rod.accelerations import Accelerations
from fdgeom.beams.rod.nodal_unknown import RodUnknown
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.forms import tidy
from fdgeom.solvers.assembly import VectorAssembly
from fdgeom.solvers.data import Field, Number
from fdgeom.steppers.beams.rod_newton import RodNewton
from fdgeom.steppers.beams.rod_numerics import rod_numerics
from fdgeom.steppers.solve import Solve


class RodEquations:
    """The residual of an increment D (rotation as a Cayley vector) and a multiplier Λ:

        w [r(g∘D, v, v̇, t)] + B(g∘D)ᵀΛ,   Φ(g∘D),   v = v_c + v_D D,   v̇ = a_c + a_D D

    with a weight w, numbers v_D, a_D and nodal fields v_c, a_c. One compiled form serves the steps
    and, at D = 0, the start.
    """

    def __init__(self, system: RodMotion) -> None:
        self.system, self.unknown = system, RodUnknown(system)
        symbols = [Constant(0.0, name=name) for name in ("weight", "dv/dD", "da/dD")]
        fields = [Function(system.space, name=name) for name in ("v_c", "a_c")]
        self.weight, self.v_slope, self.a_slope = (Number(symbol) for symbol in symbols)
        self.v_part, self.a_part = (Field(field) for field in fields)
        D, test = self.unknown.vector, self.unknown.test
        g = system.moved(D)
        v, a = fields[0] + symbols[1] * D, fields[1] + symbols[2] * D
        form = system.balance(g, v, a, system.time, symbols[0] * test)
        if system.joints is not None:
            form += system.joints.slope(self.unknown.multiplier, test, g)
            form += system.joints.value(self.unknown.nu, g)
        self.residual = tidy(form)

    @cached_property
    def assembly(self) -> VectorAssembly:
        """The residual, assembled."""
        return VectorAssembly(self.residual)

    def put(self, weight: float, slopes, parts) -> None:
        """Set w, (v_D, a_D) and (v_c, a_c)."""
        self.weight.set(weight)
        for number, value in zip((self.v_slope, self.a_slope), slopes, strict=True):
            number.set(value)
        for field, value in zip((self.v_part, self.a_part), parts, strict=True):
            field.array[...] = value
            field.written(ghosts_too=True)


class RodAlphaSolve(Solve):
    """The solve of a generalized-α step: for D and Λ = βh²λ, with all rows over βh².

    So the matrix is near the mass for a small step, and that of the joints does not depend on h.
    """

    def __init__(self, stepper, equations: RodEquations) -> None:
        system = stepper.system
        self._system, self._scheme = system, stepper.scheme
        self._equations, self._unknown = equations, equations.unknown
        numerics = rod_numerics(system)
        self._newton = RodNewton(self._unknown, numerics.converged)
        self._D = Function(system.space, name="increment")
        self._increment = Field(self._D)
        self._state = [Field(f) for f in (system.v, system.algorithmic, system.acceleration)]
        self._multiplier = None if system.joints is None else Field(system.multiplier)
        super().__init__(
            "the motion",
            self._unknown.function,
            Constant(0.0, name="dt"),
            equations.residual,
            {},
            [],
            essential=self._unknown.essential,
            options=stepper._options(),
            numerics=lambda residual, unknown: numerics,
        )

    def take(self, dt: float) -> None:
        """Move by ``dt``: the motion goes on with a as it is, or rests, and the solve corrects that."""
        solver, s, unknown = self.solver, self._scheme, self._unknown
        for field in self._state:
            field.update_ghosts()
        v0, a0, true0 = (field.array for field in self._state)
        scale = s.beta * dt**2
        # Of v¹ and v̇¹: what does not depend on the increment D, and the slopes in D.
        a_part = -(dt * v0 + dt**2 * (0.5 - s.beta) * a0) / scale
        parts = [
            v0 + dt * ((1 - s.A) * a0 + s.A * a_part),
            (a_part - s.B2 * a0 + (s.B1 + s.B2) * true0) / (1 + s.B1),
        ]
        slopes = s.A * dt / scale, 1 / (scale * (1 + s.B1))
        self._prescribe(slopes, parts)
        self._equations.put(scale, slopes, parts)
        if self._multiplier is not None:
            self._multiplier.update_ghosts()
            unknown.multipliers[...] = scale * self._multiplier.array

        unknown.vectors[...] = dt * v0 + dt**2 / 2 * a0
        self._newton.solve(solver)

        unknown.field.update_ghosts()
        D = self._increment.array
        D[...] = unknown.vectors
        self._increment.written(ghosts_too=True)
        self._system.displace(self._D)
        v, true = (part + slope * D for part, slope in zip(parts, slopes, strict=True))
        a = a_part + D / scale
        if self._moves:
            # The control force is of no use where the motion is given.
            (dofs,) = self._system.given.dofs
            a.reshape(-1)[dofs] = true.reshape(-1)[dofs]
        for field, value in zip(self._state, (v, a, true), strict=True):
            field.array[...] = value
            field.written(ghosts_too=True)
        if self._multiplier is not None:
            self._multiplier.array[...] = unknown.multipliers / scale
            self._multiplier.written(ghosts_too=True)

    @property
    def _moves(self) -> bool:
        return self._system.given is not None and self._system.given.moves

    def _prescribe(self, slopes, parts) -> None:
        """Where the motion is given: its increment, and parts that make v¹ and v̇¹ the given ones."""
        if not self._moves:
            return
        given = self._system.given
        given.update()
        (dofs,) = given.dofs
        self._unknown.held.now = given.displacement.dat.data_ro_with_halos.reshape(-1)[dofs]
        for part, slope, target in zip(parts, slopes, (given.v, given.a), strict=True):
            wanted = target.dat.data_ro_with_halos.reshape(-1)[dofs]
            part.reshape(-1)[dofs] = wanted - slope * self._unknown.held.now


class RodStart(Accelerations):
    """The start of rods: the accelerations by the form that serves the steps too."""

    def __init__(self, system: RodMotion, equations: RodEquations) -> None:
        super().__init__(system, equations.unknown)
        self._equations = equations

    def solve_acceleration(self) -> None:
        """Set v̇ and λ of the system from its configuration and velocity, at its time.

        Raises
        ------
        ValueError
            If they cannot be found.
        """
        system, equations, unknown = self._motion, self._equations, self.unknown
        equations.put(1.0, (0.0, 0.0), (system.v.dat.data_ro_with_halos, 0.0))
        unknown.field.array[...] = 0.0
        unknown.field.written(ghosts_too=True)
        values = self.solve(equations.assembly.assemble())
        system.acceleration.dat.data_wo_with_halos[...] = values[:, :6]
        if system.joints is not None:
            system.multiplier.dat.data_wo_with_halos[...] = values[:, 6:]

    def solve_jerk(self) -> None:
        """Not for rods: ``ValueError``."""
        raise ValueError(
            "start: beams begin with 'default'; a consistent start needs the rate of the "
            "acceleration, which the stiff directions of a beam make huge"
        )
