"""The discrete-gradient method, which conserves any energy to round-off."""

from functools import cached_property
from typing import Any, Unpack

import ufl
from firedrake import derivative
from ufl.algorithms import expand_derivatives, extract_coefficients, replace
from ufl.classes import (
    Expr,
    FixedIndex,
    Form,
    Grad,
    Indexed,
    Integral,
    Restricted,
    SpatialCoordinate,
    Variable,
)
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.forms import has_kink, polynomial_degree, simplify, summands
from fdgeom.mean_slope import MeanSlope
from fdgeom.steppers.sweep import MIDPOINT, Rule, Sweep, SweepOptions, Turn, everything
from fdgeom.systems.poisson.poisson import PoissonSystem
from fdgeom.validation import whole

Parts = tuple[Expr, ...]

_POINTS_OF_A_GENERAL_ENERGY = 8
# The energy stands so many times in the form of a step; polynomials of twice the degree are exact.
_MOST_POINTS = 64


class DiscreteGradient(Sweep):
    """Discrete gradient by the averaged vector field: conserves the energy, whatever the step.

    ⟨w, z¹ - z⁰⟩ = Δt {w, h}  with the bracket at (z⁰+z¹)/2 and δh/δz replaced by its mean b̄ = ∫₀¹
    δh/δz(z⁰ + τ(z¹-z⁰)) dτ, so that h(z¹) - h(z⁰) = ⟨b̄, z¹-z⁰⟩ = Δt {h, h} = 0 (McLachlan, Quispel
    & Robidoux 1999; Quispel & McLaren 2008). The integral is computed at Gauss points, exactly for
    polynomials. For other energies Gonzalez's correction removes the quadrature error in large
    steps (`MeanDerivative`), so that ⟨b̄, z¹-z⁰⟩ is the difference of the energies to round-off for
    every step that converges.

    Parameters
    ----------
    system : PoissonSystem
        The system to integrate.
    dt : float
        Time step.
    points : int, optional
        Gauss points for an energy that is not a polynomial (default 8, at least 5).
    configuration, t0, solver_parameters, options_prefix, compiled
        As for :class:`ImplicitMidpoint`.

    Raises
    ------
    TypeError, ValueError
        If the system is not a PoissonSystem, or ``points`` is not a whole number up to 64;
        for a beam with gravity or dead forces, if ``configuration`` is not "mean", since only then
        their potential belongs to the energy.

    Notes
    -----
    For a quadratic energy this is the implicit midpoint rule. It conserves the energy that
    ``system.energy()`` reports, with one quadrature for it and for all its derivatives. The energy
    of a beam includes the potential of gravity (on an inertia of masses, see `Gravity`), of dead
    forces, and of every other load that has one; loads without a potential change it by their work.
    """

    order = 2
    symmetric = True
    conserves = ("energy", "quadratic Casimirs")
    cites = ("McLachlanQuispelRobidoux1999", "QuispelMcLaren2008")

    def __init__(
        self, system, dt: float, *, points: int | None = None, **options: Unpack[SweepOptions]
    ) -> None:
        points = _POINTS_OF_A_GENERAL_ENERGY if points is None else points
        self.points = whole("points", points, least=1, most=_MOST_POINTS)
        super().__init__(system, dt, **options)

    def parameters(self):
        return super().parameters() | {"points": self.points}

    def _setup(self) -> None:
        super()._setup()
        if self.configuration != "mean" and "load_potential" in self.system.energies():
            raise ValueError(
                "configuration: with gravity or dead forces the energy is kept with the mean "
                f"momentum only; take configuration='mean', not {self.configuration!r}"
            )

    def turns(self):
        degree = self.system.forms.energy_degree
        if degree is not None and degree <= 2:
            return [Turn(everything(self.system), MIDPOINT)]
        return [Turn(everything(self.system), averaged_vector_field(self.system, self.points))]


def averaged_vector_field(system, points: int) -> Rule:
    """The rule with the gradient averaged between old and new, at ``points`` if no polynomial."""
    if system.auxiliary is not None:
        raise ValueError(
            "system: with auxiliary functions DiscreteGradient needs an energy of second degree in "
            "the state; take ImplicitMidpoint"
        )
    mean = MeanDerivative(system, points)

    def residual(system, stage, dt):
        old, new = system.parts, stage.state
        middle = tuple(a + 0.5 * (b - a) for a, b in zip(old, new, strict=True))
        if stage.gradient_test is None:
            slope, defining = mean.gradient(old, new), Form([])
        else:
            slope, test = stage.gradient, stage.gradient_test
            defining = system.pairing(test, slope, at=middle) - mean.form(test, old, new)
        change = tuple(b - a for a, b in zip(old, new, strict=True))
        flow = system.bracket(stage.test, slope, at=middle)
        flow += system.substeps.forcing(stage.test, slope, dt)
        return system.pairing(stage.test, change, at=middle) - dt * flow + defining

    # The mean of pointwise gradients is that of one metric only.
    pointwise = mean.is_pointwise and not system.forms.pairing_varies
    return Rule(residual, 1.0, pointwise)


class MeanDerivative:
    """dh̄[w] for a step from z⁰ to z¹, with dh̄[z¹ - z⁰] = h(z¹) - h(z⁰) to round-off, by the
    `MeanSlope` of each term e of the energy's density at each point of its quadrature,

        dē[w] = Σ_k b_k de(z_k)[w] + κ Σ_i Δy_i·y_i[w],      z_k = z⁰ + c_k (z¹ - z⁰),

    where y_i are the components of z and the derivatives of z that occur in e, and ``points`` is
    the number of Gauss points for terms that are no polynomials.
    """

    def __init__(self, system: PoissonSystem, points: int) -> None:
        self._system = system
        self._terms = [
            term
            for integral in system.forms.energy.integrals()
            for integrand in summands(integral.integrand())
            if system.state in extract_coefficients(integrand)
            for term in [_Term(system, integral, integrand, points)]
            if term.slope is not None
        ]

    @cached_property
    def is_pointwise(self) -> bool:
        """Whether :meth:`gradient` gives the same in every form, whatever its quadrature."""
        if self._system.forms.density_gradient is None:
            return False
        return all(term.exact for term in self._terms) or (
            all(term.is_nodal for term in self._terms) and _one_quadrature(self._system)
        )

    def form(self, test: Parts, old: Parts, new: Parts) -> Form:
        """The form dh̄[w]."""
        return simplify(Form([term.weak(test, old, new) for term in self._terms]))

    def gradient(self, old: Parts, new: Parts) -> Parts:
        """dh̄ as expressions: b̄ with ∫ b̄·w = dh̄[w] point by point."""
        found = [term.strong(old, new) for term in self._terms]
        zeros = [ufl.zero(*s) if s else ufl.as_ufl(0.0) for s in self._system.forms.shapes]
        return tuple(sum(p[1:], p[0]) for p in zip(zeros, *found, strict=True))


class _Term:
    """One term of an energy's density."""

    def __init__(
        self, system: PoissonSystem, integral: Integral, integrand: Expr, points: int
    ) -> None:
        self._system, self._integral, self._integrand = system, integral, integrand
        piece = Form([integral.reconstruct(integrand=integrand)])
        slopes = simplify(derivative(piece, system.state, system.test)).integrals()
        #: de(z)[w], or nothing where e does not depend on the state after all; a jump has the slope 0.
        jumps = has_kink(integrand, system.state)
        self.slope: Any = slopes[0].integrand() if slopes else ufl.as_ufl(0.0) if jumps else None
        degree = polynomial_degree(piece, system.state)
        self._rule = MeanSlope(degree, points)
        #: Whether the Gauss rule integrates the slope exactly.
        self.exact = self._rule.exact
        self._arguments = [] if self.exact else _arguments(integrand, system.state)

    @property
    def is_nodal(self) -> bool:
        """Whether the term is of values of the state in the cells alone."""
        nodes = (e for y in self._arguments for e in unique_pre_traversal(y))
        plain = not any(isinstance(e, (Grad, Restricted)) for e in nodes)
        return plain and self._integral.integral_type() == "cell"

    def weak(self, test: Parts, old: Parts, new: Parts) -> Integral:
        step = _difference(new, old)
        mean = self._rule.mean([self._slope(z, test) for z in self._between(old, new)])
        if not self.exact:
            slopes = [self._slope(z, step) for z in self._between(old, new)]
            pairs = [(self._put(y, step), self._put(y, test)) for y in self._arguments]
            factor = self._factor(slopes, old, new)
            mean += factor * sum(ufl.inner(d, w) for d, w in pairs)
        return self._integral.reconstruct(integrand=mean)

    def strong(self, old: Parts, new: Parts) -> Parts:
        # Slopes along the step are ∂e/∂z·Δz, not the derivative of `weak` by its test: at the guess
        # z¹ = z⁰ rounding must not leave more than zero, which κ and its tangent divide by Δz·Δz.
        step = _difference(new, old)
        slopes = [self._at(z, self._gradient) for z in self._between(old, new)]
        mean = tuple(self._rule.mean(part) for part in zip(*slopes, strict=True))
        if self.exact:
            return mean
        along = [sum(ufl.inner(s, d) for s, d in zip(slope, step, strict=True)) for slope in slopes]
        factor = self._factor(along, old, new)
        added = self._at(step, self._by_parts(0.5 * self._square(self._system.parts)))
        return tuple(m + factor * a for m, a in zip(mean, added, strict=True))

    # --- pieces ----------------------------------------------------------------------------------
    def _factor(self, slopes, old: Parts, new: Parts) -> Expr:
        """κ from the slopes along the step at the Gauss points."""
        before, after = (self._put(self._integrand, z) for z in (old, new))
        size, reached = (self._square(z) for z in (_difference(new, old), new))
        return self._rule.correction(before, after, slopes, size, reached)

    def _square(self, state: Parts) -> Expr:
        """Σ y_i·y_i."""
        arguments = [self._put(y, state) for y in self._arguments]
        return sum(ufl.inner(y, y) for y in arguments)

    def _between(self, old: Parts, new: Parts) -> list[Parts]:
        step = _difference(new, old)
        return [tuple(a + c * d for a, d in zip(old, step, strict=True)) for c in self._rule.nodes]

    def _slope(self, state: Parts, direction: Parts) -> Expr:
        return self._put(self.slope, state, direction)

    @cached_property
    def _gradient(self) -> Parts:
        """∂e/∂z, part by part."""
        return self._by_parts(self._put(self._integrand, self._system.parts))

    def _by_parts(self, expression: Expr) -> Parts:
        """The derivatives of an expression of the state by its parts."""
        return tuple(expand_derivatives(ufl.diff(expression, p)) for p in self._system.parts)

    def _at(self, state: Parts, expressions: Parts) -> Parts:
        """Expressions of the parts of the state, at another one."""
        mapping = dict(zip(self._system.parts, state, strict=True))
        return tuple(replace(e, mapping) for e in expressions)

    def _put(self, expression: Expr, state: Parts, direction: Parts | None = None) -> Expr:
        mapping = {self._system.state: self._system.forms.whole(state)}
        if direction is not None:
            mapping[self._system.test] = self._system.forms.whole(direction)
        return expand_derivatives(replace(expression, mapping))


def _difference(new: Parts, old: Parts) -> Parts:
    return tuple(b - a for a, b in zip(old, new, strict=True))


def _arguments(expression: Expr, state: Expr) -> list[Expr]:
    """The components of a state and of its derivatives that occur in an expression."""
    found: dict[Expr, None] = {}
    seen = set()

    def visit(e: Expr) -> None:
        if e in seen:
            return
        seen.add(e)
        if _is_argument(e, state):
            found[e] = None
        elif isinstance(e, Indexed) and _is_argument(e.ufl_operands[0], state):
            whole, index = e.ufl_operands
            fixed = []
            for i in index:
                if not isinstance(i, FixedIndex):
                    break
                fixed.append(int(i))
            rest = (slice(None),) * (len(whole.ufl_shape) - len(fixed))
            found[whole[(*fixed, *rest)] if fixed else whole] = None
        else:
            for operand in e.ufl_operands:
                visit(operand)

    visit(expression)
    return list(found)


def _is_argument(e: Expr, state: Expr) -> bool:
    return _core(e) is state or _core(e) == state


def _core(e: Expr) -> Expr:
    """An expression without its outer derivatives, restrictions and variables."""
    while isinstance(e, (Grad, Restricted, Variable)):
        e = e.ufl_operands[0]
    return e


def _one_quadrature(system: PoissonSystem) -> bool:
    """Whether all forms see the same points, or nothing that differs from one point to another."""
    forms = system.forms.stated().values()
    if all("quadrature_degree" in i.metadata() for form in forms for i in form.integrals()):
        return True
    return all(_constant_in_cells(form) for form in forms)


def _constant_in_cells(form: Form) -> bool:
    spaces = [f.function_space() for f in (*form.coefficients(), *form.arguments())]
    if any(V.cell_node_map() is None or V.cell_node_map().arity > 1 for W in spaces for V in W):
        return False
    nodes = (e for i in form.integrals() for e in unique_pre_traversal(i.integrand()))
    return not any(isinstance(e, SpatialCoordinate) for e in nodes)
