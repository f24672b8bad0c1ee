"""Numerical checks of Poisson systems: the variational derivative, the bracket, Casimirs."""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import ufl
from firedrake import (
    ConvergenceError,
    Function,
    LinearVariationalProblem,
    LinearVariationalSolver,
    assemble,
    derivative,
)
from firedrake.assemble import get_assembler
from pyadjoint.tape import no_annotations
from ufl.algorithms import expand_derivatives, replace
from ufl.algorithms.analysis import has_exact_type
from ufl.classes import Expr, Form, Grad, Zero

from fdgeom.data import norm
from fdgeom.forms import (
    MATRIX_COMPILER,
    check_arguments,
    copy_into,
    is_zero,
    parts_of,
    random_function,
    refuse_views,
    substitute,
)
from fdgeom.identities import Identity, difference, of_numbers
from fdgeom.messages import reported_as

_DIRECT = {"ksp_type": "preonly", "pc_type": "lu"}


def pointwise_gradient(system) -> Callable | None:
    """A callable that gives δh/δz pointwise, the derivative of the energy density, or None if that
    fails ⟨g, w⟩ = dh(z)[w] or {w, g} = {w, b} with the true b for some state or coefficients.
    """
    # It is exact where energy and pairing are collocated, or for any quadrature in DG0.
    candidate = _density_derivative(system)
    if candidate is None or not is_gradient(system, candidate, values="all").holds:
        return None
    return candidate


def check_gradient(system, given: Callable) -> Identity:
    """Raise ``ValueError`` if a callable fails the test of a gradient; otherwise return the test."""
    symbols = tuple(Function(part.function_space()) for part in system.parts)
    with reported_as("gradient: it gives no UFL expression of the state"):
        found = parts_of(_at(given, symbols), system.forms.shapes, "gradient")
    check_arguments("gradient", found, system.state, *system.parts)
    for part in found:
        refuse_views("gradient", part, *symbols)
    test = is_gradient(system, given)
    if test.fails:
        raise ValueError(
            "gradient: it is not the δh/δz of the energy and the pairing: at states near the present "
            f"one ⟨gradient, w⟩ - dh(z)[w], or the bracket with it, is off by {test.defect:.2g} of "
            "its size. Leave it out: fdgeom then finds δh/δz itself"
        )
    return test


def is_gradient(system, candidate: Callable, values: str = "either") -> Identity:
    """Whether a candidate is δh/δz."""
    given = parts_of(_at(candidate, system.parts), system.forms.shapes, "gradient")
    w, slope = system.test, system.forms.energy_derivative(system.test)
    own = system.pairing(w, given), system.bracket(w, given)

    def equation(put):
        exact = Function(system.space)
        solver = riesz(system, put(slope), exact, put(system.pairing(system.trial, w)))
        true = put(slope), put(system.bracket(w, exact))
        pairs = [
            (get_assembler(put(one)), get_assembler(other))
            for one, other in zip(own, true, strict=True)
        ]

        def defect() -> float:
            exact.assign(0.0)  # what was not defined elsewhere would stay so
            try:
                solver.solve()
            except ConvergenceError:
                return np.nan  # a pairing that is not defined there
            found = [difference(one.assemble(), other.assemble()) for one, other in pairs]
            return float(np.max(found))  # NaN if one of them is

        return defect

    return Identity(system.parts, (*own, slope), equation, values=values)


def _at(gradient: Callable, parts: Sequence):
    return gradient(tuple(parts) if len(parts) > 1 else parts[0])


def riesz(
    system, form: Form, target: Function, pairing: Form | None = None
) -> LinearVariationalSolver:
    """The solver of ⟨target, w⟩ = form(w)."""
    problem = LinearVariationalProblem(
        pairing or system.pairing(system.trial, system.test),
        form,
        target,
        form_compiler_parameters=MATRIX_COMPILER,
    )
    return LinearVariationalSolver(problem, solver_parameters=_DIRECT)


def _density_derivative(system) -> Callable | None:
    """∂e/∂z of the energy density e, part by part, if the energy is of cell integrals only."""
    slopes = [None] * len(system.parts)
    form = substitute(system.forms.lagrangian, system.forms.at(None))
    for integral in form.integrals():
        for k, part in enumerate(system.parts):
            slope = expand_derivatives(ufl.diff(integral.integrand(), part))
            if isinstance(slope, Zero):
                continue
            if integral.integral_type() != "cell":
                return None
            slopes[k] = slope if slopes[k] is None else slopes[k] + slope
    found = tuple(
        (ufl.zero(*s) if s else ufl.as_ufl(0.0)) if slope is None else slope
        for s, slope in zip(system.forms.shapes, slopes, strict=True)
    )

    def gradient(state):
        state = state if isinstance(state, tuple) else (state,)
        mapping = dict(zip(system.parts, state, strict=True))
        plain = tuple(replace(expr, mapping) for expr in found)
        return plain if len(plain) > 1 else plain[0]

    return gradient


@no_annotations
def antisymmetry_defect(system, samples: int = 3, seed: int = 0) -> float:
    """Relative size of {·, b} + {b, ·} at the state, the largest over random fields b."""
    swapped = _swapped(system, system.bracket, 1.0, np.random.default_rng(seed))(lambda form: form)
    return max(swapped() for _ in range(samples))


_ANTISYMMETRIC = (
    "bracket must be antisymmetric, {{a, b}} = -{{b, a}}, or no energy is kept: the two differ by {:.2g} "
    "of their size for random a and b. Forces that dissipate belong in a SecondOrderSystem"
)
_A_METRIC = (
    "pairing must be symmetric and positive: ⟨a, b⟩ and ⟨b, a⟩ differ by {:.2g} of their size for random "
    "a and b (inf: ⟨b, b⟩ is not positive). Correct the form or the values of its coefficients"
)


def demands(system) -> dict[str, Identity]:
    """Identities of bracket and pairing, by the messages of errors where they fail."""
    w, u, found = system.test, system.trial, {}
    # Whether a metric is positive is a matter of values.
    for message, form, sign, values in (
        (_ANTISYMMETRIC, system.bracket, 1.0, "either"),
        (_A_METRIC, system.pairing, -1.0, "present"),
    ):
        equation = _swapped(system, form, sign, np.random.default_rng(0))
        found[message] = Identity(system.parts, (form(w, u),), equation, values=values)
    return found


def _swapped(system, form: Callable[..., Form], sign: float, rng) -> Callable:
    """The relative size of f(·, b) + sign f(b, ·), as an equation; a metric also has f(b, b) > 0."""

    def equation(put):
        b, w = Function(system.space), system.test
        sides = get_assembler(put(form(w, b))), get_assembler(put(form(b, w)))

        def defect() -> float:
            b.assign(random_function(system.space, rng))
            left, right = (side.assemble() for side in sides)
            with left.dat.vec_ro as x, right.dat.vec_ro as y, b.dat.vec_ro as z:
                size = x.norm()
                if not np.isfinite(size):
                    return np.nan
                if sign < 0 and not x.dot(z) > 0:
                    # Positive densities in a metric are not positive at every state that is tried.
                    return np.nan if system.forms.pairing_varies else np.inf
                return (x + sign * y).norm() / size if size else 0.0

        return defect

    return equation


# Quadrature errors of a Casimir are smaller; a functional that is none has a defect of about 1.
_NO_CASIMIR = 1e-3


def warn_of_casimirs(system) -> None:
    """Warn of a Casimir C without {f, C} = 0, in a system without derivatives in space."""
    # There it holds at every state. With derivatives in space a mesh conserves many Casimirs only
    # approximately.
    if any(p.function_space().ufl_element().embedded_superdegree != 0 for p in system.parts):
        return
    w, u = system.test, system.trial
    for name, casimir in system.forms.casimirs.items():
        slope = substitute(derivative(casimir, system.state, w), system.forms.at(None))
        forms = system.bracket(w, u), system.pairing(w, u), slope
        kinds = {part.integral_type() for form in forms for part in form.integrals()}
        if kinds != {"cell"} or any(has_exact_type(form, Grad) for form in forms):
            continue
        defect = Identity(system.parts, forms, _commutes(system, slope)).defect
        if defect > _NO_CASIMIR:
            warnings.warn(
                f"casimirs[{name!r}] is not a Casimir of the bracket: {{f, C}} is {defect:.2g} of its size "
                "for random f, where it must be 0; a motion may change it",
                stacklevel=2,
            )


def _commutes(system, slope: Form) -> Callable:
    """The size of {·, C} relative to {·, b}, for random b as large as δC/δz, as an equation."""
    rng = np.random.default_rng(0)

    def equation(put):
        fields = Function(system.space), Function(system.space)
        metric = put(system.pairing(system.trial, system.test))
        solver = riesz(system, put(slope), fields[0], metric)
        sides = [get_assembler(put(system.bracket(system.test, b))) for b in fields]

        def defect() -> float:
            fields[0].assign(0.0)
            try:
                solver.solve()
            except ConvergenceError:
                return np.nan
            fields[1].assign(random_function(system.space, rng))
            own, other = (
                norm(side.assemble()) / (norm(b) or 1.0)
                for side, b in zip(sides, fields, strict=True)
            )
            return own / other if other else 0.0

        return defect

    return equation


@no_annotations
def jacobi_defect(system, samples: int, seed: int) -> float:
    """Relative size of the cyclic sum {{f, g}, k} for random linear functionals f, g, k."""
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    for own, part in zip(system.state.subfunctions, system.parts, strict=True):
        if own.dat is not part.dat:
            copy_into(own, part)
    rng = np.random.default_rng(seed)
    a, b, c, inner = (Function(system.space) for _ in range(4))
    w, u = system.test, system.trial
    # {f, g} has the differential d/dz {f, g}(z)[w]; `inner` becomes its variational derivative.
    at_state, metric_at_state = system.forms.bracket, system.forms.pairing
    nested = substitute(derivative(substitute(at_state, {w: a, u: b}), system.state, w), {})
    outer = substitute(at_state, {w: inner, u: c})
    solvers = []
    if system.forms.pairing_varies:
        # The differentials of f and g stay, so a = δf/δz moves by ⟨da, ·⟩ = -d⟨a, ·⟩[w]: in {f, g}
        # that is -d⟨a, b̂⟩[w] with ⟨·, b̂⟩ = {·, b}, and the like for b.
        flows = [Function(system.space) for _ in range(2)]
        for moved, (one, other) in zip(flows, ((w, b), (a, w)), strict=True):
            solvers.append(riesz(system, substitute(at_state, {w: one, u: other}), moved))
        for fixed, moved in zip((a, b), flows, strict=True):
            metric = substitute(metric_at_state, {w: fixed, u: moved})
            nested -= substitute(derivative(metric, system.state, w), {})
    if nested.empty():
        return 0.0  # a constant bracket
    solvers.append(riesz(system, nested, inner))
    worst = 0.0
    for _ in range(samples):
        fields = [random_function(system.space, rng) for _ in range(3)]
        terms = []
        for shift in range(3):
            for target, k in zip((a, b, c), range(3), strict=True):
                target.assign(fields[(k + shift) % 3])
            for solver in solvers:
                solver.solve()
            terms.append(assemble(outer))
        scale = max(map(abs, terms))
        worst = max(worst, abs(sum(terms)) / scale if scale else 0.0)
    return worst


def pairing_is_apart(system, k: int) -> Identity | None:
    """The identity by which the pairing does not couple part ``k`` with others, or None."""

    def between(a: Expr, b: Expr) -> Form:
        pairs = (parts_of(x, system.forms.shapes) for x in (a, b))
        mine, others = (
            [p if (j == k) is own else ufl.zero(*p.ufl_shape) for j, p in enumerate(parts)]
            for parts, own in zip(pairs, (True, False), strict=True)
        )
        return system.pairing(mine, others)

    found = between(system.test, system.trial)
    if is_zero(found):
        return None
    a, b = (random_function(system.space, np.random.default_rng(seed)) for seed in (1, 2))

    def defect(coupling: float, size: float) -> float:
        return abs(coupling) / abs(size) if size else np.nan

    equation = of_numbers((between(a, b), system.pairing(a, a)), defect)
    return Identity(system.parts, (found,), equation)
