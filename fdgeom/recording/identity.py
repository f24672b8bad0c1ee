"""What made a checkpoint: the method, the system, the equations and the numbers in them."""

import re
import reprlib
from weakref import WeakKeyDictionary

import numpy as np
import ufl
from firedrake import Constant, Function
from tsfc.ufl_utils import extract_firedrake_constants

_signatures: WeakKeyDictionary = WeakKeyDictionary()
_short = reprlib.Repr()
_short.maxlist, _short.maxstring = 4, 60


def identity(stepper) -> dict:
    """What makes a stepper and its system, as JSON: two of one identity move one state alike.

    Returns
    -------
    dict
        "method" and "system": the class, and what ``parameters()`` says; "equations": signatures of
        the forms of the system's ``equations()``; "numbers": constants and fields in these.
    """
    system = stepper.system
    forms = system.equations()
    return {
        "method": {"class": type(stepper).__name__, **_parameters(stepper)},
        "system": {"class": type(system).__name__, **_parameters(system)},
        "equations": _signed(system, forms),
        "numbers": _numbers(system, forms),
    }


def differences(found: dict, here: dict) -> tuple[list[str], list[str]]:
    """What is not the same, in words: what another motion follows from, and what may change in time.

    The method's, the system's and the equations' differences are of the first kind, numbers that the
    user put into forms of his own (a load that is varied, say) of the second.
    """
    serious: list[str] = []
    for kind in ("method", "system", "equations"):
        of = {"equations": " of the equations"}.get(kind, f" of the {kind}")
        serious += _compare(found[kind], here[kind], of)
    return serious, _compare(found["numbers"], here["numbers"], "")


def _compare(found: dict, here: dict, of: str) -> list[str]:
    names = [*found, *(name for name in here if name not in found)]
    return [
        f"{name}{of}: {_shown(found, name)} in the file, {_shown(here, name)} here"
        for name in names
        if name not in found or name not in here or found[name] != here[name]
    ]


def _shown(values: dict, name: str) -> str:
    return _short.repr(values[name]) if name in values else "none"


def _parameters(thing) -> dict:
    return {name: encoded(v) for name, v in getattr(thing, "parameters", dict)().items()}


def encoded(value):
    """A value as JSON: numbers as they are, fields by their bits, the rest in words."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(k): encoded(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [encoded(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, Function):
        return f"a field of the sum {bits(value.dat.data_ro, value):016x}"
    if isinstance(value, Constant):
        return encoded(value.values()) if value.ufl_shape else float(value)
    if isinstance(value, ufl.Form):
        return value.signature()
    if isinstance(value, ufl.core.expr.Expr):
        return "an expression"
    text = repr(value)
    if " at 0x" in text:  # an address in memory is another in another run
        return "a function" if callable(value) else type(value).__name__
    return text


def bits(values: np.ndarray, f: Function) -> int:
    """Sum of the bit patterns modulo 2^64: the same for any numbering and number of ranks."""
    comm = f.function_space().mesh().comm
    if f.function_space().ufl_element().family() == "Real":
        values = values if comm.rank == 0 else values[:0]
    words = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    return sum(comm.allgather(int(words.sum(dtype=np.uint64)))) % 2**64


def _signed(system, forms: dict) -> dict[str, str]:
    """Signatures of forms, found once: forms do not change."""
    if system not in _signatures:
        _signatures[system] = {name: form.signature() for name, form in forms.items()}
    return _signatures[system]


def _numbers(system, forms: dict) -> dict:
    """Constants and fields in forms, but for the state and the time."""
    found: dict[str, object] = {}
    seen = system.moving()
    for form_name, form in forms.items():
        for k, number in enumerate((*extract_firedrake_constants(form), *form.coefficients())):
            if id(number) in seen:
                continue
            seen.add(id(number))
            parts = getattr(number, "subfunctions", (number,))
            name = number.name if isinstance(number, Constant) else number.name()
            values = [encoded(part) for part in parts]
            # Names that Firedrake gives are counted, and others in the next run.
            called = "" if re.fullmatch(r"\w+_\d+", name) else f" ({name})"
            found[f"number {k} of {form_name}{called}"] = values[0] if len(values) == 1 else values
    return found
