"""UFL plumbing: states of several parts inside forms, and questions to forms."""

from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import (
    Argument,
    Cofunction,
    Function,
    FunctionSpace,
    TensorFunctionSpace,
    TestFunction,
    VectorFunctionSpace,
    derivative,
    split,
)
from ufl.algorithms import expand_derivatives, extract_coefficients, replace
from ufl.algorithms.apply_integral_scaling import compute_integrand_scaling_factor
from ufl.algorithms.estimate_degrees import estimate_total_polynomial_degree
from ufl.classes import (
    Abs,
    Condition,
    Division,
    Expr,
    Form,
    Integral,
    MaxValue,
    MinValue,
    Product,
    Sum,
    Zero,
)
from ufl.corealg.traversal import unique_pre_traversal

#: How matrices are compiled. TSFC's default mode takes minutes for large local matrices, and its code
#: for them was seen to crash with gcc 12 on AVX-512 (stack arrays not aligned as the compiler assumes).
MATRIX_COMPILER = {"mode": "vanilla"}
_KINKS = (Abs, Condition, MaxValue, MinValue)


def parts_of(value, shapes: Sequence[tuple[int, ...]], name: str = "value") -> tuple[Expr, ...]:
    """Split an element of a (possibly mixed) space into its parts.

    Parameters
    ----------
    value : Function, Argument, UFL expression or sequence of expressions
        One object of the whole state, or one entry a part.
    shapes : sequence of tuples
        Value shapes of the parts.
    name : str
        What to call it in an error.

    Raises
    ------
    ValueError
        If the number or shapes of the parts do not fit.
    """
    if isinstance(value, (tuple, list)):
        parts = tuple(ufl.as_ufl(v) for v in value)
    elif len(shapes) == 1:
        parts = (ufl.as_ufl(value),)
    elif isinstance(value, (Function, Argument)):
        parts = tuple(split(value))
    else:
        parts = unflatten(ufl.as_ufl(value), shapes, name)
    found = [p.ufl_shape for p in parts]
    if found != [tuple(s) for s in shapes]:
        raise ValueError(f"{name} must have parts of shapes {list(shapes)}, not {found}")
    return parts


def flatten(parts: Sequence[Expr]) -> Expr:
    """The inverse of :func:`parts_of`: one vector of all components, as a mixed function has it."""
    components = [p[i] if i else p for p in parts for i in np.ndindex(p.ufl_shape)]
    return ufl.as_vector(components)


def unflatten(value: Expr, shapes, name: str) -> tuple[Expr, ...]:
    """The inverse of :func:`flatten`: the parts of one vector of all components."""
    total = sum(int(np.prod(s)) for s in shapes)
    if value.ufl_shape != (total,):
        raise ValueError(f"{name} must be a vector of {total} components, not {value.ufl_shape}")
    parts, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        entries = np.array([value[start + i] for i in range(size)], dtype=object).reshape(shape)
        parts.append(ufl.as_tensor(entries.tolist()) if shape else entries.item())
        start += size
    return tuple(parts)


def substitute(form: Form, mapping: dict[Expr, Expr]) -> Form:
    """Replace terminals in a form whose derivatives have been applied, and tidy what is left."""
    return tidy(replace(form, mapping))


def tidy(form: Form) -> Form:
    """Apply derivatives and drop the integrals that have become zero."""
    form = expand_derivatives(form)
    if not isinstance(form, Form):
        return form
    return Form([i for i in form.integrals() if not isinstance(i.integrand(), Zero)])


def with_fixed_quadrature(functional: Form, state: Function) -> Form:
    """A functional and its derivatives by one quadrature.

    Where an integral says no degree, and the one that would be estimated for its derivative by the
    state is another (as for functions that are no polynomials), all get the higher of the two.
    """
    test, fixed = TestFunction(state.function_space()), []
    for integral in tidy(functional).integrals():
        metadata = integral.metadata()
        if "quadrature_degree" not in metadata:
            slope = tidy(ufl.derivative(Form([integral]), state, test)).integrals()
            own = _degree(integral)
            highest = max((_degree(i) for i in slope), default=own)
            if highest != own:
                degree = max(own, highest) + compute_integrand_scaling_factor(integral)[1]
                integral = integral.reconstruct(metadata={**metadata, "quadrature_degree": degree})
        fixed.append(integral)
    return Form(fixed)


def _degree(integral: Integral) -> int:
    degree = estimate_total_polynomial_degree(integral.integrand())
    return max(degree) if isinstance(degree, tuple) else degree


def summands(expression: Expr) -> list[Expr]:
    """The terms of a sum; a factor without functions before a bracket is multiplied into it."""
    if isinstance(expression, Sum):
        return [term for operand in expression.ufl_operands for term in summands(operand)]
    if isinstance(expression, (Product, Division)):
        a, b = expression.ufl_operands
        if not extract_coefficients(b):
            return [expression._ufl_expr_reconstruct_(term, b) for term in summands(a)]
        if isinstance(expression, Product) and not extract_coefficients(a):
            return [a * term for term in summands(b)]
    return [expression]


def sorted_by(functional: Form, function: Function) -> tuple[Form, Form]:
    """The terms of a functional that hold a function, and those that do not."""
    holding, others = [], []
    for integral in tidy(functional).integrals():
        for term in summands(integral.integrand()):
            held = function in extract_coefficients(term)
            (holding if held else others).append(integral.reconstruct(integrand=term))
    return Form(holding), Form(others)


def is_zero(form) -> bool:
    """Whether a form has no integral left (symbolically)."""
    return isinstance(form, ufl.ZeroBaseForm) or (isinstance(form, Form) and form.empty())


def slope_by(form: Form, function: Function) -> Form | None:
    """The derivative of a form by a function, with its test function; None where that is zero."""
    if is_zero(form):
        return None
    slope = tidy(derivative(form, function, TestFunction(function.function_space())))
    return None if is_zero(slope) else slope


def depends_on(form: Form, coefficient) -> bool:
    """Whether ``coefficient`` occurs in the form."""
    return coefficient in form.coefficients()


def check_arguments(name: str, found, *outside: Function) -> None:
    """Raise ``ValueError`` if what a callable made of symbols holds the Functions that they stand for.

    It would read these as they are, and not at the state for which it is called.
    """
    whole = found if isinstance(found, tuple | list) else (found,)
    for thing in whole:
        read = extract_coefficients(thing) if isinstance(thing, Form | Expr) else ()
        for function in outside:
            if function in read:
                raise ValueError(
                    f"{name} must be a function of its arguments alone, but it reads "
                    f"{function.name()!r} itself from outside: use the argument instead"
                )


def is_affine(residual: Form, unknown: Function) -> bool:
    """Whether a residual is of first degree in ``unknown``: its Jacobian does not contain it."""
    jacobian = tidy(ufl.derivative(residual, unknown))
    return is_zero(jacobian) or not depends_on(jacobian, unknown)


def has_kink(expression: Expr, *state: Expr) -> bool:
    """Whether an expression asks for a case or a sign of the state, of which derivatives do not tell."""
    asking = (e for e in unique_pre_traversal(expression) if isinstance(e, _KINKS))
    return any(part in state for e in asking for part in unique_pre_traversal(e))


def polynomial_degree(functional: Form, *state: Function, highest: int = 8) -> int | None:
    """Degree of a functional as a polynomial in ``state`` (one or several Functions together).

    None if above ``highest`` or no polynomial, such as what is one on each side of a kink.
    """
    form = tidy(functional)
    if any(has_kink(i.integrand(), *state) for i in form.integrals()):
        return None
    directions = [(f, Function(f.function_space())) for f in state]
    for degree in range(highest + 1):
        form = tidy(sum((ufl.derivative(form, f, d) for f, d in directions), Form([])))
        if is_zero(form):
            return degree
    return None


def check_functional(name: str, form, rank: int) -> Form:
    """Return ``form`` if it is a UFL form with ``rank`` arguments; raise ``TypeError`` otherwise."""
    if not isinstance(form, Form):
        kind = {0: "a UFL functional such as 0.5*inner(u, u)*dx", 2: "a UFL form"}[rank]
        raise TypeError(f"{name} must be {kind}, not {type(form).__name__}")
    if len(form.arguments()) != rank:
        raise ValueError(
            f"{name} must have {rank} arguments, this form has {len(form.arguments())}"
        )
    return form


def shaped_space(shape: tuple[int, ...], mesh, family, degree: int | None = None):
    """Functions with values of a shape at the nodes of an element, or of a family and degree."""
    if not shape:
        return FunctionSpace(mesh, family, degree)
    if len(shape) == 1:
        return VectorFunctionSpace(mesh, family, degree, dim=shape[0])
    return TensorFunctionSpace(mesh, family, degree, shape=shape)


def copy_into(target: Function | Cofunction, source: Function | Cofunction) -> None:
    """Copy values between functions of one space, halo included."""
    for to, origin in zip(target.subfunctions, source.subfunctions, strict=True):
        to.dat.data_wo_with_halos[...] = origin.dat.data_ro_with_halos
