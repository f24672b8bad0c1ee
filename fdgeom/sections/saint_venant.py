"""Saint-Venant's six central solutions of a section: its compliance, and the stress of each.

The displacement of a long body is g₀ + z g₁ over a strain γ₀ + z γ₁ of the beam. The balance, tested
with warpings h, is ∫ σ:D(h) - d/dz ∫ σ:S(h) = 0. Order by order in z, with one operator
a(g, h) = ∫ D(g):C:D(h):

1. twist, two curvatures, stretch: a(wᵢ, h) = -∫ S(ρᵢ):C:D(h). Their resultants are the 4×4 stiffness
   of the classical beam, with the inverse S₄.
2. a transverse force F bends with M' = -e×F, so γ₁ = S₄M', g₁ = Σ wᵢ γ₁ᵢ, and
   a(q, h) = ∫ S(ρ(γ₁)) + D(g₁) : C : S(h) - ∫ S(g₁):C:D(h); then γ₀ = -S₄θ takes away the moment and
   the axial force θ of (q, g₁), and g₀ = q + Σ wᵢ γ₀ᵢ.
3. the compliance is the energy of unit resultants, S_jk = ∫ ε_j:C:ε_k.

The kernel of a is the three translations and the rotation about the beam's axis. A rigid rotation of
the warping is a transverse shear strain, so that of the beam is no further unknown.

After V. Giavotto et al., Anisotropic beam theory and applications, Computers & Structures 16, 1983,
and M. Morandini, M. Chierichetti, P. Mantegazza, Characteristic behavior of prismatic anisotropic
beam via generalized eigenvectors, Int. J. Solids Struct. 47, 2010.
"""

import numpy as np

from .operators import Operators

#: M' of a unit force along each transverse axis: twist, two curvatures, stretch.
BENDING_OF_SHEAR = np.array([[0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])


class SaintVenant:
    """The six solutions for unit resultants, in the axes of the section, about its centroid."""

    # `compliance` (6, 6) is that of torque, two bending moments, axial and two transverse forces.
    # `warping` and `slope` are g and u = g' + ε + κ×X of each solution, (6, nodes, 3) on this rank;
    # `work` and `force` their stress against D(h) and S(h), as functionals of h. `balance` is the
    # largest error of their resultants.
    def __init__(self, operators: Operators) -> None:
        self.op = op = operators
        classical = op.rigid[:4]
        self.classical = np.array([op.solve(-op.against_warping(None, r)) for r in classical])
        self._stress = np.array(
            [op.against_slope(w, r) for w, r in zip(self.classical, classical, strict=True)]
        )
        self.s4 = np.linalg.inv(symmetric(op.pair(self._stress, classical)))
        self.shear = [_Shear(self, b) for b in BENDING_OF_SHEAR @ self.s4]

        self.warping = np.array([*mixed(self.s4, self.classical), *(s.warping for s in self.shear)])
        self.slope = np.array([*mixed(self.s4, classical), *(s.slope for s in self.shear)])
        pairs = list(zip(self.warping, self.slope, strict=True))
        self.work = np.array([op.against_warping(*pair) for pair in pairs])
        self.force = np.array([op.against_slope(*pair) for pair in pairs])
        # ∫ σᵢ:ε(gⱼ, uⱼ) with the stress of the solutions.
        energy = op.pair(self.work, self.warping) + op.pair(self.force, self.slope)
        self.compliance = symmetric(energy)
        units = np.array([np.sqrt(op.polar_moment / op.area)] * 3 + [1.0] * 3)
        resultants = op.pair(self.force, op.rigid) * units[:, None] / units
        self.balance = float(np.abs(resultants - np.eye(6)).max())


class _Shear:
    """The solution of a transverse force, with strain γ₁ that grows along the beam."""

    def __init__(self, of: SaintVenant, growth: np.ndarray) -> None:
        self.growth = growth
        op, w, s4 = of.op, of.classical, of.s4
        self.rigid = mixed(growth, op.rigid[:4])
        self.g1 = mixed(growth, w)
        self.q = op.solve(op.against_slope(self.g1, self.rigid) - op.against_warping(None, self.g1))
        self.theta = op.pair(op.against_slope(self.q, self.g1), op.rigid[:4])[0]
        strain = -s4 @ self.theta
        self.warping = self.q + mixed(strain, w)
        self.slope = self.g1 + mixed(strain, op.rigid[:4])


def mixed(coefficients: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Linear combinations of fields: one for each row of the coefficients."""
    return np.tensordot(coefficients, fields, axes=(-1, 0))


def symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2
