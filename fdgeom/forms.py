"""Helpers for UFL forms: states of several parts, checks, degrees and derivatives."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

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
from ufl.algorithms.apply_restrictions import apply_restrictions
from ufl.algorithms.check_arities import ArityMismatch, check_form_arity
from ufl.algorithms.estimate_degrees import estimate_total_polynomial_degree
from ufl.algorithms.remove_complex_nodes import remove_complex_nodes
from ufl.classes import (
    Abs,
    Condition,
    Derivative,
    Division,
    Expr,
    Form,
    GeometricQuantity,
    IndexSum,
    Integral,
    MaxValue,
    MinValue,
    Product,
    SpatialCoordinate,
    Sum,
    Zero,
)
from ufl.corealg.multifunction import MultiFunction
from ufl.corealg.traversal import traverse_unique_terminals, unique_pre_traversal
from ufl.domain import extract_domains
from ufl.sobolevspace import H1

from fdgeom.compat import cache_of, data_ids
from fdgeom.errors import CannotCompile
from fdgeom.messages import is_function, reported_as

#: How matrices are compiled. TSFC's default mode takes minutes for large local matrices, and its code
#: for them was seen to crash with gcc 12 on AVX-512 (stack arrays not aligned as the compiler assumes).
MATRIX_COMPILER = {"mode": "vanilla"}
# In the caches of forms: a note that they have been simplified, and what they were before an argument
# was replaced.
_SIMPLIFIED, _ARGUMENT_OF = "fdgeom simplified", "fdgeom argument of"
_KINKS = (Abs, Condition, MaxValue, MinValue)


def is_real(function) -> bool:
    """Whether a Function, or a part of it, is a number: a Function of a Real space."""
    return any(V.ufl_element().family() == "Real" for V in function.function_space())


def jumps(value: Expr) -> bool:
    """Whether an expression may have several values at a node between two cells."""
    domains: Sequence[Any] = extract_domains(value)
    functions = [*extract_coefficients(value), *(d.coordinates for d in domains)]
    if any(f.function_space().ufl_element() not in H1 for f in functions if not is_real(f)):
        return True
    return any(
        isinstance(e, Derivative | GeometricQuantity) and not isinstance(e, SpatialCoordinate)
        for e in unique_pre_traversal(value)
    )


def parts_of(value, shapes: Sequence[tuple[int, ...]], name: str = "value") -> tuple[Expr, ...]:
    """The parts of a Function, Argument, expression or sequence, of given value shapes; else raise."""
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
    """Replace terminals in a form whose derivatives have been applied, and simplify the result."""
    return simplify(replace(form, mapping))


def simplify(form: Form) -> Form:
    """Apply derivatives and drop the integrals that have become zero.

    Parameters
    ----------
    form : Form
        A UFL form with derivatives such as ``derivative(energy, q)`` in it.

    Returns
    -------
    Form
        The same form with its derivatives carried out; without integrals if it is zero.
    """
    if _is_simplified(form):
        return form
    form = expand_derivatives(form)
    if not isinstance(form, Form):
        return form
    return _simplified([i for i in form.integrals() if not isinstance(i.integrand(), Zero)])


def rename(form: Form, old: Function | Argument, new: Function | Argument) -> Form:
    """Replace a Function or an argument of a form by another one of its space."""
    argument, before = cache_of(form).get(_ARGUMENT_OF, {}).get(old, (None, None))
    if argument == new:
        return before
    made = replace(form, {old: new})
    made = _simplified(made.integrals()) if _is_simplified(form) else made
    if isinstance(old, Argument):
        cache_of(made)[_ARGUMENT_OF] = {new: (old, form)}
    return made


def _simplified(integrals: list[Integral]) -> Form:
    """The form of integrals whose derivatives have been applied, with a note of that."""
    form = Form(integrals)
    cache_of(form)[_SIMPLIFIED] = True
    return form


def _is_simplified(form) -> bool:
    return isinstance(form, Form) and _SIMPLIFIED in cache_of(form)


def with_fixed_quadrature(form: Form, *state: Function) -> Form:
    """A form with the same quadrature for itself and its derivatives by functions."""
    # Where an integral gives no degree, and the estimates for it and for forms made of its slopes may
    # differ (as for functions that are no polynomials), all get the higher of the two.
    fixed, number = [], len(form.arguments())
    tests = [(f, Argument(f.function_space(), number)) for f in state]
    for integral in simplify(form).integrals():
        metadata = integral.metadata()
        if "quadrature_degree" not in metadata:
            alone, own = Form([integral]), _degree(integral)
            slopes = [simplify(ufl.derivative(alone, f, test)).integrals() for f, test in tests]
            highest = max((_degree(i) for slope in slopes for i in slope), default=own)
            if highest != own or polynomial_degree(alone, *state, highest=2) is None:
                degree = max(own, highest) + compute_integrand_scaling_factor(integral)[1]
                integral = integral.reconstruct(metadata={**metadata, "quadrature_degree": degree})
        fixed.append(integral)
    return _simplified(fixed)


def _degree(integral: Integral) -> int:
    degree = estimate_total_polynomial_degree(integral.integrand())
    return max(degree) if isinstance(degree, tuple) else degree


def summands(expression: Expr, function: Function | None = None) -> list[Expr]:
    """The terms of a sum; a factor before a bracket is multiplied into it if it has no functions, or
    not ``function`` where one is given.
    """

    def stays(factor: Expr) -> bool:
        read = extract_coefficients(factor)
        return bool(read) if function is None else function in read

    if isinstance(expression, Sum):
        return [term for operand in expression.ufl_operands for term in summands(operand, function)]
    if isinstance(expression, (Product, Division, IndexSum)):
        a, b = expression.ufl_operands
        if not stays(b):
            return [type(expression)(term, b) for term in summands(a, function)]
        if isinstance(expression, Product) and not stays(a):
            return [Product(a, term) for term in summands(b, function)]
    return [expression]


def sorted_by(functional: Form, function: Function) -> tuple[Form, Form]:
    """The terms of a functional that hold a function, and those that do not."""
    holding: list[Integral] = []
    others: list[Integral] = []
    for integral in simplify(functional).integrals():
        for term in summands(integral.integrand(), function):
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
    if function in cache_of(form).get(_ARGUMENT_OF, ()):
        # Linear in the function, in whose place an argument was.
        return cache_of(form)[_ARGUMENT_OF][function][1]
    slope = simplify(derivative(form, function, TestFunction(function.function_space())))
    return None if is_zero(slope) else slope


def derivative_along(form: Form, function: Function, direction: Expr) -> Form:
    """The derivative along an expression, also where the form has gradients of the function."""
    symbol = Function(function.function_space())
    return replace(simplify(derivative(form, function, symbol)), {symbol: direction})


def depends_on(form: Form, coefficient) -> bool:
    """Whether ``coefficient`` occurs in the form."""
    return coefficient in form.coefficients()


def check_arguments(name: str, found, *outside: Function) -> None:
    """Raise ``ValueError`` if a user's callable read the Functions that its arguments stand for."""
    whole = found if isinstance(found, tuple | list) else (found,)
    for thing in whole:
        read = extract_coefficients(thing) if isinstance(thing, Form | Expr) else ()
        for function in outside:
            if any(data_ids(f) & data_ids(function) for f in read):
                raise ValueError(
                    f"{name} must be a function of its arguments alone, but it reads "
                    f"{function.name()!r} itself from outside: use the argument instead"
                )


def refuse_views(name: str, thing: Form | Expr, *state: Function) -> None:
    """Raise ``ValueError`` if a form reads values of the state through other Functions than these."""
    # Derivatives by the state and substitutions for it would take them for data.
    for view in extract_coefficients(thing):
        for own in () if view in state else state:
            if data_ids(view) & data_ids(own):
                raise ValueError(
                    f"{name} reads {view.name()!r}, which shares its values with {own.name()!r} but is "
                    "another Function for derivatives: write the Function that the system is given, a "
                    "component as q[2], not q.sub(2), and a part as split(z)[0]"
                )


def check_depends(name: str, form: Form, *functions: Function) -> None:
    """Raise ``ValueError`` if none of the functions occurs in a form."""
    if not any(depends_on(form, function) for function in functions):
        raise ValueError(
            f"{name} does not depend on the state: write it with the Functions that the system is "
            "given"
        )


def is_affine(residual: Form, unknown: Function) -> bool:
    """Whether a residual is of first degree in ``unknown``: its Jacobian does not contain it."""
    jacobian = simplify(ufl.derivative(residual, unknown))
    if not is_zero(jacobian) and depends_on(jacobian, unknown):
        return False
    # A force of dry friction, say, has the slope zero.
    return not has_kink(simplify(residual), unknown)


def has_kink(thing: Form | Expr, *state: Expr) -> bool:
    """Whether a form or expression has a conditional or a sign of the state, unseen by derivatives."""
    whole = [i.integrand() for i in thing.integrals()] if isinstance(thing, Form) else [thing]
    asking = (e for part in whole for e in unique_pre_traversal(part) if isinstance(e, _KINKS))
    return any(part in state for e in asking for part in unique_pre_traversal(e))


class EachCase(MultiFunction):
    """Both sides of each conditional with weights of no pattern: an identity holds for both."""

    expr = MultiFunction.reuse_if_untouched

    def __init__(self) -> None:
        super().__init__()
        self._proportions: dict[Expr, float] = {}

    @property
    def found(self) -> bool:
        """Whether there was a conditional."""
        return bool(self._proportions)

    def _share(self, case: Expr) -> float:
        # Of no pattern, and the same in every run: the compiled forms are kept by their text.
        return self._proportions.setdefault(case, (0.37 + 0.61803399 * len(self._proportions)) % 1)

    def conditional(self, o, condition, one, other):
        share = self._share(o.ufl_operands[0])
        return share * one + (1 - share) * other

    def max_value(self, o, one, other):
        share = self._share(ufl.gt(*o.ufl_operands))
        return share * one + (1 - share) * other

    def min_value(self, o, one, other):
        share = self._share(ufl.lt(*o.ufl_operands))
        return share * one + (1 - share) * other

    def abs(self, o, value):
        return self._share(o.ufl_operands[0]) * value


def polynomial_degree(functional: Form, *state: Function, highest: int = 8) -> int | None:
    """Degree as a polynomial in ``state``; None above ``highest``, or if it is none or has a kink."""
    form = simplify(functional)
    if has_kink(form, *state):
        return None
    directions = [(f, Function(f.function_space())) for f in state]
    for degree in range(highest + 1):
        form = simplify(sum((ufl.derivative(form, f, d) for f, d in directions), Form([])))
        if is_zero(form):
            return degree
    return None


def checked_form(
    name: str,
    form,
    rank: int = 0,
    mesh=None,
    linear_in: str = "",
    without: Mapping | None = None,
    state: Sequence[Function] = (),
) -> Form:
    """A user's form, restricted at its terminals; ``without``: Functions it may not read, and why;
    ``state``: those that it must not read through views.
    """
    if not isinstance(form, Form):
        kind = ("a UFL functional such as 0.5*inner(u, u)*dx", "a UFL form with one test function")
        raise TypeError(f"{name} must be {kind[rank]}, not {type(form).__name__}")
    check_domains(name, form, mesh)
    found = len(form.arguments())
    if linear_in and found < rank:
        missing = "which does not occur" if rank == 1 else "which do not both occur"
        raise ValueError(f"{name} must be linear in {linear_in}, {missing}")
    if found != rank:
        raise ValueError(
            f"{name} must have {rank} argument{'' if rank == 1 else 's'}, this form has {found}"
        )
    if rank:
        try:
            check_form_arity(remove_complex_nodes(expand_derivatives(form)), form.arguments())
        except ArityMismatch as error:
            linear_in = linear_in or "its test function"
            raise ValueError(f"{name} must be linear in {linear_in}, with no other term") from error
    refuse_views(name, form, *state, *(without or ()))
    for function, why in (without or {}).items():
        if depends_on(form, function):
            raise ValueError(f"{name} {why}")
    return restricted(name, form)


def form_of(
    name: str,
    function,
    symbols: Sequence[Expr],
    of: str,
    example: str,
    linear_in: str,
    mesh,
    without: Mapping | None = None,
    outside: Sequence[Function] = (),
    state: Sequence[Function] = (),
) -> Form:
    """The form that a user's function gives for symbols, linear in those that are test functions."""
    if not is_function(function):
        raise TypeError(
            f"{name} must be a callable giving a form, such as {example}, not "
            f"{type(function).__name__}"
        )
    with reported_as(f"{name}: no valid form of {of}"):
        form = function(*symbols)
    if not isinstance(form, Form):
        raise TypeError(
            f"{name} must give a UFL form, such as {example}, not {type(form).__name__}"
        )
    check_arguments(name, form, *outside)
    rank = sum(isinstance(symbol, Argument) for symbol in symbols)
    given = [*state, *(symbol for symbol in symbols if isinstance(symbol, Function))]
    return checked_form(name, form, rank, mesh, linear_in, without, given)


def check_domains(name: str, form: Form | Expr, *meshes) -> None:
    """Raise ``ValueError`` unless a form is integrated over the mesh of its Functions, and over one
    of ``meshes`` if given; a submesh may be used with its parent. An expression must have one mesh,
    but for numbers of Real spaces.
    """
    if not isinstance(form, Form):
        read = traverse_unique_terminals(form)
        fields = [x for x in read if not (isinstance(x, Function) and is_real(x))]
        if len({mesh for x in fields for mesh in extract_domains(x)}) > 1:
            raise ValueError(f"{name} holds Functions of several meshes: use Functions of one mesh")
        return
    wanted = [mesh for mesh in meshes if mesh is not None]
    if not wanted and len({integral.ufl_domain() for integral in form.integrals()}) > 1:
        raise ValueError(f"{name} is integrated over several meshes: use integrals over one mesh")
    for integral in form.integrals():
        found = {integral.ufl_domain(), *extract_domains(integral.integrand())}
        if any(getattr(mesh, "submesh_parent", None) for mesh in (*found, *wanted)):
            continue
        if len(found) > 1:
            raise ValueError(
                f"{name} is integrated over one mesh and holds Functions of another: use Functions "
                "of one mesh, and dx(domain=mesh) of that mesh"
            )
        if wanted and not found & set(wanted):
            raise ValueError(
                f"{name} is integrated over another mesh than that of the system: use Functions and "
                "measures of the system's mesh"
            )


def restricted(name: str, form: Form) -> Form:
    """The form with "+" or "-" at the terminals of its integrals over interior facets."""
    if all(i.integral_type() != "interior_facet" for i in form.integrals()):
        return form
    # A continuous part keeps its side when it is written as a part of a mixed Function, which is
    # not continuous as a whole.
    sided = []
    try:
        for integral in expand_derivatives(form).integrals():
            if integral.integral_type() == "interior_facet":
                sides = dict.fromkeys(extract_domains(integral.integrand()), "+")
                integral = apply_restrictions(integral, default_restrictions=sides)
            sided.append(integral)
        return Form(sided)
    except ValueError as error:
        raise ValueError(
            f"{name}: in integrals over dS, restrict discontinuous Functions to one side, as u('+') or "
            f"u('-'), or use avg(u) or jump(u) ({error})"
        ) from error


def scalar_space(space) -> FunctionSpace:
    """The space of one component, with the same nodes."""
    element = space.ufl_element()
    if not has_nodal_values(space):
        raise CannotCompile(f"{element}: its degrees of freedom are not values at nodes")
    return FunctionSpace(space.mesh(), element.sub_elements[0] if space.value_shape else element)


def has_nodal_values(space) -> bool:
    """Whether the degrees of freedom are components at nodes, unlike those of N1curl, RT or DG L2."""
    size, element = int(np.prod(space.value_shape, dtype=int)), space.ufl_element()
    values = space.block_size == size and element.mapping() == "identity"
    return values and (size == 1 or bool(element.sub_elements))


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


def random_function(space, rng) -> Function:
    """A function of random values in [-1, 1] (each rank draws its own)."""
    f = Function(space)
    for part in f.subfunctions:
        values = part.dat.data_wo
        values[...] = rng.uniform(-1, 1, values.shape)
    return f


@contextmanager
def paused_collection() -> Iterator[None]:
    """Context without Python's garbage collection of cycles."""
    # UFL makes tens of thousands of small objects, and every few hundred of them would start a
    # collection through all objects of Firedrake: a third of the time.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
