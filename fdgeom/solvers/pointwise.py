"""Nodal updates compiled from UFL expressions."""

import warnings
from collections.abc import Mapping
from typing import Any

from firedrake import Function
from ufl.core.expr import Expr

from fdgeom.errors import CannotCompile, NoCompiler
from fdgeom.forms import copy_into
from fdgeom.solvers.data import key
from fdgeom.taping import not_taped


class PointwiseUpdate:
    """Assigns expressions to functions at all nodes at once, in compiled code if possible."""

    # All functions have the same nodes or are numbers of a Real space; expressions contain no
    # derivatives in space, and read the old values of targets. Ghosts are updated too, so nothing is
    # communicated. Without a C++ compiler Firedrake interpolates, in milliseconds; functions without
    # values at nodes (N1curl, RT) may be combined linearly, by Function.assign. ValueError for an
    # expression with a wrong shape, an argument or other nodes.
    def __init__(self, assignments: Mapping[Function, Expr]) -> None:
        if not assignments:
            raise ValueError("assignments must not be empty")
        # Inside of a function: steps can be stated without the compiler.
        from fdgeom.solvers.compiled.update import NodalUpdate
        from fdgeom.solvers.spread import in_assignments

        self._assignments = dict(assignments)
        self._update: Any = None
        #: Why Firedrake does the assignments; None if compiled code does.
        self.why_not_compiled: str | None = None
        try:
            # Numbers of a Real space have no nodes; fields with the same values replace them.
            numbered = in_assignments(assignments, {key(target) for target in assignments})
            self._update = NodalUpdate(numbered)
            return
        except CannotCompile as error:
            self._put, self.why_not_compiled = Function.assign, str(error)
        except NoCompiler as error:
            warnings.warn(f"interpolating instead: {error}", stacklevel=2)
            self._put, self.why_not_compiled = Function.interpolate, str(error)
        self._values = {t: Function(t.function_space()) for t in self._assignments}

    @not_taped
    def apply(self) -> None:
        """Do the assignments; ``NotImplementedError`` while pyadjoint records."""
        if self._update is None:
            for target, value in self._values.items():
                self._put(value, self._assignments[target])
            for target, value in self._values.items():
                copy_into(target, value)
            return
        self._update.apply()
