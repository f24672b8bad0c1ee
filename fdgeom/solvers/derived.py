"""Data that follow other data: noticed when they change, and made anew."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from firedrake import Constant, Form, Function, get_interpolator, interpolate
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr
from ufl.domain import extract_domains

from fdgeom.solvers.data import Snapshot
from fdgeom.solvers.rules import Interpolated, Rule
from fdgeom.taping import refuse_annotation

_ATTRIBUTE = "_fdgeom_derived"
_PRIVATE = "_fdgeom_private"


class Sources:
    """The Functions, Constants and meshes in some expressions: do they hold what they held?

    Values are compared, to the last bit, not counters of changes: so it does not matter whether
    they were set through Firedrake, a PETSc Vec, or a NumPy view that somebody has kept.
    """

    def __init__(self, *things: Form | Expr) -> None:
        self.functions, self.constants = _read_by(things)
        real = [f for f in self.functions if is_real(f)]
        self._numbers = [f.dat for f in (*self.constants, *real)]
        self._others = [f for f in self.functions if f not in real]
        self._snapshot: Snapshot | None = None
        self._seen: list[bytes] | None = None
        #: As of a Snapshot.
        self.known_by: dict[int, tuple] = {}

    def changed(self) -> bool:
        """Whether a value is another than at the last :meth:`take`, on any rank; True before."""
        if self._seen is None or self._now() != self._seen:
            return True
        return self._snapshot is not None and not self._snapshot.holds()

    def take(self) -> None:
        """Remember the present values."""
        self._seen = self._now()
        if self._others:
            self._snapshot = self._snapshot or Snapshot(self._others)
            for function in self._others:
                # Set behind Firedrake's back, perhaps: then it does not know about the ghosts.
                function.dat.halo_valid = False
            self._snapshot.take()

    def _now(self) -> list[bytes]:
        return [np.asarray(dat.data_ro).tobytes() for dat in self._numbers]

    # --- as a Snapshot ---------------------------------------------------------------------------
    def keys(self) -> list[int]:
        """What tells the Functions, parts of them and Constants from one another."""
        others = [] if self._snapshot is None else self._snapshot.keys()
        return [*map(id, self._numbers), *others]

    def values(self) -> list:
        """What is remembered, in this order."""
        return [*self._seen, *([] if self._snapshot is None else self._snapshot.values())]

    def remember(self, values: list, of=None) -> None:
        """Remember these instead; if ``of`` is given, those of these keys."""
        count = len(self._numbers)
        for k, (dat, value) in enumerate(zip(self._numbers, values[:count], strict=True)):
            if of is None or id(dat) in of:
                self._seen[k] = value if isinstance(value, bytes) else value.tobytes()
        if self._snapshot is not None:
            self._snapshot.remember(values[count:], of)

    def changed_keys(self) -> set[int]:
        """The keys of what holds another value now, on any rank."""
        found = zip(self._numbers, self._seen, self._now(), strict=True)
        others = set() if self._snapshot is None else self._snapshot.changed_keys()
        return {id(dat) for dat, seen, now in found if seen != now} | others


def _read_by(things) -> tuple[list[Function], list[Constant]]:
    functions: dict[Function, None] = {}
    constants: dict[int, Constant] = {}
    for thing in things:
        functions.update(dict.fromkeys(extract_coefficients(thing)))
        constants.update((id(c), c) for c in extract_firedrake_constants(thing))
        for domain in extract_domains(thing):
            functions[domain.coordinates] = None
    return list(functions), list(constants.values())


def read_in(*things: Form | Expr) -> tuple[Function | Constant, ...]:
    """The Functions and Constants in forms or expressions that somebody else may change, each once.

    Those that derived functions there come from too, and these themselves unless they are private;
    neither the coordinates of meshes nor what :func:`private` has marked.
    """
    found: dict[int, Function | Constant] = {}

    def read(functions, constants) -> None:
        found.update((id(c), c) for c in constants)
        for function in functions:
            derived = derived_of(function)
            if not (_is_place(function) or (derived is not None and derived.private)):
                found[id(function)] = function
            if derived is not None:
                read(derived.sources.functions, derived.sources.constants)

    read(*_read_by(things))
    return tuple(f for f in found.values() if not hasattr(f, _PRIVATE))


def private(value: Function | Constant) -> Function | Constant:
    """Mark what fdgeom made of numbers, and nobody changes: it is returned."""
    setattr(value, _PRIVATE, True)
    return value


def is_private(value: Function | Constant) -> bool:
    """Whether :func:`private` has marked it."""
    return hasattr(value, _PRIVATE)


def _is_place(function: Function) -> bool:
    """Whether a function holds the coordinates of its mesh."""
    space = function.function_space()
    return len(space) == 1 and function is space.mesh().coordinates


def is_real(function) -> bool:
    return any(V.ufl_element().family() == "Real" for V in function.function_space())


class Derived:
    """Functions that are made from other data, and made anew before they are read if those changed.

    Whatever of fdgeom reads a form (assemblers, compiled units, steppers) refreshes the derived
    functions in it first, so that there is one rule for all: a coefficient may be changed at any
    time between two steps.

    ``make()`` fills the targets; it raises, and leaves them, if that cannot be done, and is called
    at once. ``private``: nobody else writes to the targets. ``rule`` says how the one target
    follows its sources, if that is known.
    """

    rule: Rule | None = None

    def __init__(
        self,
        targets: Sequence[Function],
        sources: Sequence[Form | Expr],
        make: Callable[[], None],
        *,
        private: bool = False,
    ) -> None:
        self.private = private
        self._above = derived_in(*sources)
        #: What they are made from.
        self.sources = Sources(*sources)
        self._make = make
        # Made from meshes alone: their versions are quicker to compare, and steps are short.
        self._meshes = None if self.follows_a_user else [f.dat for f in self.sources.functions]
        self._versions: list[int] | None = None
        self.refresh()
        for target in targets:
            setattr(target, _ATTRIBUTE, self)

    def refresh(self) -> None:
        """Make the targets anew if a source has changed; to be called on all ranks."""
        for derived in self._above:
            derived.refresh()
        if self._meshes is not None:
            versions = [dat.dat_version for dat in self._meshes]
            if versions == self._versions:
                return
            self._make()
            self._versions = versions
            return
        if self.sources.changed():
            self._make()
            self.sources.take()

    def renew(self) -> None:
        """Make the targets anew, whatever they hold; those that they are made from come first."""
        self._make()
        self.sources.take()

    def accept(self) -> None:
        """Take what the targets hold for what belongs to the present sources."""
        self.sources.take()

    @property
    def follows_a_user(self) -> bool:
        """Whether it is made from more than meshes: from what somebody else may change."""
        plain = [f for f in self.sources.functions if derived_of(f) is None and not _is_place(f)]
        above = any(d.follows_a_user or not d.private for d in self._above)
        return bool(plain or self.sources.constants) or above


class MadeOnce:
    """What numbers were made of that do not follow it: where they are read, a change is refused.

    It stands in place of a :class:`Derived`: whatever refreshes derived functions asks it too, and
    gets a ``ValueError`` with this message. Replays of a tape do not: they have values of their own.
    """

    private, follows_a_user, rule = True, True, None
    #: Nothing that derivatives go on to.
    sources = Sources()
    _replays = 0

    def __init__(self, message: str, *things: Form | Expr) -> None:
        self._message, self._made_of = message, Sources(*things)
        self._made_of.take()

    def refresh(self) -> None:
        """Raise ``ValueError`` if the values have changed; to be called on all ranks."""
        if not MadeOnce._replays and self._made_of.changed():
            raise ValueError(self._message)

    @staticmethod
    @contextmanager
    def replayed() -> Iterator[None]:
        """Context in which nothing is refused."""
        MadeOnce._replays += 1
        try:
            yield
        finally:
            MadeOnce._replays -= 1


def made_once(thing: Expr, of: Sequence[MadeOnce]) -> Expr:
    """Refuse changes of these wherever an expression is read; it is returned.

    It holds one Constant that nobody else reads, or derived functions alone.
    """
    for once in of:
        for derived in derived_in(thing):
            derived._above += (once,)
        for constant in extract_firedrake_constants(thing):
            setattr(constant, _ATTRIBUTE, once)
    return thing


def derived_of(value: Function | Constant) -> Derived | MadeOnce | None:
    """What makes a function, or refuses changes of what a Constant was made of, if anything does."""
    return getattr(value, _ATTRIBUTE, None)


def derived_in(*things: Form | Expr) -> tuple[Derived | MadeOnce, ...]:
    """That of all coefficients and Constants of forms or expressions, each once."""
    read = ((*extract_coefficients(t), *extract_firedrake_constants(t)) for t in things)
    found = (derived_of(value) for values in read for value in values)
    return tuple({id(d): d for d in found if d is not None}.values())


def refresh(*things: Form | Expr) -> None:
    """Bring the derived functions in forms or expressions up to date; on all ranks."""
    for derived in derived_in(*things):
        derived.refresh()


def all_constants(*things: Form | Expr) -> list[Constant]:
    """The Constants in forms or expressions, and those that derived functions there come from."""
    return [c for c in read_in(*things) if isinstance(c, Constant)]


def constants_behind(*things: Form | Expr) -> list[Constant]:
    """The Constants that derived functions in forms or expressions come from."""
    found = [c for d in derived_in(*things) for c in d.sources.constants]
    above = [f for d in derived_in(*things) for f in d.sources.functions]
    return [*found, *(constants_behind(*above) if above else ())]


class Interpolation:
    """One expression interpolated again and again, into ``values``."""

    def __init__(self, expression: Expr, space) -> None:
        self.values = Function(space)
        interpolator = get_interpolator(interpolate(expression, space))
        # What the interpolator itself would make anew for every call, in milliseconds.
        self._update = interpolator._get_callable(tensor=self.values)

    def apply(self) -> Function:
        """Interpolate the present values."""
        self._update()
        return self.values


def sampled(
    name: str,
    expression: Expr,
    space,
    *,
    inverse: bool = False,
    check: Callable[[np.ndarray], None] | None = None,
    private: bool = False,
) -> Function:
    """A function of a space that follows an expression of the mesh, Functions and Constants.

    With ``inverse`` it is the inverse of the matrices that are found at its nodes; ``private`` is
    as of :class:`Derived`. ``check(values)`` raises ``ValueError`` for values of this rank that
    are no good: it is raised on all ranks, here or where the field is refreshed.
    ``NotImplementedError`` if it is to follow a Function while pyadjoint records.
    """
    if any(derived_of(f) is None for f in extract_coefficients(expression)):
        refuse_annotation(f"{name}, sampled from a Function,")
    field, found = Function(space, name=name), Interpolation(expression, space)

    def make() -> None:
        values = found.apply().dat.data_ro
        if check is not None:
            collectively(space.comm, lambda: check(values))
        field.dat.data_wo[...] = np.linalg.inv(values) if inverse else values

    made = Derived([field], [expression], make, private=private)
    made.rule = Interpolated(expression, inverse)
    return field


def collectively(comm, check: Callable[[], None]) -> None:
    """Run a check that may raise on some ranks so that it raises on all."""
    try:
        check()
        message = None
    except ValueError as error:
        message = str(error)
    found = [m for m in comm.allgather(message) if m]
    if found:
        raise ValueError(found[0])
