"""Runge–Kutta methods: Gauss–Legendre of the highest order, and the classical one as a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from firedrake import (
    Constant,
    Form,
    Function,
    MixedFunctionSpace,
    TestFunction,
    TestFunctions,
    VectorFunctionSpace,
    split,
)
from ufl.core.expr import Expr

from fdgeom.execution import plain
from fdgeom.forms import has_nodal_values, scalar_space, unflatten
from fdgeom.operations import Assignments, Flow, Solve, with_assignments
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.poisson.hamiltonian import HamiltonianSystem
from fdgeom.systems.poisson.poisson import PoissonSystem
from fdgeom.validation import choice

Parts = tuple[Expr, ...]


@dataclass(frozen=True)
class Stages:
    """Several states Z_i, given by their changes Z_i - z⁰, as one unknown."""

    #: The unknown of the solver.
    unknown: Function
    #: The parts of z⁰.
    old: tuple[Function, ...]
    #: The Z_i - z⁰ and their test functions, part by part.
    changes: tuple[Parts, ...]
    tests: tuple[Parts, ...]
    #: δh/δz of each state and its test functions, where it is an unknown.
    gradients: tuple[Parts, ...] | None
    gradient_tests: tuple[Parts, ...] | None
    #: The changes again, for pointwise assignments and for the forms of other solves.
    nodal_changes: tuple[Parts, ...]

    @property
    def states(self) -> tuple[Parts, ...]:
        """The states Z_i."""
        return tuple(_sum(self.old, change) for change in self.changes)

    @property
    def nodal_states(self) -> tuple[Parts, ...]:
        """The states, from ``nodal_changes``."""
        return tuple(_sum(self.old, change) for change in self.nodal_changes)


def stages(system: PoissonSystem, number: int) -> Stages:
    """The unknown of ``number`` states, with their gradients where these are not pointwise: one
    vector at each node for parts that have the same nodes, otherwise a mixed function.
    """
    own = [part.function_space() for part in system.parts]
    solves_gradient = (
        not isinstance(system, HamiltonianSystem) and system.gradient(system.parts) is None
    )
    shapes, space = list(system.forms.shapes) * number, None
    if not solves_gradient:
        space = _common_space(own, number)
    if space is not None:
        unknown, test = Function(space, name="stages"), TestFunction(space)
        fields = unflatten(unknown, shapes, "unknown")
        found = fields, unflatten(test, shapes, "test"), fields
    else:
        space = MixedFunctionSpace(own * number * (2 if solves_gradient else 1))
        unknown = Function(space, name="stages")
        found = split(unknown), TestFunctions(space), unknown.subfunctions
    changes, tests, nodal_changes = (_groups(x, len(own)) for x in found)
    return Stages(
        unknown=unknown,
        old=system.parts,
        changes=changes[:number],
        tests=tests[:number],
        gradients=changes[number:] if solves_gradient else None,
        gradient_tests=tests[number:] if solves_gradient else None,
        nodal_changes=nodal_changes[:number],
    )


def _common_space(spaces, number: int):
    """Vectors of all components of all states at each node, or None if the nodes differ."""
    if not all(map(has_nodal_values, spaces)):
        return None
    elements = {(V.mesh(), scalar_space(V).ufl_element()) for V in spaces}
    if len(elements) > 1:
        return None
    ((mesh, element),) = elements
    sizes = [int(np.prod(V.value_shape, dtype=int)) for V in spaces]
    return VectorFunctionSpace(mesh, element, dim=number * sum(sizes))


def _groups(items: Sequence, size: int) -> tuple[tuple, ...]:
    return tuple(tuple(items[k : k + size]) for k in range(0, len(items), size))


def _sum(old: Parts, change: Parts) -> Parts:
    return tuple(a + b for a, b in zip(old, change, strict=True))


def flow(system: PoissonSystem, test: Parts, state: Parts, gradient: Parts | None) -> Form:
    """The form {w, h}(z) at a state; ``gradient`` is δh/δz there, if that is an unknown."""
    if isinstance(system, HamiltonianSystem):
        return system.motion(test, state)
    slope = system.gradient(state) if gradient is None else gradient
    return system.bracket(test, slope, at=state)


def defining_gradients(system: PoissonSystem, unknown: Stages, at: Sequence[Parts]) -> Form:
    """⟨b, w⟩ = dh(z)[w] for the gradients among the unknowns, z the states ``at``."""
    if unknown.gradients is None or unknown.gradient_tests is None:
        return Form([])
    terms = (
        system.pairing(w, b, at=z) - system.forms.energy_derivative(w, z)
        for w, b, z in zip(unknown.gradient_tests, unknown.gradients, at, strict=True)
    )
    return sum(terms, Form([]))


class StagesStepper(Stepper):
    """Base of the methods whose unknowns are :class:`Stages`: the state alone may move."""

    moves: ClassVar[type[Any]] = PoissonSystem
    needs = "a PoissonSystem (a bracket and an energy)"

    def _setup(self) -> None:
        system = self.system
        more = set(system.functions()) - set(system.names)
        if more:
            raise ValueError(
                f"system: {type(self).__name__} moves the state alone, but {sorted(more)} of this "
                f"{type(system).__name__} move too; use Composition(ImplicitMidpoint, order=4) instead"
            )
        system.check_start()

    def _solve(
        self, unknown: Stages, dt: Constant, residual: Form, assignments: Sequence[Assignments]
    ) -> Flow:
        """A solve that begins without changes, and assignments after it."""
        function = unknown.unknown
        solve = Solve(
            work=residual,
            unknown=function,
            guess=Function(function.function_space(), name="no changes"),
            dt=dt,
            options=self.solve_options(),
            numerics=plain,
            name=" and ".join(self.system.names),
        )
        return Flow(with_assignments(solve, assignments))


_STAGES = (1, 2, 3, 4)


def tableau(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix A, weights b and nodes c of the Gauss–Legendre method with ``number`` stages."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    c, b = 0.5 + 0.5 * nodes, 0.5 * weights
    # Collocation: Σ_j a_ij c_j^k = c_i^(k+1)/(k+1).
    k = np.arange(number)
    powers = c[:, None] ** k
    A = np.linalg.solve(powers.T, (c[:, None] ** (k + 1) / (k + 1)).T).T
    return A, b, c


def GaussLegendre(stages: int = 2) -> type[Stepper]:
    """The stepper class of the Gauss–Legendre method with a number of stages.

        Z_i = z⁰ + Δt Σ_j a_ij f(Z_j),    z¹ = z⁰ + Δt Σ_i b_i f(Z_i),    ⟨w, f(Z)⟩ = {w, h}(Z),

    of order 2s with s stages (Hairer, Lubich & Wanner, Geometric Numerical Integration, sections
    II.1.3, IV.2, VI.4). Symplectic for constant brackets; conserves every quadratic invariant. One
    solve gives all stages, coupled node by node if the energy is pointwise.

    Parameters
    ----------
    stages : {1, 2, 3, 4}
        Number of stages; one is the implicit midpoint rule.

    Returns
    -------
    type
        A stepper class, to be called with ``(system, dt, ...)`` like any other, for any
        :class:`PoissonSystem` without a configuration beside its state.

    Raises
    ------
    ValueError
        If there is no such method.

    Examples
    --------
    >>> stepper = GaussLegendre(stages=3)(system, dt=0.1)  # doctest: +SKIP
    """
    return _class_of(choice("stages", stages, _STAGES))


@cache
def _class_of(stages: int) -> type[Stepper]:
    traits = {
        "__doc__": f"Gauss–Legendre method of {stages} stages; see :func:`GaussLegendre`.",
        "__module__": __name__,
        "order": 2 * stages,
        "_stages": stages,
    }
    return type(f"GaussLegendre{stages}", (_Gauss,), traits)


class _Gauss(StagesStepper):
    """A Gauss–Legendre method."""

    symmetric = True
    symplectic = True
    conserves = ("quadratic energy", "quadratic Casimirs")
    cites = ("HairerLubichWanner2006",)
    _stages: ClassVar[int]

    def flows(self):
        system = self.system
        A, b, _ = tableau(self._stages)
        inverse = np.linalg.inv(A)
        unknown, dt = stages(system, self._stages), Constant(0.0, name="dt")
        residual = defining_gradients(system, unknown, unknown.states)
        # Σ_j (A⁻¹)_ij (Z_j - z⁰) = Δt f(Z_i): each f only once.
        for i, w in enumerate(unknown.tests):
            mean = _combination(inverse[i], unknown.changes)
            b_i = None if unknown.gradients is None else unknown.gradients[i]
            motion = flow(system, w, unknown.states[i], b_i)
            residual += system.pairing(w, mean, at=unknown.states[i]) - dt * motion
        # z¹ = z⁰ + Σ_i (bᵀA⁻¹)_i (Z_i - z⁰)
        moved = _combination(b @ inverse, unknown.nodal_changes)
        new = [{part: part + change} for part, change in zip(system.parts, moved, strict=True)]
        return [self._solve(unknown, dt, residual, new)]


def _combination(weights, changes):
    """Σ_i w_i z_i, part by part."""
    parts = zip(*changes, strict=True)
    return tuple(sum(float(w) * z for w, z in zip(weights, part, strict=True)) for part in parts)


class RungeKutta4(StagesStepper):
    """The classical Runge–Kutta method of order four: an explicit baseline for comparison.

    Kutta, Z. Math. Phys. 46, 435 (1901):

        Z₂ = z⁰ + Δt/2 f(z⁰),   Z₃ = z⁰ + Δt/2 f(Z₂),   Z₄ = z⁰ + Δt f(Z₃),
        z¹ = z⁰ + Δt/6 (f(z⁰) + 2f(Z₂) + 2f(Z₃) + f(Z₄)),        ⟨w, f(Z)⟩ = {w, h}(Z).

    It preserves no structure: it is not symplectic, and the energy drifts with time. Only linear
    invariants are conserved. Stability limits the step, Δt ω < 2.8.

    Parameters
    ----------
    system : PoissonSystem
        The system to integrate, without a configuration beside its state (``ValueError``).
    dt : float
        Time step.
    t0, solver_parameters, options_prefix, compiled
        As for every :class:`Stepper`, with its errors. Each stage is a solve with the matrix of the
        pairing.
    """

    order = 4

    def flows(self):
        system = self.system
        sequence, changes, at = [], [], system.parts
        for fraction in (1 / 2, 1 / 2, 1.0, 1 / 6):
            unknown, dt = stages(system, 1), Constant(0.0, name="dt")
            (change,), (w,) = unknown.changes, unknown.tests
            b = None if unknown.gradients is None else unknown.gradients[0]
            residual = system.pairing(w, change, at=at) - dt * flow(system, w, at, b)
            residual += defining_gradients(system, unknown, [at])
            changes += unknown.nodal_changes
            new = _sums(system.parts, changes) if len(changes) == 4 else []
            sequence.append(self._solve(unknown, dt, residual, new).scaled(fraction))
            (at,) = unknown.nodal_states
        return sequence


def _sums(parts, changes) -> list[dict]:
    """The new parts, from the changes Δt/2 f(z⁰), Δt/2 f(Z₂), Δt f(Z₃) and Δt/6 f(Z₄)."""
    return [
        {z: z + (c2 + 2 * c3 + c4) / 3 + last}
        for z, c2, c3, c4, last in zip(parts, *changes, strict=True)
    ]
