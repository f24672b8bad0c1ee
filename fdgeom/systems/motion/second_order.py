"""Second-order systems on a vector space, given by a residual in q, v, a and t."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from firedrake import Function, TestFunction, derivative
from ufl.classes import Expr, Form

from fdgeom.forms import (
    check_depends,
    checked_form,
    depends_on,
    form_of,
    is_zero,
    random_function,
    simplify,
    substitute,
    with_fixed_quadrature,
)
from fdgeom.identities import Identity, check_now, of_numbers
from fdgeom.operations import parts
from fdgeom.systems.motion.condition import stated
from fdgeom.systems.motion.held import GivenMotion
from fdgeom.systems.motion.motion import Motion

_NEGATIVE = (
    "residual must be a positive mass times a, less all forces: the part with a has the sign of a "
    "negative mass. Change the sign of the residual, or of the mass"
)


class SecondOrderSystem(Motion):
    """A second-order system r(q, q̇, q̈, t) = 0, in weak form, on any space.

    Parameters
    ----------
    residual : callable
        ``residual(q, v, a, t, test)`` gives the form of r: mass times a minus all forces, linear in
        ``test``. The time t is a Constant, and loads may depend on it.
    q, v : Function
        Displacement and velocity, of one space: CG for elastodynamics, DG0 on :func:`copies` for
        many small systems, mixed spaces too.
    bcs : callable or sequence of DirichletBC, optional
        Given displacements: ``bcs=lambda t: [DirichletBC(V, as_vector([sin(t), 0]), 1)]``, a
        function of the time (velocity and acceleration there follow by differentiation), or
        DirichletBCs whose values do not change.
    energy : UFL functional, optional
        The energy, of q and v, for monitors.
    constraint : callable, optional
        ``constraint(λ)`` gives the form ∫ λ·Φ(q), linear in λ: r + DΦ(q)ᵀλ = 0 and Φ(q) = 0.
    multiplier : Function, optional
        λ, of a space with one component for each constraint.
    coordinates : Function, optional
        Positions of the nodes in space, for output.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the residual does not depend on a.

    Examples
    --------
    An elastic body pulled at its right end:

    >>> system = SecondOrderSystem(
    ...     residual=lambda q, v, a, t, w: (rho*dot(a, w) + inner(stress(q), grad(w)))*dx
    ...     - dot(traction*sin(t), w)*ds(2),
    ...     q=u, v=v, bcs=[DirichletBC(V, 0, 1)])  # doctest: +SKIP
    """

    def __init__(
        self,
        residual: Callable,
        q: Function,
        v: Function,
        *,
        bcs=(),
        energy: Form | None = None,
        constraint: Callable | None = None,
        multiplier: Function | None = None,
        coordinates: Function | None = None,
    ) -> None:
        self.q = q
        unheld = bcs is None or (isinstance(bcs, list | tuple) and not bcs)
        super().__init__(
            {"q": q},
            v,
            condition=stated(constraint, multiplier),
            held=None if unheld else partial(GivenMotion, bcs),
            coordinates=coordinates,
        )
        if q.function_space() != self.space:
            raise ValueError("v must be a function of the space of q")
        if multiplier is not None and len(self.space) > 1:
            raise ValueError("q must not be of a mixed space where there is a constraint")
        self._energy = energy
        if energy is not None:
            checked = checked_form("energy", energy, mesh=self.mesh, state=(q, v))
            check_depends("energy", checked, q, v)
            # The residual has the forces of this energy, with the quadrature of its slopes.
            self._energy = with_fixed_quadrature(checked, q, v)
        #: The residual, and what stands in it for (q, v, a, t, test).
        self._residual, self._symbols = self._stated(residual)

    def _stated(self, residual: Callable) -> tuple[Form, tuple[Expr, ...]]:
        """The user's residual of symbols, and these; ``ValueError`` if it does not depend on a."""
        q, v, a = (Function(self.space) for _ in range(3))
        symbols = (q, v, a, self.time, TestFunction(self.space))
        of, example = "(q, v, a, t, test)", "lambda q, v, a, t, test: dot(a + q, test)*dx"
        form = form_of(
            "residual", residual, symbols, of, example, "test", self.mesh,
            outside=(self.q, self.v),
        )  # fmt: skip
        if is_zero(simplify(derivative(form, a))):
            raise ValueError(
                "residual does not depend on the acceleration a: the mass is missing, or the system "
                "is of first order"
            )
        return simplify(form), symbols

    def _positive_mass(self) -> Identity:
        """The identity r·∂r/∂a[r] ≥ 0 for a random r, at the present state if the mass varies."""
        some = random_function(self.space, np.random.default_rng(0))
        form = self.inertia(some, some)
        varies = any(depends_on(form, f) for f in (self.q, self.v, self.acceleration))

        def defect(value: float) -> float:
            return 0.0 if value >= 0 else np.nan if varies else np.inf

        equation = of_numbers((form,), defect)
        return Identity((self.q, self.v), (form,), equation, values="present")

    def _check_data(self) -> None:
        if isinstance(self.held, GivenMotion):
            self.held.check_data()
        super()._check_data()

    def check_start(self) -> None:
        super().check_start()
        if not self._demands:
            self._demands[_NEGATIVE] = self._positive_mass()
        check_now(self._demands)

    # --- as a motion ---------------------------------------------------------------------------
    def moved(self, increment: Expr, configuration: Sequence[Expr] | None = None) -> tuple:
        """q + increment."""
        (q,) = self.configuration if configuration is None else configuration
        return (q + increment,)

    def balance(self, configuration: Sequence[Expr], v: Expr, a: Expr, t: Expr, test: Expr) -> Form:
        """The residual."""
        given = zip(self._symbols, (*configuration, v, a, t, test), strict=True)
        return substitute(self._residual, {symbol: x for symbol, x in given if x is not symbol})

    def rate(self, f: Callable[[Sequence[Expr]], Form], direction: Expr) -> Form:
        """d/ds f(q + s direction) at s = 0."""
        return simplify(derivative(f(self.configuration), self.q, direction))

    def displacements(self, increment: Sequence[Expr]) -> list[dict[Function, Expr]]:
        """q + increment, part by part."""
        return [{q: q + d} for q, d in zip(parts(self.q), increment, strict=True)]

    # --- what the recording reads ----------------------------------------------------------------
    def energies(self) -> dict[str, Form]:
        """The energy, if one was given."""
        return {} if self._energy is None else {"energy": self._energy}
