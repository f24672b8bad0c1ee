"""Assemblers that are made once and called often, without Python's overhead on one rank."""

import numpy as np
from firedrake import Cofunction, Form
from firedrake.assemble import ZeroFormAssembler, get_assembler
from petsc4py import PETSc
from pyop2.global_kernel import compile_global_kernel

from fdgeom.data import fields
from fdgeom.forms import MATRIX_COMPILER, is_real, paused_collection
from fdgeom.operations.dependent import dependents_in


class _Assembly:
    """Base class of the assemblers; ``tensor`` is the form with the first values of its coefficients."""

    def __init__(self, form: Form, **options) -> None:
        #: The dependent fields of the form.
        self.dependents = dependents_in(form)
        self.dependents.refresh()
        with paused_collection():
            self._assembler = get_assembler(form, **options)
            self.tensor = self._assembler.assemble()


class FunctionalAssembly(_Assembly):
    """Evaluates a form without arguments at the present values of its coefficients."""

    def __init__(self, form: Form) -> None:
        self.dependents, self._kernels = dependents_in(), []
        if form.empty():
            return
        super().__init__(form)
        if not isinstance(self._assembler, ZeroFormAssembler) or form.ufl_domain().comm.size > 1:
            self._kernels = None
            return
        loops = self._assembler.parloops(self._assembler.allocate())
        for loop, kernel in zip(loops, _compiled(loops), strict=True):
            (total,) = loop.reduced_globals
            self._kernels.append((*kernel, total.data))

    def assemble(self) -> float:
        """The present value of the form."""
        self.dependents.refresh()
        if self._kernels is None:
            return float(self._assembler.assemble())
        value = 0.0
        for kernel, arguments, total in self._kernels:
            total[0] = 0.0
            kernel(*arguments)
            value += total[0]
        return float(value)


class VectorAssembly(_Assembly):
    """Assembles a linear form repeatedly into :attr:`tensor`; its test function may be a number."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self._kernels = None
        #: The values, part by part; none for numbers.
        self.parts = () if is_real(form.arguments()[0]) else fields(self.tensor)
        if self.parts and self.tensor.function_space().comm.size == 1:
            self._kernels = _compiled(self._assembler.parloops(self.tensor))

    def assemble(self) -> Cofunction:
        """Assemble with the present values of the form's coefficients."""
        self.dependents.refresh()
        if self._kernels is None:
            return self._assembler.assemble(tensor=self.tensor)
        for part in self.parts:
            part.array[...] = 0.0
        for function, arguments in self._kernels:
            function(*arguments)
        for part in self.parts:
            part.written()
        return self.tensor

    def values(self) -> list[np.ndarray]:
        """Assemble; this rank's values, part by part, until the next call."""
        found = self.assemble()
        if self._kernels is None:
            return [part.dat.data_ro for part in found.subfunctions]
        return [part.owned for part in self.parts]


class MatrixAssembly(_Assembly):
    """Assembles a bilinear form repeatedly into :attr:`matrix`."""

    def __init__(self, form: Form, mat_type: str) -> None:
        super().__init__(form, mat_type=mat_type, form_compiler_parameters=MATRIX_COMPILER)
        self.matrix = self.tensor.petscmat
        self.matrix.setOption(PETSc.Mat.Option.KEEP_NONZERO_PATTERN, True)
        spaces = [a.function_space() for a in form.arguments()]
        plain = spaces[0].comm.size == 1 and all(len(V) == 1 for V in spaces)
        plain = plain and mat_type != "matfree"
        self._kernels = _compiled(self._assembler.parloops(self.tensor)) if plain else None

    def assemble(self) -> PETSc.Mat:
        """Assemble with the present values of the form's coefficients."""
        self.dependents.refresh()
        if self._kernels is None:
            self._assembler.assemble(tensor=self.tensor)
            return self.matrix
        self.matrix.zeroEntries()
        for function, arguments in self._kernels:
            function(*arguments)
        self.matrix.assemble()
        return self.matrix


def _compiled(parloops) -> list[tuple]:
    """The compiled functions of parloops over cells or facets on one rank, with their arguments."""
    kernels = []
    for loop in parloops:
        function = compile_global_kernel(loop.global_kernel, loop.comm)
        kernels.append((function, (0, loop.iterset.size, *loop.arglist)))
    return kernels
