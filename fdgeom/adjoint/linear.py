"""Repeated assembly of linear forms."""

import numpy as np
from firedrake import Form
from firedrake.assemble import get_assembler

from fdgeom.adjoint.values import parts
from fdgeom.solvers import VectorAssembly
from fdgeom.solvers.compiling import paused_collection
from fdgeom.solvers.derived import derived_in, is_real


class Linear:
    """A form with one argument, which may be of a Real space."""

    def __init__(self, form: Form) -> None:
        (test,) = form.arguments()
        self._derived, self._real = derived_in(form), is_real(test)
        with paused_collection():
            self._form = get_assembler(form) if self._real else VectorAssembly(form)

    def assemble(self) -> list[np.ndarray]:
        """This rank's values with the present coefficients, part by part."""
        if self._real:
            for derived in self._derived:
                derived.refresh()
        return [part.dat.data_ro for part in parts(self._form.assemble())]
