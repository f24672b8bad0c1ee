"""Checks of arguments: each returns the value in a standard type or raises an error that names it.

Each refuses numbers that pyadjoint follows, where they would be lost (:mod:`fdgeom.taping`).
"""

import inspect
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from types import UnionType

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.algorithms import extract_arguments
from ufl.classes import Expr, Measure

from fdgeom.forms import is_real
from fdgeom.messages import format_value, reported_as
from fdgeom.taping import refuse_recorded

# Names of the time as the only argument; "_" where it is not used.
_TIME = ("t", "time", "_")
# So much, over the largest moment of inertia, may be a matter of rounding.
_ROUNDED = 0.05


class NotCopied:
    """Base of classes with Functions of the user, which a copy would share silently."""

    def __reduce_ex__(self, protocol):
        name = type(self).__name__
        raise TypeError(
            f"{name} cannot be copied or pickled, since its copy would hold the same Functions: make "
            f"another {name} as this one was made (fdgeom.save and fdgeom.resume carry a state over)"
        )


class Fixed:
    """Base of classes whose attributes equations are made of, and are fixed from then on."""

    #: The names of the fixed attributes.
    _fixed_names: frozenset[str] = frozenset()

    def __setattr__(self, name: str, value) -> None:
        """Set an attribute; one that equations have been made of cannot be replaced."""
        known = vars(self).get(name, value)
        if known is not value and name in self._fixed_names:
            kind = type(self).__name__
            remedy = f"make another {kind}, or give it Constants or Functions where it takes them"
            if isinstance(known, Constant | Function):
                remedy = f"set its values, such as by {kind.lower()}.{name}.assign(...)"
            raise AttributeError(
                f"{kind}.{name} cannot be replaced, since the equations have been made of it: {remedy}"
            )
        super().__setattr__(name, value)


def fix(thing: Fixed, names: Iterable[str] | None = None) -> None:
    """Refuse to replace attributes from now on; by default all public ones, also of those in tuples."""
    found = vars(thing) if names is None else names
    thing._fixed_names = frozenset(name for name in found if not name.startswith("_"))
    tuples = () if names is not None else (v for v in vars(thing).values() if isinstance(v, tuple))
    for part in (part for several in tuples for part in several if isinstance(part, Fixed)):
        fix(part)


def read_only(values: np.ndarray) -> np.ndarray:
    """The array itself, which equations and what has been computed from it would not follow."""
    values.flags.writeable = False
    return values


def number(name: str, value, *, above=None, least=None, below=None, most=None) -> float:
    """A finite float within bounds: greater than, at least, less than, at most."""
    refuse_recorded(name, value)
    if not _is_number(value):
        raise TypeError(f"{name} must be a number, not {format_value(value)}")
    _check_bounds(name, float(value), value, above, least, below, most)
    return float(value)


def present_number(name: str, value, *, above=None) -> float:
    """The same, or the present value of a Constant or Real Function, which the caller reads again."""
    refuse_recorded(name, value)
    try:
        found = float(value) if isinstance(value, Expr) else value
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {format_value(value)}") from None
    return number(name, found, above=above)


def scalar(name: str, value, *, above=None, least=None, below=None, most=None):
    """A number within bounds, or a scalar UFL expression, whose values are not looked at."""
    if isinstance(value, Expr):
        if value.ufl_shape or extract_arguments(value):
            raise ValueError(
                f"{name} must be a scalar without test functions, not {format_value(value)}"
            )
        return value
    refuse_recorded(name, value)
    if not _is_number(value):
        raise TypeError(f"{name} must be a number or a UFL expression, not {format_value(value)}")
    _check_bounds(name, float(value), value, above, least, below, most)
    return value


def whole(name: str, value, *, least: int | None = None, most: int | None = None) -> int:
    """An integer within bounds."""
    # First the usual case: a call of one step of a small system takes forty times as long as this.
    if type(value) is int and (least is None or value >= least) and (most is None or value <= most):
        return value
    refuse_recorded(name, value)
    try:
        found = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        found = None
    if (
        found is None
        or (least is not None and found < least)
        or (most is not None and found > most)
    ):
        words = {None: "a whole number", 0: "a whole number that is not negative"}
        words[1] = "a positive whole number"
        wanted = words.get(least, f"a whole number of at least {least}")
        if most is not None:
            wanted = f"a whole number from {least} to {most}"
        raise ValueError(f"{name} must be {wanted}, not {format_value(value)}")
    return found


def choice(name: str, value, options: Iterable):
    """One of the options, which are strings or integers."""
    options = tuple(options)
    if not isinstance(value, str | Integral) or isinstance(value, bool) or value not in options:
        known = ", ".join(map(repr, options))
        raise ValueError(f"{name} must be one of {known}, not {format_value(value)}")
    return value


def array(name: str, value, *shapes: tuple[int, ...], wanted: str = "") -> np.ndarray:
    """A new array of finite floats of one of the shapes; ``wanted`` names it in the message."""
    wanted = wanted or _array_of(shapes)
    found = real_array(name, value, wanted)
    if (shapes and found.shape not in shapes) or not np.all(np.isfinite(found)):
        # Of an array the message tells the shape alone.
        hidden = isinstance(value, np.ndarray) and (not shapes or found.shape in shapes)
        what = " of which some are not finite" if hidden else ""
        raise ValueError(f"{name} must be {wanted}, not {format_value(value)}{what}")
    return found


def real_array(name: str, value, wanted: str) -> np.ndarray:
    """A new array of floats of any shape, finite or not; ``wanted`` names it in the message."""
    # NumPy by itself takes the real part of complex numbers with a warning, and reads text as numbers.
    refuse_recorded(name, value)
    try:
        found = np.array(value)
        if found.dtype.kind in "iufO":
            return found.astype(float)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} must be {wanted}, not {format_value(value)}")


def instance(name: str, value, kind: type | UnionType, wanted: str, hint: str = ""):
    """An instance of a class, which ``wanted`` names in the message, before a hint."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}, not {format_value(value)}{hint}")
    return value


def instances(name: str, values, kind: type, wanted: str) -> tuple:
    """A tuple of instances of a class, from one or a sequence of them."""
    several = values if isinstance(values, list | tuple) else (values,)
    return tuple(instance(name, value, kind, wanted) for value in several)


def firedrake_function(name: str, value) -> Function:
    """A Function of Firedrake."""
    return instance(name, value, Function, "a firedrake Function")


def state_function(name: str, value) -> Function:
    """A Function of the state, or a multiplier: with values at places."""
    if is_real(firedrake_function(name, value)):
        raise ValueError(
            f"{name} must not be of a Real space: for single numbers take DG0 on fdgeom.copies(1), "
            "as in FunctionSpace(fdgeom.copies(1), 'DG', 0)"
        )
    return value


def one_space(name: str, value: Function) -> None:
    """A Function that is not mixed."""
    if len(value.function_space()) > 1:
        raise ValueError(f"{name} must not be of a mixed space: take one vector-valued space")


def conjugates(q, p, measure) -> None:
    """Two Functions of one space, and a measure of their pairing or None."""
    state_function("q", q)
    state_function("p", p)
    one_space("q", q)
    if q.function_space() != p.function_space():
        raise ValueError("p must be in the function space of q")
    if q is p:
        raise ValueError("q and p must be two functions")
    if measure is not None:
        instance("measure", measure, Measure, "a UFL measure such as dx(degree=0)")
    mesh = q.function_space().mesh()
    if measure is not None and (
        measure.integral_type() != "cell" or measure.ufl_domain() not in (None, mesh)
    ):
        raise ValueError("measure must be over the cells of the mesh of q, such as dx(degree=0)")


def text(name: str, value, hint: str = "") -> str:
    """A string."""
    return instance(name, value, str, "a string", hint)


def evaluated(
    name: str, function: Callable, arguments: Sequence[Expr], size: int, what: str = "the function"
) -> Expr:
    """The vector of a user's function; ``ValueError`` with its ``name`` for another value."""
    with reported_as(f"{name}: {what} must give a UFL vector of {size}"):
        value = function(*arguments)
        value = ufl.as_vector(list(value)) if isinstance(value, list | tuple) else value
        value = ufl.as_ufl(value)
    if value.ufl_shape != (size,):
        raise ValueError(f"{name}: {what} must give a vector of {size}, not {value.ufl_shape}")
    return value


def needed_arguments(function: Callable) -> list[str]:
    """The names of the arguments without which a user's function cannot be called."""
    free = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in free and p.default is inspect.Parameter.empty]


def place_and_time(name: str, function: Callable, s, t) -> tuple:
    """Arguments of a user's function, by their names: the time t, the arc length s, or s, t."""
    needed = needed_arguments(function)
    if len(needed) == 2 and needed[0] not in _TIME and needed[1] != "s":
        return s, t
    if len(needed) == 1 and needed[0] in ("s", *_TIME):
        return (s,) if needed[0] == "s" else (t,)
    raise ValueError(
        f"{name}: the function must take (t), (s) or (s, t), with t for the time and s for the arc "
        f"length, not ({', '.join(needed)})"
    )


def everywhere(comm, check: Callable[[], None]) -> None:
    """Run a check that may raise on some ranks and raise its ``ValueError`` on all."""
    try:
        check()
        message = None
    except ValueError as error:
        message = str(error)
    found = [m for m in comm.allgather(message) if m]
    if found:
        raise ValueError(found[0])


def check_moments(matrices: np.ndarray) -> None:
    """Check moments of inertia (..., 3, 3): no principal moment may exceed the sum of the other two.

    If one does by more than rounding of the data explains, raise ``ValueError``; else warn.
    """
    moments = np.linalg.eigvalsh(matrices)
    excess = moments[..., 2] - moments[..., 1] - moments[..., 0]
    worst = np.max(excess / np.maximum(moments[..., 2], np.finfo(float).tiny), initial=0.0)
    text = (
        "inertia: each principal moment must be at most the sum of the other two (the sum for a thin "
        "plate)"
    )
    if worst > _ROUNDED:
        raise ValueError(text)
    if worst > 1e-9:
        warnings.warn(text, stacklevel=3)


def _is_number(value) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf"
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _check_bounds(name: str, found: float, value, above, least, below, most) -> None:
    if (
        math.isfinite(found)
        and (above is None or found > above)
        and (least is None or found >= least)
        and (below is None or found < below)
        and (most is None or found <= most)
    ):
        return
    low, high = (above if least is None else least), (below if most is None else most)
    if low is not None and high is not None:
        interval = (
            f"{'(' if least is None else '['}{low:.4g}, {high:.4g}{')' if most is None else ']'}"
        )
        wanted = f"lie in {interval}"
    elif low is not None:
        kind = "greater than" if least is None else "at least"
        wanted = f"be a finite number {kind} {low:.4g}"
        if low == 0:
            wanted = "be a positive number" if least is None else "be a number that is not negative"
    elif high is not None:
        wanted = f"be a finite number {'less than' if most is None else 'at most'} {high:.4g}"
    else:
        wanted = "be a finite number"
    raise ValueError(f"{name} must {wanted}, not {format_value(value)}")


def _array_of(shapes) -> str:
    sizes = [
        f"a vector of {shape[0]}" if len(shape) == 1 else "×".join(map(str, shape)) + " array of"
        for shape in shapes
    ]
    sizes = [size if size.startswith("a ") else f"a {size}" for size in sizes]
    return (" or ".join(sizes) or "an array of") + " finite numbers"
