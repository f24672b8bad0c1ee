"""Saint-Venant's six central solutions of a section: its compliance, the stress of each, derivatives.

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

The gradient of a function of the 6×6 by C and ρ at the points is one adjoint pass, the reverse sweep of
these solutions. With H the form of the energy, e = (g, u) and S̄ the derivative by the compliance,
S = eᵀHe gives ē = 2S̄He. Then, the last equation first,

1. of a transverse force: g₀ = q + Σ wᵢγ₀ᵢ and γ₀ = -S₄θ(q, g₁) give θ̄ and q̄, a(λ, h) = q̄(h)
   is the adjoint of the solve for q, and g₁ = Σ wᵢγ₁ᵢ, γ₁ = S₄M' give w̄ and S̄₄;
2. of the classical four: S₄ is the inverse of their stiffness, and a(Λᵢ, h) = w̄ᵢ(h).

Six solves with the same factor, whatever the number of parameters. Every equation is linear in C,
so the result is a sum of products ∫ ε(e):dC:ε(e'): a field that is paired with each dC.

After V. Giavotto et al., Anisotropic beam theory and applications, Computers & Structures 16, 1983,
and M. Morandini, M. Chierichetti, P. Mantegazza, Characteristic behavior of prismatic anisotropic
beam via generalized eigenvectors, Int. J. Solids Struct. 47, 2010.
"""

from collections.abc import Callable

import numpy as np

from .elasticity import STEP
from .operators import Operators

Pair = tuple[np.ndarray, np.ndarray]
Field = np.ndarray | None

#: M' of a unit force along each transverse axis: twist, two curvatures, stretch.
BENDING_OF_SHEAR = np.array([[0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
#: Weights of differences of eighth order.
_EIGHTH = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
#: How far their steps reach, of where a matrix becomes singular.
_REACH = 0.005


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


# --- derivatives by C and ρ --------------------------------------------------------------------------
class MatrixSlopes:
    """Stiffness and inertia as functions of C and ρ, with first and second derivatives."""

    # `about(S, M)` gives those of a beam from compliance and inertia about the centroid.
    def __init__(
        self,
        solutions: SaintVenant,
        inertia: np.ndarray,
        about: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]],
    ) -> None:
        self._solutions, self._op, self._about = solutions, solutions.op, about
        self._there = np.array([solutions.compliance, inertia])

    def push(self, elasticity: np.ndarray, density: np.ndarray) -> Pair:
        """Changes of stiffness and inertia along those of C and ρ, values on this rank."""
        off = SaintVenant(ComplexStep(self._op, elasticity))
        moves = off.compliance.imag / STEP, self._op.moments(density)
        return self._change(self._there, np.array(moves))

    def pull(self, stiffness: np.ndarray, inertia: np.ndarray) -> Pair:
        """The derivatives by C and ρ on this rank of a function with these by stiffness and inertia."""
        of_compliance, of_moments = self._pulled(self._there, (stiffness, inertia))
        return (
            elasticity_gradient(self._solutions, of_compliance),
            density_gradient(self._op, of_moments),
        )

    def pull_rates(self, bars: Pair, elasticity: np.ndarray, density: np.ndarray) -> Pair:
        """The derivative of :meth:`pull` along changes of C and ρ, values on this rank."""
        off = SaintVenant(ComplexStep(self._op, elasticity))
        moves = np.array([off.compliance.imag / STEP, self._op.moments(density)])
        pulled, changed = self._pulled(self._there, bars), self._pulled_rates(bars, moves)
        by_elasticity = elasticity_gradient(off, pulled[0] + 1j * STEP * changed[0])
        return by_elasticity.imag / STEP, density_gradient(self._op, changed[1])

    # --- between the centroid and the origin -------------------------------------------------------
    def _change(self, there: np.ndarray, moves: np.ndarray) -> Pair:
        """Changes of stiffness and inertia with those of both matrices about the centroid."""
        stiffness, inertia = self._about(*(there + 1j * STEP * moves))
        return stiffness.imag / STEP, inertia.imag / STEP

    def _pulled(self, there: np.ndarray, bars: Pair) -> np.ndarray:
        """Derivatives (2, 6, 6) by both about the centroid, from those by stiffness and inertia."""
        found = np.zeros((2, 6, 6))
        for entry in np.ndindex(found.shape):
            move = np.zeros(found.shape)
            move[entry] = 1.0
            found[entry] = sum(map(np.vdot, bars, self._change(there, move)))
        return found

    def _pulled_rates(self, bars: Pair, moves: np.ndarray) -> np.ndarray:
        """Derivative of the cotangents along changes of both matrices, by eighth-order differences."""
        # The cotangents are rational functions of the matrices: far from their poles the
        # differences are exact to round-off.
        relative = np.linalg.eigvals(np.linalg.solve(self._there, moves))
        speed = np.abs(relative).max()
        step = _REACH / speed if speed > 0 else 1.0

        def at(size: float) -> np.ndarray:
            return self._pulled(self._there + size * moves, bars)

        differences = (at(k * step) - at(-k * step) for k in range(1, len(_EIGHTH) + 1))
        return sum(w * d for w, d in zip(_EIGHTH, differences, strict=True)) / step


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


class ComplexStep:
    """`Operators` of the elasticity C + iε dC, by those of C."""

    # All results are analytic in C, and ε² is below round-off: real parts are the values for C,
    # imaginary parts over ε their derivatives along dC, to round-off (Squire & Trapp, Using complex
    # variables to estimate derivatives of real functions, SIAM Rev. 40, 1998).
    def __init__(self, operators: Operators, change: np.ndarray) -> None:
        self._of, self._change = operators, change
        self.rigid, self.pair = operators.rigid, operators.pair
        self.area, self.polar_moment = operators.area, operators.polar_moment

    def against_warping(self, g: Field, u: Field) -> np.ndarray:
        """h ↦ ∫ (D(g) + S(u)) : (C + iε dC) : D(h)."""
        return self._applied(self._of.against_warping, g, u)

    def against_slope(self, g: Field, u: Field) -> np.ndarray:
        """h ↦ ∫ (D(g) + S(u)) : (C + iε dC) : S(h)."""
        return self._applied(self._of.against_slope, g, u)

    def against_elasticity(self, first: tuple, second: tuple) -> np.ndarray:
        """dC ↦ ∫ (D(g) + S(u)) : dC : (D(h) + S(v)), independent of the elasticity."""
        action, real = self._of.against_elasticity, _parts(second, np.real)
        rate = action(_parts(first, np.imag), real)
        first = _parts(first, np.real)
        return action(first, real) + 1j * (rate + action(first, _parts(second, np.imag)))

    def solve(self, dual: np.ndarray) -> np.ndarray:
        """The field w with ∫ D(w):(C + iε dC):D(h) = dual(h), orthogonal to the rigid fields."""
        found = self._of.solve(np.real(dual))
        more = self._of.with_elasticity(self._change, self._of.against_warping, found, None)
        return found + 1j * STEP * self._of.solve(np.imag(dual) / STEP - more)

    def _applied(self, action: Callable, *fields: Field) -> np.ndarray:
        real, imaginary = _parts(fields, np.real), _parts(fields, np.imag)
        change = self._of.with_elasticity(self._change, action, *real)
        return action(*real) + 1j * (action(*imaginary) + STEP * change)


def _parts(fields: tuple, part: Callable) -> tuple:
    return tuple(None if f is None else part(f) for f in fields)
