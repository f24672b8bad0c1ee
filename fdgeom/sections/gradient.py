"""The gradient of a function of the 6×6 by all parameters of its materials: one adjoint pass.

It is the reverse sweep of Saint-Venant's solutions (`fdgeom.sections.saint_venant`). With H the
form of the energy, e = (g, u) and S̄ the derivative by the compliance, S = eᵀHe gives ē = 2S̄He.
Then, the last equation first,

1. of a transverse force: g₀ = q + Σ wᵢγ₀ᵢ and γ₀ = -S₄θ(q, g₁) give θ̄ and q̄, a(λ, h) = q̄(h)
   is the adjoint of the solve for q, and g₁ = Σ wᵢγ₁ᵢ, γ₁ = S₄M' give w̄ and S̄₄;
2. of the classical four: S₄ is the inverse of their stiffness, and a(Λᵢ, h) = w̄ᵢ(h).

Six solves with the same factor, whatever the number of parameters. Every equation is linear in C,
so the result is a sum of products ∫ ε(e):dC:ε(e'): a field that is paired with each dC.
"""

import numpy as np

from .operators import Operators
from .saint_venant import BENDING_OF_SHEAR, SaintVenant, mixed, symmetric


def elasticity_gradient(solutions: SaintVenant, weights: np.ndarray) -> np.ndarray:
    """dC ↦ Σ weights·dS as values (points, 6, 6) on this rank; S is the compliance about the centroid."""
    op, w, s4 = solutions.op, solutions.classical, solutions.s4
    rigid, weights = op.rigid[:4], symmetric(weights)
    # Of what each of the six solutions is made of.
    warping, slope = 2 * mixed(weights, solutions.work), 2 * mixed(weights, solutions.force)
    of_w = mixed(s4, warping[:4])
    of_s4 = op.pair(warping[:4], w) + op.pair(slope[:4], rigid)
    products = [
        *zip(
            zip(solutions.warping, solutions.slope, strict=True),
            zip(mixed(weights, solutions.warping), mixed(weights, solutions.slope), strict=True),
            strict=True,
        )
    ]
    for k, shear in enumerate(solutions.shear):
        of_q, of_g1 = warping[4 + k], slope[4 + k]
        of_w = of_w + np.multiply.outer(-s4 @ shear.theta, of_q)
        of_strain = op.pair(of_q, w)[0] + op.pair(of_g1, rigid)[0]
        of_s4 = of_s4 - np.outer(of_strain, shear.theta)
        couple = mixed(-s4 @ of_strain, rigid)
        adjoint = op.solve(of_q + op.against_warping(None, couple))
        of_g1 = (
            of_g1
            + op.against_slope(None, couple)
            + op.against_warping(None, adjoint)
            - op.against_slope(adjoint, None)
        )
        of_rigid = op.against_slope(None, adjoint)
        of_growth = op.pair(of_rigid, rigid)[0] + op.pair(of_g1, w)[0]
        of_w = of_w + np.multiply.outer(shear.growth, of_g1)
        of_s4 = of_s4 + np.outer(BENDING_OF_SHEAR[k], of_growth)
        products += [
            ((-adjoint, couple), (shear.q, shear.g1)),
            ((None, adjoint), (shear.g1, shear.rigid)),
        ]
    couples = mixed(-s4 @ symmetric(of_s4) @ s4, rigid)
    for of_one, couple, *classical in zip(of_w, couples, w, rigid, strict=True):
        adjoint = op.solve(of_one + op.against_warping(None, couple))
        products.append(((-adjoint, couple), tuple(classical)))
    return sum(op.against_elasticity(*product) for product in products)


def density_gradient(operators: Operators, weights: np.ndarray) -> np.ndarray:
    """dρ ↦ Σ weights·dM as values (points,) on this rank, M about the centroid in own axes."""
    rigid = operators.rigid
    return sum(map(operators.against_density, rigid, mixed(weights, rigid)))
