"""Loads of one beam among several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import ufl
from ufl.algorithms import extract_coefficients, replace
from ufl.core.expr import Expr

from fdgeom.beams.beam import Beam
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import BodyLoad, Gravity


class LoadInNetwork(BodyLoad):
    """A load of a beam as one of the network that the beam is a part of.

    Parameters
    ----------
    load : BodyLoad
        The load.
    inertias : sequence of Inertia
        What gravity acts on: the sections' and that of bodies at nodes.
    mask : UFL expression
        1 along the beam and 0 elsewhere; 1 for gravity on all beams.
    place, arc, time
        As of a `Rod`: of the beam, as expressions on the network's mesh.
    beam : Beam, optional
        The beam; its mesh coordinate in an expression means ``arc``.
    """

    def __init__(
        self, load: BodyLoad, inertias: Sequence[Inertia], mask, place, arc, time, beam: Beam | None
    ) -> None:
        self._load, self._beam, self._mesh = load, beam, ufl.domain.extract_unique_domain(arc)
        gravity = isinstance(load, Gravity)
        self._mask = mask if gravity else ufl.as_ufl(1.0)
        self._views = [
            SimpleNamespace(place=place, arc=arc, time=time, inertia=inertia)
            for inertia in (inertias if gravity else inertias[:1])
        ]

    def each(self, density: Callable) -> Expr:
        """The sum of ``density(load, rod)`` over what the load acts on, per length at a node."""
        found = (density(self._load, view) for view in self._views)
        return self._translated(sum(found, ufl.as_ufl(0.0)))

    def work(self, rod, configuration, virtual: Expr) -> Expr:
        return self.each(lambda load, view: load.work(view, configuration, virtual))

    def potential(self, rod, configuration) -> Expr:
        return self.each(lambda load, view: load.potential(view, configuration))

    def check(self, rod) -> None:
        self._load.check(self._views[0])

    def _translated(self, density: Expr) -> Expr:
        if self._beam is not None:
            here = ufl.SpatialCoordinate(self._beam.mesh)
            density = replace(density, {here: ufl.as_vector([self._views[0].arc])})
            found = extract_coefficients(density)
            if any(f.function_space().mesh() is not self._mesh for f in found):
                raise ValueError(
                    f"{self._load!r}: a Function on the mesh of a beam cannot load it in an assembly; "
                    "give a function of (s, t) that returns an expression"
                )
        return self._mask * density

    def __repr__(self) -> str:
        return repr(self._load)
