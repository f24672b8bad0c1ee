"""Solves of equations for one unknown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from firedrake import Form, Function, TestFunction
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr

from fdgeom.forms import check_domains, rename, simplify
from fdgeom.operations.explicit import Assemble, Copy, directional, gradient, zero_rest
from fdgeom.operations.operation import Cotangents, Operation, Tangents, Work, parts
from fdgeom.validation import choice, instance

#: The attribute of PETSc's solvers with residual, unknown and essential values, for types in Python.
PROBLEM = "fdgeom_problem"


@dataclass(frozen=True, eq=False)
class Prescribed:
    """Degrees of freedom of an unknown that are not solved for.

    Parameters
    ----------
    dofs : array of int
        Local scalar degrees of freedom of the part, ghosts included.
    value : Function, optional
        A Function of the space of the part that holds their values; zero by default.
    part : int, optional
        The number of the part of a mixed unknown (default 0).
    before : sequence of Operation, optional
        The operations that set ``value`` before the solve.
    """

    dofs: np.ndarray
    value: Function | None = None
    part: int = 0
    before: Sequence[Operation] = ()

    def values(self) -> np.ndarray | float:
        """The present values, in the order of ``dofs``."""
        if self.value is None:
            return 0.0
        return self.value.dat.data_ro_with_halos.reshape(-1)[self.dofs]


def dofs_of(bc) -> np.ndarray:
    """The local scalar degrees of freedom of a DirichletBC, numbered in the whole vector space."""
    space = bc.function_space()
    component = space.component
    block = (space if component is None else space.parent).block_size
    held = np.arange(block) if component is None else np.array([component])
    return (block * np.asarray(bc.nodes)[:, None] + held[None, :]).ravel()


@dataclass(frozen=True, kw_only=True, eq=False)
class Attempt:
    """One attempt of Newton's iteration; the next one follows if it fails.

    Parameters
    ----------
    guess : Function
        The first guess, of the space of the unknown.
    must_contract : bool, optional
        Whether the attempt ends where an update is not smaller than the one before (the first: than
        the guess).
    damped : bool, optional
        Whether steps are damped by an error-oriented line search (NLEQ-ERR; Deuflhard, Newton Methods
        for Nonlinear Problems, 2011, section 3.3.3); whole steps follow at its end. With PETSc options
        that choose another line search the attempt is omitted.
    max_it : int, optional
        Limit of its iterations, if it is larger than that of the solve; a limit below the default
        that a user sets holds for all attempts.
    """

    guess: Function
    must_contract: bool = False
    damped: bool = False
    max_it: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Solve(Operation):
    """Solves ∂W/∂v = 0 for the unknown u of a functional W(v, u) that is linear in v.

    Parameters
    ----------
    work : Form
        The residual with its test function, or with the Function ``test`` in the place of it.
    unknown : Function
        The unknown; its values before the solve are the first guess, unless ``guess`` is given.
    test : Function, optional
        The Function in the place of the test function, of its space.
    guess : Function, optional
        The first guess.
    prescribed : sequence of Prescribed, optional
        Degrees of freedom of the unknown with given values.
    source : Function, optional
        The right-hand side of a transposed solve: ∂W/∂v = source, linear in the unknown.
    attempts : sequence of Attempt, optional
        What is tried one after another, each from its own guess; by default one attempt from
        ``guess``. An attempt with whole steps is omitted after one whose updates no
        longer became smaller.
    choose : {"first", "smaller residual"}, optional
        The guess to begin with: that of the first attempt, or of the first two that with the smaller
        residual, which then takes the place of the other one in all attempts.
    extra_updates : int, optional
        Newton updates after convergence, in compiled code (default 0).
    options : SolveOptions, optional
        The user's PETSc options for this solve.
    remedy : callable, optional
        ``remedy()`` gives advice for a failed solve.
    name : str, optional
        Name in messages.
    numerics : Numerics or callable, optional
        The default options and the convergence test, or a function ``numerics(residual, unknown)``
        that returns them.
    find : callable, optional
        ``find()`` sets the unknown to a solution that is found otherwise; executors call it in place
        of a solve.
    dt, fraction, clock, at
        As for every operation: the symbols for its length and its time.

    Raises
    ------
    TypeError
        If ``work`` is no form or ``unknown`` no Function.
    ValueError
        If the form has no test function and none is given, or does not contain the unknown or the
        test function; if it has several meshes; if the unknown is a value that it needs; if there are
        attempts and a guess.

    Notes
    -----
    The tangent u̇ solves ∂²W/∂v∂u u̇ = -∂²W/∂v∂c ċ. The adjoint solves ∂²W/∂u∂v λ = ū for v, by the
    same operation with test and unknown exchanged; then c̄ -= ∂W/∂c at v = λ, and the values of
    prescribed degrees of freedom get ū - ∂W/∂u there.
    """

    work: Work
    unknown: Function
    test: Function | None = None
    guess: Function | None = None
    prescribed: Sequence[Prescribed] = ()
    source: Function | None = None
    attempts: Sequence[Attempt] = ()
    choose: Literal["first", "smaller residual"] = "first"
    extra_updates: int = 0
    options: Any = None
    remedy: Callable[[], str] = str
    name: str = ""
    numerics: Any = None
    find: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        wanted = "a form with one test function" if self.test is None else "a form or an expression"
        instance("work", self.work, Form if self.test is None else Form | Expr, wanted)
        instance("unknown", self.unknown, Function, "a Function")
        if self.test is None:
            arguments = self.work.arguments()
            if len(arguments) != 1:
                raise ValueError(
                    f"work must be a form with one test function, this one has {len(arguments)} "
                    "arguments"
                )
            test = Function(arguments[0].function_space(), name=f"test of {self.name}")
            object.__setattr__(self, "work", rename(simplify(self.work), arguments[0], test))
            object.__setattr__(self, "test", test)
        elif isinstance(self.work, Form):
            object.__setattr__(self, "work", simplify(self.work))
        check_domains("work", self.work)
        if self.test not in extract_coefficients(self.work):
            raise ValueError(f"work must contain the test function {self.test.name()!r}")
        self._check_unknown()
        self._check_attempts()
        self._check_values()

    def _check_unknown(self) -> None:
        if self.source is None and self.unknown not in extract_coefficients(self.work):
            raise ValueError(
                f"work does not contain the unknown {self.unknown.name()!r}; write the equation in it"
            )

    def _check_values(self) -> None:
        """Raise ``ValueError`` if the unknown is a value that the solve reads."""
        own = {id(part.dat) for part in parts(self.unknown)}
        read = {"guess": [self.guess, *(a.guess for a in self.attempts)], "source": [self.source]}
        read["prescribed"] = [p.value for p in self.prescribed]
        for name, functions in read.items():
            if any(id(f.dat) in own for g in functions if g is not None for f in parts(g)):
                hint = (
                    "; leave guess out to begin with its present values" if name == "guess" else ""
                )
                raise ValueError(f"{name} must not be the unknown {self.unknown.name()!r}{hint}")
        for p in self.prescribed:
            if not 0 <= p.part < len(self.unknown.function_space()):
                raise ValueError(
                    f"prescribed: part must be a part of the unknown {self.unknown.name()!r}, not {p.part}"
                )

    def _check_attempts(self) -> None:
        for attempt in self.attempts:
            if not isinstance(attempt, Attempt):
                raise TypeError(f"attempts must be Attempts, not {type(attempt).__name__}")
        choice("choose", self.choose, ("first", "smaller residual"))
        if self.attempts and self.guess is not None:
            raise ValueError("guess: attempts have guesses of their own; give either of the two")
        if self.choose != "first" and len({id(a.guess) for a in self.attempts}) != 2:
            raise ValueError(f"attempts must have two guesses to choose the one of {self.choose}")

    def default_numerics(self) -> Any:
        """Default options and convergence test; None if it has none of its own."""
        if callable(self.numerics):
            return self.numerics(self.residual, self.unknown)
        return self.numerics

    @property
    def residual(self) -> Form:
        """The work with a test function."""
        return rename(self.work, self.test, TestFunction(self.test.function_space()))

    @property
    def reads(self) -> list[Function]:
        own = (self.test, self.unknown)
        found = [f for f in extract_coefficients(self.work) if f not in own]
        # A transposed solve reads the solution of the solve that it transposes.
        found += [] if self.source is None else [self.test, self.source]
        found += [] if self.guess is None else [self.guess]
        found += dict.fromkeys(attempt.guess for attempt in self.attempts)
        return found + [p.value for p in self.prescribed if p.value is not None]

    @property
    def writes(self) -> list[Function]:
        return [self.unknown]

    def jvp(self, tangents: Tangents) -> list[Operation]:
        self._refuse_transposed()
        if self.unknown not in tangents:
            return []
        dot = tangents[self.unknown]
        own = (self.test, self.unknown)
        read = [f for f in extract_coefficients(self.work) if f not in own and f in tangents]
        work = directional(self.work, {self.unknown: dot, **{f: tangents[f] for f in read}})
        given = [Prescribed(p.dofs, tangents.get(p.value), p.part) for p in self.prescribed]
        name = f"the tangent of {self.name}"
        test, timed = self.test, self._timed()
        return [Solve(work=work, unknown=dot, test=test, prescribed=given, name=name, **timed)]

    def vjp(self, cotangents: Cotangents) -> list[Operation]:
        self._refuse_transposed()
        if self.unknown not in cotangents:
            return []
        bar, timed = cotangents[self.unknown], self._timed()
        zeroes = zero_rest(timed, self.unknown, cotangents)
        cotangents.drop([self.unknown])
        zero = [Prescribed(p.dofs, part=p.part) for p in self.prescribed]
        transposed = Solve(
            work=self.work, unknown=self.test, test=self.unknown, source=bar, prescribed=zero,
            name=f"the adjoint of {self.name}", **timed,
        )  # fmt: skip
        found = [*zeroes, transposed]
        for p in self.prescribed:
            if cotangents.is_active(p.value):
                found += self._prescribed_gradient(p, bar, cotangents)
        return [*found, *gradient(timed, -self.work, cotangents, (self.test, self.unknown))]

    def _prescribed_gradient(self, p: Prescribed, bar: Function, cotangents) -> list[Operation]:
        """The operations that add ū - ∂W/∂u to the cotangent of prescribed values."""
        target, timed = cotangents[p.value], self._timed()
        found: list[Operation] = []
        if p.value not in cotangents:
            found.append(Copy(source=None, target=target, **timed))
            cotangents.add([p.value])
        slope = Function(self.unknown.function_space(), name="slope of the work")
        found.append(Assemble(work=-self.work, by={self.unknown: slope}, **timed))
        for source in (bar, slope):
            part = source.subfunctions[p.part]
            found.append(Copy(source=part, target=target, rows=p.dofs, adds=True, **timed))
        return found

    def _refuse_transposed(self) -> None:
        if self.source is not None:
            raise NotImplementedError(
                "an adjoint solve has no derivatives of its own: for second derivatives take the "
                "adjoint of a list with its tangents (`linearise`)"
            )
