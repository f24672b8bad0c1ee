"""Operations and flows of steppers: works, unknowns, targets."""

from firedrake import Function, FunctionSpace, TestFunction, VectorFunctionSpace, dx
from robustness.calls import small

import fdgeom as fg


def known(name="q"):
    """A number at each node of the interval."""
    return Function(FunctionSpace(small.mesh(), "CG", 1), name=name)


def directed():
    """A vector at each node of the interval."""
    return Function(VectorFunctionSpace(small.mesh(), "CG", 1, dim=2), name="v")


def residual(unknown):
    """An equation of the unknown."""
    return (unknown - 1) * TestFunction(unknown.function_space()) * dx


def twice(unknown):
    """Two solves for one unknown."""
    return [fg.Solve(work=residual(unknown), unknown=unknown) for _ in range(2)]


REFUSALS = [
    (
        "values",
        lambda: fg.Map(values=[known()]),
        TypeError,
        "values must be a dict of Functions and their expressions, not …",
    ),
    (
        "values",
        lambda: fg.Map(values={}),
        ValueError,
        "values is empty; give at least one Function and its expression",
    ),
    (
        "values",
        lambda: fg.Map(values={"q": known()}),
        TypeError,
        "values must be a dict whose keys are Functions, not 'q'",
    ),
    (
        "values",
        lambda: fg.Map(values={known(): directed()}),
        ValueError,
        (
            "values: the expression for 'q' has the shape (2,), but the Function has the shape (); give"
            " an expression of this shape"
        ),
    ),
    (
        "work",
        lambda: fg.Solve(work=known(), unknown=known()),
        TypeError,
        "work must be a form with one test function, not …",
    ),
    (
        "unknown",
        lambda: fg.Solve(work=residual(known()), unknown="q"),
        TypeError,
        "unknown must be a Function, not 'q'",
    ),
    (
        "work",
        lambda: fg.Solve(work=known() * dx, unknown=known()),
        ValueError,
        "work must be a form with one test function, this one has 0 arguments",
    ),
    (
        "work",
        lambda: fg.Solve(work=residual(known()), unknown=known("u")),
        ValueError,
        "work does not contain the unknown 'u'; write the equation in it",
    ),
    (
        "work",
        lambda: fg.Assemble(work="energy", by={known(): known()}),
        TypeError,
        "work must be a form or a UFL expression, not 'energy'",
    ),
    (
        "by",
        lambda: fg.Assemble(work=known() * dx, by=known()),
        TypeError,
        "by must be a dict of Functions and their targets, not …",
    ),
    (
        "by",
        lambda: fg.Assemble(work=known() * dx, by={}),
        ValueError,
        "by is empty; give at least one Function and its target",
    ),
    (
        "by",
        lambda: fg.Assemble(work=known() * dx, by={known(): directed()}),
        ValueError,
        "by: the target for 'q' must be a Function of the same space",
    ),
    (
        "adds",
        lambda: fg.Assemble(work=known() * dx, by={known(): known()}, adds=[known()]),
        ValueError,
        "adds contains a Function that is no target; give only targets of by",
    ),
    ("operations", lambda: fg.Flow([]), ValueError, "operations must not be empty"),
    (
        "operations",
        lambda: fg.Flow([known()]),
        TypeError,
        "operations must be operations, not Function",
    ),
    (
        "operations",
        lambda: fg.Flow(twice(known())),
        ValueError,
        (
            "operations: two solves have the same unknown 'q'; give each one of its own, and copy the"
            " result"
        ),
    ),
]
