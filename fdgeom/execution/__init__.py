"""Execution: performs the operations of steps, and stores what their adjoints read.

- `petsc`: Firedrake's assembly and PETSc's solvers, on any mesh; `solve`: solves, in attempts;
- `trajectory`: steps whose values are stored, and their adjoint steps.
"""

from fdgeom.execution.petsc import Executor, LinearForm, Run, own_values, perform
from fdgeom.execution.trajectory import Trajectory
