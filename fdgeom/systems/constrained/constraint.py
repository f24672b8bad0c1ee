"""Constraints on position, g(q) = 0, or velocity, A(q)v = 0, with a multiplier: forms and checks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from firedrake import (
    Constant,
    Form,
    Function,
    TestFunction,
    TestFunctions,
    TrialFunction,
    assemble,
    derivative,
    dx,
    inner,
    split,
)
from petsc4py import PETSc
from ufl.algorithms.map_integrands import map_integrand_dags
from ufl.core.expr import Expr
from ufl.corealg.multifunction import MultiFunction

from fdgeom.data import largest
from fdgeom.errors import SolveFailed
from fdgeom.execution import HeldSNES, VectorAssembly, saddle
from fdgeom.forms import (
    copy_into,
    depends_on,
    form_of,
    simplify,
    substitute,
    with_fixed_quadrature,
)
from fdgeom.operations import Prescribed
from fdgeom.validation import state_function

# Of |A| |v|: what a start that was meant to be consistent can miss by in double precision.
_CONSISTENT = 1e-11
#: The same between steps, which leave what the user's tolerances allow.
LOOSE = 1e-6
# A smaller pivot of a matrix with ones on its diagonal counts as zero.
_NULL_PIVOT = 1e-10


class RateConstraint:
    """Constraints on the velocity, A(q)v = 0 (A = Dg for g(q) = 0), and their multiplier."""

    # A subclass sets `_slope`, the form ∫ ν·A(q)w of `test` and `_direction`. `tangent` is the
    # space of the velocity, and `others` are Functions that the multiplier must differ from. Forms
    # have an argument `at` for the configuration, q or its parts, by default the present one.
    _slope: Form
    # The equation of the rate, and the part of the start that must fulfil the constraint.
    _equation, _start = "A(q) q̇ = 0", "velocity"
    #: Whether the system has a method ``project``.
    projects = True

    def __init__(
        self, configuration: Sequence[Function], tangent, multiplier: Function, others
    ) -> None:
        _check_multiplier(configuration[0], tangent, multiplier, others)
        self.configuration, self.multiplier = tuple(configuration), multiplier
        #: Space of q̇.
        self.tangent = tangent
        #: ν, the test function of the multiplier's space.
        self.test = TestFunction(self.space)
        self._direction = Function(tangent, name="direction")
        self._held: dict[str, Any] = {}

    @property
    def space(self):
        """Space of λ and ν."""
        return self.multiplier.function_space()

    # --- forms ---------------------------------------------------------------------------------
    def _of(self, functional: Callable, symbols, of, example, linear_in, without) -> Form:
        """The form that a user's function gives for ν and perhaps a velocity."""
        without = {self.multiplier: "must use its argument, not the multiplier itself", **without}
        mesh = self.configuration[0].function_space().mesh()
        form = form_of(
            "constraint", functional, symbols, of, example, linear_in, mesh, without,
            state=self.configuration,
        )  # fmt: skip
        return simplify(form)

    def forms(self) -> tuple[Form, ...]:
        """The forms that state it, beside its rate: none for a constraint on the velocity."""
        return ()

    def slope(self, test: Expr, direction: Expr, at: Any = None) -> Form:
        """∫ ν·A(q)w: with ν = λ the work of the constraint's force, with w = q̇ the rate."""
        return self._at(self._slope, {self.test: test, self._direction: direction}, at)

    def _at(self, form: Form, mapping: dict, at: Any) -> Form:
        if at is not None:
            parts = at if isinstance(at, list | tuple) else (at,)
            mapping = {**mapping, **dict(zip(self.configuration, parts, strict=True))}
        return substitute(form, mapping)

    # --- numbers -------------------------------------------------------------------------------
    def _mean(self, key: str, form: Callable[[], Form]) -> np.ndarray:
        """Owned values of a linear form of the multiplier's space over the weights ∫ ν."""
        if key not in self._held:
            self._held[key] = VectorAssembly(form())
        return self._held[key].assemble().dat.data_ro / self._weights()

    def _weights(self) -> np.ndarray:
        """Owned values of ∫ ν on the present mesh."""
        if "weights" not in self._held:
            self._held["weights"] = VectorAssembly(inner(self._ones, self.test) * dx)
        weights = np.abs(self._held["weights"].assemble().dat.data_ro)
        # A node whose weight vanishes (corners of quadratic elements) counts as it is.
        return np.where(weights > 0, weights, 1.0)

    @property
    def _ones(self) -> Constant:
        """The multiplier with components of one."""
        return Constant(np.ones(self.multiplier.ufl_shape))

    def rate(self, velocity: Expr) -> float:
        r"""Largest \|A(q) q̇\|, averaged with each of the multiplier's test functions, for the same
        expression ``velocity`` in every call.
        """
        return self._largest(self._mean("rate", lambda: self.slope(self.test, velocity)))

    def _largest(self, values: np.ndarray) -> float:
        return largest(self.space.comm, values)

    def _row_sums(self, gradient) -> float:
        """Largest sum of |A| in a row, averaged in the same way."""
        starts, _, values = gradient.getValuesCSR()
        weights = self._weights()
        return self._largest(row_sums(starts, np.abs(values)).reshape(weights.shape) / weights)

    def _check_small(
        self, equation: str, defect: float, size: float, *, loosely: bool = False
    ) -> None:
        """Raise ``ValueError`` unless a defect is the round-off of a size."""
        if not defect <= (LOOSE if loosely else _CONSISTENT) * size:
            where = "state" if loosely else "start"
            nearest = ", or call system.project() to go to the nearest one"
            raise ValueError(
                f"the {where} does not fulfil {equation}: it is off by {defect:.3g}. Set a consistent "
                f"{self._start}{nearest if self.projects else ''}"
            )

    # --- projection ----------------------------------------------------------------------------
    def projection(
        self,
        target: Function,
        residual: Callable[..., Form],
        fixed: Sequence[Prescribed] = (),
    ) -> Callable[[], None]:
        """The function that solves for a new value of ``target`` together with a multiplier.

        It starts from the present value, and raises ``ValueError`` if there is no consistent state.
        """
        # `residual(x, mu, w, nu)` is the form of the new value x and the multiplier mu, for the
        # tests w and nu. Where `fixed` says, the target keeps its value.
        unknown = Function(target.function_space() * self.space)
        value, multiplier = unknown.subfunctions
        form = simplify(residual(*split(unknown), *TestFunctions(unknown.function_space())))
        held = tuple(Prescribed(e.dofs, target) for e in fixed)
        solver = HeldSNES(
            form, unknown, saddle(form, unknown), essential=held, name="the projection"
        )

        def project() -> None:
            copy_into(value, target)
            multiplier.dat.data_wo_with_halos[...] = 0.0
            try:
                solver.solve()
            except SolveFailed as failure:
                raise ValueError(
                    f"project: no consistent state was found from this start: {failure}. Start "
                    "nearer to the constraint, and check that its parts are independent and do not "
                    "contradict"
                ) from failure
            copy_into(target, value)

        return project

    # --- checks --------------------------------------------------------------------------------
    def check(
        self,
        velocity: Expr,
        mass: Form,
        fixed: Sequence[Prescribed],
        back: Form | None = None,
    ) -> None:
        """Raise ``ValueError`` unless the start is consistent and the constraints independent."""
        # The diagonal of `mass` weighs the degrees of freedom; `back` is ∫ ν·A(q)M⁻¹[w], bilinear,
        # or ∫ ν·A(q)[w] if not given.
        gradient = self._gradient()
        speeds = Function(self.tangent).interpolate(velocity).dat.data_ro
        self._check_consistent(gradient, velocity, speeds)
        with assemble(mass, diagonal=True).dat.vec_ro as diagonal:
            weight = diagonal.copy()
        weight.reciprocal()
        for e in fixed:
            weight.getArray()[e.dofs[e.dofs < weight.getLocalSize()]] = 0.0
        back = gradient if back is None else assemble(back, mat_type="aij").petscmat
        self._check_independent(gradient, back, weight)

    def _gradient(self) -> PETSc.Mat:
        gradient = self.slope(self.test, TrialFunction(self.tangent))
        return assemble(gradient, mat_type="aij").petscmat

    def _check_consistent(self, gradient, velocity: Expr, speeds: np.ndarray) -> None:
        """Raise ``ValueError`` if the start is off the constraint, or its velocity is."""
        rate = self.rate(velocity)
        size = self._row_sums(gradient) * self._largest(speeds)
        self._check_small(self._equation, rate, size)

    def _check_independent(self, gradient, back, weight) -> None:
        """Rank of Dg M⁻¹ Dgᵀ."""
        scaled = gradient.copy()
        scaled.diagonalScale(None, weight)
        scaled.transpose()
        schur = back.matMult(scaled)
        diagonal = schur.getDiagonal()
        row, least = diagonal.min()
        diagonal.abs()
        _, largest = diagonal.max()
        # Of either sign: round-off of a gradient that vanishes.
        if least < -1e-12 * largest:
            raise ValueError(
                f"constraint: the mass is negative there (the entry {least:.3g} in row {row} of "
                "Dg M⁻¹ Dgᵀ at the start): the kinetic energy must grow with every velocity"
            )
        low, least = diagonal.min()
        if not least > 1e-24 * largest:
            raise ValueError(
                f"constraint: its gradient is zero at the start (in row {low} of Dg M⁻¹ Dgᵀ, of "
                f"{schur.getSize()[0]}), so it constrains nothing there, or only what bcs "
                "fix; let bcs hold fewer components there, start elsewhere, or state the constraint so "
                "that its gradient does not vanish where it holds"
            )
        missing = deficiency(schur)
        if missing:
            size = schur.getSize()[0]
            raise ValueError(
                f"constraint: redundant or contradictory constraints: Dg M⁻¹ Dgᵀ has rank "
                f"{size - missing} of {size} at the start. Drop those that follow from the others, "
                "or take a multiplier in a smaller space"
            )


def row_sums(starts: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """The sums of entries between ``starts``, those of the rows of a sparse matrix."""
    total = np.concatenate([[0.0], np.cumsum(entries)])
    return total[starts[1:]] - total[starts[:-1]]


def deficiency(matrix: PETSc.Mat) -> int:
    """Rank deficiency of a symmetric matrix with a positive diagonal, by MUMPS."""
    root = matrix.getDiagonal()
    root.sqrtabs()
    root.reciprocal()
    matrix = matrix.copy()
    matrix.diagonalScale(root, root)
    pc = PETSc.PC().create(comm=matrix.comm)
    pc.setOperators(matrix)
    pc.setType("lu")
    pc.setFactorSolverType("mumps")
    pc.setFactorSetUpSolverType()
    factor = pc.getFactorMatrix()
    factor.setMumpsIcntl(24, 1)
    factor.setMumpsCntl(3, _NULL_PIVOT)
    pc.setUp()
    missing = factor.getMumpsInfog(28)
    pc.destroy()
    return missing


def _check_multiplier(q: Function, tangent, multiplier, others: Sequence[Function]) -> None:
    state_function("multiplier", multiplier)
    if multiplier is q or any(multiplier is f for f in others):
        raise ValueError("multiplier must be a function of its own")
    space = multiplier.function_space()
    if len(space) > 1:
        raise ValueError(
            "multiplier must not be of a mixed space: several constraints are the components of a "
            "vector"
        )
    if space.mesh() is not q.function_space().mesh():
        raise ValueError("multiplier must live on the mesh of q")
    if space.dim() > tangent.dim():
        raise ValueError(
            f"multiplier: its space has {space.dim()} degrees of freedom, more constraints than "
            f"the {tangent.dim()} of q: take a smaller space"
        )


class _Absolute(MultiFunction):
    """Sums of absolute values in place of sums."""

    expr = MultiFunction.reuse_if_untouched

    def sum(self, o, a, b):
        return abs(a) + abs(b)


class Constraint(RateConstraint):
    """A holonomic constraint ∫ λ·g(q), the form ``functional(λ)``, and its multiplier λ."""

    _equation, _start = "Dg(q) q̇ = 0", "start"

    # `forbidden`: Functions that may not occur in g, and why.
    def __init__(
        self,
        configuration: Sequence[Function],
        tangent,
        functional: Callable,
        multiplier: Function,
        forbidden: Mapping[Function, str],
    ) -> None:
        super().__init__(configuration, tangent, multiplier, forbidden)
        of = (
            f"a multiplier of shape {self.multiplier.ufl_shape}, and the multiplier must have one "
            "component for each constraint"
        )
        example, linear_in = "lambda mult: mult*(dot(q, q) - 1)*dx", "the multiplier"
        form = self._of(functional, (self.test,), of, example, linear_in, forbidden)
        # The constraint's force is normal to the manifold only where Dg is the derivative of g.
        self._form = with_fixed_quadrature(form, *self.configuration)
        if not any(depends_on(self._form, f) for f in self.configuration):
            raise ValueError("constraint does not depend on q: its gradient is zero")
        self._slope = self._along(self._form, self._direction)

    def _along(self, form: Form, direction: Expr) -> Form:
        """The derivative of a form along a direction; on a group in another way."""
        return simplify(derivative(form, self.configuration[0], direction))

    # --- forms ---------------------------------------------------------------------------------
    def forms(self) -> tuple[Form, ...]:
        """The form that states it, beside its rate: ∫ ν·g(q)."""
        return (self._form,)

    def value(self, test: Expr, at: Any = None) -> Form:
        """∫ ν·g(q)."""
        return self._at(self._form, {self.test: test}, at)

    # --- numbers -------------------------------------------------------------------------------
    def defect(self) -> float:
        """Largest |g(q)|: averages with the multiplier's test functions, over all of them."""
        return self._largest(self._mean("value", lambda: self.value(self.test)))

    def check_configuration(self, *, loosely: bool = False) -> None:
        """Raise ``ValueError`` if the present configuration is off the constraint."""
        self._check_value(self._gradient(), loosely=loosely)

    def _check_value(self, gradient, *, loosely: bool = False) -> None:
        defect, largest = self.defect(), self._largest(self.configuration[0].dat.data_ro)
        size = self._row_sums(gradient) * largest
        if not defect <= _CONSISTENT * size:
            # A displacement may be zero where the positions, of whose round-off g is, are not.
            size += self._terms()
        self._check_small("g(q) = 0", defect, size, loosely=loosely)

    def _terms(self) -> float:
        """The mean sum of the absolute values of the terms of g."""
        form = map_integrand_dags(_Absolute(), self.value(self._ones))
        form = Form([i.reconstruct(integrand=abs(i.integrand())) for i in form.integrals()])
        return assemble(form) / assemble(1.0 * dx(domain=self.space.mesh()))

    def _check_consistent(self, gradient, velocity, speeds) -> None:
        self._check_value(gradient)
        super()._check_consistent(gradient, velocity, speeds)


class VelocityConstraint(RateConstraint):
    """Constraints that are linear in the velocity: ``functional(λ, v)`` gives the form ∫ λ·A(q)v."""

    def __init__(
        self, q: Function, v: Function, functional: Callable, multiplier: Function
    ) -> None:
        super().__init__((q,), q.function_space(), multiplier, (v,))
        velocity = TrialFunction(self.tangent)
        form = self._of(
            functional,
            (self.test, velocity),
            f"a multiplier of shape {multiplier.ufl_shape} and a velocity of shape {v.ufl_shape}",
            "lambda mult, v: mult*(v[2] - q[1]*v[0])*dx",
            "the multiplier and in the velocity",
            {v: "must use its argument, not the velocity itself"},
        )
        self._slope = substitute(form, {velocity: self._direction})
