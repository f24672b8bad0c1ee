"""Small vibrations of beams and assemblies about an equilibrium: frequencies and shapes."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from firedrake import Function
from pyadjoint.tape import annotate_tape, stop_annotating
from scipy.sparse.linalg import ArpackError

from fdgeom import validation
from fdgeom.beams.beam import Beam
from fdgeom.beams.ends import HeldNodes
from fdgeom.beams.rod_of_beam import BeamMotion
from fdgeom.build_message import compiling
from fdgeom.execution.options import STATICS
from fdgeom.statics.linear_algebra import modes_of, nearest
from fdgeom.statics.pencil import Pencil, data_of, pencil
from fdgeom.statics.problem import check_contact, motion_of
from fdgeom.statics.rigid_motions import held
from fdgeom.statics.sensitivities import Eigenvalue, EigenvalueData, refuse_unless_simple
from fdgeom.taping import OffTape, refuse_annotation

if TYPE_CHECKING:
    from fdgeom.beams import Assembly


class VibrationModes(OffTape):
    """Frequencies and shapes of small vibrations about an equilibrium, the present configuration.

        K φ + Bᵀμ = ω² M φ,    B φ = 0.

    Parameters
    ----------
    beam : Beam or Assembly
        The system, of degree 1, in equilibrium: straight and free of loads, or the result of
        `StaticEquilibrium`. Supports and joints hold, B φ = 0, with their springs; damping and
        gyroscopic forces are ignored.
    number : int
        Number of modes, those with the smallest |ω²|, including rigid motions.
    load : float
        The load factor of the equilibrium.

    Attributes
    ----------
    eigenvalues : ndarray
        ω² in increasing order, in radians² per time². A negative value belongs to a growing mode:
        the equilibrium is unstable. Complex if loads that are not conservative (follower forces,
        moments that are constant in space or in the body frame) make K unsymmetric.
    shapes : list of Function, CG1, 6 components
        φ: rotation in the body frame, translation in space, at all nodes of an assembly's network.
        Normalised to φ·M φ = 1 if K is symmetric; otherwise the real part of a vector of that norm.

    Raises
    ------
    TypeError, ValueError
        If the beam is of another degree, ``number`` is not a positive integer below the number
        of degrees of freedom, the configuration is not an equilibrium at that load, an obstacle
        moves, or the joints are violated.

    Notes
    -----
    K is the tangent of the virtual work (strain energy, stress, loads, forces and springs of
    joints), M the lumped inertia, with that of bodies at nodes. Both are in coordinates of the
    displacements that the joints allow, so there are no modes that belong to multipliers. SciPy's
    ARPACK solves the eigenproblem (shift and invert, with a shift from the structure's stiffness
    and inertia) on every process. K is used as AᵀA + G, see `Pencil`, so that wires with a radius
    of a millionth of their length keep their digits and rigid motions are distinguished from slow
    ones. A `GivenPose` that turns counts as at rest, with a warning.
    """

    @compiling("VibrationModes")
    @STATICS
    def __init__(self, beam: "Beam | Assembly", number: int = 10, *, load: float = 1.0) -> None:
        motion = motion_of(beam)
        check_contact(motion.rod, still=True)
        motion.consistency.read_poses()
        free = ~held(motion)
        joints = () if motion.joints is None else motion.joints.joints
        count = int(free.sum()) - sum(joint.size for joint in joints)
        load = validation.number("load", load)
        number = validation.whole("number", number, least=1, most=count - 2)
        motion.check_configuration()
        found = pencil(motion, load, free)
        if isinstance(motion.held, HeldNodes):
            motion.held.warn_of_turning(found.scale)
        self._motion, self._load, self._symmetric = motion, load, found.symmetric
        values, vectors, round_off = _lowest(found, number)
        # Signs and turns within a multiple eigenvalue may differ between processes.
        shapes = found.root @ vectors
        self._values, shapes, self._round_off = motion.comm.bcast((values, shapes, round_off))
        self.beam, self._data = beam, data_of(motion)
        self._taped: dict[int, Eigenvalue] = {}
        self._shapes = modes_of(shapes.real, free, motion.space)

    @property
    def eigenvalues(self) -> np.ndarray:
        self._refuse_recording("eigenvalues")
        return self._values

    @property
    def shapes(self) -> list[Function]:
        self._refuse_recording("shapes")
        return self._shapes

    def _refuse_recording(self, name: str) -> None:
        """Refuse an attribute whose derivatives pyadjoint would lose."""
        what = f"VibrationModes.{name}"
        refuse_annotation(what, "or take eigenvalue(k), which is recorded")

    def eigenvalue(self, k: int) -> float:
        """One of :attr:`eigenvalues`; while pyadjoint records it is on its tape.

        It has derivatives by the configuration and by all Functions in the beam's equations.

        Parameters
        ----------
        k : int
            Its number, from 0.

        Raises
        ------
        NotImplementedError
            On the tape, if it is multiple or the last of the requested ones, for assemblies, and
            for loads that are not conservative. Derivatives at other data are refused likewise.
        ValueError
            On the tape, if the beam's configuration or coefficients have changed.
        """
        validation.whole("k", k, least=0, most=len(self._shapes) - 1)
        if not annotate_tape():
            return self._values[k]
        found = self._found(k)
        found[-1]()
        if self._data.changed():
            raise ValueError(
                "beam: its configuration or its data have changed since these modes were computed; "
                "make fdgeom.VibrationModes anew"
            )

        def find() -> EigenvalueData:
            return VibrationModes(self.beam, len(self._shapes), load=self._load)._found(k)

        if k not in self._taped:
            with stop_annotating():
                self._taped[k] = Eigenvalue(self._motion, self._load, found, find)
        return self._taped[k].on_tape()

    def _found(self, k: int) -> EigenvalueData:
        values, alone = self._values, isinstance(self._motion, BeamMotion)
        check = partial(refuse_unless_simple, values, self._round_off, k, self._symmetric, alone)
        return float(values[k].real), np.array(self._shapes[k].dat.data_ro), check

    @property
    def frequencies(self) -> np.ndarray:
        """ω/2π in cycles per time; 0 for rigid motions.

        Raises
        ------
        ValueError
            If the equilibrium is not stable: an ω² is negative or complex.
        """
        self._refuse_recording("frequencies")
        values, rigid = self._values, self._rigid
        unstable = (values.real < 0) | (
            np.abs(values.imag) > 1e-7 * np.abs(values) + self._round_off
        )
        if np.any(unstable & ~rigid):
            raise ValueError(
                "the equilibrium is not stable: some ω² is negative or complex; see eigenvalues"
            )
        return np.sqrt(np.where(rigid, 0.0, values.real)) / (2 * np.pi)

    @property
    def rigid(self) -> int:
        """Number of rigid motions among the modes, also of parts of an assembly: ω² = 0."""
        return int(self._rigid.sum())

    @property
    def _rigid(self) -> np.ndarray:
        return np.abs(self._values) <= self._round_off

    def __repr__(self) -> str:
        return f"VibrationModes({type(self.beam).__name__}, {len(self._values)} modes)"


def _lowest(found: Pencil, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The eigenvalues nearest to zero in increasing order, their vectors, and their round-off."""
    try:
        # K may be singular: a shift below zero, at first of the least stiffness, and then of the
        # size of the wanted eigenvalues.
        size, _ = _near(found, number, found.scale, rough=True)
        values, vectors = _levels(found, number, 0.5 * np.abs(size).max())
    except (ArpackError, RuntimeError) as error:
        raise ValueError(f"SciPy's eigensolver failed: {error}") from error
    if not np.all(np.isfinite(values)):
        raise ValueError("SciPy's eigensolver gave values that are not finite")
    order = np.argsort(values.real)
    return values[order], vectors[:, order], found.round_off(vectors[:, order])


def _near(found: Pencil, number: int, shift: float, rough: bool = False):
    inverse = found.shifted(shift)
    return nearest(inverse, found.size, number, shift, symmetric=found.symmetric, rough=rough)


def _levels(found: Pencil, number: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """The eigenpairs of smallest size; those far below the shift by a smaller one of their own."""
    wanted, most = number, found.size - 2
    while True:
        near, vectors = _near(found, wanted, shift)
        values = found.quotient(vectors)
        order = np.argsort(np.abs(values))[:number]
        # All within a circle about -shift are known: does it hold that about zero?
        if np.abs(values[order]).max() + shift <= (1 + 1e-6) * np.abs(near + shift).max():
            break
        if wanted == most:
            break
        wanted = min(wanted + 4, most)
    values, vectors = values[order], vectors[:, order]
    low = np.abs(values) < 1e-6 * shift
    if np.any(np.abs(values[low]) > found.round_off(vectors[:, low])):
        below, those = _levels(found, int(low.sum()), 0.5 * np.abs(values[low]).max())
        values = np.append(values[~low], below)
        vectors = np.hstack([vectors[:, ~low], those])
    return values, vectors
