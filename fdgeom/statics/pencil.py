"""Stiffness and inertia about an equilibrium, factored so that slender beams keep digits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sparse
import ufl
from firedrake import (
    Constant,
    Function,
    TestFunction,
    TrialFunction,
    VectorFunctionSpace,
)
from scipy.sparse.linalg import splu
from ufl.classes import Form

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.data import Number
from fdgeom.execution import MatrixAssembly, VectorAssembly
from fdgeom.forms import simplify
from fdgeom.operations.dependent import Sources, private, read_in
from fdgeom.statics.linear_algebra import Conditions, gathered, is_symmetric, scattered, to_scipy

_EPS = np.finfo(float).eps
# How far what a solve leaves may be above round-off: its residual is 1e-12 or so of the forces.
_ROUND_OFF = 1e4 * _EPS


class PencilForms:
    """Vectors and whole matrices about a configuration with present coefficients, on every process."""

    def __init__(self, motion: RodMotion) -> None:
        self._motion, self._rod = motion, motion.rod
        self._test, self._trial = TestFunction(motion.space), TrialFunction(motion.space)
        rod, pose, test, trial = self._rod, motion.configuration, self._test, self._trial
        strains = VectorFunctionSpace(motion.mesh, "DG", 0, dim=6)
        self._strain, self._stress = (private(Function(strains)) for _ in range(2))
        self._factor = private(Constant(0.0, name="load factor"))
        self._set_load = Number(self._factor)
        inside = rod.cells.inside
        own = np.ones(motion.mesh.cell_set.size, dtype=bool)
        #: Mask of the cells that are pieces of beams.
        self.inside = gathered(motion.comm, own if inside is None else inside.dat.data_ro > 0.5)

        def in_cells(value) -> VectorAssembly:
            return VectorAssembly(rod.cells.values(value))

        self.lengths = in_cells(rod.cells.length)
        #: Strains, minus those of the stress-free shape; the law's stress and its tangent.
        self.elastic_strain = in_cells(rod.elastic_strain(pose))
        self._stress_of_strain = in_cells(rod.law.stress(self._strain, rod.stiffness))
        self.tangent = in_cells(rod.law.tangent(self._strain, rod.stiffness))
        #: Rates of strain in the cells, the stiffness of the stress, and the mass matrix.
        self.rate = MatrixAssembly(rod.cells.values(rod.strain_rate(pose, trial)), "aij")
        geometric = rod.geometric_stiffness(self._stress, pose, trial, test)
        self.geometric = MatrixAssembly(geometric, "aij")
        self.inertia = MatrixAssembly(motion.inertia(test, trial), "aij")

        works = [rod.stress_work(self._stress, pose, test)]
        works.append(-rod.external_work(pose, test, factor=self._factor))
        if motion.joints is not None:
            works.append(motion.joints.spring_work(pose, ufl.zero(6), test))
            #: The conditions of the joints, and their multipliers.
            slope = motion.joints.slope(TestFunction(motion.joints.space), trial, pose)
            self.slope = MatrixAssembly(slope, "aij")
            self.multiplier = private(Function(motion.joints.space, name="multiplier"))
            #: The stiffness of springs and of joints with these multipliers; None without any.
            self.in_joints = _matrix(motion.rate(self._work_of_joints, trial))
        self._works = [VectorAssembly(form) for form in map(simplify, works) if not form.empty()]

    def _work_of_joints(self, g) -> Form:
        # Spherical joints are linear: they add no stiffness.
        joints, test = self._motion.joints, self._test
        return joints.slope(self.multiplier, test, g) + joints.spring_work(g, ufl.zero(6), test)

    @cached_property
    def of_loads(self) -> MatrixAssembly | None:
        """Part of the stiffness that loads at the factor of :meth:`works` subtract; None without."""
        pose = self._motion.configuration
        return _matrix(self._rod.load_stiffness(pose, self._trial, self._test, self._factor))

    @cached_property
    def commutator(self) -> MatrixAssembly | None:
        """The loads' work on the commutator of displacements."""
        pose = self._motion.configuration
        return _matrix(self._rod.load_commutator(pose, self._trial, self._test, self._factor))

    @cached_property
    def read(self) -> tuple[Function | Constant, ...]:
        """The coefficients of stiffness and inertia that a user may change."""
        rod, motion, test = self._rod, self._motion, self._test
        pose = motion.configuration
        forms = [rod.internal_work(pose, test), rod.external_work(pose, test)]
        forms.append(motion.inertia(test, self._trial))
        if motion.joints is not None:
            forms.append(motion.joints.spring_work(pose, ufl.zero(6), test))
        return read_in(*(form for form in forms if not form.empty()))

    # --- values --------------------------------------------------------------------------------------
    def set_strain(self, values: np.ndarray) -> None:
        """Set the strains in the owned cells, and their stress."""
        self._strain.dat.data_wo[...] = values
        self._stress.dat.data_wo[...] = _values(self._stress_of_strain)

    def works(self, load: float) -> list[np.ndarray]:
        """Works of stress, loads at a factor, and springs, on all displacements."""
        self._set_load.set(load)
        return [gathered(self._motion.comm, _values(work).ravel()) for work in self._works]

    @cached_property
    def used(self) -> np.ndarray:
        """Mask of all multipliers that belong to a condition."""
        joints = self._motion.joints
        used = np.ones(self.multiplier.dat.data_ro.size, dtype=bool)
        used[joints.idle[joints.idle < used.size]] = False
        return gathered(self._motion.comm, used)


def forms_of(motion: RodMotion) -> PencilForms:
    """The forms of a system, made at the first call."""
    if motion.pencil_forms is None:
        motion.pencil_forms = PencilForms(motion)
    return motion.pencil_forms


def data_of(motion: RodMotion) -> Sources:
    """The configuration and the coefficients of stiffness and inertia, to detect changes."""
    found = Sources(*motion.configuration, *forms_of(motion).read)
    found.take()
    return found


def _values(assembly: VectorAssembly) -> np.ndarray:
    return assembly.assemble().dat.data_ro.copy()


def _whole(assembly: MatrixAssembly) -> sparse.csr_matrix:
    return to_scipy(assembly.assemble())


def _matrix(form: Form) -> MatrixAssembly | None:
    form = simplify(form)
    return None if form.empty() else MatrixAssembly(form, "aij")


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


def pencil(motion: RodMotion, load: float, keep: np.ndarray) -> Pencil:
    """The pencil of beams and joints at their configuration, and the displacements to keep, the same on
    every process.
    """
    comm, forms = motion.comm, forms_of(motion)
    loaded = any(load or not applied.load.scaled for applied in motion.rod.loads)
    lengths, values = _values(forms.lengths), _values(forms.elastic_strain)
    _clean(values, lengths, motion)
    forms.set_strain(values)

    inside, parts = forms.inside, forms.works(load)
    lengths, stiffness = (
        gathered(comm, part)[inside] for part in (lengths, _values(forms.tangent))
    )
    rate = _whole(forms.rate)[np.repeat(inside, 6)][:, keep]
    rest = _whole(forms.geometric)
    residual, slope = sum(parts)[keep], sparse.csr_matrix((0, int(keep.sum())))
    if motion.joints is not None:
        slope, force = _whole(forms.slope)[forms.used][:, keep], np.zeros(len(forms.used))
        force[forms.used] = Conditions(slope).forces(residual)
        residual = residual + slope.T @ force[forms.used]
        scattered(force, forms.multiplier)
        rest = rest if forms.in_joints is None else rest + _whole(forms.in_joints)
    _check_equilibrium(motion, residual, keep, parts, stiffness, lengths)
    rest = rest[keep][:, keep]
    extent = lengths.sum()
    symmetric = True
    if loaded:
        change, commutator = (
            0 * rest if part is None else _whole(part)[keep][:, keep]
            for part in (forms.of_loads, forms.commutator)
        )
        rest = rest - change
        size = sparse.diags(np.tile([1 / extent] * 3 + [1.0] * 3, len(keep) // 6)[keep])
        symmetric = is_symmetric(size @ rest @ size, size @ (abs(change) + abs(commutator)) @ size)
    if symmetric:
        # Out of the last digits of an equilibrium, the virtual displacements turn with the body.
        rest = (rest + rest.T) / 2

    mass = _whole(forms.inertia)
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


def _check_equilibrium(motion: RodMotion, residual, keep, parts, stiffness, lengths) -> None:
    size = _sizes(lengths)
    sizes = np.resize(size, len(keep))
    forces = sum(np.abs(sizes * part).max(initial=0.0) for part in parts)
    position = gathered(motion.comm, motion.position.dat.data_ro.ravel())
    # A solve leaves 1e-12 or so of the forces, or round-off of stiffness times size.
    stiff = (np.abs(size[:, None] * size * stiffness).max(axis=(1, 2)) / lengths).max()
    allowed = 1e-6 * forces + 1e-12 * stiff * np.abs(position).max()
    worst = np.abs(sizes[keep] * residual).max(initial=0.0)
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


def _sizes(lengths: np.ndarray) -> np.ndarray:
    """Factors by which moments become forces; rotations divided by them become displacements."""
    return np.array([1 / lengths.sum()] * 3 + [1.0] * 3)


def _scale(stiffness: np.ndarray, mass: sparse.csr_matrix, lengths: np.ndarray) -> float:
    """Least stiffness by largest inertia, rotations measured by the beam's length: for bending EI /
    (m L⁴), below the lowest frequency, and for slender beams not far below.
    """
    extent, size = lengths.sum(), _sizes(lengths)
    inertia = (size**2 * mass.diagonal().reshape(-1, 6).sum(axis=0)).max() / extent
    least = np.linalg.eigvalsh(size[:, None] * size * stiffness)[:, 0].min()
    return float(least / inertia / extent**2)
