"""Second-order motions: a configuration, its velocity, and the balance of forces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

import ufl
from firedrake import Constant, Function, TestFunction, TrialFunction, derivative
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.forms import depends_on, tidy
from fdgeom.systems.constrained.constraint import Constraint
from fdgeom.systems.mechanical import MechanicalSystem


class Motion(MechanicalSystem):
    """Base of what moves by a balance of forces, on a vector space or a Lie group:

        ġ = g v̂,   r(g, v, v̇, t) + B(g)ᵀλ = 0,   Φ(g) = 0,   B δ = DΦ(g)[g δ̂].

    A subclass says how an increment moves the configuration (:meth:`moved`), what the balance r is
    (:meth:`balance`) and, on a group, what the bracket is.

    Parameters
    ----------
    configuration : dict of str to Function
        The parts of g by name, such as ``{"position": x, "orientation": q}``.
    v : Function
        Velocity; its space is that of the increments too.
    constraint : callable, optional
        ``constraint(λ)`` gives the form ∫ λ·Φ(g), linear in λ.
    multiplier : Function, optional
        λ.
    coordinates : Function, optional
        Where in space the nodes are, for output.

    Attributes
    ----------
    configuration : tuple of Function
        The parts of g.
    v, acceleration : Function
        Velocity and its time derivative, the true one.
    algorithmic : Function
        The acceleration that a generalized-α method carries along: near v̇ at a shifted time.
    time : Constant
        The time that :meth:`balance` reads.
    """

    def __init__(
        self,
        configuration: Mapping[str, Function],
        v: Function,
        *,
        constraint: Callable | None = None,
        multiplier: Function | None = None,
        coordinates: Function | None = None,
    ) -> None:
        for name, value in {**configuration, "v": v}.items():
            if not isinstance(value, Function):
                raise TypeError(f"{name} must be a firedrake Function, not {type(value).__name__}")
        if any(v is f for f in configuration.values()):
            raise ValueError("v must be a function of its own")
        if (constraint is None) != (multiplier is None):
            raise ValueError("give constraint and multiplier together, or neither")
        super().__init__(next(iter(configuration.values())), coordinates)
        self.names = tuple(configuration)
        self.configuration = tuple(configuration.values())
        self.v, self.space = v, v.function_space()
        self.acceleration = Function(self.space, name="acceleration")
        self.algorithmic = Function(self.space, name="algorithmic acceleration")
        self.time = Constant(0.0, name="time")
        #: No degree of freedom is held at rest; see ``given`` for those whose motion is given.
        self.fixed, self.given = (), None
        self._zero = Function(self.space, name="increment")
        self.multiplier, self.constraint = multiplier, None
        if multiplier is not None:
            self.constraint = MotionConstraint(self, constraint, multiplier)

    # --- what a subclass says --------------------------------------------------------------------
    @abstractmethod
    def moved(self, increment: Expr, configuration: Sequence[Expr] | None = None) -> tuple:
        """g ∘ retraction(increment), part by part; of the present configuration by default."""

    @abstractmethod
    def balance(self, configuration: Sequence[Expr], v: Expr, a: Expr, t: Expr, test: Expr) -> Form:
        """⟨r(g, v, v̇, t), test⟩ without the force of the constraint."""

    def displace(self, increment: Function) -> None:
        """Move the configuration by an increment, in place."""
        raise NotImplementedError

    def bracket(self, a: Expr, b: Expr) -> Expr:
        """[a, b] of two velocities; zero on a vector space."""
        return ufl.zero(self.space.value_shape)

    # --- forms ---------------------------------------------------------------------------------
    def velocity(self) -> Expr:
        """The velocity, a function."""
        return self.v

    def along(self, form: Form, direction: Expr) -> Form:
        """d/dε of a form of the present configuration g as g moves to g ∘ retraction(ε direction)."""
        moved = dict(zip(self.configuration, self.moved(self._zero), strict=True))
        form = tidy(derivative(replace(expand_derivatives(form), moved), self._zero, direction))
        return tidy(replace(form, {self._zero: ufl.zero(self.space.value_shape)}))

    def inertia(self, test: Expr, direction: Expr) -> Form:
        """dr/dv̇ at the present state: the mass matrix."""
        form = self.balance(self.configuration, self.v, self.acceleration, self.time, test)
        return tidy(derivative(form, self.acceleration, direction))

    # --- numbers -------------------------------------------------------------------------------
    def equations(self) -> dict[str, Form]:
        """The balance, and the rate of the constraint."""
        state = self.configuration, self.v, self.acceleration, self.time
        return {"balance": self.balance(*state, TestFunction(self.space)), **self._condition()}

    def all_forms(self) -> tuple[Form | Expr, ...]:
        state = self.configuration, self.v, self.acceleration, self.time
        given = () if self.given is None else self.given.expressions()
        return (self.balance(*state, TestFunction(self.space)), *super().all_forms(), *given)

    def functions(self) -> dict[str, Function]:
        """Everything that a step changes, by name."""
        found = dict(zip(self.names, self.configuration, strict=True))
        found |= {
            "velocity": self.v,
            "acceleration": self.acceleration,
            "algorithmic acceleration": self.algorithmic,
        }
        return found | ({"multiplier": self.multiplier} if self.multiplier is not None else {})

    def output_fields(self) -> dict[str, Expr]:
        """Fields worth drawing, by name."""
        found = dict(zip(self.names, self.configuration, strict=True))
        return found | {"velocity": self.v, "acceleration": self.acceleration}

    # --- what the steppers ask -------------------------------------------------------------------
    @property
    def clocks(self) -> tuple[Constant, ...]:
        return (self.time,)

    def set_time(self, t: float) -> None:
        """Tell the system the time at the end of the coming step."""
        self.time.assign(t)

    def check_start(self) -> None:
        """Raise ``ValueError`` if no step can start from the present state."""
        self._check_finite()
        if self.constraint is not None:
            test, trial = TestFunction(self.space), TrialFunction(self.space)
            self.constraint.check(self.v, self.inertia(test, trial), self.fixed)


class MotionConstraint(Constraint):
    """A holonomic constraint on the configuration of a :class:`Motion`."""

    def __init__(self, motion: Motion, functional: Callable, multiplier) -> None:
        self._motion = motion
        forbidden = {motion.v: "depends on the velocity v, so it is not holonomic"}
        super().__init__(motion.configuration[0], functional, multiplier, forbidden)

    def _tangent(self, q: Function):
        return self._motion.space

    def _depends(self, form: Form) -> bool:
        return any(depends_on(form, f) for f in self._motion.configuration)

    def _along(self, form: Form, direction: Expr) -> Form:
        return self._motion.along(form, direction)

    def _at(self, form: Form, mapping: dict, at: Sequence[Expr] | None) -> Form:
        if at is not None:
            mapping = {**mapping, **dict(zip(self._motion.configuration, at, strict=True))}
        return tidy(replace(form, mapping))

    def value(self, test: Expr, at: Sequence[Expr] | None = None) -> Form:
        """∫ ν·Φ(g) at a configuration, the present one by default."""
        return self._at(self._form, {self.test: test}, at)

    def slope(self, test: Expr, direction: Expr, at: Sequence[Expr] | None = None) -> Form:
        """∫ ν·B(g)w: with ν = λ the work of the constraint's force, with w = v the rate of Φ."""
        return self._at(self._slope, {self.test: test, self._direction: direction}, at)
