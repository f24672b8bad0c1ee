"""Private names of Firedrake, PyOP2, UFL, pyadjoint, NumPy and petsctools that have no public counterpart.

Checked with Firedrake, PyOP2 and pyadjoint 2026.10 and petsctools 2026.1.
"""

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
import petsctools
from firedrake import DirichletBC, Form, Function, dmhooks
from firedrake.output import VTKFile
from mpi4py import MPI
from numpy._core._multiarray_umath import __cpu_features__
from petsc4py import PETSc
from pyadjoint.block_variable import BlockVariable
from pyadjoint.tape import get_working_tape
from pyop2 import compilation, op2
from ufl import as_tensor
from ufl.classes import ConstantValue, Expr, Zero


# --- Firedrake --------------------------------------------------------------------------------------
def given_value(bc: DirichletBC) -> Any:
    """The value of a boundary condition; of an expression the public ``function_arg`` is the interpolant."""
    given, used = bc._original_arg, bc._function_arg
    if _has_expression(given) and not isinstance(given, Expr):
        given = as_tensor(given)
    if isinstance(used, Zero):  # also after `homogenize`
        is_zero = isinstance(given, Zero) or (not isinstance(given, Expr) and not np.any(given))
        return given if is_zero else 0.0
    if hasattr(bc, "_function_arg_update"):
        return given
    return float(used) if isinstance(used, ConstantValue) else used


def _has_expression(value: Any) -> bool:
    """Whether a value, or an entry of nested lists, is a UFL expression."""
    nested = isinstance(value, list | tuple) and any(map(_has_expression, value))
    return nested or isinstance(value, Expr)


def data_ids(function: Function) -> set[int]:
    """The ids of a function's data: of each part, and for a component (``f.sub(0)``) of all of them."""
    return {id(dat._parent if isinstance(dat, op2.DatView) else dat) for dat in function.dat}


def interpolates_into(interpolator, target: Function) -> Callable[[], Any]:
    """Evaluates an interpolator; its public ``assemble`` makes this anew each time, in milliseconds."""
    return interpolator._get_callable(tensor=target)


def set_topology(file: VTKFile, topology: tuple) -> None:
    """Give a file its cells; no argument of VTKFile does, it lists those of the mesh in its own order."""
    file._topology = topology


def problem_of_solver(dm: PETSc.DM) -> Any:
    """The variational problem of the solver that works on a DM; None if there is none."""
    context = dmhooks.get_appctx(dm) if dm else None  # a PC need not have one
    return None if context is None else context._problem


def compiler() -> Callable[..., compilation.Compiler]:
    """PyOP2's C++ compiler, of the user's choice if there is one; `load` runs it to ask for its version."""
    return compilation._compiler or _compiler_of_petsc()


@cache
def _compiler_of_petsc() -> Callable[..., compilation.Compiler]:
    return compilation.sniff_compiler(petsctools.get_petscvariables()["CXX"], MPI.COMM_SELF)


# --- UFL --------------------------------------------------------------------------------------------
def cache_of(form: Form) -> dict:
    """The dictionary in which UFL lets other packages keep what belongs to a form."""
    return form._cache


# --- pyadjoint --------------------------------------------------------------------------------------
def known_variable(function) -> BlockVariable | None:
    """The block variable of a Function or mesh, if there is one; the public property makes one."""
    return function._block_variable()


def whole_of(function: Function) -> Function:
    """The mixed Function that a function is a part of; else the function itself."""
    if function._ad_floating_active and function._ad_outputs:
        return function._ad_outputs[0]
    return function


def merge_into_whole(part: Function) -> None:
    """Record that a mixed Function depends on a part, which was set outside of Firedrake's methods."""
    part._ad_annotate_output_block()


def checkpoint_schedule():
    """The schedule of checkpoints of the working tape, if there is one; the tape has no property for it."""
    manager = get_working_tape()._checkpoint_manager
    return None if manager is None else manager._schedule


# --- NumPy ------------------------------------------------------------------------------------------
def has_instructions(name: str) -> bool:
    """Whether this processor has some vector instructions; NumPy's public function only prints them."""
    return bool(__cpu_features__.get(name))


# --- others -----------------------------------------------------------------------------------------
def options_read(solver: PETSc.SNES | PETSc.KSP) -> set[str]:
    """The options that PETSc has looked up; petsctools itself only warns, at the end of a run."""
    return petsctools.get_options(solver)._used_options


def frame_of(thread: int) -> FrameType | None:
    """The frame that a thread is in; Python documents this function, in spite of its name."""
    return sys._current_frames().get(thread)
