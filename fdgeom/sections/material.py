"""Linear elastic materials of a section: isotropic, orthotropic, and plies; failure criteria.

Strain and stress are symmetric 3×3 in the axes of the section: the beam's axis first, then the two
transverse ones. The formulas are plain arithmetic on entries, so that they serve UFL and NumPy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import ufl
from ufl.core.expr import Expr

from fdgeom import citations
from fdgeom.messages import Described, format_value
from fdgeom.validation import number, scalar

Value = float | Expr


class AnyMaterial(Protocol):
    """A material of a section: of this package, or your own."""

    @property
    def density(self) -> Value:
        """Mass per volume."""

    def stress(self, strain: Expr, frame: Expr) -> Expr:
        """Stress from strain, in the section's axes; the rows of ``frame`` are the material's axes."""


class Material(Described):
    """Base class of the materials of this package: stress in UFL from entry-wise formulas."""

    def components(self, strain, frame) -> list[list]:
        """Entries of the stress; ``strain`` and the rows of ``frame`` are indexed ``[i][j]``."""
        raise NotImplementedError

    def stress(self, strain: Expr, frame: Expr) -> Expr:
        """Stress from strain, in the section's axes; the rows of ``frame`` are the material's axes."""
        return ufl.as_matrix(self.components(entries(strain), entries(frame)))

    def evaluated(self, evaluate: Callable) -> "Material":
        """The material with numbers or arrays for its parameters."""

        def found(value):
            if isinstance(value, Material):
                return value.evaluated(evaluate)
            return tuple(map(found, value)) if isinstance(value, tuple) else evaluate(value)

        return unchecked(self, **{name: found(value) for name, value in vars(self).items()})


@dataclass(frozen=True, repr=False)
class Isotropic(Material):
    """Isotropic material: σ = λ tr(ε) 1 + 2μ ε.

    Parameters
    ----------
    youngs_modulus : float or UFL expression
        E.
    poisson_ratio : float or UFL expression
        ν, above -1 and below ½.
    density : float or UFL expression
        Mass per volume.

    Raises
    ------
    TypeError, ValueError
        If a number is not as described.
    """

    youngs_modulus: Value
    poisson_ratio: Value
    density: Value

    def __post_init__(self) -> None:
        scalar("youngs_modulus", self.youngs_modulus, above=0)
        scalar("density", self.density, above=0)
        scalar("poisson_ratio", self.poisson_ratio, above=-1, below=0.5)

    def components(self, strain, frame=None) -> list[list]:
        two_mu = self.youngs_modulus / (1 + self.poisson_ratio)
        pressure = two_mu * self.poisson_ratio / (1 - 2 * self.poisson_ratio)
        pressure = pressure * (strain[0][0] + strain[1][1] + strain[2][2])
        return [
            [two_mu * strain[i][j] + (pressure if i == j else 0.0) for j in range(3)]
            for i in range(3)
        ]


@dataclass(frozen=True, repr=False)
class Orthotropic(Material):
    """Orthotropic material by engineering constants; 1 is the fibre, order 12, 13, 23.

    Parameters
    ----------
    youngs_moduli : three floats
        E₁, E₂, E₃.
    shear_moduli : three floats
        G₁₂, G₁₃, G₂₃.
    poisson_ratios : three floats
        ν₁₂, ν₁₃, ν₂₃: ν_ij = -ε_j/ε_i under stress along i, so that ν_ij/E_i = ν_ji/E_j.
    density : float
        Mass per volume.

    Raises
    ------
    TypeError, ValueError
        If a number is not as described, or the stiffness is not positive definite.

    Notes
    -----
    Without a :class:`Ply`, 1 is the beam's axis, 2 and 3 are the transverse axes.
    """

    youngs_moduli: Sequence[Value]
    shear_moduli: Sequence[Value]
    poisson_ratios: Sequence[Value]
    density: Value

    def __post_init__(self) -> None:
        for name in ("youngs_moduli", "shear_moduli", "poisson_ratios"):
            values = getattr(self, name)
            if isinstance(values, str | Expr) or np.ndim(values) != 1 or len(values) != 3:
                raise ValueError(f"{name} must be three numbers, not {format_value(values)}")
            object.__setattr__(self, name, tuple(values))
            for value in getattr(self, name):
                scalar(name, value, above=None if name == "poisson_ratios" else 0)
        scalar("density", self.density, above=0)
        if any(isinstance(v, Expr) for v in (*self.youngs_moduli, *self.poisson_ratios)):
            return
        # The leading minors of the compliance, by Sylvester's criterion.
        v21, _, _, determinant = self._reverse_ratios()
        if not (determinant > 0 and self.poisson_ratios[0] * v21 < 1):
            raise ValueError(
                "poisson_ratios: the stiffness is not positive definite with these Young's moduli; "
                f"|ν12| must stay below √(E1/E2), and so on, not {self.poisson_ratios!r} "
                "(the order is 12, 13, 23, with ν_ij/E_i = ν_ji/E_j)"
            )

    def _reverse_ratios(self) -> tuple:
        """ν₂₁, ν₃₁, ν₃₂ and E₁E₂E₃ times the determinant of the compliance of normal stress."""
        (e1, e2, e3), (v12, v13, v23) = self.youngs_moduli, self.poisson_ratios
        v21, v31, v32 = v12 * e2 / e1, v13 * e3 / e1, v23 * e3 / e2
        return v21, v31, v32, 1 - v12 * v21 - v23 * v32 - v13 * v31 - 2 * v21 * v32 * v13

    def components(self, strain, frame) -> list[list]:
        local = turned(strain, frame)
        (e1, e2, e3), (g12, g13, g23) = self.youngs_moduli, self.shear_moduli
        (v12, v13, v23), (v21, v31, v32, d) = self.poisson_ratios, self._reverse_ratios()
        c12, c13 = e1 * (v21 + v31 * v23) / d, e1 * (v31 + v21 * v32) / d
        c23 = e2 * (v32 + v12 * v31) / d
        stiffness = (
            (e1 * (1 - v23 * v32) / d, c12, c13),
            (c12, e2 * (1 - v13 * v31) / d, c23),
            (c13, c23, e3 * (1 - v12 * v21) / d),
        )
        normal = [sum(c * local[j][j] for j, c in enumerate(row)) for row in stiffness]
        s12, s13, s23 = 2 * g12 * local[0][1], 2 * g13 * local[0][2], 2 * g23 * local[1][2]
        stress = [[normal[0], s12, s13], [s12, normal[1], s23], [s13, s23, normal[2]]]
        return turned(stress, [[frame[j][i] for j in range(3)] for i in range(3)])


@dataclass(frozen=True, repr=False)
class Ply(Material):
    """A material rotated into the plane of a ply and by the fibre angle in it.

    Parameters
    ----------
    material : Orthotropic, or any material
        Its direction 1 is the fibre, 3 is normal to the ply.
    angle : float or UFL expression
        Fibre angle in radians, from the beam's axis towards the tangent of the ply.
    along : float, Function or UFL expression
        Angle of that tangent in the section, in radians, from the first transverse axis towards
        the second.

    Raises
    ------
    TypeError, ValueError
        If ``material`` is not a material, or an angle is not a scalar.
    """

    material: AnyMaterial
    angle: Value = 0.0
    along: Value = 0.0

    def __post_init__(self) -> None:
        if not hasattr(self.material, "stress") or not hasattr(self.material, "density"):
            raise TypeError(
                "material must be a fdgeom.Isotropic, fdgeom.Orthotropic or another material with "
                f"density and stress(strain, frame), not {self.material!r}"
            )
        scalar("angle", self.angle)
        scalar("along", self.along)

    @property
    def density(self) -> Value:
        return self.material.density

    def axes(self, frame) -> list[list]:
        """Rows: fibre, across the fibre in the ply, normal to it."""
        (c, s), (ca, sa) = _cos_sin(self.angle), _cos_sin(self.along)
        e, first, second = frame[0], frame[1], frame[2]
        tangent = [ca * first[k] + sa * second[k] for k in range(3)]
        return [
            [c * e[k] + s * tangent[k] for k in range(3)],
            [c * tangent[k] - s * e[k] for k in range(3)],
            [ca * second[k] - sa * first[k] for k in range(3)],
        ]

    def components(self, strain, frame) -> list[list]:
        own: Any = self.material
        return own.components(strain, self.axes(frame))

    def stress(self, strain: Expr, frame: Expr) -> Expr:
        return self.material.stress(strain, ufl.as_matrix(self.axes(entries(frame))))


def entries(tensor) -> list[list]:
    """Rows of a 3×3 in UFL; other matrices have rows already."""
    if not isinstance(tensor, Expr):
        return tensor
    return [[tensor[i, j] for j in range(3)] for i in range(3)]


def turned(tensor, frame) -> list[list]:
    """Components of a 3×3 tensor along the rows of ``frame``."""
    half = [[sum(frame[i][k] * tensor[k][l] for k in range(3)) for l in range(3)] for i in range(3)]
    return [[sum(half[i][l] * frame[j][l] for l in range(3)) for j in range(3)] for i in range(3)]


def unchecked(material, /, **parameters):
    """A copy with other parameters, arrays and complex numbers too, without the checks of numbers."""
    made = object.__new__(type(material))
    for name, value in {**vars(material), **parameters}.items():
        object.__setattr__(made, name, value)
    return made


def material_axes(material, frame, evaluate: Callable):
    """Rows: the directions 1, 2, 3 of a material at nodes, plies within plies too."""
    while isinstance(material, Ply):
        here = unchecked(material, angle=evaluate(material.angle), along=evaluate(material.along))
        frame, material = here.axes(frame), material.material
    return frame


def _cos_sin(angle) -> tuple:
    module = ufl if isinstance(angle, Expr) else np
    return module.cos(angle), module.sin(angle)


# --- failure criteria: stress as entries [i][j] in the axes of the material --------------------------
@dataclass(frozen=True)
class VonMises:
    """Von Mises' criterion: √(3/2 s:s) over the yield stress, s the deviatoric stress.

    Parameters
    ----------
    yield_stress : float
        In the unit of the stress.

    Raises
    ------
    TypeError, ValueError
        If the yield stress is not a positive number.
    """

    yield_stress: float

    def __post_init__(self) -> None:
        number("yield_stress", self.yield_stress, above=0)

    def index(self, stress) -> np.ndarray:
        """Failure index: below 1 the material holds."""
        (a, f, e), (_, b, d), (_, _, c) = stress
        squares = ((a - b) ** 2 + (b - c) ** 2 + (c - a) ** 2) / 2 + 3 * (d**2 + e**2 + f**2)
        return np.sqrt(squares) / self.yield_stress

    def reserve(self, stress) -> np.ndarray:
        """Factor by which the stress can grow until the index is 1."""
        with np.errstate(divide="ignore"):
            return 1 / self.index(stress)


@dataclass(frozen=True)
class TsaiWu:
    """Tsai and Wu's criterion of a ply: F_i σ_i + F_ij σ_i σ_j, in the ply's axes (1 the fibre).

    Parameters
    ----------
    tensile, compressive : three floats
        Strengths along 1, 2, 3, all positive.
    shear : three floats
        Strengths in the planes 12, 13, 23.
    interaction : float
        f in F_ij = f √(F_ii F_jj), i ≠ j ≤ 3; between -½ and ½ the criterion is an ellipsoid.

    Raises
    ------
    TypeError, ValueError
        If a number is not as described.

    Notes
    -----
    F_i = 1/X_t - 1/X_c, F_ii = 1/(X_t X_c), 1/S² for shear: S. W. Tsai, E. M. Wu, A general theory
    of strength for anisotropic materials, J. Composite Materials 5, 1971.
    """

    cites = ("TsaiWu1971",)

    tensile: Sequence[float]
    compressive: Sequence[float]
    shear: Sequence[float]
    interaction: float = -0.5

    def __post_init__(self) -> None:
        citations.cite(type(self))
        for name in ("tensile", "compressive", "shear"):
            values = getattr(self, name)
            if np.ndim(values) != 1 or len(values) != 3:
                raise ValueError(f"{name} must be three numbers, not {format_value(values)}")
            for value in values:
                number(name, value, above=0)
        number("interaction", self.interaction, least=-0.5, most=0.5)

    def _parts(self, stress) -> tuple[np.ndarray, np.ndarray]:
        """The linear and the quadratic part."""
        tensile, compressive = np.array(self.tensile), np.array(self.compressive)
        normal = np.stack([stress[k][k] for k in range(3)], axis=-1)
        shear = np.stack([stress[0][1], stress[0][2], stress[1][2]], axis=-1) / self.shear
        scaled = normal / np.sqrt(tensile * compressive)
        pairs = scaled * np.roll(scaled, 1, axis=-1)
        quadratic = scaled**2 + 2 * self.interaction * pairs + shear**2
        return normal @ (1 / tensile - 1 / compressive), quadratic.sum(axis=-1)

    def index(self, stress) -> np.ndarray:
        """Failure index: below 1 the material holds."""
        linear, quadratic = self._parts(stress)
        return linear + quadratic

    def reserve(self, stress) -> np.ndarray:
        """Factor by which the stress can grow until the index is 1."""
        linear, quadratic = self._parts(stress)
        # The positive root of quadratic r² + linear r = 1, in the form that does not cancel.
        with np.errstate(divide="ignore"):
            return 2 / (linear + np.sqrt(linear**2 + 4 * quadratic))
