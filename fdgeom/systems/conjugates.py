"""Configuration and momentum as a user gives them, checked."""

from firedrake import Function
from ufl.classes import Measure

from fdgeom.words import shown


def check_conjugates(q, p, measure) -> None:
    """Raise unless q and p are two Functions of one space, and a measure of their pairing is one.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    """
    for name, value in (("q", q), ("p", p)):
        if not isinstance(value, Function):
            raise TypeError(f"{name} must be a firedrake Function, not {type(value).__name__}")
    if q.function_space() != p.function_space():
        raise ValueError("p must be in the function space of q")
    if q is p:
        raise ValueError("q and p must be two functions")
    if not (measure is None or isinstance(measure, Measure)):
        raise TypeError(f"measure must be a UFL measure such as dx(degree=0), not {shown(measure)}")
