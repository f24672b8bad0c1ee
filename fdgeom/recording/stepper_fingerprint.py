"""Fingerprint of a stepper: its method, system and equations, and the numbers in them, as JSON."""

import re
import reprlib
from collections.abc import Set
from weakref import WeakKeyDictionary

import numpy as np
from firedrake import Constant, Function
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import extract_coefficients
from ufl.algorithms.signature import compute_expression_signature
from ufl.classes import Expr, Form
from ufl.corealg.traversal import traverse_unique_terminals
from ufl.domain import extract_domains

from fdgeom.clock import Time
from fdgeom.operations.dependent import dependent_of, is_private

from .transfer import cellwise

#: The parts of a fingerprint.
KINDS = ("method", "system", "equations", "numbers")
#: Signatures of the forms of each system, which do not change.
_signatures: WeakKeyDictionary = WeakKeyDictionary()
_short = reprlib.Repr()
_short.maxlist, _short.maxstring = 4, 60


def fingerprint(stepper) -> dict:
    """Method, system, equations and numbers: steppers with one fingerprint advance a state alike."""
    system, model = stepper.system, stepper.system.model
    forms, followers = model.equations(), system.consistency.followers().values()
    moving = model.moving() | {id(p) for f in followers for p in (f, *f.subfunctions)}
    if system not in _signatures:
        _signatures[system] = {name: _signature(form) for name, form in forms.items()}
    return {
        "method": {"class": type(stepper).__name__, **_parameters(stepper, moving)},
        "system": {"class": type(system).__name__, **_parameters(model, moving)},
        "equations": _signatures[system],
        "numbers": _numbers(forms, moving),
    }


def differences(found: dict, here: dict) -> tuple[list[str], list[str]]:
    """Differences that lead to another motion, and those of numbers, which may change in time."""
    serious: list[str] = []
    for kind in KINDS[:3]:
        serious += _compare(found[kind], here[kind], f" of the {kind}")
    return serious, _compare(found["numbers"], here["numbers"], "")


def _compare(found: dict, here: dict, of: str) -> list[str]:
    names = [*found, *(name for name in here if name not in found)]
    return [
        f"{name}{of}: {_shown(found, here, name)} in the file, {_shown(here, found, name)} here"
        for name in names
        if name not in found or name not in here or found[name] != here[name]
    ]


def _shown(values: dict, others: dict, name: str) -> str:
    if name not in values:
        return "none"
    return _short.repr(_different(values[name], others.get(name)))


def _different(value, other):
    """The part of a value that differs from another one."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {k: _different(v, other.get(k)) for k, v in value.items() if v != other.get(k)}
    return value


def _parameters(thing, moving: Set[int]) -> dict:
    return {name: encoded(v, moving) for name, v in getattr(thing, "parameters", dict)().items()}


def encoded(value, moving: Set[int] = frozenset()):
    """A value as JSON can hold it: a field by a sum over its cells, a formula by its signature and its
    coefficients, without those whose ids are in ``moving``, which change from step to step.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(k): encoded(v, moving) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        value = value.tolist() if isinstance(value, np.ndarray) else value
        return [encoded(v, moving) for v in value]
    if isinstance(value, Function) and len(value.subfunctions) > 1:
        return [encoded(part, moving) for part in value.subfunctions]
    if isinstance(value, Function):
        made = dependent_of(value)
        expression = None if made is None else made.expression
        if expression is not None and (
            made.private or any(id(c) in moving for c in made.sources.constants)
        ):
            return encoded(expression, moving)
        return f"a field of the sum {_placed_bits(value):016x}"
    if isinstance(value, Constant):
        return encoded(value.values()) if value.ufl_shape else float(value)
    if isinstance(value, Form | Expr):
        numbers = [encoded(number, moving) for number in _numbers_in(value, moving)]
        formula = f"a formula {_signature(value)[:16]}"
        return [formula, *numbers] if numbers else formula
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


def _placed_bits(f: Function) -> int:
    """As :func:`bits`, but the sum for the same values at other places is another."""
    mesh = f.function_space().mesh()
    if f.function_space().ufl_element().family() == "Real":
        return bits(f.dat.data_ro, f)
    corners = mesh.coordinates.dat.data_ro.reshape(-1, mesh.geometric_dimension)
    ends = [
        mesh.comm.allgather(c)
        for c in (corners.min(0, initial=np.inf), corners.max(0, initial=-np.inf))
    ]
    low, high = np.min(ends[0], axis=0), np.max(ends[1], axis=0)
    # Sizes, not -1: a rank may have no cell.
    places = cellwise(mesh.coordinates)
    middle = places.reshape(*places.shape[:2], len(low)).mean(axis=1)
    # Means may differ in the last bits; few are so near to a whole number.
    place = np.floor((middle - low) / max(high - low) * 2**20 + 0.381966).astype(np.uint64)
    values = cellwise(f)
    values = np.ascontiguousarray(values.reshape(*values.shape[:2], f.dat.cdim)).view(np.uint64)
    mixed = np.zeros(values.shape[:2], dtype=np.uint64)
    for k in range(place.shape[1]):
        mixed = _mix(mixed ^ place[:, None, k])
    for k in range(values.shape[2]):
        mixed = _mix(mixed ^ values[..., k])
    return sum(mesh.comm.allgather(int(mixed.sum(dtype=np.uint64)))) % 2**64


def _mix(x: np.ndarray) -> np.ndarray:
    """Words with mixed bits (SplitMix64; Steele, Lea & Flood, OOPSLA 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _signature(value: Form | Expr) -> str:
    """The signature of a form or an expression, the same in each run."""
    if isinstance(value, Form):
        return value.signature()
    numbers = {domain: k for k, domain in enumerate(extract_domains(value))}
    for terminal in traverse_unique_terminals(value):
        numbers.setdefault(terminal, len(numbers))
    return compute_expression_signature(value, numbers)


def _numbers_in(value: Form | Expr, moving: Set[int]) -> list[Constant | Function]:
    """Constants and fields in a form or an expression, without those that move and internal ones."""
    found = (*extract_firedrake_constants(value), *extract_coefficients(value))
    kept = (c for c in found if id(c) not in moving and not is_private(c))
    return [c for c in kept if not isinstance(c, Time)]


def _numbers(forms: dict, moving: Set[int]) -> dict:
    """Constants and fields in forms, without the state and the time."""
    found: dict[str, object] = {}
    seen: set[int] = set()
    for form_name, form in forms.items():
        for k, number in enumerate(_numbers_in(form, moving)):
            if id(number) in seen:
                continue
            seen.add(id(number))
            name = number.name if isinstance(number, Constant) else number.name()
            # Names that Firedrake gives are counted, and others in the next run.
            called = "" if re.fullmatch(r"\w+_\d+", name) else f" ({name})"
            found[f"number {k} of {form_name}{called}"] = encoded(number, moving)
    return found
