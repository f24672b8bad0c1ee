"""Stiffness and inertia about an equilibrium, factored so that slender beams keep digits."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import splu

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.statics.conditions import Conditions
from fdgeom.statics.gathered import gathered, is_symmetric
from fdgeom.statics.pencil_forms import forms_of

_EPS = np.finfo(float).eps
# How far what a solve leaves may be above round-off: its residual is 1e-12 or so of the forces.
_ROUND_OFF = 1e4 * _EPS


@dataclass(frozen=True)
class Pencil:
    """K = AᵀA + G with the inertia 1, for the free displacements in coordinates of M = R Rᵀ."""

    # K and M themselves would lose the wanted digits: the lowest frequencies of a wire of radius r
    # and length L in n cells are (r/L)²/n² and less below the largest entries. For A the square
    # root of that counts, and rigid motions are its null space.
    #: A, the rates of strain times the root of stiffness and length.
    rate: sparse.csr_matrix
    #: G, of the stress at the equilibrium, loads and joints.
    rest: sparse.csr_matrix
    #: R⁻ᵀN, from the coordinates to (rotation, translation) of the free nodes; N is an orthonormal
    #: basis of the displacements that the joints allow.
    root: sparse.csr_matrix
    #: Whether the loads are conservative.
    symmetric: bool
    #: A lower estimate of the smallest eigenvalue that belongs to a strain.
    scale: float

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.rate.shape[1]

    def shifted(self, shift: float) -> Callable[[np.ndarray], np.ndarray]:
        """x ↦ (K + shift)⁻¹ x by [[-1, A], [Aᵀ, G + shift]], scaled by the root of the shift."""
        strains, size = self.rate.shape
        s = np.sqrt(shift)
        diagonal = (self.rest + shift * sparse.eye(size)) / s
        saddle = sparse.bmat([[-s * sparse.eye(strains), self.rate], [self.rate.T, diagonal]])
        solve = splu(saddle.tocsc()).solve
        return lambda x: solve(np.concatenate([np.zeros(strains), x / s]))[strains:]

    def quotient(self, vectors: np.ndarray) -> np.ndarray:
        """v·K v of the columns, for v·v = 1."""
        strains = self.rate @ vectors
        return (np.abs(strains) ** 2).sum(axis=0) + (vectors.conj() * (self.rest @ vectors)).sum(0)

    def round_off(self, vectors: np.ndarray) -> np.ndarray:
        """Bounds of the round-off in :meth:`quotient`."""
        size = np.abs(vectors)
        strains = _ROUND_OFF * (abs(self.rate) @ size)
        return (strains**2).sum(axis=0) + _ROUND_OFF * (size * (abs(self.rest) @ size)).sum(axis=0)


def pencil(motion: RodMotion, load: float, free: np.ndarray) -> Pencil:
    """The pencil of beams and joints at their configuration, the same on every process."""
    comm, forms = motion.comm, forms_of(motion)
    loaded = forms.is_loaded(load)
    lengths, values = forms.lengths(), forms.elastic_strain()
    if not loaded:
        _clean(values, lengths, motion)
    forms.set_strain(values)

    keep, inside = gathered(comm, free), forms.inside
    parts = forms.works(load)
    lengths, stiffness = (gathered(comm, part)[inside] for part in (lengths, forms.stiffness()))
    rate = forms.rate()[np.repeat(inside, 6)][:, keep]
    rest = forms.geometric()
    residual, slope = sum(parts)[keep], sparse.csr_matrix((0, int(keep.sum())))
    if motion.joints is not None:
        slope, force = forms.slope()[forms.used][:, keep], np.zeros(len(forms.used))
        force[forms.used] = Conditions(slope).forces(residual)
        residual = residual + slope.T @ force[forms.used]
        in_joints = forms.in_joints(force)
        rest = rest if in_joints is None else rest + in_joints
    _check_equilibrium(motion, residual, parts, (stiffness, lengths))
    rest = rest[keep][:, keep]
    extent = lengths.sum()
    symmetric, change = True, forms.of_loads() if loaded else None
    if change is not None:
        of_loads = change[keep][:, keep]
        rest = rest - of_loads
        size = sparse.diags(np.tile([1 / extent] * 3 + [1.0] * 3, len(keep) // 6)[keep])
        symmetric = is_symmetric(size @ rest @ size, size @ of_loads @ size)
    if symmetric:
        # Out of the last digits of an equilibrium, the virtual displacements turn with the body.
        rest = (rest + rest.T) / 2

    mass = forms.inertia()
    root = _inverse_root(mass, keep)
    root = (root @ Conditions(slope @ root).basis).tocsr()
    half = _blocks(_root(lengths[:, None, None] * stiffness))
    return Pencil(
        rate=(half @ rate @ root).tocsr(),
        rest=(root.T @ rest @ root).tocsr(),
        root=root,
        symmetric=symmetric,
        scale=_scale(stiffness, mass, lengths),
    )


def _root(matrices: np.ndarray) -> np.ndarray:
    """Rᵀ of each symmetric matrix R Rᵀ."""
    try:
        return np.linalg.cholesky(matrices).transpose(0, 2, 1)
    except np.linalg.LinAlgError:
        raise ValueError(
            "law: its tangent at this equilibrium is not positive definite, so there are no modes; "
            "take an equilibrium where the section resists every small change of its strain"
        ) from None


def _clean(strain: np.ndarray, lengths: np.ndarray, motion: RodMotion) -> None:
    """Set strain components to zero that are nowhere above the round-off of the poses."""
    # Times the axial stiffness of a wire, round-off would be a tension as large as Euler's load.
    comm = motion.comm
    extent = max(comm.allgather(np.abs(motion.position.dat.data_ro).max(initial=0.0)))
    # Those that only join nodes have none.
    lengths = np.where(lengths > 0, lengths, 1.0)
    allowed = 16 * _EPS * (1 + np.array([1.0] * 3 + [extent] * 3) / lengths[:, None])
    above = np.array(comm.allgather((np.abs(strain) > allowed).any(axis=0))).any(axis=0)
    strain[:, ~above] = 0.0


def _check_equilibrium(motion: RodMotion, residual, parts, cells) -> None:
    stiffness, lengths = cells
    forces = sum(np.abs(part).max(initial=0.0) for part in parts)
    position = gathered(motion.comm, motion.position.dat.data_ro.ravel())
    # A solve leaves 1e-12 or so of the forces, or round-off of stiffness times size.
    stiff = (np.abs(stiffness).max(axis=(1, 2)) / lengths).max()
    allowed = 1e-6 * forces + 1e-12 * stiff * np.abs(position).max()
    worst = np.abs(residual).max(initial=0.0)
    if not worst <= allowed:
        raise ValueError(
            f"beam: its configuration is not an equilibrium at that load (unbalanced by {worst:.3g}, "
            f"forces up to {forces:.3g}): solve for one with fdgeom.StaticEquilibrium"
        )


def _inverse_root(mass: sparse.csr_matrix, keep: np.ndarray) -> sparse.csr_matrix:
    """R⁻ᵀ of the free part of a mass matrix that has 6×6 blocks at the nodes, R Rᵀ = M."""
    free = keep.reshape(-1, 6)
    dofs = np.arange(len(keep)).reshape(-1, 6)
    rows, columns = np.broadcast_arrays(dofs[:, :, None], dofs[:, None, :])
    blocks = np.asarray(mass[rows.ravel(), columns.ravel()]).reshape(rows.shape)
    # Held degrees of freedom get a 1 on the diagonal, and are then left out.
    blocks = np.where(free[:, :, None] & free[:, None, :], blocks, np.eye(6))
    return _blocks(np.linalg.inv(np.linalg.cholesky(blocks)).transpose(0, 2, 1))[keep][:, keep]


def _blocks(values: np.ndarray) -> sparse.csr_matrix:
    """A block-diagonal matrix."""
    count = len(values)
    return sparse.bsr_matrix((values, np.arange(count), np.arange(count + 1))).tocsr()


def _scale(stiffness: np.ndarray, mass: sparse.csr_matrix, lengths: np.ndarray) -> float:
    """Least stiffness by largest inertia, rotations measured by the beam's length: for bending EI /
    (m L⁴), below the lowest frequency, and for slender beams not far below.
    """
    extent = lengths.sum()
    size = np.array([1 / extent] * 3 + [1.0] * 3)
    inertia = (size**2 * mass.diagonal().reshape(-1, 6).sum(axis=0)).max() / extent
    least = np.linalg.eigvalsh(size[:, None] * size * stiffness)[:, 0].min()
    return float(least / inertia / extent**2)
