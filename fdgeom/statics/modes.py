"""Small vibrations of a beam about an equilibrium: frequencies and shapes."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import scipy.sparse as sparse
from firedrake import Constant, Function, TestFunction, TrialFunction, assemble
from petsc4py import PETSc
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs, eigsh, splu

from fdgeom.forms import MATRIX_COMPILER
from fdgeom.systems.beam import Beam
from fdgeom.systems.rods.ends import HeldEnd
from fdgeom.systems.rods.of_beam import check_poses
from fdgeom.systems.rods.rod import Rod


class VibrationModes:
    """K φ = ω² M φ about the present configuration of a beam, which must be an equilibrium.

    Parameters
    ----------
    beam : Beam
        Of degree 1, at rest: straight and free of loads, or where `StaticEquilibrium` has put it.
        Its held ends are held; damping and gyroscopic forces play no part.
    number : int
        How many modes: those with the smallest |ω²|, rigid motions among them.
    load : float
        The load factor of the equilibrium.

    Attributes
    ----------
    eigenvalues : ndarray
        ω² in increasing order, in radians² per time². A negative one belongs to a mode that grows:
        the equilibrium is not stable. Complex if loads that are not conservative (follower forces,
        moments that are constant in space) make K unsymmetric.
    shapes : list of Function, CG1, 6 components
        φ: rotation in the body frame, translation in space. With φ·M φ = 1 where K is symmetric;
        else the real part of a vector of that norm.

    Raises
    ------
    TypeError, ValueError
        If the beam is of another degree, ``number`` is no positive integer below the number of
        degrees of freedom, or the configuration is no equilibrium at that load.

    Notes
    -----
    K is the tangent of the virtual work (strain energy, stress and loads), M the lumped inertia.
    The eigenproblem is solved by SciPy's ARPACK with a shift, on every process.
    """

    def __init__(self, beam: Beam, number: int = 10, *, load: float = 1.0) -> None:
        if not isinstance(beam, Beam):
            raise TypeError(f"beam must be a fdgeom.Beam, not {type(beam).__name__}")
        space = beam.velocity.function_space()
        held = [HeldEnd(beam, name) for name in ("left", "right")]
        free = np.ones(6 * space.dof_dset.total_size, dtype=bool)
        for end in held:
            free[end.dofs] = False
        free = free[: 6 * space.dof_dset.size]
        count = beam.comm.allreduce(int(free.sum()))
        if (
            not isinstance(number, Integral)
            or isinstance(number, bool)
            or not 0 < number < count - 1
        ):
            raise ValueError(
                f"number must be a whole number from 1 to {count - 2} for this beam, not {number!r}"
            )
        check_poses(beam)
        stiffness, mass, residual, scale = _matrices(beam, beam.rod, float(load))
        keep = np.concatenate(beam.comm.allgather(free))
        stiffness, mass = stiffness[keep][:, keep], mass[keep][:, keep]
        _check_equilibrium(residual[keep], scale, stiffness)
        self.beam = beam
        values, vectors = _solve(stiffness, mass, int(number))
        # Signs and turns within a multiple eigenvalue may differ between processes.
        self.eigenvalues, vectors = beam.comm.bcast((values, vectors), root=0)
        self.shapes = [self._shape(space, keep, v, k) for k, v in enumerate(vectors.T)]

    @staticmethod
    def _shape(space, keep: np.ndarray, vector: np.ndarray, k: int) -> Function:
        shape = Function(space, name=f"mode{k + 1}")
        everything = np.zeros(len(keep))
        everything[keep] = vector.real
        size = 6 * space.dof_dset.size
        first = space.comm.scan(size) - size
        own = everything[first : first + size]
        shape.dat.data_wo[...] = own.reshape(-1, 6)
        return shape

    @property
    def frequencies(self) -> np.ndarray:
        """ω/2π in cycles per time; 0 for rigid motions.

        Raises
        ------
        ValueError
            If the equilibrium is not stable: an ω² is negative or complex.
        """
        values = self.eigenvalues
        # Round-off of rigid motions, beside the largest of what was asked for.
        size = 1e-7 * np.abs(values).max()
        if np.any(values.real < -size) or np.any(np.abs(values.imag) > size):
            raise ValueError(
                "the equilibrium is not stable: some ω² is negative or complex; see eigenvalues"
            )
        real = np.where(values.real < size, 0.0, values.real)
        return np.sqrt(real) / (2 * np.pi)

    def __repr__(self) -> str:
        return f"<{len(self.shapes)} vibration modes of {type(self.beam).__name__}>"


def _matrices(beam: Beam, rod: Rod, load: float):
    """Tangent and mass as SciPy matrices, residual, and the size of its parts."""
    space, pose = beam.velocity.function_space(), (beam.position, beam.orientation)
    test, trial = TestFunction(space), TrialFunction(space)
    factor = Constant(load)
    stress = rod.stress(pose)
    tangent = rod.material_stiffness(pose, trial, test)
    tangent += rod.geometric_stiffness(stress, pose, trial, test)
    change = rod.load_stiffness(pose, trial, test)
    if not change.empty():
        tangent -= factor * change
    internal, loads = rod.internal_work(pose, test), rod.external_work(pose, test)
    forces = [internal] if loads.empty() else [internal, -factor * loads]
    values = [_gathered(beam.comm, assemble(form).dat.data_ro.ravel()) for form in forces]
    matrices = (
        _to_scipy(assemble(form, form_compiler_parameters=MATRIX_COMPILER).petscmat)
        for form in (tangent, rod.inertial_product(pose, trial, test))
    )
    size = np.abs(_gathered(beam.comm, beam.position.dat.data_ro.ravel())).max()
    return *matrices, sum(values), (sum(np.abs(v).max() for v in values), size)


def _gathered(comm, values: np.ndarray) -> np.ndarray:
    return np.concatenate(comm.allgather(np.array(values)))


def _to_scipy(matrix: PETSc.Mat) -> sparse.csr_matrix:
    """The whole matrix on every process."""
    rows, columns, values = matrix.getValuesCSR()
    comm = matrix.getComm().tompi4py()
    blocks = comm.allgather((rows, columns, values))
    size = matrix.getSize()
    parts = [sparse.csr_matrix((v, c, r), shape=(len(r) - 1, size[1])) for r, c, v in blocks]
    return sparse.vstack(parts, format="csr")


def _check_equilibrium(residual: np.ndarray, scale, stiffness) -> None:
    forces, size = scale
    # A solve leaves 1e-12 or so of the forces, or round-off of stiffness times size.
    allowed = 1e-6 * forces + 1e-12 * abs(stiffness).max() * size
    worst = np.abs(residual).max(initial=0.0)
    if not worst <= allowed:
        raise ValueError(
            f"beam: its configuration is no equilibrium at that load (unbalanced by {worst:.3g}, "
            f"forces up to {forces:.3g}): solve for one with fdgeom.StaticEquilibrium"
        )


def _solve(stiffness, mass, number: int) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues nearest to zero, in increasing order, and their vectors in columns."""
    skew = abs(stiffness - stiffness.T).max()
    symmetric = skew <= 1e-9 * abs(stiffness).max()
    if symmetric:
        stiffness = (stiffness + stiffness.T) / 2
    # K may be singular: a shift below zero, at first small beside the highest frequencies, and
    # then of the size of the wanted eigenvalues, which gives them all their digits.
    shift = 1e-9 * (np.abs(stiffness.diagonal()) / mass.diagonal()).max()
    nearest = _nearest if symmetric else _nearest_complex
    try:
        values, _ = nearest(stiffness, mass, number, shift)
        values, vectors = nearest(stiffness, mass, number, 0.5 * np.abs(values).max())
    except (ArpackError, RuntimeError) as error:
        raise ValueError(f"SciPy's eigensolver failed: {error}") from error
    if not np.all(np.isfinite(values)):
        raise ValueError("SciPy's eigensolver gave values that are not finite")
    order = np.argsort(values.real)
    values, vectors = values[order], vectors[:, order]
    norms = np.sqrt(np.abs(np.einsum("ik,ik->k", vectors.conj(), mass @ vectors)))
    return values, vectors / norms


def _nearest_complex(stiffness, mass, number: int, shift: float):
    start = np.random.default_rng(0).normal(size=stiffness.shape[0])
    return eigs(stiffness.tocsc(), k=number, M=mass.tocsc(), sigma=-shift, v0=start)


def _nearest(stiffness, mass, number: int, shift: float):
    """The ``number`` eigenpairs nearest to -shift, all copies of a multiple one among them.

    Lanczos' method sees only one vector of an eigenspace (six rigid motions, two bending planes).
    So what has been found is taken out of the operator, until no nearer one comes up.
    """
    solve = splu((stiffness + shift * mass).tocsc()).solve
    start = np.random.default_rng(0).normal(size=stiffness.shape[0])
    values, vectors = np.empty(0), np.empty((len(start), 0))
    while True:
        known, dual = vectors, mass @ vectors

        def deflated(x, known=known, dual=dual):
            z = solve(x)
            return z - known @ (dual.T @ z)

        wanted = min(number, len(start) - 1 - len(values))
        if wanted < 1:
            break
        new, more = eigsh(
            stiffness,
            k=wanted,
            M=mass,
            sigma=-shift,
            OPinv=LinearOperator(stiffness.shape, matvec=deflated, dtype=float),
            v0=start - known @ (dual.T @ start),
        )
        farthest = np.sort(np.abs(values + shift))[number - 1] if len(values) else np.inf
        nearer = np.abs(new + shift) < farthest * (1 - 1e-9)
        if not nearer.any():
            break
        values = np.append(values, new[nearer])
        vectors = np.hstack([vectors, more[:, nearer]])
    order = np.argsort(np.abs(values + shift))[:number]
    return values[order], vectors[:, order]
