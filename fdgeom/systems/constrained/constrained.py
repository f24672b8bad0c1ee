"""Mechanical systems with holonomic constraints, in position and momentum."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import ufl
from firedrake import (
    Function,
    TestFunction,
    TestFunctions,
    TrialFunction,
    derivative,
    dx,
    inner,
    split,
)
from firedrake.assemble import get_assembler
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Expr, Form, Measure

from fdgeom.data import largest
from fdgeom.execution import FunctionalAssembly, saddle
from fdgeom.forms import (
    check_depends,
    checked_form,
    derivative_along,
    is_zero,
    simplify,
    with_fixed_quadrature,
)
from fdgeom.identities import Identity, check_now, difference
from fdgeom.operations import Interpolation, Operation, Solve, parts, with_assignments
from fdgeom.systems.constrained.constraint import Constraint
from fdgeom.systems.constrained.mechanical import MechanicalModel, MechanicalSystem
from fdgeom.systems.system import named_energies
from fdgeom.taping import not_taped
from fdgeom.validation import conjugates

_NEEDS_CONSTANT_MASS = (
    "depends on the position q. RATTLE and SHAKE are explicit in the forces only where it does not; "
    "use a LagrangianSystem with DiscreteLagrangian, which takes any mass"
)

_NOT_POINTWISE = (
    "kinetic: δT/δp is no pointwise expression of p in the space of q. Use one quadrature in "
    "kinetic and as measure, and a mass that is constant along the mesh; for another mass use a "
    "LagrangianSystem with DiscreteLagrangian(quadrature='trapezoidal'), which is RATTLE too"
)
_NOT_HELD = (
    "bcs: with this kinetic energy p = 0 does not hold q (it couples components); use a "
    "LagrangianSystem with DiscreteLagrangian(quadrature='trapezoidal')"
)
# A velocity that is zero everywhere is no quotient of zeros.
_TINY = 1e-300


class ConstrainedModel(MechanicalModel):
    """The pairing beside the energies and the constraint."""

    def equations(self):
        system = self._system
        return super().equations() | {"pairing": system.pairing(system.q, system.p)}


class ConstrainedSystem(MechanicalSystem):
    """A mechanical system with holonomic constraints g(q) = 0.

        q̇ = δT/δp,   ṗ = -δV/δq + Dg(q)ᵀλ,   g(q) = 0,   and so Dg(q) q̇ = 0.

    Parameters
    ----------
    q, p : Function
        Configuration and momentum, of one space: DG0 on :func:`copies` for many small systems, CG
        for a field theory.
    kinetic : UFL functional
        T(p), which may not depend on q.
    potential : UFL functional
        V(q).
    constraint : callable
        ``constraint(λ)`` gives the form ∫ λ·g(q) dx: linear in λ. Several constraints are the
        components of a vector.
    multiplier : Function
        λ, of a space with one component for each constraint. After a step it is that of the step's
        equations, of first order in Δt; :meth:`solve_multiplier` is of the order of the state.
    measure : Measure, optional
        The measure of the pairing ⟨a, b⟩ = ∫ a·b that defines δT/δp, by default ``dx``. Use mass
        lumping for fields: ``dx(scheme="KMV", degree=1)`` for CG1, here and in ``kinetic``.
    bcs : sequence of DirichletBC, optional
        Homogeneous conditions on the velocity: q is constant there. ``kinetic`` may not couple a
        component of p that they hold with a free one.
    coordinates : Function, optional
        Positions of the nodes in space, for output: ``q`` itself for a chain in space.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described. A stepper checks that the start satisfies the
        constraints, and that they are independent there.

    Examples
    --------
    A spherical pendulum:

    >>> system = ConstrainedSystem(
    ...     q, p, kinetic=0.5*dot(p, p)*dx, potential=9.8*q[2]*dx,
    ...     constraint=lambda mult: mult*(dot(q, q) - 1)*dx, multiplier=mult)  # doctest: +SKIP
    """

    def __init__(
        self,
        q: Function,
        p: Function,
        kinetic: Form,
        potential: Form,
        constraint: Callable,
        multiplier: Function,
        *,
        measure: Measure | None = None,
        bcs=(),
        coordinates: Function | None = None,
    ) -> None:
        conjugates(q, p, measure)
        mesh = q.function_space().mesh()
        without = {q: _NEEDS_CONSTANT_MASS}
        kinetic = checked_form("kinetic", kinetic, mesh=mesh, without=without, state=(q, p))
        kinetic = with_fixed_quadrature(kinetic, p)
        without = {p: "depends on the momentum p"}
        potential = checked_form("potential", potential, mesh=mesh, without=without, state=(q, p))
        potential = with_fixed_quadrature(potential, q)
        if potential.coefficients():
            check_depends("potential", potential, q)
        if is_zero(simplify(derivative(kinetic, p))):
            raise ValueError("kinetic must depend on the momentum p")
        super().__init__(q, coordinates)
        self.p, self.multiplier = p, multiplier
        self.constraint = Constraint(
            (q,), self.space, constraint, multiplier,
            {p: "depends on the momentum p, so it is not holonomic"},
        )  # fmt: skip
        self._hold(bcs, p)
        self._kinetic, self._potential = kinetic, potential
        self._measure = dx if measure is None else measure
        self._check_finite({"q": q, "p": p})
        self._velocity, pointwise = _pointwise_velocity(kinetic, p, self.pairing)
        changed = f"{_NOT_POINTWISE} (the mass has changed since the system was made)"
        self._demands[changed] = pointwise
        if self.fixed:
            self._demands[_NOT_HELD] = self._rest_where_held()
            check_now(self._demands)

    # --- forms ---------------------------------------------------------------------------------
    def pairing(self, a: Expr, b: Expr) -> Form:
        """⟨a, b⟩ of two fields of the space of q."""
        return inner(a, b) * self._measure

    def velocity(self, p: Expr | None = None) -> Expr:
        """q̇ = δT/δp, pointwise, at a momentum (the present one by default)."""
        return self._velocity(self.p if p is None else p)

    def potential_derivative(self, w: Expr) -> Form:
        """dV(q)[w] at the present configuration."""
        return derivative(self._potential, self.q, w)

    def _rest_where_held(self) -> Identity:
        """The identity q̇ = 0 at the degrees of freedom that bcs hold, for any p that is zero there."""

        def equation(put):
            momentum, values = Function(self.space), put(self.p)
            speeds = Interpolation(put(self.velocity(momentum)), self.space)

            def defect() -> float:
                momentum.assign(values)
                for e in self.fixed:
                    momentum.dat.data_with_halos.reshape(-1)[e.dofs] = 0.0
                found = speeds.apply().dat.data_ro.reshape(-1)
                held = np.concatenate([found[e.dofs[e.dofs < found.size]] for e in self.fixed])
                return largest(self.comm, held) / max(largest(self.comm, found), _TINY)

            return defect

        return Identity((self.p,), (self._kinetic,), equation)

    # --- what the recording reads ----------------------------------------------------------------
    model = cached_property(ConstrainedModel)

    def functions(self) -> dict[str, Function]:
        return {"q": self.q, "p": self.p, "multiplier": self.multiplier}

    def energies(self) -> dict[str, Form]:
        """T(p), V(q) and their sum."""
        return named_energies(self._kinetic, self._potential)

    # --- what the steppers ask -------------------------------------------------------------------
    def check_start(self) -> None:
        """Raise ``ValueError`` if no step can start from the present state.

        The state must be finite, g(q) = 0 and Dg(q) q̇ = 0 to round-off, and Dg M⁻¹ Dgᵀ regular, so
        that the constraints are independent.
        """
        self._check_finite()
        self._check_at_rest("p")
        w, trial = TestFunction(self.space), TrialFunction(self.space)
        rate = self.constraint.slope(self.constraint.test, self.velocity())
        self.constraint.check(
            self.velocity(), self.pairing(trial, w), self.fixed, derivative(rate, self.p, trial)
        )

    @not_taped
    def project(self) -> None:
        """Move to the nearest configuration with g(q) = 0, and remove the part of p that violates
        it.

        The configuration moves orthogonally in the pairing, q = q⁰ + Dg(q)ᵀμ; the momentum then
        changes by a multiplier, p = p⁰ + Dg(q)ᵀμ, so that Dg(q) q̇ = 0.

        Raises
        ------
        ValueError
            If Newton's iteration does not find such a configuration.
        """
        self._project((self.q, self._nearest(self.pairing)), (self.p, self.consistent_momentum))

    def consistent_momentum(self, p: Expr, mu: Expr, w: Expr, nu: Expr) -> Form:
        """The residual of p = p⁰ + Dg(q)ᵀμ, Dg(q) q̇(p) = 0."""
        slope = self.constraint.slope
        return self.pairing(p - self.p, w) - slope(mu, w) + slope(nu, self.velocity(p))

    def solve_multiplier(self) -> None:
        """Set the multiplier to that of the exact motion at the present state.

        It follows from ṗ = -δV/δq + Dg(q)ᵀλ and the second derivative of the constraint in time,
        Dg(q)q̈ + D²g(q)(q̇, q̇) = 0.
        """
        self.consistency.perform(self.multiplier_operations)

    @cached_property
    def multiplier_operations(self) -> list[Operation]:
        """The operations of :meth:`solve_multiplier`."""
        space = self.space * self.constraint.space
        unknown, (w, test) = Function(space, name="force"), TestFunctions(space)
        force, multiplier = split(unknown)
        rate = self.constraint.slope(test, self.velocity())
        residual = simplify(
            self.pairing(force, w)
            + self.potential_derivative(w)
            - self.constraint.slope(multiplier, w)
            + derivative_along(rate, self.q, self.velocity())
            + derivative_along(rate, self.p, force)
        )
        solve = Solve(
            work=residual, unknown=unknown, prescribed=self.fixed, numerics=saddle,
            name="the multiplier",
        )  # fmt: skip
        return with_assignments(solve, [{self.multiplier: parts(unknown)[1]}])


def _pointwise_velocity(
    kinetic: Form, p: Function, pairing: Callable[[Expr, Expr], Form]
) -> tuple[Callable[[Expr], Expr], Identity]:
    """δT/δp as an expression of p that lies in the space of q: the derivative of T's density."""
    space = p.function_space()
    slopes = (expand_derivatives(ufl.diff(i.integrand(), p)) for i in kinetic.integrals())
    slope = sum(slopes, ufl.zero(p.ufl_shape))
    if all(i.integral_type() == "cell" for i in kinetic.integrals()):

        def equation(put):
            w, velocity = TestFunction(space), put(slope)
            sides = [
                get_assembler(form)
                for form in (pairing(velocity, w), put(derivative(kinetic, p, w)))
            ]
            nodal = Interpolation(velocity, space)
            gap, size = (
                FunctionalAssembly(inner(v, v) * dx) for v in (velocity - nodal.values, velocity)
            )

            def defect() -> float:
                nodal.apply()
                outside = gap.assemble() / max(size.assemble(), _TINY)
                return float(
                    np.max([difference(*(side.assemble() for side in sides)), 10 * outside**0.5])
                )

            return defect

        found = Identity((p,), (kinetic,), equation)
        if found.holds:
            return (lambda at: replace(slope, {p: at})), found
    raise ValueError(_NOT_POINTWISE)
