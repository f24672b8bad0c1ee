"""TSFC's local kernels as C++ templates, for one cell or for several cells at once."""

import re
from dataclasses import dataclass

import loopy
from firedrake import Constant, Form, Function
from firedrake.tsfc_interface import compile_form
from tsfc import kernel_args
from tsfc.ufl_utils import extract_firedrake_constants

from fdgeom.errors import CannotCompile

_KNOWN = (
    kernel_args.OutputKernelArg,
    kernel_args.CoordinatesKernelArg,
    kernel_args.CoefficientKernelArg,
    kernel_args.ConstantKernelArg,
)


@dataclass(frozen=True)
class Kernel:
    """One cell kernel: ``name<T>(A, coords, w..., c...)`` adds to A."""

    name: str
    #: The C++ function template.
    code: str
    #: The arguments w, in order.
    coefficients: tuple[Function, ...]
    #: The arguments c, in order.
    constants: tuple[Constant, ...]
    #: Whether the code has no branches, so that T may be a vector of cells.
    vectorises: bool


def cell_kernel(form: Form, name: str) -> Kernel:
    """Compile a form that has only cell integrals into one kernel."""
    kernels = compile_form(form, name)
    if len(kernels) != 1:
        kinds = sorted({k.kinfo.integral_type for k in kernels})
        raise CannotCompile(f"the form needs {len(kernels)} kernels ({', '.join(kinds)}), not one")
    info = kernels[0].kinfo
    if info.integral_type != "cell" or info.subdomain_id != ("otherwise",):
        raise CannotCompile(
            f"a {info.integral_type} integral over the subdomain {info.subdomain_id}"
        )
    for argument in info.arguments:
        if not isinstance(argument, _KNOWN):
            raise CannotCompile(
                f"a kernel argument of type {type(argument).__name__} is not supported"
            )
    coefficients = form.coefficients()
    constants = extract_firedrake_constants(form)
    text = loopy.generate_code_v2(info.kernel.code).device_code()
    return Kernel(
        name=info.kernel.name,
        code=_template(text, info.kernel.name),
        coefficients=tuple(coefficients[k] for k, _ in info.coefficient_numbers),
        constants=tuple(constants[k] for k in info.constant_numbers),
        vectorises=not re.search(r"\?|\bif\b|\bint32_t t\d", text),
    )


def _template(text: str, name: str) -> str:
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
    return text.replace(f"void {name}(", f"template <class T> static FDGEOM_INLINE void {name}(", 1)
