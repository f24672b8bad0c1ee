"""The inverse problem: Helmholtz's conditions on forces, and a Lagrangian that has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sp
from sympy.simplify.fu import TR8

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


def lagrangian_with_forces(
    jets: Jets, lagrangian: sp.Expr, forces: Sequence[sp.Expr], base: Mapping[sp.Symbol, sp.Expr]
) -> sp.Expr:
    """L' with E_σ(L') = E_σ(L̃) - Φ_σ, for forces that satisfy Helmholtz's conditions,

    L' = L̃ + ∫₀¹ x_k Φ_k(t, q̂ + τx, τq̇, τq̈) dτ - d/dt ∫₀¹∫₀¹ τ x_k A_kν(t, q̂ + τx, ττ'q̇) q̇_ν
    dτ dτ'

    with x = q - q̂, A = ∂Φ/∂q̈, and the base point q̂ of the rays.
    """
    tau, sigma = sp.symbols("tau sigma", positive=True)
    rays = [q - base.get(q, 0) for q in jets.q]
    position = {q: base.get(q, 0) + tau * x for q, x in zip(jets.q, rays, strict=True)}
    straight = position | {u: tau * u for u in (*jets.v, *jets.a)}
    slower = position | {u: tau * sigma * u for u in jets.v}
    first = sum(
        x * _integral(force.xreplace(straight), tau, "Φ")
        for x, force in zip(rays, forces, strict=True)
    )
    second = 0
    for x, force in zip(rays, forces, strict=True):
        # The factor q̇_ν is not scaled.
        scaled = sum(
            sp.diff(force, a).xreplace(slower) * u for a, u in zip(jets.a, jets.v, strict=True)
        )
        second += x * _integral(_integral(tau * scaled, sigma, "∂Φ/∂q''"), tau, "∂Φ/∂q''")
    found = lagrangian + first - jets.total_derivative(second)
    return shortest(_sums(found), (*jets.a, *jets.v))


def _integral(integrand: sp.Expr, variable: sp.Symbol, what: str) -> sp.Expr:
    result = 0
    for term in sp.Add.make_args(_sums(integrand)):
        factor, rest = term.as_independent(variable, as_Add=False)
        value = _definite(rest, variable)
        if value.has(sp.Integral, sp.nan, sp.oo, -sp.oo, sp.zoo):
            raise ValueError(
                f"the integral of {what} along the rays from the base point cannot be found "
                f"({rest} in {variable}): choose another base point by base={{coordinate: value}}"
            )
        result += factor * value
    return result


def _definite(integrand: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    """The integral from 0 to 1."""
    if integrand == 1:
        return sp.Integer(1)
    # By the textbook's rules, which are fast on powers times sines; else by all that SymPy knows.
    powers = [p for p in integrand.atoms(sp.Pow) if p.base.has(variable)]
    if all(p.base == variable and p.exp.is_Integer and p.exp > 0 for p in powers):
        # Its import takes as long as that of a tenth of fdgeom.
        from sympy.integrals.manualintegrate import manualintegrate

        primitive = manualintegrate(integrand, variable)
        if not primitive.has(sp.Integral, sp.Piecewise):
            first, last = (primitive.xreplace({variable: sp.Integer(n)}) for n in (0, 1))
            return last - first
    return sp.integrate(integrand, (variable, 0, 1))


def _sums(expression: sp.Expr) -> sp.Expr:
    """A sum of products, without products of sines and cosines, so that equal terms cancel."""
    # Denominators stay as they are: expanded ones are hard to integrate.
    return _expand(TR8(_expand(expression)))


def _expand(expression: sp.Expr) -> sp.Expr:
    powers = [p for p in expression.atoms(sp.Pow) if p.exp.is_Integer and p.exp > 1]
    expression = expression.xreplace({p: sp.expand_multinomial(p) for p in powers})
    return sp.expand_mul(sp.expand_power_base(sp.expand_power_exp(expression)))


def legendre_transform(
    jets: Jets, lagrangian: sp.Expr, momenta: Sequence[sp.Symbol]
) -> tuple[sp.Expr, tuple[sp.Expr, ...]]:
    """H = p_σ q̇_σ - L with p_σ = ∂L/∂q̇_σ, and the velocities as functions of q and p."""
    slopes = sp.Matrix([sp.diff(lagrangian, u) for u in jets.v])
    masses = slopes.jacobian(jets.v)
    if is_zero(masses.det()):
        raise ValueError("the Lagrangian is degenerate: ∂²L'/∂q'∂q' is singular, so there is no H'")
    p = sp.Matrix(list(momenta))
    if masses.has(*jets.v):
        solutions = sp.solve(list(slopes - p), jets.v, dict=True)
        if len(solutions) != 1:
            raise ValueError(
                f"SymPy finds {len(solutions)} solutions of p = ∂L'/∂q' for the velocities, and needs "
                "to find one"
            )
        velocities = [solutions[0][u] for u in jets.v]
    else:
        rest = slopes.xreplace(dict.fromkeys(jets.v, sp.Integer(0)))
        velocities = list(masses.applyfunc(sp.simplify).LUsolve(p - rest))
    velocities = tuple(shortest(u, momenta) for u in velocities)
    put = dict(zip(jets.v, velocities, strict=True))
    energy = sum(a * b for a, b in zip(momenta, velocities, strict=True)) - lagrangian.xreplace(put)
    return shortest(energy, momenta), velocities
