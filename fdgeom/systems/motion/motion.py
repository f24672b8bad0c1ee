"""Second-order motions: a configuration, its velocity, and the balance of forces."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ufl
from firedrake import Constant, Function, TestFunction, derivative
from ufl.classes import Expr, Form

from fdgeom.clock import Time
from fdgeom.data import Snapshot, key
from fdgeom.execution import Numerics, PointwiseUpdate, defaults, is_local, saddle_defaults
from fdgeom.forms import simplify
from fdgeom.operations import EPSILON, LOCAL_TEST, ConvergenceTest, each_part, parts
from fdgeom.operations.dependent import in_replay
from fdgeom.systems.system import Model, Output, System
from fdgeom.validation import state_function

if TYPE_CHECKING:
    from fdgeom.systems.motion.condition import Condition
    from fdgeom.systems.motion.held import Held


class MotionOutput(Output):
    """What is drawn of a motion."""

    def fields(self):
        motion = self._system
        found = dict(zip(motion.names, motion.configuration, strict=True))
        return found | {"velocity": motion.v, "acceleration": motion.acceleration}


class MotionModel(Model):
    """The balance, the constraint and its rate, and the values that are given in time."""

    @property
    def clocks(self) -> tuple[Constant, ...]:
        return (self._system.time,)

    def parameters(self):
        motion = self._system
        found = {} if motion.group is None else {"group": repr(motion.group)}
        return found if motion.held is None else found | motion.held.parameters()

    def equations(self):
        motion = self._system
        state = motion.configuration, motion.v, motion.acceleration, motion.time
        balance = {"balance": motion.balance(*state, TestFunction(motion.space))}
        values = {f"given value {k}": value for k, value in enumerate(self.given_motions())}
        return balance | self._of_constraint() | values

    def given_motions(self):
        held = self._system.held
        return () if held is None else held.expressions()

    def given_in_time(self):
        held = self._system.held
        return (held.increment, held.v, held.a) if held is not None and held.varies else ()


class MotionTraits:
    """Capabilities of a motion, and the default solver of its steps."""

    #: Capabilities that methods ask for: "jerk", an acceleration whose rate means something, as it
    #: does not where stiff directions make it huge; "normal", a velocity off the constraint that is
    #: proportional to the square of the step.
    can: frozenset[str] = frozenset({"jerk", "normal"})
    #: Whether steps of a chain of nodes are compiled unless somebody says otherwise.
    is_chain = False

    def __init__(self, motion: Any) -> None:
        self._motion = motion

    def solver_defaults(self, first: Function, other: Function) -> dict[str, Any]:
        """Default solver of the equations of a step, as arguments of :class:`fdgeom.operations.Solve`.

        Parameters
        ----------
        first, other : Function
            Guesses of the unknown: that of a continued motion, and without an increment.
        """
        return {"numerics": self._numerics, "guess": first}

    def _numerics(self, residual: Form, function: Function) -> Numerics:
        local = is_local(residual, function)
        if self._motion.constraint is None or local:
            options = defaults(residual, function, local)
        else:
            options = saddle_defaults(residual, function)
        if local and options["snes_type"] == "newtonls":
            # The matrix takes ten times as long as the residual, and hardly changes in a step.
            options["snes_lag_jacobian"] = 4
        # The unknown is an increment, which is small near rest.
        test = LOCAL_TEST if local else ConvergenceTest()
        test = replace(test, of=self._motion.configuration[0], unnoticed=EPSILON)
        return Numerics(options, test, reuse_matrix=True)


class Motion(System):
    """Base class of systems with a balance of forces, on a vector space or a Lie group.

        ġ = g v̂,   r(g, v, v̇, t) + B(g)ᵀλ = 0,   Φ(g) = 0,   B δ = DΦ(g)[g δ̂].

    A subclass defines the displacement of the configuration by an increment (``group``, or
    :meth:`moved` and perhaps :meth:`bracket`), the derivative of forms along it (:meth:`rate`) and
    the balance r (:meth:`balance`).

    Parameters
    ----------
    configuration : dict of str to Function
        The parts of g by name, such as ``{"position": x, "orientation": q}``.
    v : Function
        Velocity; its space is that of the increments too.
    condition : callable, optional
        ``condition(motion)`` makes the conditions Φ.
    held : callable, optional
        ``held(motion)`` makes the given degrees of freedom, a `Held`.
    coordinates : Function, optional
        Positions of the nodes in space, for output.
    time : Constant, optional
        The time that :meth:`balance` reads, if it exists already.

    Attributes
    ----------
    configuration : tuple of Function
        The parts of g.
    v, acceleration : Function
        Velocity and its true time derivative.
    algorithmic : Function
        The algorithmic acceleration of a generalized-α method: near v̇ at a shifted time.
    time : Constant
        The time that :meth:`balance` reads.
    constraint : Condition or None
        The conditions Φ.
    multiplier : Function or None
        λ.
    held : Held or None
        The degrees of freedom that are given.

    Notes
    -----
    For authors: ``accelerated``, ``algorithmic``, ``balance``, ``bracket``,
    ``check_configuration``, ``configuration``, ``displace``, ``displacements``,
    ``group``, ``held``, ``inertia``, ``moved``, ``names``, ``rate``, ``space``, ``traits``.
    """

    #: The Lie group of the configuration; without one a subclass defines :meth:`moved`.
    group: Any = None

    def __init__(
        self,
        configuration: Mapping[str, Function],
        v: Function,
        *,
        condition: "Callable[[Motion], Condition] | None" = None,
        held: "Callable[[Motion], Held] | None" = None,
        coordinates: Function | None = None,
        time: Constant | None = None,
    ) -> None:
        for name, value in {**configuration, "v": v}.items():
            state_function(name, value)
        if any(v is f for f in configuration.values()):
            raise ValueError("v must be a function of its own")
        super().__init__(v.subfunctions[0].function_space().mesh(), coordinates)
        self.names = tuple(configuration)
        self.configuration = tuple(configuration.values())
        self.v, self.space = v, v.function_space()
        self.acceleration = Function(self.space, name="acceleration")
        self.algorithmic = Function(self.space, name="algorithmic acceleration")
        self.time = Time() if time is None else time
        self._displacements: dict[Function, PointwiseUpdate] = {}
        if self.group is None and type(self).moved is Motion.moved:
            raise TypeError(f"{type(self).__name__} must define moved(), or name its group")
        self.constraint = None if condition is None else condition(self)
        self.multiplier = None if condition is None else self.constraint.multiplier
        self.held = None if held is None else held(self)

    # --- what a subclass says --------------------------------------------------------------------
    def moved(self, increment: Expr, configuration: Sequence[Expr] | None = None) -> tuple:
        """g ∘ retraction(increment), part by part; of the present configuration by default."""
        at = self.configuration if configuration is None else configuration
        return self.group.retract(tuple(at), increment)

    @abstractmethod
    def balance(self, configuration: Sequence[Expr], v: Expr, a: Expr, t: Expr, test: Expr) -> Form:
        """⟨r(g, v, v̇, t), test⟩ without the force of the constraint."""

    def displacements(self, increment: Sequence[Expr]) -> list[dict[Function, Expr]]:
        """Assignments that move the configuration by an increment, given part by part of its space.

        A group for each part.
        """
        (whole,) = increment
        return [dict(zip(self.configuration, self.moved(whole), strict=True))]

    def displace(self, increment: Function) -> None:
        """Move the configuration by an increment, in place."""
        if increment not in self._displacements:
            groups = self.displacements(parts(increment))
            self._displacements[increment] = PointwiseUpdate(*groups)
        self._displacements[increment].apply()

    @abstractmethod
    def rate(self, f: Callable[[Sequence[Expr]], Any], direction: Expr) -> Form:
        """d/ds f(g ∘ retraction(s direction)) at s = 0, of a form f(g) of the configuration."""

    def bracket(self, a: Expr, b: Expr) -> Expr:
        """[a, b] of two velocities; zero on a vector space."""
        return ufl.zero(self.space.value_shape) if self.group is None else self.group.bracket(a, b)

    # --- forms ---------------------------------------------------------------------------------
    def velocity(self) -> Expr:
        """The velocity, a function."""
        return self.v

    def inertia(self, test: Expr, direction: Expr) -> Form:
        """dr/dv̇ at the present state: the mass matrix."""
        form = self.balance(self.configuration, self.v, self.acceleration, self.time, test)
        return simplify(derivative(form, self.acceleration, direction))

    # --- numbers -------------------------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        found = dict(zip(self.names, self.configuration, strict=True))
        found |= {
            "velocity": self.v,
            "acceleration": self.acceleration,
            "algorithmic acceleration": self.algorithmic,
        }
        return found | ({"multiplier": self.multiplier} if self.multiplier is not None else {})

    output: cached_property[Output] = cached_property(MotionOutput)

    # --- what the steppers ask -------------------------------------------------------------------
    model: cached_property[Model] = cached_property(MotionModel)

    traits: cached_property[MotionTraits] = cached_property(MotionTraits)

    def accelerated(self, belong: Callable[[], bool]) -> None:
        """Note that acceleration and multiplier belong to the state while ``belong()`` is true."""

    def check_configuration(self, *, loosely: bool = False) -> None:
        """Raise ``ValueError`` if methods cannot move the present configuration; ``loosely``: if it is
        farther off than steps leave.
        """
        self._check_poses(loosely=loosely)
        if self.constraint is not None:
            self.constraint.check_configuration(loosely=loosely)

    def _check_poses(self, *, loosely: bool = False) -> None:
        """Raise ``ValueError`` as :meth:`check_configuration`, without the constraint."""

    def check_start(self) -> None:
        self._check_finite()
        self._check_poses()
        if self.held is not None:
            self.held.check_start()
        if self.constraint is not None:
            self.constraint.check_start()


def check_new_configuration(motion: Motion, known: Snapshot) -> None:
    """Raise ``ValueError`` for a configuration that was set since a snapshot and that methods cannot move."""
    placed = map(key, each_part(motion.configuration))
    if known.changed_keys().intersection(placed) and not in_replay():
        motion.check_configuration(loosely=True)
        if motion.held is not None:
            motion.held.check_new_configuration()
