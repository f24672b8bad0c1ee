"""Stiffness and inertia about an equilibrium, factored so that slender beams keep digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
import ufl
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    TensorFunctionSpace,
    TestFunction,
    TrialFunction,
    VectorFunctionSpace,
    assemble,
    dot,
)
from scipy.sparse.linalg import splu
from ufl.core.expr import Expr

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.forms import MATRIX_COMPILER, tidy
from fdgeom.solvers.derived import refresh
from fdgeom.statics.conditions import Conditions
from fdgeom.statics.gathered import gathered, is_symmetric, scattered, to_scipy

_EPS = np.finfo(float).eps
# How far what a solve leaves may be above round-off: its residual is 1e-12 or so of the forces.
_ROUND_OFF = 1e4 * _EPS


@dataclass(frozen=True)
class Pencil:
    """K = AᵀA + G with the inertia 1: what ends and joints leave free, in coordinates of M = R Rᵀ.

    K and M themselves would lose what is asked for: of a wire of radius r and length L in n cells,
    the lowest frequencies stand (r/L)²/n² and less below the largest entries. In A the square root
    of that counts, and rigid motions are its null space.

    Attributes
    ----------
    rate : sparse matrix, strains × degrees of freedom
        A: rates of strain, times the root of stiffness and length.
    rest : sparse matrix
        G: what the stress at the equilibrium, loads and joints add.
    root : sparse matrix
        R⁻ᵀN, which takes the coordinates to (rotation, translation) of the free nodes: of all that
        the joints allow, N is an orthonormal basis.
    symmetric : bool
        Whether K is: the loads are conservative.
    scale : float
        A lower estimate of the smallest eigenvalue that belongs to a strain.
    """

    rate: sparse.csr_matrix
    rest: sparse.csr_matrix
    root: sparse.csr_matrix
    symmetric: bool
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
    """The pencil of beams and joints at their configuration, the same on every process.

    Parameters
    ----------
    load : float
        By which the loads are multiplied.
    free : numpy.ndarray of bool
        Which of the owned degrees of freedom are not held.

    Raises
    ------
    ValueError
        If the configuration is no equilibrium at that load.
    """
    rod, comm, space, pose = motion.rod, motion.comm, motion.space, motion.configuration
    joints, still = motion.joints, ufl.zero(6)
    test, trial = TestFunction(space), TrialFunction(space)
    strains = VectorFunctionSpace(motion.mesh, "DG", 0, dim=6)
    probe = TestFunction(strains)
    factor = Constant(load)
    refresh(motion.balance(pose, motion.v, motion.v, motion.time, test))

    def in_cells(density: Expr):
        return rod.cells.sum(dot(density, probe) / rod.cells.length)

    external = rod.external_work(pose, test)
    loaded = bool(load) and not external.empty()
    lengths = _of_cells(motion, rod.cells.length)
    values = assemble(in_cells(rod.elastic_strain(pose))).dat.data_ro.copy()
    if not loaded:
        _clean(values, lengths, motion)
    strain, stress = (Function(strains) for _ in range(2))
    strain.dat.data_wo[...] = values
    stress.interpolate(rod.law.stress(strain, rod.stiffness))
    stiffness = _of_cells(motion, rod.law.tangent(strain, rod.stiffness))

    keep = gathered(comm, free)
    forces = [rod.stress_work(stress, pose, test), *([-factor * external] if loaded else [])]
    rate = _scipy(in_cells(rod.strain_rate(pose, trial)))[:, keep]
    rest = _scipy(rod.geometric_stiffness(stress, pose, trial, test))
    if joints is not None:
        forces.append(motion.spring_work(pose, still, test))
    forces = [form for form in map(tidy, forces) if not form.empty()]
    parts = [gathered(comm, assemble(form).dat.data_ro.ravel()) for form in forces]

    inside = gathered(comm, _inside(motion))
    lengths, stiffness = (gathered(comm, part)[inside] for part in (lengths, stiffness))
    rate = rate[np.repeat(inside, 6)]
    residual, slope = sum(parts)[keep], sparse.csr_matrix((0, int(keep.sum())))
    if joints is not None:
        multiplier = Function(joints.space, name="multiplier")
        used = np.ones(multiplier.dat.data_ro.size, dtype=bool)
        used[joints.idle[joints.idle < used.size]] = False
        used = gathered(comm, used)
        slope = _scipy(joints.slope(TestFunction(joints.space), trial, pose))[used][:, keep]
        force = np.zeros(len(used))
        force[used] = Conditions(slope).forces(residual)
        residual = residual + slope.T @ force[used]
        scattered(force, multiplier)
        in_joints = motion.rate(
            lambda g: joints.slope(multiplier, test, g) + motion.spring_work(g, still, test), trial
        )
        # Spherical joints are linear: they add nothing.
        rest = rest if in_joints.empty() else rest + _scipy(in_joints)
    _check_equilibrium(motion, residual, parts, (stiffness, lengths))
    rest = rest[keep][:, keep]
    extent = lengths.sum()
    symmetric, change = True, rod.load_stiffness(pose, trial, test) if loaded else None
    if change is not None and not change.empty():
        of_loads = load * _scipy(change)[keep][:, keep]
        rest = rest - of_loads
        size = sparse.diags(np.tile([1 / extent] * 3 + [1.0] * 3, len(keep) // 6)[keep])
        symmetric = is_symmetric(size @ rest @ size, size @ of_loads @ size)
    if symmetric:
        # Out of the last digits of an equilibrium, the virtual displacements turn with the body.
        rest = (rest + rest.T) / 2

    mass = _scipy(motion.inertia(test, trial))
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
            "law: its tangent at this equilibrium is not positive definite; modes are found where "
            "the section resists every small change of its strain"
        ) from None


def _inside(motion: RodMotion) -> np.ndarray:
    """Which of the owned cells are pieces of beams."""
    inside = motion.cells.inside
    if inside is None:
        return np.ones(Function(FunctionSpace(motion.mesh, "DG", 0)).dat.data_ro.size, dtype=bool)
    return inside.dat.data_ro > 0.5


def _of_cells(motion: RodMotion, value: Expr) -> np.ndarray:
    """Values of an expression in the owned cells."""
    shape, mesh = value.ufl_shape, motion.mesh
    space = (
        TensorFunctionSpace(mesh, "DG", 0, shape=shape) if shape else FunctionSpace(mesh, "DG", 0)
    )
    return Function(space).interpolate(value).dat.data_ro.copy()


def _clean(strain: np.ndarray, lengths: np.ndarray, motion: RodMotion) -> None:
    """Set components to zero that are nowhere above the round-off of positions and orientations.

    Times the axial stiffness of a wire that would be a tension as large as Euler's load.
    """
    comm = motion.comm
    extent = max(comm.allgather(np.abs(motion.position.dat.data_ro).max(initial=0.0)))
    allowed = 16 * _EPS * (1 + np.array([1.0] * 3 + [extent] * 3) / lengths[:, None])
    above = np.array(comm.allgather((np.abs(strain) > allowed).any(axis=0))).any(axis=0)
    strain[:, ~above] = 0.0


def _scipy(form) -> sparse.csr_matrix:
    """The whole assembled matrix on every process."""
    return to_scipy(assemble(form, form_compiler_parameters=MATRIX_COMPILER).petscmat)


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
            f"beam: its configuration is no equilibrium at that load (unbalanced by {worst:.3g}, "
            f"forces up to {forces:.3g}): solve for one with fdgeom.StaticEquilibrium"
        )


def _inverse_root(mass: sparse.csr_matrix, keep: np.ndarray) -> sparse.csr_matrix:
    """R⁻ᵀ of the free part of a mass matrix that has 6×6 blocks at the nodes, R Rᵀ = M."""
    free = keep.reshape(-1, 6)
    dofs = np.arange(len(keep)).reshape(-1, 6)
    rows, columns = np.broadcast_arrays(dofs[:, :, None], dofs[:, None, :])
    blocks = np.asarray(mass[rows.ravel(), columns.ravel()]).reshape(rows.shape)
    # What is held stands alone with 1, and is then left out.
    blocks = np.where(free[:, :, None] & free[:, None, :], blocks, np.eye(6))
    return _blocks(np.linalg.inv(np.linalg.cholesky(blocks)).transpose(0, 2, 1))[keep][:, keep]


def _blocks(values: np.ndarray) -> sparse.csr_matrix:
    """A block-diagonal matrix."""
    count = len(values)
    return sparse.bsr_matrix((values, np.arange(count), np.arange(count + 1))).tocsr()


def _scale(stiffness: np.ndarray, mass: sparse.csr_matrix, lengths: np.ndarray) -> float:
    """Least stiffness by largest inertia, rotations measured by the beam's length.

    For bending EI / (m L⁴): below the lowest frequency, and for slender beams not far below.
    """
    extent = lengths.sum()
    size = np.array([1 / extent] * 3 + [1.0] * 3)
    inertia = (size**2 * mass.diagonal().reshape(-1, 6).sum(axis=0)).max() / extent
    least = np.linalg.eigvalsh(size[:, None] * size * stiffness)[:, 0].min()
    return float(least / inertia / extent**2)
