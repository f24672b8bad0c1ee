"""Rigid bodies, one a cell: rotations, positions beside rotations, or motions of SE(3)."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import ufl
from firedrake import Constant, Function, dx
from ufl.algorithms import replace
from ufl.classes import Expr, Form

from fdgeom.data import Snapshot
from fdgeom.forms import (
    check_arguments,
    checked_form,
    depends_on,
    derivative_along,
    refuse_views,
    shaped_space,
    simplify,
)
from fdgeom.lie import halves, join, quaternion
from fdgeom.lie.groups import SO3, Group, R3xSO3
from fdgeom.messages import is_function, reported_as
from fdgeom.operations.interpolate import sampled
from fdgeom.systems.constrained.constraint import LOOSE
from fdgeom.systems.motion.condition import stated
from fdgeom.systems.motion.motion import Motion
from fdgeom.systems.system import named_energies
from fdgeom.taping import not_taped
from fdgeom.validation import (
    array,
    check_moments,
    firedrake_function,
    instance,
    scalar,
)

# Of the largest entry: how symmetric a matrix in double precision is, and how far from singular.
_SYMMETRIC, _SINGULAR = 1e-12, 1e-14
# Of the squared length of a quaternion that was meant to be a unit one.
_UNIT = 1e-12


class RigidBodies(Motion):
    """Rigid bodies, each in a cell of its own, in the frame of the body.

        ġ = g v̂,   M v̇ = ad*_v(Mv) + f(g, v, t) - B(g)ᵀλ,   Φ(g) = 0

    (Euler's and Poincaré's equation; `ad*_v(Mv)` is -Ω×JΩ for a rotation). The group is one of

    ==========  =======================  =======================================================
    group       configuration            velocity v, and what the force f works on
    ==========  =======================  =======================================================
    ``SO3``     orientation              Ω, in the body frame; the body turns about a fixed point
    ``R3xSO3``  position, orientation    (Ω, ẋ): Ω in the body frame, ẋ in the space frame
    ``SE3``     position, orientation    (Ω, u), both in the body frame: ẋ = R u
    ==========  =======================  =======================================================

    The motion is the same on each group, but its time discretisation differs: every step on SE(3)
    satisfies the constraint of a joint to the ground exactly.

    Parameters
    ----------
    orientation : Function
        Unit quaternions, scalar first, R from the body frame to space: 4 components, DG0 on
        :func:`copies`.
    velocity : Function
        v: 3 components on SO(3), else 6, the angular velocity first; same mesh, DG0.
    position : Function, optional
        Position of the centre of mass: 3 components, same mesh, DG0. Needed unless the group is
        SO(3).
    inertia : (3, 3) or (3,) array_like, or UFL expression
        J about the centre of mass (about the fixed point on SO(3)), in the body frame: the whole
        matrix, or its diagonal. A DG0 function of shape (3, 3) if the bodies differ.
    mass : float or UFL expression, optional
        m, needed with positions; a DG0 function if the bodies differ.
    group : Group, optional
        ``fg.lie.groups.SO3``, ``R3xSO3`` or ``SE3``, or one of these ``.by("cay")``. The default is
        R³×SO(3) with a position, SO(3) without.
    potential : UFL functional, optional
        Potential energy, of position and orientation.
    force : callable, optional
        ``force(x, q, v, t)`` (``force(q, v, t)`` on SO(3)) gives the vector f of the size of v, the
        moment first, each in the frame of its part of v.
    constraint : callable, optional
        ``constraint(λ)`` gives the form ∫ λ·Φ, linear in λ, with Φ of position and orientation.
    multiplier : Function, optional
        λ, of a DG0 space with one component for each constraint.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, such as an inertia that is not symmetric positive
        definite.

    Examples
    --------
    A heavy top, whose tip is held at the origin:

    >>> R = quaternion.matrix(q)
    >>> top = RigidBodies(
    ...     q, v, x, inertia=[0.234375, 0.46875, 0.234375], mass=15.0, potential=15*9.81*x[2]*dx,
    ...     constraint=lambda mult: dot(mult, R*arm - x)*dx, multiplier=mult)  # doctest: +SKIP
    """

    def __init__(
        self,
        orientation: Function,
        velocity: Function,
        position: Function | None = None,
        *,
        inertia,
        mass=None,
        group: Group | None = None,
        potential: Form | None = None,
        force: Callable | None = None,
        constraint: Callable | None = None,
        multiplier: Function | None = None,
    ) -> None:
        self.group = _group(group, position)
        self.position, self.orientation = position, orientation
        parts = {"position": position, "orientation": orientation}
        parts = {name: part for name, part in parts.items() if part is not None}
        _check_space("orientation", orientation, 4, orientation)
        _check_space("velocity", velocity, self.group.dimension, orientation)
        if position is not None:
            _check_space("position", position, 3, orientation)
        if multiplier is not None:
            _check_space("multiplier", multiplier, None, orientation)
        self._inertia = _inertia_of(inertia, orientation)
        self._mass = _mass_of(mass, orientation, needed=position is not None)
        super().__init__(parts, velocity, condition=stated(constraint, multiplier))
        self._potential = self._checked_potential(potential)
        self._force = self._checked_force(force)

    def _checked_potential(self, potential) -> Form | None:
        if potential is None:
            return None
        without = {self.v: "depends on the velocity"}
        own = *self.configuration, self.v
        potential = simplify(
            checked_form("potential", potential, mesh=self.mesh, without=without, state=own)
        )
        if not any(depends_on(potential, part) for part in self.configuration):
            raise ValueError(
                "potential does not depend on position or orientation, so it gives no force"
            )
        return potential

    def _checked_force(self, force) -> Callable | None:
        if force is None:
            return None
        wanted = ", ".join("xq"[-len(self.configuration) :]) + ", v, t"
        if not is_function(force):
            raise TypeError(
                f"force must be a callable of ({wanted}) giving a vector, such as "
                f"lambda {wanted}: -0.1*v, not {type(force).__name__}"
            )
        with reported_as(f"force: no valid expression of ({wanted})"):
            own = *self.configuration, self.v
            symbols = tuple(Function(f.function_space()) for f in own)
            found = ufl.as_ufl(force(*symbols, self.time))
        refuse_views("force", found, *symbols)
        check_arguments("force", found, *self.configuration, self.v)
        if found.ufl_shape != self.v.ufl_shape:
            raise ValueError(
                f"force must give a vector of shape {self.v.ufl_shape}, the moment first, not of "
                f"shape {found.ufl_shape}"
            )
        return force

    # --- as a motion ---------------------------------------------------------------------------
    def rate(self, f: Callable[[Sequence[Expr]], Any], direction: Expr) -> Form:
        """d/ds f(g ∘ retraction(s direction)) at s = 0."""
        form, slope = f(self.configuration), Form([])
        rates = self.group.rate(self.configuration, direction)
        for part, rate in zip(self.configuration, rates, strict=True):
            slope += derivative_along(form, part, rate)
        return simplify(slope)

    def _body_momentum(self, v: Expr) -> Expr:
        """Mv."""
        if self.position is None:
            return ufl.dot(self._inertia, v)
        spin, drift = halves(v, "v")
        return join(ufl.dot(self._inertia, spin), self._mass * drift)

    def balance(self, configuration: Sequence[Expr], v: Expr, a: Expr, t: Expr, test: Expr) -> Form:
        """M v̇ - ad*_v(Mv) - f, and the potential's derivative."""
        momentum = self._body_momentum(v)
        inertial = self._body_momentum(a) - self.group.coadjoint(v, momentum)
        if self._force is not None:
            inertial -= self._force(*configuration, v, t)
        form = ufl.dot(inertial, test) * dx
        if self._potential is not None:
            symbol = Function(self.space)
            slope = self.rate(lambda g: self._potential, symbol)
            there = dict(zip(self.configuration, configuration, strict=True))
            form += replace(slope, {symbol: test, **there})
        return form

    def _check_poses(self, *, loosely: bool = False) -> None:
        """Raise ``ValueError`` for quaternions that are not of length one."""
        length = np.sum(self.orientation.dat.data_ro**2, axis=1)
        off = np.abs(length - 1).max(initial=0.0)
        off = max(self.comm.allgather(float(off)))
        if not off <= (LOOSE if loosely else _UNIT):
            raise ValueError(
                f"orientation must hold unit quaternions: |q|² is off by {off:.3g}. Divide by the "
                "length: orientation.interpolate(fg.lie.quaternion.normalize(orientation))"
            )

    @not_taped
    def project(self) -> None:
        """Move to a configuration with Φ = 0 near by, and remove the part of the velocity that
        violates it.

        The configuration moves by the d of least dᵀMd, the momentum by a multiplier.

        Raises
        ------
        ValueError
            If Newton's iteration does not find such a configuration.
        """
        if self.constraint is None:
            return
        increment, to_place, to_velocity = self._projection
        with Snapshot([*self.configuration, self.v]).kept():
            increment.assign(0.0)
            to_place()
            self.displace(increment)
            to_velocity()

    @cached_property
    def _projection(self) -> tuple[Function, Callable[[], None], Callable[[], None]]:
        """M d = B(g)ᵀμ with Φ(g r(d)) = 0, then M(w - v) = B(g)ᵀμ with B(g)w = 0."""
        condition, increment = self.constraint, Function(self.space)

        def place(d: Expr, mu: Expr, test: Expr, nu: Expr) -> Form:
            work = self.inertia(test, d) - condition.slope(mu, test)
            return work + condition.value(nu, self.moved(d))

        def velocity(w: Expr, mu: Expr, test: Expr, nu: Expr) -> Form:
            work = self.inertia(test, w - self.v) - condition.slope(mu, test)
            return work + condition.slope(nu, w)

        projection = condition.projection
        return increment, projection(increment, place), projection(self.v, velocity)

    # --- what the recording reads ----------------------------------------------------------------
    def energies(self) -> dict[str, Form]:
        """½ v·Mv, the potential if one was given, and their sum, over all bodies."""
        kinetic = 0.5 * ufl.dot(self.v, self._body_momentum(self.v)) * dx
        return named_energies(kinetic, self._potential)

    def momenta(self) -> dict[str, tuple[Form, ...]]:
        """Momenta in the space frame, over all bodies: linear, and angular about the origin."""
        momentum, turn = self._body_momentum(self.v), partial(quaternion.rotate, self.orientation)
        if self.position is None:
            return {"angular_momentum": _components(turn(momentum))}
        moment, linear = halves(momentum, "momentum")
        if self.group.name == "SE3":
            linear = turn(linear)
        angular = turn(moment) + ufl.cross(self.position, linear)
        return {"linear_momentum": _components(linear), "angular_momentum": _components(angular)}


def _components(vector: Expr) -> tuple[Form, ...]:
    return tuple(vector[k] * dx for k in range(3))


def _group(group, position) -> Group:
    if group is None:
        return SO3 if position is None else R3xSO3
    wanted = "fg.lie.groups.SO3, R3xSO3 or SE3 (or one of these .by('cay'))"
    instance("group", group, Group, wanted)
    if (group.dimension == 3) != (position is None):
        raise ValueError(
            f"position: {group.name} has none, leave it out"
            if position is not None
            else f"position is needed on {group.name}: a DG0 function of three components"
        )
    return group


def _check_space(name: str, given, size: int | None, like: Function) -> None:
    """A Function of DG0 of a size, on the mesh of another one."""
    space = firedrake_function(name, given).function_space()
    if size is not None and given.ufl_shape != (size,):
        raise ValueError(f"{name} must have {size} components, not the shape {given.ufl_shape}")
    if len(space) > 1 or space.cell_node_map().arity != 1:
        raise ValueError(
            f"{name} must be of a DG0 space: VectorFunctionSpace(fg.copies(n), 'DG', 0, dim=...)"
        )
    if space.mesh() is not like.function_space().mesh():
        raise ValueError(f"{name} must live on the mesh of orientation")


def _inertia_of(value, like: Function) -> Expr:
    """The matrix (3, 3) of inertia for use in forms, checked in every cell."""
    # `value`: the matrix or its diagonal, or a UFL expression, which becomes a DG0 function on the
    # mesh of `like`.
    if isinstance(value, Expr):
        return _field("inertia", value, (3, 3), like, _check_inertia)
    wanted = "a finite 3×3 matrix, its diagonal or a UFL expression"
    matrix = array("inertia", value, (3,), (3, 3), wanted=wanted)
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    _check_inertia(matrix[None])
    constant = Constant(matrix)
    # Zeros are left out of the forms: most bodies are given by their principal axes.
    return ufl.as_matrix(
        [[constant[i, j] if matrix[i, j] else 0.0 for j in range(3)] for i in range(3)]
    )


def _mass_of(value, like: Function, *, needed: bool) -> Expr | None:
    """The mass for use in forms, or None where it is not needed; an error if it is given then."""
    if value is None and needed:
        raise ValueError("mass is needed for bodies that have a position")
    if value is not None and not needed:
        raise ValueError("mass: bodies about a fixed point have none; put it into the inertia")
    if value is None:
        return None
    if isinstance(value, Expr):
        return _field("mass", value, (), like, _check_mass)
    return Constant(float(scalar("mass", value, above=0)))


def _field(name: str, value: Expr, shape: tuple[int, ...], like: Function, check) -> Function:
    """A field that is constant in each cell, its values checked on all ranks."""
    if value.ufl_shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, not {value.ufl_shape}")
    space = shaped_space(shape, like.function_space().mesh(), "DG", 0)
    return sampled(name, value, space, check=check, private=True)


def _check_inertia(matrices: np.ndarray) -> None:
    if not np.all(np.isfinite(matrices)):
        raise ValueError("inertia must be finite")
    size = np.abs(matrices).max(axis=(1, 2), initial=0.0)
    skew = np.abs(matrices - matrices.transpose(0, 2, 1)).max(axis=(1, 2), initial=0.0)
    if np.any(skew > _SYMMETRIC * size):
        raise ValueError("inertia must be symmetric")
    if not np.all(np.linalg.eigvalsh(matrices)[:, 0] > _SINGULAR * size):
        raise ValueError(
            "inertia must be positive definite; it is singular or indefinite. A slender body needs "
            "a small moment of inertia about its axis too"
        )
    check_moments(matrices)


def _check_mass(values: np.ndarray) -> None:
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError("mass must be positive and finite")
