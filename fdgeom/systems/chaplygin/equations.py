"""Chaplygin's equations of motion, and Helmholtz's conditions on their forces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import sympy as sp

from fdgeom import citations
from fdgeom.systems.chaplygin.jets import Jets, check_coordinate, is_zero, shortest


@dataclass(frozen=True)
class HelmholtzCondition:
    """One of Helmholtz's conditions, for one pair of coordinates.

    Attributes
    ----------
    number : int
        1, 2 or 3, as in :meth:`ChaplyginSystem.helmholtz_conditions`.
    pair : tuple of str
        The two coordinates.
    equation : str
        The condition, written in the coordinates.
    """

    number: int
    pair: tuple[str, str]
    equation: str
    _jets: Jets
    _difference: sp.Expr

    @cached_property
    def holds(self) -> bool:
        """Whether both sides are equal for all q, q̇, q̈."""
        return is_zero(self._difference)

    @cached_property
    def defect(self) -> sp.Expr:
        """The left side less the right side, simplified."""
        if self.holds:
            return sp.Integer(0)
        return self._jets.dynamic(shortest(self._difference, (*self._jets.j, *self._jets.a)))

    def __str__(self) -> str:
        return f"condition {self.number} for {self.pair[0]} and {self.pair[1]}: {self.equation}"


def helmholtz_conditions(jets: Jets, forces: Sequence[sp.Expr]) -> tuple[HelmholtzCondition, ...]:
    """All conditions on the forces Φ(t, q, q̇, q̈), of which some may be trivial."""
    conditions = []
    n = len(jets.q)
    for s in range(n):
        for r in range(s, n):
            a, b = jets.names[s], jets.names[r]
            slopes = [
                (sp.diff(forces[s], x[r]), sp.diff(forces[r], x[s]))
                for x in (jets.q, jets.v, jets.a)
            ]
            (q_sr, q_rs), (v_sr, v_rs), (a_sr, a_rs) = slopes
            found = {
                1: (f"∂Φ_{a}/∂{b}'' = ∂Φ_{b}/∂{a}''", a_sr - a_rs),
                2: (
                    f"∂Φ_{a}/∂{b}' + ∂Φ_{b}/∂{a}' = d/dt(∂Φ_{a}/∂{b}'' + ∂Φ_{b}/∂{a}'')",
                    v_sr + v_rs - jets.total_derivative(a_sr + a_rs),
                ),
                3: (
                    f"∂Φ_{a}/∂{b} - ∂Φ_{b}/∂{a} = ½ d/dt(∂Φ_{a}/∂{b}' - ∂Φ_{b}/∂{a}')",
                    q_sr - q_rs - jets.total_derivative(v_sr - v_rs) / 2,
                ),
            }
            for number, (equation, difference) in found.items():
                # With itself a coordinate has only the second.
                if s != r or number == 2:
                    conditions.append(
                        HelmholtzCondition(number, (a, b), equation, jets, difference)
                    )
    return tuple(sorted(conditions, key=lambda c: c.number))


class ChaplyginEquations:
    """The equations E_σ(L̃) = Φ_σ; arguments are those of :class:`ChaplyginSystem`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._jets.names)})"

    def __init__(self, lagrangian, coordinates: Sequence, velocities: Mapping) -> None:
        citations.cite(type(self))
        if not isinstance(coordinates, (tuple, list)):
            raise TypeError(
                f"coordinates must be a list of functions of time, not {type(coordinates).__name__}"
            )
        if not isinstance(velocities, Mapping):
            raise TypeError(
                "velocities must be a dict from dependent coordinates to their velocities, "
                f"not {type(velocities).__name__}"
            )
        self._jets = jets = Jets(coordinates)
        dependent = [check_coordinate("velocities: its keys", x) for x in velocities]
        for x in dependent:
            if x in jets.coordinates:
                raise ValueError(f"velocities: {x} is an independent coordinate; leave it out")
            if x.args[0] != jets.t:
                raise ValueError(f"velocities: {x} is a function of another time")
        #: The independent and the dependent coordinates.
        self.coordinates, self.dependent = jets.coordinates, tuple(dependent)
        self._phi = tuple(
            jets.plain(f"velocities[{x}]", expression) for x, expression in velocities.items()
        )
        for x, expression in zip(dependent, self._phi, strict=True):
            if expression.has(*jets.a, *jets.j):
                raise ValueError(f"velocities[{x}] must not contain accelerations")
        free = {x.diff(jets.t): sp.Dummy(f"{x.func.__name__}'") for x in dependent}
        self._lagrangian = self._check_lagrangian(lagrangian, free)
        put = dict(zip(free.values(), self._phi, strict=True))
        self._embedded = self._lagrangian.xreplace(put)
        self._forces = tuple(
            sum(
                sp.diff(self._lagrangian, u).xreplace(put) * jets.euler(phi, k)
                for u, phi in put.items()
            )
            + sp.Integer(0)
            for k in range(len(jets.q))
        )
        #: Momenta conjugate to the independent coordinates, as symbols.
        self.momenta = tuple(sp.Symbol(f"p_{name}", real=True) for name in jets.names)

    def _check_lagrangian(self, lagrangian, free) -> sp.Expr:
        plain = self._jets.plain("lagrangian", lagrangian, free)
        if plain.has(*self._jets.a, *self._jets.j):
            raise ValueError("lagrangian must not contain accelerations")
        return plain

    # --- Chaplygin's equations -----------------------------------------------------------------
    @cached_property
    def embedded_lagrangian(self) -> sp.Expr:
        """L̃, the Lagrangian with embedded constraints."""
        return self._jets.dynamic(shortest(self._embedded, self._jets.v))

    @cached_property
    def forces(self) -> dict:
        """The generalized forces Φ_σ, by coordinate."""
        jets = self._jets
        return {
            q: jets.dynamic(shortest(force, (*jets.a, *jets.v)))
            for q, force in zip(jets.coordinates, self._forces, strict=True)
        }

    def equation(self, coordinate) -> sp.Expr:
        """E_σ(L̃) - Φ_σ, which vanishes along the motion."""
        k = self._index(coordinate)
        return self._jets.dynamic(shortest(self._equations[k], (*self._jets.a, *self._jets.v)))

    def euler(self, coordinate) -> sp.Expr:
        """E_σ(L̃)."""
        k = self._index(coordinate)
        jets = self._jets
        return jets.dynamic(shortest(jets.euler(self._embedded, k), (*jets.a, *jets.v)))

    @cached_property
    def _equations(self) -> tuple[sp.Expr, ...]:
        jets = self._jets
        return tuple(jets.euler(self._embedded, k) - force for k, force in enumerate(self._forces))

    @cached_property
    def _accelerations(self) -> dict[sp.Symbol, sp.Expr]:
        jets = self._jets
        matrix, right = sp.linear_eq_to_matrix([sp.expand(e) for e in self._equations], jets.a)
        matrix = matrix.applyfunc(sp.simplify)
        if is_zero(matrix.det()):
            raise ValueError("the equations do not determine the accelerations: ∂²L̃ is singular")
        return dict(zip(jets.a, matrix.LUsolve(right), strict=True))

    @cached_property
    def accelerations(self) -> dict:
        """The accelerations that the equations of motion give, by coordinate."""
        return {
            q: self._jets.dynamic(sp.simplify(self._accelerations[a]))
            for q, a in zip(self.coordinates, self._jets.a, strict=True)
        }

    def _index(self, coordinate) -> int:
        if coordinate not in self.coordinates:
            raise ValueError(
                f"coordinate must be one of {', '.join(map(str, self.coordinates))}, "
                f"not {coordinate}"
            )
        return self.coordinates.index(coordinate)

    # --- Helmholtz's conditions ------------------------------------------------------------------
    @cached_property
    def helmholtz_conditions(self) -> tuple[HelmholtzCondition, ...]:
        """Helmholtz's conditions on Φ, for each pair of coordinates

        1. ∂Φ_σ/∂q̈_ν = ∂Φ_ν/∂q̈_σ,
        2. ∂Φ_σ/∂q̇_ν + ∂Φ_ν/∂q̇_σ = d/dt (∂Φ_σ/∂q̈_ν + ∂Φ_ν/∂q̈_σ),
        3. ∂Φ_σ/∂q_ν - ∂Φ_ν/∂q_σ = ½ d/dt (∂Φ_σ/∂q̇_ν - ∂Φ_ν/∂q̇_σ),

        for all q, q̇, q̈: equations (4) of the paper, whose second line misprints q̇ for q̈ on the
        right.
        """
        return helmholtz_conditions(self._jets, self._forces)

    def failing_conditions(self) -> tuple[HelmholtzCondition, ...]:
        """Helmholtz's conditions that do not hold."""
        return tuple(c for c in self.helmholtz_conditions if not c.holds)

    def adding(self, terms: Mapping) -> Self:
        """The system with other generalized forces: Φ_σ plus terms that vanish along the motion.

        Parameters
        ----------
        terms : dict
            Terms to add to Φ_σ, by independent coordinate, affine in the accelerations; for example
            a multiple of :meth:`equation`.

        Returns
        -------
        ChaplyginSystem

        Raises
        ------
        ValueError
            If a term does not vanish along the motion, or the equations with the terms no longer
            determine the accelerations.
        """
        if not isinstance(terms, Mapping):
            raise TypeError(f"terms must be a dict by coordinate, not {type(terms).__name__}")
        jets, forces = self._jets, list(self._forces)
        for coordinate, term in terms.items():
            k = self._index(coordinate)
            name = f"terms[{coordinate}]"
            plain = jets.plain(name, term)
            for a in jets.a:
                if plain.has(*jets.j) or sp.diff(plain, a).has(*jets.a):
                    raise ValueError(f"{name} must be of first degree in the accelerations")
            if not is_zero(plain.xreplace(self._accelerations)):
                raise ValueError(f"{name} does not vanish along the motion, so it cannot be added")
            forces[k] = forces[k] + plain
        result = object.__new__(type(self))
        kept = ("_jets", "coordinates", "dependent", "_phi", "_lagrangian", "_embedded", "momenta")
        result.__dict__.update({name: self.__dict__[name] for name in kept})
        result._forces = tuple(forces)
        try:
            _ = result._accelerations
        except ValueError:
            raise ValueError(
                "terms: with them the equations no longer determine the accelerations"
            ) from None
        return result

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the Lagrangian and the constraints."""
        found = set().union(*(e.free_symbols for e in (self._embedded, *self._phi, *self._forces)))
        jets = self._jets
        return tuple(sorted(s.name for s in found - {jets.t, *jets.q, *jets.v, *jets.a}))
