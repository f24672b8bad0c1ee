"""The derivative of an energy averaged over a step, whose work is exactly the change of the energy."""

from functools import cached_property

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
from fdgeom.systems.poisson.poisson import PoissonSystem

Parts = tuple[Expr, ...]


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
        self.slope = slopes[0].integrand() if slopes else ufl.as_ufl(0.0) if jumps else None
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
        ends = (self._put(self._integrand, z) for z in (old, new))
        return self._rule.correction(
            *ends, slopes, *map(self._square, (_difference(new, old), new))
        )

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
