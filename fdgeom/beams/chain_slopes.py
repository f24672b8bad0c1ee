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
from fdgeom.solvers import Deed

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


class FollowingShape:
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
        self._beam, self._chain, self._anchor = beam, chain, anchor
        #: The functions that it writes.
        self.targets = beam.position, beam.orientation
        self._strain, self._position, self._orientation = (
            Function(f.function_space()) for f in (beam.strain, *self.targets)
        )

    def apply(self) -> None:
        """Update the configuration from the strain."""
        self._chain.follow(self._anchor)

    def push(self, tangents) -> None:
        """Set the tangents of the configuration; before :meth:`apply`."""
        _, nodes, moved = self._there_and_moved(tangents)
        for values, place, target in (
            (moved.x, self._position, self.targets[0]),
            (moved.q, self._orientation, self.targets[1]),
        ):
            nodes.scatter(values, place)
            tangents.put(target, place.dat.data_ro)

    def pull(self, bars) -> None:
        """Replace the cotangents of the configuration by those of the strain and of the fixed node."""
        if all(target not in bars for target in self.targets):
            return
        _, there = self._there()
        self._put_all(bars, self._pulled(there, *self._cotangents(bars)))

    def pull_rates(self, bars, rates, tangents) -> None:
        """:meth:`pull`, and its derivative along tangents with the rates of the cotangents."""
        if all(target not in bars and target not in rates for target in self.targets):
            return
        there, _, moved = self._there_and_moved(tangents)
        aside = _Place(*(a + _ASIDE * b for a, b in zip(there, moved, strict=True)))
        pairs = zip(self._cotangents(bars), self._cotangents(rates), strict=True)
        found = self._pulled(aside, *(a + _ASIDE * b for a, b in pairs))
        self._put_all(bars, [values.real for values in found])
        self._put_all(rates, [values.imag / _ASIDE.imag for values in found])

    # --- pieces ----------------------------------------------------------------------------------
    def _there(self):
        """The nodes with their poses."""
        beam, chain = self._beam, self._chain
        nodes, exponents, lengths = chain.exponents()
        fixed = (nodes.gather(f)[self._anchor] for f in (beam.position, beam.orientation))
        return nodes, _Place(*chain.followed(self._anchor), exponents, *fixed, lengths)

    def _slopes(self, place: _Place) -> np.ndarray:
        """The ∂η/∂γ of the cells."""
        poses = arrays.se3.pose_matrix((place.x[1:], place.q[1:]))
        slopes = arrays.se3.Ad(poses) @ arrays.se3.dcay(place.exponents)
        return place.lengths[:, :, None] * slopes

    def _there_and_moved(self, tangents):
        """The poses that follow and the inputs of the shape, the nodes, and all their tangents."""
        nodes, place = self._there()
        q, strain = place.q, self._gathered(self._strain, tangents, "strain")
        rates = np.einsum("nij,nj->ni", self._slopes(place), strain)
        dx, dq = (values[self._anchor] for values in self._cotangents(tangents))
        spin = 2 / place.size * _turning(q[self._anchor], dq)
        start = np.concatenate([spin, dx - np.cross(spin, place.position)])
        total = np.concatenate([np.zeros((1, 6)), np.cumsum(rates, axis=0)])
        motion = start + total - total[self._anchor]
        spin = motion[:, :3]
        moved = motion[:, 3:] + np.cross(spin, place.x), 0.5 * _turned(q, spin)
        still = np.zeros_like(place.lengths)
        return place, nodes, _Place(*moved, place.lengths * strain, dx, dq, still)

    def _pulled(self, place: _Place, bar_x: np.ndarray, bar_q: np.ndarray) -> list[np.ndarray]:
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

    def _cotangents(self, vectors) -> list[np.ndarray]:
        """Cotangents (or tangents) of position and orientation."""
        return [
            self._gathered(self._position, vectors, "position"),
            self._gathered(self._orientation, vectors, "orientation"),
        ]

    def _put_all(self, bars, values: list[np.ndarray]) -> None:
        by_strain, at_x, at_q = values
        self._put(bars, self._strain, "strain", by_strain, add=True)
        self._put(bars, self._position, "position", at_x)
        self._put(bars, self._orientation, "orientation", at_q)

    def _gathered(self, place: Function, vectors, name: str) -> np.ndarray:
        values = vectors.of(getattr(self._beam, name))
        place.dat.data_wo[...] = 0.0 if values is None else values
        return self._chain.numbering(name).gather(place)

    def _put(self, bars, place: Function, name: str, values: np.ndarray, add: bool = False) -> None:
        self._chain.numbering(name).scatter(values, place)
        put = bars.add if add else bars.put
        put(getattr(self._beam, name), place.dat.data_ro)


class ReconstructedShape(FollowingShape):
    """The configuration computed from the strain of a beam, from a given pose of the first node."""

    def __init__(self, beam: BeamFields, chain: Chain, position, orientation) -> None:
        super().__init__(beam, chain, 0)
        self._pose = position, orientation

    def apply(self) -> None:
        """Set the configuration."""
        self._chain.reconstruct(*self._pose)

    def push(self, tangents) -> None:
        """Set the tangents of the configuration, with a fixed first node."""
        for target in self.targets:
            tangents.take(target)
        self.apply()
        super().push(tangents)

    def pull(self, bars) -> None:
        """Replace the cotangents of the configuration by those of the strain."""
        self.apply()
        super().pull(bars)
        for target in self.targets:
            bars.take(target)

    def pull_rates(self, bars, rates, tangents) -> None:
        """:meth:`pull`, and its derivative along tangents with the rates of the cotangents."""
        self.apply()
        inside = tangents.copy()
        for target in self.targets:
            inside.take(target)
        super().pull_rates(bars, rates, inside)
        for target in self.targets:
            bars.take(target)
            rates.take(target)


def _turned(q: np.ndarray, spin: np.ndarray) -> np.ndarray:
    """(0, ω) q, twice the rate of a quaternion with angular velocity ω."""
    return arrays.quaternion.product(join(np.zeros(1), spin), q)


def _turning(q: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The vector part of p q̄ for a change p; the transpose of :func:`_turned`."""
    return arrays.quaternion.product(change, arrays.quaternion.conjugate(q))[..., 1:]


def projection(beam: BeamFields, chain: Chain) -> Deed:
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
    return Deed(chain.project, residual=simplify(gap), unknown=beam.strain)


def strain_of(cells: Cells, position: Function, orientation: Function) -> Expr:
    """γ+e of the cells of a configuration, for use in ``cells.sum``."""
    (x, y), (p, q) = cells.ends(position), cells.ends(orientation)
    a, b = (x, quaternion.normalize(p)), (y, quaternion.normalize(q))
    relative = se3.pose_compose(se3.pose_inverse(a), b)
    return se3.pose_cay_inverse(relative) / cells.length
