"""A ply: a material whose fibre runs at an angle in the wall of a section."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import ufl
from ufl.core.expr import Expr

from fdgeom.validation import scalar

from .material import Material, Value, entries, unchecked


@dataclass(frozen=True)
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

    material: Material
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
        return self.material.components(strain, self.axes(frame))

    def stress(self, strain: Expr, frame: Expr) -> Expr:
        return self.material.stress(strain, ufl.as_matrix(self.axes(entries(frame))))

    def evaluated(self, evaluate: Callable) -> "Ply":
        return unchecked(
            self,
            material=self.material.evaluated(evaluate),
            angle=evaluate(self.angle),
            along=evaluate(self.along),
        )


def material_axes(material, frame, evaluate: Callable):
    """Rows: the directions 1, 2, 3 of a material at nodes, plies within plies too."""
    while isinstance(material, Ply):
        here = unchecked(material, angle=evaluate(material.angle), along=evaluate(material.along))
        frame, material = here.axes(frame), material.material
    return frame


def _cos_sin(angle) -> tuple:
    module = ufl if isinstance(angle, Expr) else np
    return module.cos(angle), module.sin(angle)
