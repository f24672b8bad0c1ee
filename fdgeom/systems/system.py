"""Base class of all systems, for the steppers that move them and the recording of their motion."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np
from firedrake import COMM_WORLD, Constant, Function, IntervalMesh, TestFunction
from pyadjoint.tape import annotate_tape, stop_annotating
from ufl.algorithms import extract_coefficients
from ufl.classes import Expr, Form

from fdgeom.data import Number, Snapshot
from fdgeom.execution import FunctionalAssembly, Run, perform
from fdgeom.forms import is_zero, simplify
from fdgeom.identities import Identity, check_now
from fdgeom.operations import Operation
from fdgeom.operations.dependent import read_in
from fdgeom.taping import record, refuse_annotation
from fdgeom.validation import Fixed, NotCopied, firedrake_function, whole

#: The parts of an energy, in the order in which they are recorded.
PARTS = ("kinetic_energy", "potential_energy", "load_potential")

#: The function that draws a system, from :func:`plotted_by`.
_plots: list[Callable] = []


def plotted_by(plot: Callable) -> None:
    """Register ``plot(system, ax, title=, units=)``, which draws the present shape of a system."""
    _plots[:] = [plot]


def named_energies(
    kinetic: Form | None = None, potential: Form | None = None, load: Form | None = None
) -> dict[str, Form]:
    """Energy functionals by name: the given parts, and ``"energy"``, their sum."""
    parts = {
        name: form
        for name, form in zip(PARTS, (kinetic, potential, load), strict=True)
        if form is not None and not is_zero(simplify(form))
    }
    return {**parts, "energy": sum(parts.values(), Form([]))}


#: Hooks of systems of earlier versions, and the objects that have them now.
_MOVED = {
    "model": (
        "all_forms", "clocks", "coefficients", "equations", "given_in_time", "parameters",
        "set_time", "symbols", "underivable",
    ),
    "output": (
        "output_fields", "output_coordinates", "output_orientation", "output_cells", "drawn_beams",
        "refresh_output", "strain_energy_density",
    ),
    "consistency": (
        "synchronise", "synchronised", "publish", "remembered", "followers", "agree", "settle",
    ),
    "substeps": (
        "stage", "start_values", "companions", "frozen_gradient", "forcing", "with_energy",
    ),
    "traits": ("can", "is_chain", "solver_defaults"),
}  # fmt: skip


def _refuse_moved(names: Set[str], of: str) -> None:
    """Raise ``TypeError`` if hooks that have moved are among the names of a system."""
    for owner, hooks in _MOVED.items():
        for name in sorted(names & set(hooks)):
            raise TypeError(f"{of}.{name} is never read: define it in the class of {of}.{owner}")


class Model:
    """The equations of a system and the data that they read, for steppers, checkpoints and gradients."""

    #: Symbols for (parts of) the state in its forms, beside the state's own Functions.
    symbols: tuple[Function, ...] = ()

    def __init__(self, system: Any) -> None:
        # Some hooks were attributes of instances. A system may have parameters of its own.
        _refuse_moved(vars(system).keys() - {"parameters"}, type(system).__name__)
        self._system = system

    def equations(self) -> dict[str, Form | Expr]:
        """The forms and expressions of its equations, by name, for checkpoints."""
        return {}

    def parameters(self) -> dict[str, object]:
        """Its parameters beside its class and its equations, by name, for checkpoints."""
        return {}

    def all_forms(self) -> tuple[Form | Expr, ...]:
        """All forms and expressions of its motion and its energies."""
        return (*self.equations().values(), *self._system.energies().values())

    def coefficients(self) -> tuple[Function | Constant, ...]:
        """The coefficients in its forms that a user may change, beside the state and the time.

        Functions, including those of Real spaces, and Constants; for a field that fdgeom samples
        from an expression the coefficients in the expression. Derived from :meth:`all_forms`.
        """
        moving = self.moving()
        return tuple(c for c in read_in(*self.all_forms()) if id(c) not in moving)

    def moving(self) -> set[int]:
        """The ids of the inputs of its forms that steppers move: the state and the time."""
        state = (p for f in self._system.functions().values() for p in (f, *f.subfunctions))
        return {id(f) for f in (*state, *self.symbols, *self.clocks)}

    @property
    def clocks(self) -> tuple[Constant, ...]:
        """The times in its forms, which the steppers set."""
        return ()

    def given_in_time(self) -> tuple[Function, ...]:
        """The Functions in its forms that are set for every step, as functions of time."""
        return ()

    def set_time(self, t: float) -> None:
        """Set the time at the end of the coming (sub)step."""
        for number in self._times:
            number.set(t)

    @cached_property
    def _times(self) -> list[Number]:
        return [Number(clock) for clock in self.clocks]

    def given_motions(self) -> Sequence[Expr]:
        """The expressions of motions that are given in time."""
        return ()

    def underivable(self) -> str | None:
        """The reason why its motion has no derivatives; None if it has."""
        if any(extract_coefficients(e) for e in self.given_motions()):
            return "a given motion is made of Functions"
        return None

    def _of_constraint(self) -> dict[str, Form]:
        """The rate of the constraint and the forms that state it, by name."""
        system = self._system
        if system.constraint is None:
            return {}
        rate = system.constraint.slope(TestFunction(system.constraint.space), system.velocity())
        stated = {f"condition {k}": form for k, form in enumerate(system.constraint.forms())}
        return {"constraint": rate} | stated


class Output:
    """What is drawn of a system; the base class is for systems that have fields alone."""

    #: Unit quaternions at the nodes of ``coordinates``, if there are any.
    orientation: Function | None = None
    #: The beams whose sections are drawn, in the order of the nodes.
    beams: tuple = ()

    # coordinates: positions of the nodes in space, if they differ from the mesh.
    def __init__(self, system: Any, coordinates: Function | None = None) -> None:
        self._system = system
        self.coordinates = system._coordinates if coordinates is None else coordinates

    def fields(self) -> dict[str, Expr]:
        """Fields worth drawing, by name."""
        return self._system.functions()

    def strain_energy(self) -> Expr | None:
        """Elastic energy per length or volume; none in general."""
        return None

    def cells(self) -> np.ndarray | None:
        """Mask of this rank's cells that are drawn; None for all."""
        return None

    def refresh(self) -> None:
        """Update fields that are for drawing only."""


class Consistency:
    """Keeps the fields of a system consistent; the base class is for systems without dependent fields.

    Fields count as set by hand if their values have changed since :meth:`agree`.
    """

    #: The snapshots by which changes by hand are detected.
    snapshots: tuple[Snapshot, ...] = ()
    #: The operations that compute dependent fields, such as :meth:`followers`, after steps.
    after_steps: Sequence[Operation] = ()
    #: Whether the present fields are those that steps have left, with the errors of these.
    stepped = False

    def __init__(self, system: Any) -> None:
        self._system = system
        self._runs: dict[Operation, Run] = {}

    def synchronise(self, modified: Sequence[Set[int]] | None = None) -> list[Operation]:
        """The operations that update dependent fields before steps.

        For derivatives ``modified`` has, for each of :attr:`snapshots`, the keys of all that count
        as set.
        """
        self._system._check_data()
        return []

    def synchronised(self) -> None:
        """Note that the operations of :meth:`synchronise` have been performed."""

    def followers(self) -> dict[str, Function]:
        """Fields that :attr:`after_steps` computes from those that a step changes, and that may be set
        instead, by name: fields of the members of a composed system.
        """
        return {}

    def agree(self) -> None:
        """Declare all fields consistent, with their present values."""
        for snapshot in self.snapshots:
            snapshot.take()

    def holds(self) -> bool:
        """Whether no field was set."""
        return not self.snapshots or all(snapshot.holds() for snapshot in self.snapshots)

    def is_placed(self) -> bool:
        """Whether the configuration was among the fields that were set."""
        return True

    def prepare(self) -> None:
        """Update dependent fields before a step, or before a monitor that pyadjoint records."""
        if self.stepped:
            self.stepped = self.holds() or not self.is_placed()
        if annotate_tape():
            with stop_annotating():
                operations = self.synchronise()
        else:
            operations = self.synchronise()
        if operations:
            follow = partial(self._follow, operations)
            record("the update of fields", follow, lambda: operations, self._system)

    def _follow(self, operations: Sequence[Operation]) -> None:
        self.perform(operations)
        self.synchronised()

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Context in which fields follow those that were set; at its end all are as they were."""
        if self.holds():
            yield
            return
        fields = Snapshot([*self._system.functions().values(), *self.followers().values()])
        fields.take()
        remembered, stepped = [(s, s.values()) for s in self.snapshots], self.stepped
        try:
            self.prepare()
            yield
        finally:
            fields.restore()
            for snapshot, values in remembered:
                snapshot.remember(values)
            self.stepped = stepped

    def settle(self) -> None:
        """Make all fields consistent, after steps or after a checkpoint has been read."""
        if self.after_steps:
            self.perform(self.after_steps)
        self.agree()

    def perform(self, operations: Sequence[Operation]) -> None:
        """Perform operations that change fields."""
        perform(operations, self._runs)


class System(NotCopied, Fixed, ABC):
    """Base class of all systems: Functions that a step changes, and the forms of their motion.

    Each family of systems states its equations in its own way, for its steppers. To add a system,
    derive from a family: `PoissonSystem` (in ``poisson/poisson.py``), `Motion`
    (``motion/motion.py``), `ConstrainedSystem` (``constrained/constrained.py``) or
    `ChaplyginSystem` (``chaplygin/chaplygin.py``). This class has the methods that everything else
    needs (the clock, runs, monitors, checkpoints, output); the defaults are those of an empty
    system.

    Parameters
    ----------
    mesh : firedrake.MeshGeometry
        Mesh of its Functions.
    coordinates : Function, optional
        Positions of the nodes in space, for output, if they differ from the mesh.

    Attributes
    ----------
    mesh, comm
        The mesh and its communicator.
    constraint
        Its constraint, with ``defect()`` and ``rate(velocity)``; None without one.

    Notes
    -----
    For authors: ``casimirs``, ``check_start``, ``consistency``, ``constraint``, ``model``,
    ``functions``, ``momenta``, ``output``, ``turns``.
    """

    constraint: Any = None
    velocity: Any

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        _refuse_moved(vars(cls).keys(), cls.__name__)

    def __init__(self, mesh, coordinates: Function | None = None) -> None:
        if coordinates is not None:
            firedrake_function("coordinates", coordinates)
        self.mesh, self.comm = mesh, mesh.comm
        self._coordinates = coordinates
        # Objects that are made at their first use.
        self._held: dict[str, Any] = {}
        #: Identities that its steps rely on, by the messages of errors.
        self._demands: dict[str, Identity] = {}

    def __repr__(self) -> str:
        try:
            names = ", ".join(self.functions())
        except AttributeError:  # it is being made
            names = "..."
        return f"{type(self).__name__}({names})"

    # --- what it is made of ----------------------------------------------------------------------
    @abstractmethod
    def functions(self) -> dict[str, Function]:
        """All Functions that a step changes, by name; a checkpoint stores them."""

    model: cached_property[Model] = cached_property(Model)

    # --- numbers -----------------------------------------------------------------------------------
    # `energy` is the total that a motion without external work conserves, kinetic_energy +
    # potential_energy + load_potential. The potential energy is that of the system itself (of a
    # beam the elastic one), the load potential that of gravity, dead forces and each `BodyLoad`
    # with a potential.
    def energies(self) -> dict[str, Form]:
        """Energy functionals by name, with the total as ``"energy"``; none in general."""
        return {}

    def energy(self) -> float:
        """The total energy."""
        return self._energy_named("energy")

    def kinetic_energy(self) -> float:
        """The kinetic energy."""
        return self._energy_named("kinetic_energy")

    def potential_energy(self) -> float:
        """The potential energy, without that of loads."""
        return self._energy_named("potential_energy")

    def load_potential(self) -> float:
        """The potential of the loads that have one, such as gravity and dead forces."""
        return self._energy_named("load_potential")

    def _energy_named(self, name: str) -> float:
        with self._measured(name, "Energy"):
            key = f"number of {name}"
            if key not in self._held:
                forms = self.energies()
                if name not in forms and not any(part in forms for part in PARTS):
                    known = "its energy as a whole" if forms else "no energy"
                    raise ValueError(
                        f"{name}: this {type(self).__name__} states {known}; measure a functional of "
                        "your own, fdgeom.Functional(name, form)"
                    )
                self._held[key] = FunctionalAssembly(forms[name]) if name in forms else None
            held = self._held[key]
            return 0.0 if held is None else held.assemble()

    def momenta(self) -> dict[str, tuple[Form, ...]]:
        """Momentum functionals by name, component by component; none in general."""
        return {}

    def casimirs(self) -> dict[str, Form]:
        """Casimir functionals by name; none in general."""
        return {}

    def constraint_defect(self) -> float:
        """Largest |g(q)|, averaged with each test function of the multiplier's space."""
        if not self.constraint:
            return 0.0
        with stop_annotating(), self.consistency.prepared():
            return self.constraint.defect()

    def velocity_defect(self) -> float:
        """Largest |A(q) q̇|, A = Dg for g(q) = 0, averaged with each test function of the multiplier's
        space.
        """
        if not self.constraint:
            return 0.0
        with stop_annotating(), self.consistency.prepared():
            return self.constraint.rate(self.velocity())

    def _momentum_named(self, name: str) -> np.ndarray:
        with self._measured(name, "Momentum"):
            key = f"number of {name}"
            if key not in self._held:
                self._held[key] = [FunctionalAssembly(form) for form in self.momenta()[name]]
            return np.array([held.assemble() for held in self._held[key]])

    def _measured(self, name: str, monitor: str) -> AbstractContextManager[None]:
        """Context for a number of the state, which is refused where pyadjoint would lose it."""
        what = f"{type(self).__name__}.{name}()"
        refuse_annotation(what, f"or take fdgeom.{monitor}()(system), which is recorded")
        return self.consistency.prepared()

    # --- what is drawn -----------------------------------------------------------------------------
    output = cached_property(Output)

    def plot(self, ax=None, *, title: str | None = None, units=None):
        """Draw the present shape in space.

        Parameters
        ----------
        ax : matplotlib 3-D Axes, optional
            A new figure by default.
        title : str, optional
        units : "SI" or dict of str to str, optional
            Units for the names of the axes, such as ``{"length": "mm"}``; none by default.

        Returns
        -------
        matplotlib 3-D Axes, or None on ranks without data

        Raises
        ------
        TypeError
            If the system has no curve in space.
        """
        return _plots[0](self, ax, title=title, units=units)

    # --- what every stepper asks -------------------------------------------------------------------
    @abstractmethod
    def check_start(self) -> None:
        """Raise ``ValueError`` if no step can start from the present state."""

    @property
    def turns(self):
        """Check of rotations in a step: `fdgeom.beams.rod.turns.Turns` of beams; None in general."""
        return None

    consistency = cached_property(Consistency)

    def _check_data(self) -> None:
        """Raise ``ValueError`` if an identity that its steps rely on does not hold now."""
        check_now(self._demands)

    def _check_finite(self, functions: dict[str, Function] | None = None) -> None:
        """Raise ``ValueError`` if a function is not finite; all that a step changes by default."""
        for name, f in (self.functions() if functions is None else functions).items():
            finite = all(np.all(np.isfinite(part.dat.data_ro)) for part in f.subfunctions)
            if self.comm.allreduce(int(not finite)):
                raise ValueError(f"{name} holds values that are not finite: set a finite start")


def copies(n: int, comm=COMM_WORLD):
    """A mesh of ``n`` unit cells, for ``n`` independent copies of a small system in DG0.

    Functions in ``VectorFunctionSpace(copies(n), "DG", 0, dim=d)`` have one state per cell; an
    energy ``e(q, p)*dx`` is then the sum of the copies' energies, since each cell has length one.

    Parameters
    ----------
    n : int
        Number of copies.
    comm : MPI communicator, optional
        The processes that share them.

    Raises
    ------
    ValueError
        If ``n`` is not a positive whole number.
    """
    n = whole("n", n, least=1)
    return IntervalMesh(n, n, comm=comm)
