"""Derivatives of the configuration of a beam by its strain, and of the strain by it."""

from typing import NamedTuple

import numpy as np
from firedrake import Function, TestFunction, dot
from ufl.core.expr import Expr

from fdgeom.beams.chain import Chain
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.cells import Cells
from fdgeom.forms import simplify
from fdgeom.lie import arrays, quaternion, se3
from fdgeom.lie.numpy_operations import join
from fdgeom.operations import ArrayOperation, Solve, owned_values

#: Steps into the complex plane are so small that their squares are nothing.
_ASIDE = 1e-40j


class _Place(NamedTuple):
    """Poses that follow, x (n + 1, 3) and q (n + 1, 4), the Δs (γ+e), the fixed node as it is given, Δs."""

    x: np.ndarray
    q: np.ndarray
    exponents: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    lengths: np.ndarray

    @property
    def size(self):
        """The length of the quaternion."""
        return np.sqrt(np.sum(self.orientation**2))


class FollowingShape(ArrayOperation):
    """The configuration made from the strain of a beam, from one node on; in space, with δg_j g_j⁻¹
    = η_j,

        η_{j+1} = η_j + Ad(g_{j+1}) dcay(Δs (γ_j+e)) Δs δγ_j.
    """

    def __init__(self, beam: BeamFields, chain: Chain, anchor: int) -> None:
        if beam.degree != 1:
            raise NotImplementedError(
                "gradients through the configuration that a beam of higher degree computes from its "
                "strain are not available: call reconstruct() inside 'with "
                "firedrake.adjoint.stop_annotating():' (the configuration then counts as given data), "
                "or take degree=1"
            )
        super().__init__()
        self._beam, self._chain, self._anchor = beam, chain, anchor
        #: Values on the way from and to the order of the nodes.
        self._places = {
            name: Function(getattr(beam, name).function_space())
            for name in ("strain", "position", "orientation")
        }

    @property
    def reads(self) -> list[Function]:
        return [self._beam.strain, *self.writes]

    @property
    def writes(self) -> list[Function]:
        return [self._beam.position, self._beam.orientation]

    def run(self) -> None:
        self._chain.follow(self._anchor)

    def tangents(self, dots):
        _, moved = self._moved(dots)
        return [self._scattered("position", moved.x), self._scattered("orientation", moved.q)]

    def cotangents(self, bars):
        return self._scattered_all(self._adjoint(self._place(), *self._poses(bars)))

    def cotangent_rates(self, bars, dots):
        # The derivative by a step into the complex plane.
        place, moved = self._moved(dots)
        aside = _Place(*(a + _ASIDE * b for a, b in zip(place, moved, strict=True)))
        found = self._adjoint(aside, *self._poses(bars))
        return self._scattered_all([values.imag / _ASIDE.imag for values in found])

    def _place(self) -> _Place:
        beam, chain = self._beam, self._chain
        nodes, exponents, lengths = chain.exponents()
        fixed = (nodes.gather(f)[self._anchor] for f in (beam.position, beam.orientation))
        return _Place(*chain.followed(self._anchor), exponents, *fixed, lengths)

    def _slopes(self, place: _Place) -> np.ndarray:
        """The ∂η/∂γ of the cells."""
        poses = arrays.se3.pose_matrix((place.x[1:], place.q[1:]))
        slopes = arrays.se3.Ad(poses) @ arrays.se3.dcay(place.exponents)
        return place.lengths[:, :, None] * slopes

    def _moved(self, dots) -> tuple[_Place, _Place]:
        """The poses that follow and the inputs of the shape, and all their tangents."""
        place, (dot, *poses) = self._place(), owned_values(dots)
        q, strain = place.q, self._gathered("strain", dot)
        rates = np.einsum("nij,nj->ni", self._slopes(place), strain)
        dx, dq = (values[self._anchor] for values in self._poses(poses or (0.0, 0.0)))
        spin = 2 / place.size * _turning(q[self._anchor], dq)
        start = np.concatenate([spin, dx - np.cross(spin, place.position)])
        total = np.concatenate([np.zeros((1, 6)), np.cumsum(rates, axis=0)])
        motion = start + total - total[self._anchor]
        spin = motion[:, :3]
        moved = motion[:, 3:] + np.cross(spin, place.x), 0.5 * _turned(q, spin)
        still = np.zeros_like(place.lengths)
        return place, _Place(*moved, place.lengths * strain, dx, dq, still)

    def _adjoint(self, place: _Place, bar_x: np.ndarray, bar_q: np.ndarray) -> list[np.ndarray]:
        """The cotangents of strain, position and orientation from those of the configuration."""
        x, q, size = place.x, place.q, place.size
        turn = 0.5 * _turning(q, bar_q)
        motion = np.concatenate([turn + np.cross(x, bar_x), bar_x], axis=1)
        before = np.cumsum(motion, axis=0)[:-1]
        whole = motion.sum(axis=0)
        rates = whole - before if self._anchor == 0 else -before
        by_strain = np.einsum("nij,ni->nj", self._slopes(place), rates)

        spin, pull = whole[:3] - np.cross(place.position, whole[3:]), whole[3:]
        at_x, at_q = np.zeros_like(x), np.zeros_like(q)
        at_x[self._anchor] = pull
        at_q[self._anchor] = 2 / size * _turned(q[self._anchor], spin)
        return [by_strain, at_x, at_q]

    def _poses(self, vectors) -> list[np.ndarray]:
        """Cotangents (or tangents) of position and orientation, in the order of the nodes."""
        names = "position", "orientation"
        return [self._gathered(name, v) for name, v in zip(names, vectors, strict=True)]

    def _gathered(self, name: str, values) -> np.ndarray:
        place = self._places[name]
        place.dat.data_wo[...] = values
        return self._chain.numbering(name).gather(place)

    def _scattered(self, name: str, values: np.ndarray) -> np.ndarray:
        place = self._places[name]
        self._chain.numbering(name).scatter(values, place)
        return np.array(place.dat.data_ro)

    def _scattered_all(self, values: list[np.ndarray]) -> list[np.ndarray]:
        return [self._scattered(n, v) for n, v in zip(self._places, values, strict=True)]


class ReconstructedShape(FollowingShape):
    """The configuration computed from the strain of a beam, from a given pose of the first node."""

    def __init__(self, beam: BeamFields, chain: Chain, position, orientation) -> None:
        super().__init__(beam, chain, 0)
        self._pose = position, orientation

    @property
    def reads(self) -> list[Function]:
        return [self._beam.strain]

    def run(self) -> None:
        self._chain.reconstruct(*self._pose)

    def _place(self) -> _Place:
        self.run()
        return super()._place()

    def _scattered_all(self, values):
        return super()._scattered_all(values)[:1]


def _turned(q: np.ndarray, spin: np.ndarray) -> np.ndarray:
    """(0, ω) q, twice the rate of a quaternion with angular velocity ω."""
    return arrays.quaternion.product(join(np.zeros(1), spin), q)


def _turning(q: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The vector part of p q̄ for a change p; the transpose of :func:`_turned`."""
    return arrays.quaternion.product(change, arrays.quaternion.conjugate(q))[..., 1:]


def projection(beam: BeamFields, chain: Chain) -> Solve:
    """The strain of a configuration: Δs (γ+e) = cay⁻¹(g_a⁻¹ g_b) between neighbouring nodes."""
    if beam.degree != 1:
        raise NotImplementedError(
            "gradients through the strain that a beam of higher degree computes from its configuration "
            "are not available: call project() inside 'with firedrake.adjoint.stop_annotating():' (the "
            "strain then counts as given data), or take degree=1"
        )
    cells, test = Cells(beam.mesh), TestFunction(beam.strain.function_space())
    strain = strain_of(cells, beam.position, beam.orientation) - beam.tangent
    gap = cells.sum(dot(beam.strain - strain, test) / cells.length)
    return Solve(work=simplify(gap), unknown=beam.strain, find=chain.project)


def strain_of(cells: Cells, position: Function, orientation: Function) -> Expr:
    """γ+e of the cells of a configuration, for use in ``cells.sum``."""
    (x, y), (p, q) = cells.ends(position), cells.ends(orientation)
    a, b = (x, quaternion.normalize(p)), (y, quaternion.normalize(q))
    relative = se3.pose_compose(se3.pose_inverse(a), b)
    return se3.pose_cay_inverse(relative) / cells.length
