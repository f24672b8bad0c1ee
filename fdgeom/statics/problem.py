"""The equations of equilibrium of a beam, and their tangent by mixed integration points."""

from __future__ import annotations

from functools import cached_property
from numbers import Real

import numpy as np
from firedrake import Constant, Function, TestFunction, TrialFunction, assemble, dot
from petsc4py import PETSc

from fdgeom.beams.beam import Beam
from fdgeom.beams.ends import HeldEnd
from fdgeom.lie.groups import R3xSO3
from fdgeom.solvers.assembly import MatrixAssembly, VectorAssembly
from fdgeom.solvers.data import Field, Snapshot
from fdgeom.solvers.derived import refresh
from fdgeom.solvers.pointwise import PointwiseUpdate
from fdgeom.statics.gathered import gathered


def check_beam(beam) -> None:
    """Raise ``TypeError`` if it is no beam, saying what would do."""
    if isinstance(beam, Beam):
        return
    hint = ""
    if hasattr(beam, "beams"):
        hint = (
            ": statics and modes are of one beam, by itself; an assembly comes to rest by "
            "GeneralizedAlpha with damping"
        )
    elif isinstance(getattr(beam, "beam", None), Beam):
        hint = ": give the beam itself"
    raise TypeError(f"beam must be a fdgeom.Beam, not {type(beam).__name__}{hint}")


def finite_number(name: str, value) -> float:
    """A number; ``ValueError``, which calls it ``name``, for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return float(value)


class EquilibriumProblem:
    """F(g, λ; δ) = internal work - λ · work of the loads, and what Newton's method asks of it.

    The unknown is a vector u that only changes mean something: a configuration of reference g_r
    belongs to u_r, and u to g_r ∘ (u - u_r) with a rotation vector in the body frame and a
    translation in space. Every tangent makes the present configuration the new reference.

    The tangent is that of mixed integration points (Magisano, Leonetti & Garcea, Int. J. Numer.
    Meth. Engng 109, 2017): δε·C B + σ·δ²ε where stress σ and tangent C of the law are not those of
    the configuration, but of the strain that was extrapolated linearly in the last update,
    ε - ε₀ + B Δu. The residual is
    the true one. Pure Newton needs many small load steps for slender beams, since an update that is
    linear in the displacements stretches them.

    Attributes
    ----------
    held : ndarray of int
        Owned held degrees of freedom, local indices.
    weights : ndarray
        Of the owned degrees of freedom in the norm of a displacement: the mean over the beam of
        |rotation|² + |translation / length of the beam|².
    """

    def __init__(self, beam: Beam) -> None:
        self.beam, rod = beam, beam.rod
        self.rod = rod
        self.factor = Constant(0.0, name="load factor")
        self.space = beam.velocity.function_space()
        self.comm = self.space.comm
        self.ends = tuple(HeldEnd(beam, name) for name in ("left", "right"))
        self._increment = Function(self.space, name="increment")
        reference = tuple(Function(f.function_space()) for f in (beam.position, beam.orientation))
        self._reference = [Field(f) for f in reference]
        self._present = [Field(f) for f in (beam.position, beam.orientation)]
        moved = R3xSO3.retract(reference, self._increment)
        self._move = PointwiseUpdate(
            dict(zip((beam.position, beam.orientation), moved, strict=True))
        )

        test, trial = TestFunction(self.space), TrialFunction(self.space)
        pose = self.pose = (beam.position, beam.orientation)
        internal, loads = rod.internal_work(pose, test), rod.external_work(pose, test)
        self.is_loaded = not loads.empty()
        residual = internal - self.factor * loads if self.is_loaded else internal
        self._residual = VectorAssembly(residual)
        self._loads = VectorAssembly(loads) if self.is_loaded else None

        self._stress = Function(beam.strain.function_space(), name="stress")
        #: The elastic strain that was extrapolated.
        self._strain = Function(beam.strain.function_space(), name="strain")
        tangent = rod.material_stiffness(pose, trial, test, self._strain)
        tangent += rod.geometric_stiffness(self._stress, pose, trial, test)
        change = rod.load_stiffness(pose, trial, test)
        self._tangent_form = tangent if change.empty() else tangent - self.factor * change
        self._change_form = None if change.empty() else self.factor * change
        # ε(g_r) - ε₀ + B Δu, constant in each cell: tested there with 1 / its length.
        probe = TestFunction(self._strain.function_space())
        strain = rod.elastic_strain(reference) + rod.strain_rate(reference, self._increment)
        self._extrapolated = VectorAssembly(rod.cells.sum(dot(strain, probe) / rod.cells.length))
        self._law_stress = rod.law.stress(self._strain, rod.stiffness)
        self._stress_of_strain = PointwiseUpdate({self._stress: self._law_stress})

        self._size = self.space.dof_dset.size * 6
        dofs = [end.dofs for end in self.ends]
        self._owned = [d < self._size for d in dofs]
        self.held = np.concatenate([d[o] for d, o in zip(dofs, self._owned, strict=True)])
        self._u = np.zeros(self._size)
        self.snapshot = Snapshot((beam.position, beam.orientation))

    @cached_property
    def _matrix(self) -> MatrixAssembly:
        return MatrixAssembly(self._tangent_form, "aij")

    @cached_property
    def _change(self) -> MatrixAssembly:
        return MatrixAssembly(self._change_form, "aij")

    @cached_property
    def free(self) -> np.ndarray:
        """Which of all processes' degrees of freedom are not held, on every process."""
        own = np.ones(self._size, dtype=bool)
        own[self.held] = False
        return gathered(self.comm, own)

    @cached_property
    def weights(self) -> np.ndarray:
        lumped = assemble(self.rod.cells.at_nodes(sum(TestFunction(self.space)))).dat.data_ro
        # All six components have the same weight: the length that belongs to the node.
        length = self.comm.allreduce(float(lumped[:, 0].sum()))
        return (lumped / length * np.array([1.0] * 3 + [1 / length**2] * 3)).ravel()

    # --- the unknown -----------------------------------------------------------------------------
    def start(self) -> np.ndarray:
        """Make the present configuration the reference; returns its u, (1, 1, 1, position).

        That u has the size of a configuration, so that SNES's ``stol`` compares with it.
        """
        values = np.ones((self._size // 6, 6))
        values[:, 3:] = self.beam.position.dat.data_ro
        self._u = values.ravel()
        self._set_reference()
        self._increment.dat.data_wo_with_halos[...] = 0.0
        self._extrapolate()
        return self._u.copy()

    def move(self, u: np.ndarray) -> None:
        """Go to the configuration of u."""
        self._increment.dat.data_wo[...] = (u - self._u).reshape(-1, 6)
        # The update acts on ghosts too.
        _ = self._increment.dat.data_ro_with_halos
        self._move.apply()

    def tangent(self, u: np.ndarray) -> PETSc.Mat:
        """Go to the configuration of u, make it the reference, and return the tangent there."""
        self.move(u)
        self._extrapolate()
        self._u = u.copy()
        self._set_reference()
        matrix = self._matrix.assemble()
        first, _ = matrix.getOwnershipRange()
        matrix.zeroRows((first + self.held).astype(PETSc.IntType), diag=1.0)
        return matrix

    def load_tangent(self) -> PETSc.Mat | None:
        """What the loads take from the tangent; None where it does not change with the shape."""
        return None if self._change_form is None else self._change.assemble()

    def _set_reference(self) -> None:
        for reference, present in zip(self._reference, self._present, strict=True):
            present.update_ghosts()
            reference.array[...] = present.array
            reference.written(ghosts_too=True)

    def _extrapolate(self) -> None:
        values = self._extrapolated.assemble().dat.data_ro
        self._strain.dat.data_wo[...] = values
        # The update acts on ghosts too.
        _ = self._strain.dat.data_ro_with_halos
        refresh(self._law_stress)
        self._stress_of_strain.apply()

    # --- forces ------------------------------------------------------------------------------------
    def residual(self) -> np.ndarray:
        """F at the present configuration; in held degrees of freedom minus what they must move by."""
        values = self._residual.assemble().dat.data_ro.reshape(-1).copy()
        needed = [end.needed()[owned] for end, owned in zip(self.ends, self._owned, strict=True)]
        values[self.held] = -np.concatenate(needed)
        return values

    def loads(self) -> np.ndarray:
        """-∂F/∂λ at the present configuration."""
        values = self._loads.assemble().dat.data_ro.reshape(-1).copy()
        values[self.held] = 0.0
        return values

    def unbalanced(self) -> np.ndarray:
        """F (owned nodes, 6) with the held degrees of freedom: minus zero, or the reactions."""
        return self._residual.assemble().dat.data_ro.copy()
