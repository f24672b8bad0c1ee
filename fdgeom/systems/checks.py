"""Is a bracket a Poisson bracket? Numerical checks a user can call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from firedrake import (
    Function,
    LinearVariationalProblem,
    LinearVariationalSolver,
    assemble,
    derivative,
)
from mpi4py import MPI
from petsc4py import PETSc

from fdgeom.forms import substitute

if TYPE_CHECKING:
    from fdgeom.systems.poisson import PoissonSystem


def antisymmetry_defect(system: PoissonSystem) -> float:
    """Largest entry of B + Bᵀ over the largest of B, B the matrix of the bracket at the state."""
    matrix = assemble(system.bracket(system._test, system._trial), mat_type="aij").petscmat
    scale = _largest(matrix)
    transposed = matrix.transpose(PETSc.Mat())
    matrix = matrix.copy()
    matrix.axpy(1.0, transposed)
    return _largest(matrix) / scale if scale else 0.0


def _largest(matrix) -> float:
    _, _, values = matrix.getValuesCSR()
    return float(matrix.comm.tompi4py().allreduce(np.abs(values).max(initial=0.0), op=MPI.MAX))


def jacobi_defect(system: PoissonSystem, samples: int, seed: int) -> float:
    """Relative size of the cyclic sum {{f, g}, k} for random linear functionals f, g, k."""
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    system.gather_state()
    rng = np.random.default_rng(seed)
    a, b, c, inner = (Function(system.space) for _ in range(4))
    w, u = system._test, system._trial
    # {f, g} has the differential d/dz {f, g}(z)[w]; `inner` becomes its variational derivative.
    at_state = system._bracket
    nested = substitute(derivative(substitute(at_state, {w: a, u: b}), system.state, w), {})
    outer = substitute(at_state, {w: inner, u: c})
    if nested.empty():
        return 0.0  # a constant bracket
    solver = LinearVariationalSolver(
        LinearVariationalProblem(system.pairing(u, w), nested, inner),
        solver_parameters={"ksp_type": "preonly", "pc_type": "lu"},
    )
    worst = 0.0
    for _ in range(samples):
        fields = [_random(system.space, rng) for _ in range(3)]
        terms = []
        for shift in range(3):
            for target, k in zip((a, b, c), range(3), strict=True):
                target.assign(fields[(k + shift) % 3])
            solver.solve()
            terms.append(assemble(outer))
        scale = max(map(abs, terms))
        worst = max(worst, abs(sum(terms)) / scale if scale else 0.0)
    return worst


def _random(space, rng) -> Function:
    """A function of random values in [-1, 1] (each rank draws its own)."""
    f = Function(space)
    for part in f.subfunctions:
        values = part.dat.data_wo
        values[...] = rng.uniform(-1, 1, values.shape)
    return f
