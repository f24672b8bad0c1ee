"""Helmholtz's conditions on forces, for which they have a Lagrangian."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from fdgeom.systems.chaplygin.jets import Jets, is_zero, shortest


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
