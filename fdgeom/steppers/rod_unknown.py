"""The unknown of methods for rods and joints: all values of a node in one vector."""

from __future__ import annotations

import math

import numpy as np
import ufl
from firedrake import Function, TestFunction, VectorFunctionSpace
from petsc4py import PETSc
from ufl.core.expr import Expr

from fdgeom.solvers.data import Field
from fdgeom.solvers.essential import GivenValues
from fdgeom.systems.rods.motion import RodMotion

# Of the increment's norm: the next update would be below round-off.
_SMALL = 1e-9
# Of the positions' norm: round-off of strains, brought back to displacements by the stiffness.
_UNNOTICED = 1e-13
_REASON = PETSc.SNES.ConvergedReason


class RodUnknown:
    """A vector of 6 and the multiplier of the joints at each node, as one CG1 function.

    So a factorisation in the order of the nodes has a narrow band. What is held, and the multiplier
    at nodes without a joint, are given.

    Parameters
    ----------
    motion : RodMotion
        What moves.

    Attributes
    ----------
    function : Function
        What a solver solves for.
    vector, test : UFL expressions
        The vector of 6 and its test function.
    multiplier, nu : UFL expressions or None
        The multiplier and its test function, if there are joints.
    vectors, multipliers : numpy.ndarray
        Their values at the nodes, ghosts included: views of the function's.
    held : GivenValues
        The held degrees of freedom of the vector: set ``held.now``.
    """

    def __init__(self, motion: RodMotion) -> None:
        #: Components of the multiplier.
        self.size = size = 0 if motion.joints is None else motion.joints.size
        element = motion.space.ufl_element().sub_elements[0]
        space = VectorFunctionSpace(motion.mesh, element, dim=6 + size)
        self.function = Function(space, name="increment")
        self.vector, self.multiplier = halved(self.function, size)
        self.test, self.nu = halved(TestFunction(space), size)
        self.field = Field(self.function)
        values = self.field.array
        self.vectors, self.multipliers = values[:, :6], values[:, 6:]
        dofs = np.array([], dtype=int) if motion.given is None else motion.given.dofs[0]
        self.held = GivenValues(0, (6 + size) * (dofs // 6) + dofs % 6)
        self.essential = [self.held] if motion.given is not None else []
        if size:
            idle = motion.joints.idle
            idle = (6 + size) * (idle // size) + 6 + idle % size
            self.essential.append(GivenValues(0, idle))


def halved(whole: Expr, size: int) -> tuple[Expr, Expr | None]:
    """The vector of 6 and the multiplier of ``size`` in a vector of both; None for no multiplier."""
    if not size:
        return whole, None
    return (
        ufl.as_vector([whole[k] for k in range(6)]),
        ufl.as_vector([whole[6 + k] for k in range(size)]),
    )


def rod_options(comm) -> dict:
    """PETSc options: Newton with an LU of everything, without pivoting in the order of the nodes.

    The iteration ends by the size of the updates (`Settled`): the residual ends at EA ε |x|/h, which
    is not small.
    """
    options = {
        "snes_type": "newtonls",
        "snes_linesearch_type": "basic",
        "snes_rtol": 0.0,
        "snes_atol": 1e-50,
        # PETSc would call a failed line search converged where the increment is large: see Settled.
        "snes_stol": 0.0,
        "snes_max_it": 25,
        "mat_type": "aij",
        "ksp_type": "preonly",
        "pc_type": "lu",
    }
    if comm.size > 1:
        return options | {"pc_factor_mat_solver_type": "mumps", "mat_mumps_icntl_7": 5}
    return options | {"pc_factor_mat_ordering_type": "natural", "pc_factor_zeropivot": 1e-50}


class Settled:
    """Test of convergence by the size of the updates, and of the residual where a user asks for it.

    An update ends the iteration that is small beside the increment (``snes_stol``, or 1e-9, whose
    square is below round-off: the next one would be of that size), or so small that
    the positions hardly notice it in double precision: where little happens in a step, the increment
    itself has few digits. So does a small one after which the residual is no longer halved.
    """

    def __init__(self, motion: RodMotion) -> None:
        self._motion = motion

    def __call__(self, snes: PETSc.SNES, iteration: int, norms) -> int:
        x, step, f = norms
        rtol, atol, stol, _ = snes.getTolerances()
        before, self._before = getattr(self, "_before", f), f
        if not math.isfinite(f):
            return _REASON.DIVERGED_FUNCTION_NANORINF
        if f <= atol:
            return _REASON.CONVERGED_FNORM_ABS
        if iteration == 0:
            self._first = f
            return _REASON.ITERATING
        if f <= rtol * self._first:
            return _REASON.CONVERGED_FNORM_RELATIVE
        small = step <= (stol or _SMALL) * x or (step <= 1e-6 * x and f >= 0.5 * before)
        # Far away increments are so large that every update is small beside them.
        if small and f <= self._first:
            return _REASON.CONVERGED_SNORM_RELATIVE
        with self._motion.position.dat.vec_ro as position:
            unnoticed = step <= _UNNOTICED * position.norm()
        return _REASON.CONVERGED_SNORM_RELATIVE if unnoticed else _REASON.ITERATING
