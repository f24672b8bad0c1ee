"""Failure criteria of materials, for stress as entries ``[i][j]`` in the axes of the material."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdgeom import citations
from fdgeom.messages import format_value
from fdgeom.validation import number


@dataclass(frozen=True)
class VonMises:
    """Von Mises' criterion: √(3/2 s:s) over the yield stress, s the deviatoric stress.

    Parameters
    ----------
    yield_stress : float

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
