"""A SNES that assembles and factorises its matrix only when something in it has changed."""

from __future__ import annotations

import numpy as np
from firedrake import Form, Function, derivative
from petsc4py import PETSc
from tsfc.ufl_utils import extract_firedrake_constants

from fdgeom.forms import tidy
from fdgeom.solvers.saddle import SaddleSNES


class KeptSNES(SaddleSNES):
    """A SNES for equations whose matrix may be the same for many solves.

    Before each assembly the coefficients and constants of the Jacobian are compared with those of
    the last; where they are the same the matrix is left alone, and PETSc keeps its factors. So a
    linear problem with constant matrices is factorised once.

    Arguments are those of :class:`fdgeom.solvers.held.HeldSNES`.
    """

    def __init__(self, residual: Form, unknown: Function, **arguments) -> None:
        jacobian = tidy(derivative(residual, unknown))
        self._data = [
            part.dat for coefficient in jacobian.coefficients() for part in _parts(coefficient)
        ]
        self._constants = extract_firedrake_constants(jacobian)
        self._assembled_at: tuple | None = None
        super().__init__(residual, unknown, **arguments)

    def _versions(self) -> tuple:
        return (
            *(dat.dat_version for dat in self._data),
            *(np.array(c.dat.data_ro).tobytes() for c in self._constants),
        )

    def _renew_matrix(self) -> None:
        super()._renew_matrix()
        self._assembled_at = None

    def _form_jacobian(self, snes, x: PETSc.Vec, J: PETSc.Mat, P: PETSc.Mat) -> None:
        self._put(x)
        versions = self._versions()
        if versions == self._assembled_at:
            return
        super()._form_jacobian(snes, x, J, P)
        # The unknown, where the matrix depends on it, has just been written.
        self._assembled_at = self._versions()


def _parts(coefficient):
    return getattr(coefficient, "subfunctions", (coefficient,))
