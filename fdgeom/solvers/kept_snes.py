"""A SNES that assembles and factorises its matrix only when the data of the matrix change."""

from firedrake import Form, Function, derivative
from petsc4py import PETSc

from fdgeom.forms import simplify
from fdgeom.solvers.derived import Sources, derived_in
from fdgeom.solvers.saddle import SaddleSNES


class KeptSNES(SaddleSNES):
    """A SNES that keeps its matrix and factors while all data in the Jacobian keep their values."""

    def __init__(self, residual: Form, unknown: Function, **arguments) -> None:
        jacobian = simplify(derivative(residual, unknown))
        self._derived, self._sources = derived_in(jacobian), Sources(jacobian)
        self._is_current = False
        super().__init__(residual, unknown, **arguments)

    def _renew_matrix(self) -> None:
        super()._renew_matrix()
        self._is_current = False

    def _form_jacobian(self, snes, x: PETSc.Vec, J: PETSc.Mat, P: PETSc.Mat) -> None:
        self._put(x)
        for derived in self._derived:
            derived.refresh()
        if self._is_current and not self._sources.changed():
            return
        self._is_current = False  # should the assembly fail
        super()._form_jacobian(snes, x, J, P)
        self._sources.take()
        self._is_current = True
