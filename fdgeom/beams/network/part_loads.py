"""Loads of one beam among several."""

from collections.abc import Callable

import ufl
from firedrake import Function
from ufl.algorithms import extract_coefficients, replace
from ufl.core.expr import Expr

from fdgeom.beams.rod.body_load import BodyLoad, NodalStep, PartOfRod
from fdgeom.beams.rod.variation import Pose
from fdgeom.solvers.derived import is_real


class LoadInNetwork(BodyLoad):
    """A load of a beam as a load of the network that the beam is a part of."""

    # `mask` is 1 along the beam and 0 elsewhere; `number(f)` gives the network's copy of a number
    # of the beam, a Function of a Real space.
    def __init__(
        self,
        load: BodyLoad,
        part: PartOfRod,
        mask: Expr,
        mesh=None,
        number: Callable[[Function], Function] | None = None,
    ) -> None:
        self._load, self._part, self._mask, self._own = load, part, mask, mesh
        self._number = number
        self._mesh = ufl.domain.extract_unique_domain(part.arc)

    def work(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        return self._translated(self._load.work(self._part, g, v, t, virtual))

    def potential(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr | None:
        density = self._load.potential(self._part, g, t)
        return None if density is None else self._translated(density)

    def mean_work(self, rod: PartOfRod, step: NodalStep) -> Expr:
        return self._translated(self._load.mean_work(self._part, step))

    def check(self, rod: PartOfRod) -> None:
        self._load.check(self._part)

    def _translated(self, density: Expr) -> Expr:
        if self._own is not None:
            here = ufl.SpatialCoordinate(self._own)
            numbers = [
                f
                for f in extract_coefficients(density)
                if is_real(f) and f.function_space().mesh() is self._own
            ]
            meant = {f: self._number(f) for f in numbers}
            density = replace(density, {here: ufl.as_vector([self._part.arc]), **meant})
            found = extract_coefficients(density)
            if any(f.function_space().mesh() is not self._mesh for f in found):
                raise ValueError(
                    f"{self._load!r}: a Function on the mesh of a beam cannot load it in an assembly; "
                    "give a function of (s, t) that returns an expression, or numbers as Functions of a Real "
                    "space"
                )
        return self._mask * density

    def __repr__(self) -> str:
        return repr(self._load)
