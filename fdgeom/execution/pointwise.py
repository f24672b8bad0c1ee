"""Nodal updates from UFL expressions."""

import warnings
from collections.abc import Mapping
from typing import Any

from firedrake import Function
from ufl.core.expr import Expr

from fdgeom.errors import CannotCompile, NoCompiler
from fdgeom.forms import copy_into, has_nodal_values
from fdgeom.taping import not_taped


class PointwiseUpdate:
    """Assigns expressions to functions at all nodes at once, in compiled code if possible."""

    # All functions have the same nodes or are numbers of a Real space; expressions contain no
    # derivatives in space, and read the old values of targets. Ghosts are updated too, so nothing is
    # communicated. Without a C++ compiler Firedrake interpolates, in milliseconds; functions without
    # values at nodes (N1curl, RT) may be combined linearly, by Function.assign. ValueError for an
    # expression with a wrong shape, an argument or other nodes.
    def __init__(self, assignments: Mapping[Function, Expr]) -> None:
        # Inside of a function: steps can be stated without the compiler.
        from fdgeom.compile.nodal_update import NodalUpdate

        self._assignments = dict(assignments)
        self._update: Any = None
        #: Why Firedrake does the assignments; None if compiled code does.
        self.why_not_compiled: str | None = None
        try:
            self._update = NodalUpdate(assignments)
            return
        except (CannotCompile, NoCompiler) as error:
            self.why_not_compiled = str(error)
            if isinstance(error, NoCompiler):
                warnings.warn(f"interpolating instead: {error}", stacklevel=2)
        nodal = all(has_nodal_values(target.function_space()) for target in self._assignments)
        self._put = Function.interpolate if nodal else Function.assign
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
