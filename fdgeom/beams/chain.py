"""The chain of a beam's nodes: configuration from strain, and strain from configuration."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import scipy
import ufl
from firedrake import Function, TestFunction, dot
from ufl.core.expr import Expr

from fdgeom import lie
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.variation import displaced, spin
from fdgeom.forms import simplify
from fdgeom.lie.arrays import pose_scan, quaternion, se3
from fdgeom.line import Numbering, end_node
from fdgeom.messages import format_value
from fdgeom.operations import Map, Operation, Performed, Prescribed, Solve
from fdgeom.validation import array

Poses = tuple[np.ndarray, np.ndarray]

# Angles and strains that were meant to be the same.
_SAME = 1e-9


class Chain:
    """The nodes of a beam in the order of the arc length, on every rank: g_b = g_a Δg."""

    # For degree 1, Δg = cay(Δs (γ+e)), as in the paper; for higher degrees Δg = exp(Ω) with the
    # Magnus expansion of sixth order at three Gauss points (Blanes, Casas, Oteo & Ros, Phys. Rep.
    # 470, 2009).
    def __init__(self, beam: BeamFields) -> None:
        self._beam = beam
        self._tangent = np.array(beam.tangent.dat.data_ro)

    @cached_property
    def _points(self) -> Numbering:
        return Numbering(self._beam.strain.function_space())

    @cached_property
    def _nodes(self) -> Numbering:
        return Numbering(self._beam.momentum.function_space())

    @cached_property
    def _lengths(self) -> np.ndarray:
        """Distances of neighbouring nodes, (cells, degree)."""
        return np.diff(self._nodes.coordinates).reshape(-1, self._beam.degree)

    @cached_property
    def _rule(self) -> "_SubintervalRule":
        return _SubintervalRule(self._beam.degree)

    def from_pose(self, position, orientation) -> Poses:
        """The poses (n + 1, 3), (n + 1, 4) with this pose of the first node."""
        return self._shape(_pose(position, orientation))

    def followed(self, anchor: int) -> Poses:
        """The poses of the strain, with the first (0) or the last node (-1) fixed."""
        x, q = self._poses(self._beam.position, self._beam.orientation)
        origin = _pose((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
        shape = self._shape(origin)
        there = x[anchor], q[anchor]
        start = se3.pose_compose(there, se3.pose_inverse((shape[0][anchor], shape[1][anchor])))
        return se3.pose_compose((start[0][None], start[1][None]), shape)

    def project(self) -> None:
        """Fill the strain of the beam from its position and orientation."""
        beam = self._beam
        self.put_strain(beam.position, beam.orientation, beam.strain)

    def put_strain(self, position: Function, orientation: Function, strain: Function) -> None:
        """Fill a strain with that of a position and orientation of the beam's nodes."""
        self._points.scatter(self._strains_of(position, orientation), strain)

    def agrees(self, measured: Function | None = None) -> bool:
        """Whether the strain of the beam is that of its configuration, for degree 1."""
        x, _ = self._poses(self._beam.position, self._beam.orientation)
        strain = self._points.gather(self._beam.strain)
        # Angles and lengths, per cell length; positions have round-off of their distance to the origin.
        allowed = _SAME + 8 * np.finfo(float).eps * np.abs(x).max() / self._lengths.min()
        turn = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
        scale = turn * self._lengths + (1 - turn)
        mine = self._strains_of(self._beam.position, self._beam.orientation)
        candidates = [mine] if measured is None else [mine, self._points.gather(measured)]
        return any(np.abs(scale * (strain - c)).max() <= allowed for c in candidates)

    def _poses(self, position: Function, orientation: Function):
        q = self._nodes.gather(orientation)
        return self._nodes.gather(position), quaternion.normalize(q)

    def put_poses(self, poses: Poses, fields: Sequence[Function]) -> None:
        """Fill a position and an orientation of the beam's nodes."""
        for values, field in zip(poses, fields, strict=True):
            self._nodes.scatter(values, field)

    def _shape(self, start):
        """Poses (n + 1, 3), (n + 1, 4) of the nodes, from that of the first and the strain."""
        x, q = self._increments(self._points.gather(self._beam.strain))
        return pose_scan((np.concatenate([start[0][None], x]), np.concatenate([start[1][None], q])))

    def _strains_of(self, position: Function, orientation: Function) -> np.ndarray:
        x, q = self._poses(position, orientation)
        return self._strains(se3.pose_compose(se3.pose_inverse((x[:-1], q[:-1])), (x[1:], q[1:])))

    def _increments(self, strain):
        """Relative poses (n, 3), (n, 4) between neighbouring nodes."""
        if self._beam.degree == 1:
            return se3.pose_cay(self._lengths * (strain + self._tangent))
        cells = strain.reshape(len(self._lengths), -1, 6) + self._tangent
        exponents = self._rule.magnus(cells, self._lengths.sum(1))
        return se3.pose_exp(exponents.reshape(-1, 6))

    def _strains(self, relative) -> np.ndarray:
        if self._beam.degree == 1:
            return se3.pose_cay_inverse(relative) / self._lengths - self._tangent
        n, p = self._lengths.shape
        x, q = relative
        # q and -q are one rotation; between neighbouring nodes it is the shorter one.
        wanted = se3.pose_log((x, np.where(q[..., :1] < 0, -q, q))).reshape(n, p, 6)
        cells = self._rule.solve(wanted, self._lengths.sum(1))
        return cells.reshape(-1, 6) - self._tangent


class _SubintervalRule:
    """Magnus exponents over the p pieces between the p+1 Gauss–Lobatto nodes of a cell."""

    def __init__(self, p: int) -> None:
        gauss = 0.5 + 0.5 * np.polynomial.legendre.leggauss(p)[0]
        inner = np.polynomial.legendre.Legendre.basis(p).deriv().roots()
        nodes = 0.5 + 0.5 * np.concatenate([[-1.0], np.sort(inner.real), [1.0]])
        self._fractions = np.diff(nodes)
        three, weights = np.polynomial.legendre.leggauss(3)
        where = nodes[:-1, None] + self._fractions[:, None] * (0.5 + 0.5 * three)
        # values[k, m, j]: basis function j at Gauss point m of piece k
        self._values = scipy.interpolate.BarycentricInterpolator(gauss, np.eye(p))(
            where.ravel()
        ).reshape(p, 3, p)
        self._integrals = self._fractions[:, None] * np.einsum(
            "m,kmj->kj", weights / 2, self._values
        )

    def magnus(self, cells: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Ω (n, p, 6) from the values of γ+e at the Gauss points of each cell (n, p, 6)."""
        h = lengths[:, None, None] * self._fractions[None, :, None]
        first, middle, last = np.moveaxis(np.einsum("kmj,njc->nkmc", self._values, cells), 2, 0)
        a1 = h * middle
        a2 = np.sqrt(15.0) / 3 * h * (last - first)
        a3 = 10.0 / 3 * h * (last - 2 * middle + first)
        # g' = g (γ+e)^: the algebra acts from the right, so all commutators are turned round.
        c1 = se3.bracket(a2, a1)
        c2 = -se3.bracket(2 * a3 + c1, a1) / 60
        return a1 + a3 / 12 + se3.bracket(a2 + c2, -20 * a1 - a3 + c1) / 240

    def solve(self, wanted: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The γ+e at the Gauss points whose Magnus exponents are ``wanted``: fixed-point sweeps."""
        inverse = np.linalg.inv(self._integrals)
        cells = np.zeros_like(wanted)
        for _ in range(50):
            defect = wanted - self.magnus(cells, lengths)
            update = np.einsum("jk,nkc->njc", inverse, defect) / lengths[:, None, None]
            cells += update
            if np.abs(update).max() <= 1e-15 * np.abs(cells).max():
                break
        if np.abs(update).max() > 1e-9 * np.abs(cells).max():
            raise ValueError(
                "the strain of these poses was not found: neighbouring nodes are turned too far; "
                "refine the mesh"
            )
        return cells


def _pose(position, orientation) -> tuple[np.ndarray, np.ndarray]:
    x = array("position", position, (3,))
    wanted = "a unit quaternion (scalar first)"
    q = array("orientation", orientation, (4,), wanted=wanted)
    if abs(np.linalg.norm(q) - 1) > 1e-8:
        raise ValueError(f"orientation must be {wanted}, not {format_value(orientation)}")
    return x, q / np.linalg.norm(q)


class Reconstruct(Performed):
    """Fills the configuration of a beam with the poses of ``find``, from its strain.

    For derivatives the strain and, if it ``moves``, the node ``anchor`` (0 or -1) determine a
    displacement w from these poses, which is zero.
    """

    def __init__(
        self, beam: BeamFields, chain: Chain, find: Callable[[], Poses], anchor: int, *, moves: bool
    ) -> None:
        super().__init__(do=self._fill, operations=self._equations)
        self._beam, self._chain, self._find = beam, chain, find
        self._anchor, self._moves = anchor, moves
        self._pose = beam.position, beam.orientation

    def _fill(self) -> None:
        self._chain.put_poses(self._find(), self._pose)

    @cached_property
    def differentiated_as(self) -> list[Operation]:
        find = Performed(do=self._fill_found, operations=())
        return [find, *self.derivative_as]

    @cached_property
    def _found(self) -> tuple[Function, ...]:
        """The poses, which count as given for derivatives."""
        return tuple(Function(f.function_space()) for f in self._pose)

    def _fill_found(self) -> None:
        self._chain.put_poses(self._find(), self._found)

    def _equations(self) -> list[Operation]:
        beam, (x, q), pose = self._beam, self._found, self._pose
        _refuse_degree(beam, "reconstruct", "configuration", "strain")
        space = beam.velocity.function_space()
        w, test, moved = (Function(space, name=name) for name in ("displacement", "test", "moved"))
        turn = spin(q, pose[1]) / ufl.sqrt(dot(pose[1], pose[1]))
        cells, left = Cells(beam.mesh), self._anchor == 0
        # The equation of a cell belongs to its end away from the anchor.
        end = cells.ends(test)[1 if left else 0]
        gap = strain_of(cells, *displaced((x, q), w)) - beam.tangent - beam.strain
        node = end_node(space, "left" if left else "right")
        dofs = (6 * node[:, None] + np.arange(6)).ravel()
        return [
            *([Map(values={moved: lie.join(turn, pose[0] - x)})] if self._moves else []),
            Solve(
                work=simplify(cells.sum(dot(end, gap))), test=test, unknown=w, find=lambda: None,
                prescribed=(Prescribed(dofs, moved if self._moves else None),),
            ),
            Map(values=dict(zip(pose, displaced((x, q), w), strict=True))),
        ]  # fmt: skip


def projection(beam: BeamFields, chain: Chain) -> Operation:
    """The strain of a configuration: Δs (γ+e) = cay⁻¹(g_a⁻¹ g_b) between neighbouring nodes."""

    def equations() -> list[Operation]:
        _refuse_degree(beam, "project", "strain", "configuration")
        cells, test = Cells(beam.mesh), TestFunction(beam.strain.function_space())
        strain = strain_of(cells, beam.position, beam.orientation) - beam.tangent
        gap = cells.values(beam.strain - strain, test)
        return [Solve(work=gap, unknown=beam.strain, find=chain.project)]

    return Performed(do=chain.project, operations=equations)


def strain_of(cells: Cells, position: Expr, orientation: Expr) -> Expr:
    """γ+e of the cells of a configuration, for use in ``cells.sum``."""
    (x, y), (p, q) = cells.ends(position), cells.ends(orientation)
    a, b = (x, lie.quaternion.normalize(p)), (y, lie.quaternion.normalize(q))
    relative = lie.se3.pose_compose(lie.se3.pose_inverse(a), b)
    return lie.se3.pose_cay_inverse(relative) / cells.length


def _refuse_degree(beam: BeamFields, method: str, result: str, source: str) -> None:
    if beam.degree != 1:
        raise NotImplementedError(
            f"gradients through the {result} that a beam of higher degree computes from its {source} "
            f"are not available: call {method}() inside 'with firedrake.adjoint.stop_annotating():' "
            f"(the {result} then counts as given data), or take degree=1"
        )
