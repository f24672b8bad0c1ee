"""Dependent fields: functions that are recomputed when the data that they are made from change."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from firedrake import Constant, Form, Function
from pyadjoint.tape import annotate_tape, stop_annotating
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr
from ufl.domain import extract_domains

from fdgeom.data import Snapshot
from fdgeom.forms import is_real
from fdgeom.operations.operation import HostOperation, Operation, each_part
from fdgeom.taping import recorders

# Attributes, not a dictionary: a dependent field refers to its targets, so that even a dictionary with weak
# keys would keep both for ever.
_ATTRIBUTE = "_fdgeom_dependent"
_PRIVATE = "_fdgeom_private"


class Sources:
    """Tracks whether the Functions, Constants and mesh coordinates in expressions have changed."""

    # Values are compared bit by bit, not Firedrake's counters of changes: values may also be set
    # through a PETSc Vec or a NumPy view.
    def __init__(self, *things: Form | Expr) -> None:
        self.functions, self.constants = _read_by(things)
        #: The values of the last :meth:`take`.
        self.snapshot: Any = None

    def changed(self) -> bool:
        """Whether a value has changed on any rank since the last :meth:`take`; True before the first."""
        return self.snapshot is None or not self.snapshot.holds()

    def take(self) -> None:
        """Save the present values."""
        if self.snapshot is None:
            self.snapshot = snapshot_of([*self.functions, *self.constants])
        self.forget_ghosts()
        self.snapshot.take()

    def forget(self) -> None:
        """Let all values count as changed until the next :meth:`take`."""
        self.snapshot.forget()

    def forget_ghosts(self) -> None:
        """Have the ghosts updated before they are read again."""
        # Values may have been set without Firedrake's knowledge; the ghosts are then stale.
        for dat in self._ghosted:
            dat.halo_valid = False

    @cached_property
    def _ghosted(self) -> list:
        """The data that have ghosts."""
        read = (part for part in each_part(self.functions) if not is_real(part))
        return [part.dat for part in read if part.function_space().comm.size > 1]


def snapshot_of(values: Iterable[Function | Constant]) -> Snapshot:
    """A snapshot of Functions, also of those with parts in Real spaces, and of Constants."""
    values = list(values)
    numbers = [x for x in values if isinstance(x, Constant)]
    functions = each_part(x for x in values if not isinstance(x, Constant))
    numbers += [f for f in functions if is_real(f)]
    return Snapshot([f for f in functions if not is_real(f)], numbers)


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
    """The Functions and Constants in forms or expressions that a user may change, each once."""
    # Sources of dependent fields are included, dependent fields themselves unless they are private;
    # mesh coordinates and values marked by `private` are not.
    found: dict[int, Function | Constant] = {}

    def read(functions, constants) -> None:
        found.update((id(c), c) for c in constants)
        for function in functions:
            dependent = dependent_of(function)
            if not (_is_place(function) or (dependent is not None and dependent.private)):
                found[id(function)] = function
            if dependent is not None:
                read(dependent.sources.functions, dependent.sources.constants)

    read(*_read_by(things))
    return tuple(f for f in found.values() if not hasattr(f, _PRIVATE))


def private(value: Function | Constant) -> Function | Constant:
    """Mark a value that fdgeom made of numbers and that nobody changes, and return it."""
    setattr(value, _PRIVATE, True)
    return value


def is_private(value: Function | Constant) -> bool:
    """Whether :func:`private` has marked a value."""
    return hasattr(value, _PRIVATE)


def _is_place(value: Function | Constant) -> bool:
    """Whether a value is the coordinates of a mesh."""
    if isinstance(value, Constant):
        return False
    space = value.function_space()
    return len(space) == 1 and value is space.mesh().coordinates


class Dependent:
    """Dependent functions; fdgeom refreshes them before it reads a form that contains them."""

    #: Operations that the targets depend on their sources by, for derivatives; None if there are none.
    #: Those of targets that users see add to them, since derivatives by the targets themselves remain.
    operations: Sequence[Operation] | None = None
    #: The expression whose interpolant, or its inverse matrices, the one target is, if it is one.
    expression: Expr | None = None

    # make() fills the targets and is called at once; if it cannot, it raises and leaves them as they
    # are. private: nobody else writes to the targets.
    def __init__(
        self,
        targets: Sequence[Function],
        sources: Sequence[Form | Expr],
        make: Callable[[], None],
        *,
        private: bool = False,
    ) -> None:
        self.private = private
        #: Replays of updates that this is the first one of, for gradients.
        self.replays: dict[tuple, Any] = {}
        self._above = dependents_in(*sources)
        #: The data that the targets are made from.
        self.sources = Sources(*sources)
        self._make = make
        #: The targets as they were last made, where users may set other values.
        self.made = snapshot_of(() if private else targets)
        self.refresh()
        for target in targets:
            setattr(target, _ATTRIBUTE, self)

    def refresh(self) -> None:
        """Recompute the targets if a source has changed; to be called on all ranks."""
        self._above.refresh()
        if self.sources.changed():
            self.sources.forget_ghosts()
            self.renew()

    def renew(self) -> None:
        """Recompute the targets in any case, after dependent fields among the sources are up to date."""
        self._make()
        self.made.take()
        self.sources.take()

    def accept(self, made: list) -> None:
        """Declare that :attr:`made` and the targets hold the values that belong to the present sources."""
        self.made.remember(made)
        self.sources.take()

    @property
    def follows_a_user(self) -> bool:
        """Whether the targets depend on more than meshes, that is on data that a user may change."""
        values = (*self.sources.functions, *self.sources.constants)
        plain = [
            x for x in values if dependent_of(x) is None and not (is_private(x) or _is_place(x))
        ]
        return bool(plain) or any(d.follows_a_user or not d.private for d in self._above)


def assembled(field: Function, form: Form, assemble: Callable[[], Any]) -> Function:
    """Make a field follow an assembled linear form, and return it."""

    def make() -> None:
        field.dat.data_wo[...] = assemble().dat.data_ro

    Dependent([field], [form], make, private=True)
    return field


class MadeOnce:
    """Stands in place of a :class:`Dependent` for data made once: its ``refresh`` refuses changed sources."""

    private, follows_a_user, expression = True, True, None
    #: Empty: derivatives end here.
    sources = Sources()
    _replays = 0

    def __init__(self, message: str, *things: Form | Expr) -> None:
        self._message, self._made_of = message, Sources(*things)
        self._made_of.take()

    def refresh(self) -> None:
        """Raise ``ValueError`` with the message if the values have changed; to be called on all ranks."""
        if not MadeOnce._replays and self._made_of.changed():
            raise ValueError(self._message)

    @staticmethod
    @contextmanager
    def replayed() -> Iterator[None]:
        """Context in which changes are accepted, for replays of a tape, which have values of their own."""
        MadeOnce._replays += 1
        try:
            yield
        finally:
            MadeOnce._replays -= 1


def in_replay() -> bool:
    """Whether values are those of a replay, which may be any, and not those that the user has set."""
    return bool(MadeOnce._replays)


def made_once(thing: Expr, of: Sequence[MadeOnce]) -> Expr:
    """Refuse changes of the data in ``of`` wherever the expression is read, and return the expression."""
    # The expression holds one Constant that nothing else reads, or dependent functions alone.
    for once in of:
        for dependent in dependents_in(thing):
            dependent._above = Dependents((*dependent._above, once))
        for constant in extract_firedrake_constants(thing):
            setattr(constant, _ATTRIBUTE, once)
    return thing


def dependent_of(value: Function | Constant) -> Dependent | MadeOnce | None:
    """The :class:`Dependent` of a function, or the :class:`MadeOnce` of a Constant, if there is one."""
    return getattr(value, _ATTRIBUTE, None)


class Dependents(tuple[Dependent | MadeOnce, ...]):
    """Dependent-field objects that are refreshed together."""

    def refresh(self) -> None:
        """Bring their functions up to date; to be called on all ranks."""
        for dependent in self:
            dependent.refresh()


def dependents_in(*things: Form | Expr) -> Dependents:
    """The dependent-field objects of all coefficients and Constants in forms or expressions, each once."""
    read = ((*extract_coefficients(t), *extract_firedrake_constants(t)) for t in things)
    found = (dependent_of(value) for values in read for value in values)
    return Dependents({id(d): d for d in found if d is not None}.values())


def refresh(*things: Form | Expr) -> None:
    """Bring the dependent functions in forms or expressions up to date; to be called on all ranks."""
    dependents_in(*things).refresh()


def present(forms: dict[str, Any], system) -> dict[str, Any]:
    """Forms by name, or several under a name, whose dependent fields are brought up to date, which
    pyadjoint records; to be called on all ranks.
    """
    several = (f if isinstance(f, Sequence) else (f,) for f in forms.values())
    read = [form for some in several for form in some if isinstance(form, Form)]
    if annotate_tape():
        every = dict.fromkeys(f for form in read for f in form.coefficients())
        fields = [f for f in every if dependent_of(f) is not None and _behind(f)]
        if fields:
            recorders["fields"](fields, system)
    with stop_annotating():
        refresh(*read)
    return forms


def _behind(field: Function) -> list[Function]:
    """The Functions of users that a dependent field is made of."""
    return [f for f in read_in(field) if isinstance(f, Function) and dependent_of(f) is None]


def constants_behind(*things: Form | Expr) -> list[Constant]:
    """The Constants in the sources of the dependent functions in forms or expressions."""
    found = [c for d in dependents_in(*things) for c in d.sources.constants]
    above = [f for d in dependents_in(*things) for f in d.sources.functions]
    return [*found, *(constants_behind(*above) if above else ())]


def set_by(operation: HostOperation) -> Function:
    """The one target of a host operation, as a dependent function that follows what the operation reads."""
    (target,) = operation.writes
    made = Dependent([target], operation.reads, operation.run, private=True)
    made.operations = [operation]
    return target
