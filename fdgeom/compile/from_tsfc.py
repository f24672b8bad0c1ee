"""TSFC's local kernels as C++ templates, for one cell or for several cells at once."""

import re
from dataclasses import dataclass

import loopy
from firedrake import Constant, Form, Function
from firedrake.tsfc_interface import compile_form
from tsfc import kernel_args
from tsfc.ufl_utils import extract_firedrake_constants

from fdgeom.errors import CannotCompile
from fdgeom.operations import parts

_KNOWN = (
    kernel_args.OutputKernelArg,
    kernel_args.CoordinatesKernelArg,
    kernel_args.CoefficientKernelArg,
    kernel_args.ConstantKernelArg,
)
#: Longer texts take too long to compile.
_LETTERS = 400_000


@dataclass(frozen=True)
class Kernel:
    """One cell kernel: ``name<T>(A, coords, w..., c...)`` adds to A."""

    name: str
    #: The C++ function template.
    code: str
    #: The arguments w, in order: Functions that are not mixed.
    coefficients: tuple[Function, ...]
    #: The arguments c, in order.
    constants: tuple[Constant, ...]
    #: Whether the code has no branches, so that T may be a vector of cells.
    vectorises: bool


def cell_kernels(form: Form, name: str) -> dict[int, Kernel]:
    """The kernels of a linear form of cell integrals, by the part of its argument's space."""
    return {k.indices[0]: _kernel(form, k.kinfo, f"{name}_{k.indices[0]}") for k in _compiled(form)}


def matrix_kernel(form: Form, name: str) -> Kernel:
    """The kernel of a bilinear form of cell integrals, of spaces that are not mixed."""
    (found,) = _compiled(form)
    return _kernel(form, found.kinfo, name)


def _compiled(form: Form):
    """What TSFC makes of a form; CannotCompile if it has several kernels of a part."""
    found = compile_form(form, "form")
    if len({k.indices for k in found}) != len(found):
        raise CannotCompile("a form of several kinds of integrals")
    return found


def _kernel(form: Form, info, name: str) -> Kernel:
    if info.integral_type != "cell" or info.subdomain_id != ("otherwise",):
        raise CannotCompile(
            f"a {info.integral_type} integral over the subdomain {info.subdomain_id}"
        )
    for argument in info.arguments:
        if not isinstance(argument, _KNOWN):
            kind = type(argument).__name__
            raise CannotCompile(f"a kernel argument of type {kind} is not supported")
    coefficients = form.coefficients()
    constants = extract_firedrake_constants(form)
    text = loopy.generate_code_v2(info.kernel.code).device_code()
    if len(text) > _LETTERS:
        raise CannotCompile("the form makes a kernel that is too long")
    return Kernel(
        name=name,
        code=_template(text, info.kernel.name, name),
        coefficients=tuple(
            parts(coefficients[k])[i] for k, numbers in info.coefficient_numbers for i in numbers
        ),
        constants=tuple(constants[k] for k in info.constant_numbers),
        vectorises=not re.search(r"\?|\bif\b|\bint32_t t\d", text),
    )


def _template(text: str, given: str, name: str) -> str:
    """The kernel with numbers of type T instead of double, except in constants and tables."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#include"))
    text = re.sub(r"\bdouble\b", "T", text)
    # Tables are the same for all cells.
    text = re.sub(
        r"^(\s*)(?:static )?(?:T const|const T|T) (t\d+\[[^=;]*\] = \{)",
        r"\1const double \2",
        text,
        flags=re.M,
    )
    text = re.sub(r"\bT const \*__restrict__ (c_\d+)", r"double const *__restrict__ \1", text)
    return text.replace(
        f"void {given}(", f"template <class T> static FDGEOM_INLINE void {name}(", 1
    )
