"""Descriptions of values and of places in messages."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from firedrake import Function, FunctionSpace, SpatialCoordinate
from ufl.algorithms.check_arities import ArityMismatch
from ufl.classes import Expr, Form, Measure

# Longer texts are no help in a sentence.
_LONGEST = 60
# Families of elements whose unknowns are values at points.
_POINTS = ("Lagrange", "Discontinuous Lagrange", "Q", "DQ", "Crouzeix-Raviart")
# Of each function of a user's that is being called: which symbols it made numbers.
_called: list[list[str]] = []


class NoNumber(TypeError):
    """Error of a symbol that a user's function converts to a number."""


def refuse_number(text: str) -> None:
    """Raise :class:`NoNumber` inside a user's function, whose result would be frozen."""
    if _called:
        _called[-1].append(text)
        raise NoNumber(text)


def format_value(value: object) -> str:
    """A value in a sentence: its short ``repr``, else its kind."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, Function):
        return "a Function"
    if isinstance(value, Form):
        return "a UFL form"
    if isinstance(value, Expr):
        return f"a UFL expression of shape {value.ufl_shape}"
    text, name = repr(value), type(value).__name__
    described = type(value).__module__.startswith("fdgeom.") and text.startswith(f"{name}(")
    if not described and len(text) <= _LONGEST and "\n" not in text and " at 0x" not in text:
        return text
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    name = "function" if callable(value) and hasattr(value, "__code__") else name
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


class Described:
    """Base of classes whose ``repr`` shows some attributes: ``_shown``, or the fields of a dataclass."""

    _shown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        names = self._shown or tuple(getattr(self, "__dataclass_fields__", ()))
        given = [(name, getattr(self, name, None)) for name in names]
        parts = [
            f"{name}={str(value) if isinstance(value, Path) else format_value(value)}"
            for name, value in given
            if value is not None
        ]
        return f"{type(self).__name__}({', '.join(parts)})"


def is_function(value: object) -> bool:
    """Whether a value is a user's function, unlike classes and UFL expressions, which are callable."""
    return callable(value) and not isinstance(value, Expr | Form | Measure | type)


@contextmanager
def reported_as(text: str) -> Iterator[None]:
    """Turn an error in the result of a user's function into a ``ValueError`` with this beginning."""
    numbers: list[str] = []
    _called.append(numbers)
    try:
        yield
    except (TypeError, ValueError, IndexError, NotImplementedError, ArityMismatch) as error:
        # UFL hides why a symbol is no number.
        if numbers or isinstance(error, NoNumber):
            raise NoNumber(f"{text}: {numbers[0] if numbers else error}") from error
        raise ValueError(f"{text}: {brief(error)}") from error
    finally:
        _called.pop()


def brief(error: BaseException) -> str:
    """The first line of an error in a user's function, without the place of that function."""
    line = (str(error).splitlines() or [""])[0].rstrip(".")
    if isinstance(error, KeyError) and " " not in line:
        return f"{line} is missing"
    line = re.sub(r"^\S*<locals>\.", "", line)
    return line if len(line) <= 3 * _LONGEST else line[: 3 * _LONGEST] + "..."


def name_places(mesh, name: Callable[[float], str]) -> None:
    """Set the function that names the nodes of an interval mesh in messages, by their coordinates."""
    mesh.geometric_shared_data_cache["fdgeom"]["name of a node"] = name


def node_name(mesh) -> Callable[..., str]:
    """The function that names a node in messages by its coordinates."""

    def by_coordinates(*x: float) -> str:
        numbers = ", ".join(f"{value:.6g}" for value in x)
        return f"the node at {numbers}" if len(x) == 1 else f"the node at ({numbers})"

    return mesh.geometric_shared_data_cache["fdgeom"].get("name of a node", by_coordinates)


def describe(function: Function) -> Callable[[int], str]:
    """The function that describes the place of a node (or of a cell, for DG0) in messages; collective."""
    space = function.function_space()
    mesh = space.mesh()
    if space.ufl_element().family() not in _POINTS:
        return lambda index: f"the local unknown {index}"
    element = space.ufl_element()
    nodes = FunctionSpace(mesh, element.sub_elements[0] if space.value_shape else element)
    name = node_name(mesh)
    places = [
        np.array(Function(nodes).interpolate(x).dat.data_ro_with_halos)
        for x in SpatialCoordinate(mesh)
    ]
    return lambda index: name(*(place[min(index, len(place) - 1)] for place in places))
