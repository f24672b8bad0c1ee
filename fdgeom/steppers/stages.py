"""The unknown of a Runge–Kutta method: the changes of one or several states at once."""

from collections.abc import Sequence
from dataclasses import dataclass
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
from fdgeom.forms import scalar_space, unflatten
from fdgeom.operations import Assignments, Flow, Solve, with_assignments
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.poisson.hamiltonian import HamiltonianSystem
from fdgeom.systems.poisson.poisson import PoissonSystem

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
        fields, tests = unflatten(unknown, shapes, "unknown"), unflatten(test, shapes, "test")
        pieces = fields
    else:
        space = MixedFunctionSpace(own * number * (2 if solves_gradient else 1))
        unknown = Function(space, name="stages")
        fields, tests, pieces = split(unknown), TestFunctions(space), unknown.subfunctions
    fields, tests, pieces = (_groups(x, len(own)) for x in (fields, tests, pieces))
    return Stages(
        unknown=unknown,
        old=system.parts,
        changes=fields[:number],
        tests=tests[:number],
        gradients=fields[number:] if solves_gradient else None,
        gradient_tests=tests[number:] if solves_gradient else None,
        nodal_changes=pieces[:number],
    )


def _common_space(spaces, number: int):
    """Vectors of all components of all states at each node, or None if the nodes differ."""
    sizes = [int(np.prod(V.value_shape, dtype=int)) for V in spaces]
    if any(V.block_size != size for V, size in zip(spaces, sizes, strict=True)):
        return None
    elements = {(V.mesh(), scalar_space(V).ufl_element()) for V in spaces}
    if len(elements) > 1:
        return None
    ((mesh, element),) = elements
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
    if unknown.gradients is None:
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
