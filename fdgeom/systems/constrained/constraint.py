"""Holonomic constraints g(q) = 0, given by the functional ∫ λ·g(q)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import ufl
from firedrake import (
    Constant,
    DirichletBC,
    Form,
    Function,
    TestFunction,
    TrialFunction,
    assemble,
    derivative,
    dx,
    inner,
)
from mpi4py import MPI
from ufl.algorithms.check_arities import ArityMismatch, check_form_arity
from ufl.core.expr import Expr

from fdgeom.forms import check_functional, depends_on, substitute, tidy
from fdgeom.solvers.assembly import VectorAssembly
from fdgeom.solvers.essential import EssentialValues
from fdgeom.solvers.saddle import deficiency
from fdgeom.words import brief

# Of |Dg| |q|: what a start that was meant to be consistent can miss by in double precision.
CONSISTENT = 1e-11


class Constraint:
    """A holonomic constraint on ``q`` and its multiplier.

    Parameters
    ----------
    q : Function
        The configuration.
    functional : callable
        ``functional(λ)`` gives the form ∫ λ·g(q), linear in λ, a function of the multiplier's space.
    multiplier : Function
        λ; its space says how many constraints there are and where.
    forbidden : dict of Function to str
        What may not occur in g, and why.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.
    """

    def __init__(
        self,
        q: Function,
        functional: Callable,
        multiplier: Function,
        forbidden: Mapping[Function, str],
    ) -> None:
        _check_multiplier(q, self._tangent(q), multiplier, forbidden)
        if not callable(functional) or isinstance(functional, Form):
            raise TypeError(
                "constraint must be a callable of the multiplier giving a form, such as "
                f"lambda mult: mult*(dot(q, q) - 1)*dx, not {type(functional).__name__}"
            )
        self.q, self.multiplier = q, multiplier
        self.space = multiplier.function_space()
        self.comm = self.space.comm
        #: Space of q̇.
        self.tangent = self._tangent(q)
        #: ν, the test function of the multiplier's space.
        self.test = TestFunction(self.space)
        self._direction = Function(self.tangent, name="direction")
        self._form = self._linear_form(functional, forbidden)
        self._slope = self._along(self._form, self._direction)
        self._held: dict[str, object] = {}

    def _linear_form(self, functional: Callable, forbidden) -> Form:
        try:
            form = functional(self.test)
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(
                f"constraint: no valid form of a multiplier of shape {self.multiplier.ufl_shape}, "
                f"and the multiplier must have one component for each constraint: {brief(error)}"
            ) from error
        if not isinstance(form, Form):
            raise TypeError(
                "constraint(mult) must be a UFL form such as mult*(dot(q, q) - 1)*dx, not "
                f"{type(form).__name__}"
            )
        if len(form.arguments()) != 1:
            raise ValueError("constraint must be linear in the multiplier, which does not occur")
        form = tidy(form)
        try:
            check_form_arity(form, form.arguments())
        except ArityMismatch as error:
            raise ValueError("constraint must be linear in the multiplier") from error
        if self.multiplier in form.coefficients():
            raise ValueError("constraint must use its argument, not the multiplier itself")
        for function, why in forbidden.items():
            if depends_on(form, function):
                raise ValueError(f"constraint: {why}")
        if not self._depends(form):
            raise ValueError("constraint does not depend on q: its gradient is zero")
        return form

    # --- what a configuration on a group does in another way ------------------------------------
    def _tangent(self, q: Function):
        return q.function_space()

    def _depends(self, form: Form) -> bool:
        return depends_on(form, self.q)

    def _along(self, form: Form, direction: Expr) -> Form:
        return tidy(derivative(form, self.q, direction))

    # --- forms ---------------------------------------------------------------------------------
    def value(self, test: Expr, at: Expr | None = None) -> Form:
        """∫ ν·g(q) at a configuration, the present one by default."""
        return substitute(self._form, {self.test: test, self.q: self.q if at is None else at})

    def slope(self, test: Expr, direction: Expr, at: Expr | None = None) -> Form:
        """∫ ν·Dg(q)[w]: with ν = λ the work of the constraint's force, with w = q̇ the rate of g."""
        mapping = {self.test: test, self._direction: direction}
        return substitute(self._slope, {**mapping, self.q: self.q if at is None else at})

    # --- numbers -------------------------------------------------------------------------------
    def _mean(self, key: str, form: Callable[[], Form]) -> np.ndarray:
        """Owned values of a linear form of the multiplier's space over the weights ∫ ν."""
        if key not in self._held:
            self._held[key] = VectorAssembly(form())
        if "weights" not in self._held:
            shape = self.multiplier.ufl_shape
            ones = Constant(np.ones(shape)) if shape else Constant(1.0)
            weights = assemble(inner(ones, self.test) * dx)
            weights = np.abs(np.array(weights.dat.data_ro))
            # A node whose weight vanishes (corners of quadratic elements) counts as it is.
            self._held["weights"] = np.where(weights > 0, weights, 1.0)
        return self._held[key].assemble().dat.data_ro / self._held["weights"]

    def defect(self) -> float:
        """Largest \\|g(q)\\|: averages with the multiplier's test functions, over all of them."""
        return self._largest(self._mean("value", lambda: self.value(self.test)))

    def rate(self, velocity: Expr) -> float:
        """Largest \\|Dg(q) q̇\\|, as :meth:`defect`; ``velocity`` the same expression every time."""
        return self._largest(self._mean("rate", lambda: self.slope(self.test, velocity)))

    def _largest(self, values: np.ndarray) -> float:
        return float(self.comm.allreduce(np.abs(values).max(initial=0.0), op=MPI.MAX))

    # --- checks --------------------------------------------------------------------------------
    def check(
        self,
        velocity: Expr,
        mass: Form,
        fixed: Sequence[EssentialValues],
        back: Form | None = None,
    ) -> None:
        """Is the start consistent, and are the constraints independent there?

        Parameters
        ----------
        velocity : Expr
            q̇.
        mass : Form
            A bilinear form whose diagonal weighs the degrees of freedom.
        fixed : sequence of EssentialValues
            Degrees of freedom that do not move.
        back : Form, optional
            ∫ ν·Dg(q)M⁻¹[w], bilinear; ∫ ν·Dg(q)[w] if not given.

        Raises
        ------
        ValueError
            Naming what is wrong.
        """
        gradient = self.slope(self.test, TrialFunction(self.tangent))
        gradient = assemble(gradient, mat_type="aij").petscmat
        speeds = Function(self.tangent).interpolate(velocity).dat.data_ro
        self._check_consistent(gradient, velocity, speeds)
        with assemble(mass, diagonal=True).dat.vec_ro as diagonal:
            weight = diagonal.copy()
        weight.reciprocal()
        for e in fixed:
            weight.getArray()[e.dofs[e.dofs < weight.getLocalSize()]] = 0.0
        back = gradient if back is None else assemble(back, mat_type="aij").petscmat
        self._check_independent(gradient, back, weight)

    def _check_consistent(self, gradient, velocity, speeds) -> None:
        starts, _, values = gradient.getValuesCSR()
        total = np.concatenate([[0.0], np.cumsum(np.abs(values))])
        sums = total[starts[1:]] - total[starts[:-1]]
        self._mean("value", lambda: self.value(self.test))
        row = self._largest(sums.reshape(self._held["weights"].shape) / self._held["weights"])
        found = {
            "g(q) = 0": (self.defect(), self._largest(self.q.dat.data_ro)),
            "Dg(q) q̇ = 0": (self.rate(velocity), self._largest(speeds)),
        }
        for equation, (defect, size) in found.items():
            if not defect <= CONSISTENT * row * size:
                raise ValueError(
                    f"the start does not fulfil {equation}: it is off by {defect:.3g}. Set a "
                    "consistent start, or call system.project() to go to the nearest one"
                )

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
                f"{schur.getSize()[0]}), so it holds nothing there, or only what bcs hold "
                "already; start elsewhere, or state the constraint so that its gradient does not vanish "
                "where it holds"
            )
        missing = deficiency(schur)
        if missing:
            size = schur.getSize()[0]
            raise ValueError(
                f"constraint: redundant or contradictory constraints: Dg M⁻¹ Dgᵀ has rank "
                f"{size - missing} of {size} at the start. Drop those that follow from the others, "
                "or take a multiplier in a smaller space"
            )


def _check_multiplier(q: Function, tangent, multiplier, others: Sequence[Function]) -> None:
    if not isinstance(multiplier, Function):
        raise TypeError(f"multiplier must be a firedrake Function, not {type(multiplier).__name__}")
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


def fixed_values(bcs, space, old: Function) -> tuple[EssentialValues, ...]:
    """What boundary conditions hold at rest, as given degrees of freedom of the momentum ``old``.

    Raises
    ------
    TypeError, ValueError
        If one is no homogeneous DirichletBC on ``space``.
    """
    if isinstance(bcs, DirichletBC):
        bcs = (bcs,)
    held = []
    for bc in bcs:
        if not isinstance(bc, DirichletBC):
            raise TypeError(f"bcs must be DirichletBC objects, not {type(bc).__name__}")
        of = bc.function_space()
        component = of.component
        whole = of if component is None else of.parent
        if whole != space:
            raise ValueError("bcs: a DirichletBC must be on the space of q (or a component of it)")
        value = bc.function_arg
        if not (isinstance(value, ufl.classes.Zero) or _is_zero(value, bc)):
            raise ValueError(
                "bcs must be zero: they hold the velocity of q, which stays where it starts"
            )
        block = space.block_size
        components = np.arange(block) if component is None else np.array([component])
        dofs = (block * np.asarray(bc.nodes)[:, None] + components).ravel()
        held.append(EssentialValues(part=0, dofs=dofs, old=old))
    return tuple(held)


def _is_zero(value, bc) -> bool:
    field = value if isinstance(value, Function) else Function(bc.function_space())
    if field is not value:
        field.interpolate(value)
    return not field.comm.allreduce(int(np.any(field.dat.data_ro != 0)))


def check_at_rest(name: str, function: Function, fixed: Sequence[EssentialValues]) -> None:
    """Raise ``ValueError`` if a function is not zero where it is held."""
    values = function.dat.data_ro_with_halos.reshape(-1)
    moving = any(np.any(values[e.dofs] != 0) for e in fixed)
    if function.comm.allreduce(int(moving)):
        raise ValueError(f"{name} must be zero where bcs hold q: set it, or call system.project()")


def mechanical_energy(name: str, form, forbidden: Function, why: str) -> Form:
    """A functional, checked: it may not depend on ``forbidden``."""
    form = tidy(check_functional(name, form, 0))
    if isinstance(forbidden, Function) and depends_on(form, forbidden):
        raise ValueError(f"{name}: {why}")
    return form
