"""Options and convergence test of the solves of steps for rods and joints."""

import numpy as np
from firedrake import Function

from fdgeom.solvers import Numerics, Settled, banded
from fdgeom.systems.motion.motion import Motion

# Of the increment's norm: the next update would be below round-off.
_LAST = 1e-9
# Of the positions' norm: round-off of strains, brought back to displacements by the stiffness.
_UNNOTICED = 1e-13
_EPSILON = float(np.finfo(float).eps)


def rod_numerics(motion: Motion) -> Numerics:
    """Newton with an LU of everything, without pivoting in the order of the nodes, which ends by
    the size of the updates (:class:`Settled`), since the residual ends at EA ε |x|/h, which is not
    small.
    """
    moved = motion.configuration[0]
    settled = Settled(moved, unnoticed=_UNNOTICED, last=_LAST, small=1e-6, left=0.0, gives_up=True)
    return Numerics(_options(motion.comm), settled)


def exact_numerics(changed: Function) -> Numerics:
    """`rod_numerics` that ends at round-off, for invariants that hold to the last digits."""
    settled = Settled(changed, unnoticed=_EPSILON)
    return Numerics(_options(changed.function_space().comm), settled)


def _options(comm) -> dict:
    return {
        "snes_type": "newtonls",
        "snes_linesearch_type": "basic",
        "snes_rtol": 0.0,
        "snes_atol": 1e-50,
        # PETSc would call a failed line search converged where the increment is large.
        "snes_stol": 0.0,
        "snes_max_it": 25,
        **banded(comm),
    }
