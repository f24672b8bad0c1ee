"""PETSc plumbing: a SNES held for the whole run, assemblers built once, pointwise updates.

Forms in, values out, with options and failures told in words. Nothing here knows a system, a step or
a time.
"""

from fdgeom.solvers.chain.chain_lu import ChainLU
from fdgeom.solvers.chain.chain_newton import ChainNewton
from fdgeom.solvers.held_snes import HeldSNES, SolveFailed
from fdgeom.solvers.local_newton import LocalNewton
from fdgeom.solvers.pointwise import PointwiseUpdate

__all__ = ["ChainLU", "ChainNewton", "HeldSNES", "LocalNewton", "PointwiseUpdate", "SolveFailed"]
