"""Assemblers made once and called often, without Python's overhead where one rank does all."""

from __future__ import annotations

from firedrake import Cofunction, Form
from firedrake.assemble import get_assembler
from petsc4py import PETSc
from pyop2.global_kernel import compile_global_kernel

from fdgeom.forms import MATRIX_COMPILER
from fdgeom.solvers.collection import paused_collection
from fdgeom.solvers.data import fields
from fdgeom.solvers.derived import derived_in


class _Assembly:
    """What both kinds share."""

    def _refresh(self) -> None:
        for derived in self._derived:
            derived.refresh()


class VectorAssembly(_Assembly):
    """Assembles a linear form into :attr:`tensor` again and again.

    Parameters
    ----------
    form : Form
        A form with one argument.

    Attributes
    ----------
    tensor : Cofunction
        The result of the last call.
    """

    def __init__(self, form: Form) -> None:
        (test,) = form.arguments()
        self.tensor = Cofunction(test.function_space().dual())
        self._derived = derived_in(form)
        self._refresh()
        with paused_collection():
            self._assembler = get_assembler(form)
            self._assembler.assemble(tensor=self.tensor)
        self._kernels = None
        if test.function_space().comm.size == 1:
            self._parts = fields(self.tensor)
            self._kernels = _compiled(self._assembler.parloops(self.tensor))

    def assemble(self) -> Cofunction:
        """Assemble with the present values of the form's coefficients."""
        self._refresh()
        if self._kernels is None:
            return self._assembler.assemble(tensor=self.tensor)
        for part in self._parts:
            part.array[...] = 0.0
        for function, arguments in self._kernels:
            function(*arguments)
        for part in self._parts:
            part.written()
        return self.tensor


class MatrixAssembly(_Assembly):
    """Assembles a bilinear form into :attr:`matrix` again and again.

    Parameters
    ----------
    form : Form
        A form with two arguments.
    mat_type : str
        PETSc matrix type: "aij" or "baij".

    Attributes
    ----------
    matrix : petsc4py.PETSc.Mat
        The result of the last call.
    """

    def __init__(self, form: Form, mat_type: str) -> None:
        self._derived = derived_in(form)
        self._refresh()
        with paused_collection():
            self._assembler = get_assembler(
                form, mat_type=mat_type, form_compiler_parameters=MATRIX_COMPILER
            )
            self._tensor = self._assembler.assemble()
        self.matrix = self._tensor.petscmat
        self.matrix.setOption(PETSc.Mat.Option.KEEP_NONZERO_PATTERN, True)
        spaces = [a.function_space() for a in form.arguments()]
        plain = spaces[0].comm.size == 1 and all(len(V) == 1 for V in spaces)
        self._kernels = _compiled(self._assembler.parloops(self._tensor)) if plain else None

    def assemble(self) -> PETSc.Mat:
        """Assemble with the present values of the form's coefficients."""
        self._refresh()
        if self._kernels is None:
            self._assembler.assemble(tensor=self._tensor)
            return self.matrix
        self.matrix.zeroEntries()
        for function, arguments in self._kernels:
            function(*arguments)
        self.matrix.assemble()
        return self.matrix


def _compiled(parloops) -> list[tuple]:
    """The compiled functions of parloops over the cells or facets of a mesh on one rank."""
    kernels = []
    for loop in parloops:
        function = compile_global_kernel(loop.global_kernel, loop.comm)
        kernels.append((function, (0, loop.iterset.size, *loop.arglist)))
    return kernels
