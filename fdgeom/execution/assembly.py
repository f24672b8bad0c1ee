"""Assemblers that are made once and called often, without Python's overhead on one rank."""

from firedrake import Cofunction, Form
from firedrake.assemble import ZeroFormAssembler, get_assembler
from petsc4py import PETSc
from pyop2.global_kernel import compile_global_kernel

from fdgeom.forms import MATRIX_COMPILER, paused_collection
from fdgeom.solvers.data import fields
from fdgeom.solvers.derived import derived_in


class _Assembly:
    """Base class of the assemblers: refreshes the dependent fields of the form."""

    def refresh(self) -> None:
        """Bring the dependent fields of the form up to date."""
        for derived in self._derived:
            derived.refresh()


class FunctionalAssembly(_Assembly):
    """Evaluates a form without arguments at the present values of its coefficients."""

    def __init__(self, form: Form) -> None:
        self._assembler, self._kernels, self._derived = None, [], ()
        if form.empty():
            return
        self._derived = derived_in(form)
        with paused_collection():
            self._assembler = get_assembler(form)
            self._assembler.assemble()
        if not isinstance(self._assembler, ZeroFormAssembler) or form.ufl_domain().comm.size > 1:
            self._kernels = None
            return
        tensor = self._assembler.allocate()
        for loop in self._assembler.parloops(tensor):
            (total,) = loop.reduced_globals
            kernel = compile_global_kernel(loop.global_kernel, loop.comm)
            self._kernels.append((kernel, (0, loop.iterset.size, *loop.arglist), total.data))

    def assemble(self) -> float:
        """The present value of the form."""
        self.refresh()
        if self._kernels is None:
            return float(self._assembler.assemble())
        value = 0.0
        for kernel, arguments, total in self._kernels:
            total[0] = 0.0
            kernel(*arguments)
            value += total[0]
        return float(value)


class VectorAssembly(_Assembly):
    """Assembles a linear form repeatedly into :attr:`tensor`."""

    def __init__(self, form: Form) -> None:
        (test,) = form.arguments()
        self.tensor = Cofunction(test.function_space().dual())
        self._derived = derived_in(form)
        self.refresh()
        with paused_collection():
            self._assembler = get_assembler(form)
            self._assembler.assemble(tensor=self.tensor)
        self._kernels = None
        if test.function_space().comm.size == 1:
            self.parts = fields(self.tensor)
            self._kernels = _compiled(self._assembler.parloops(self.tensor))

    def assemble(self) -> Cofunction:
        """Assemble with the present values of the form's coefficients."""
        self.refresh()
        if self._kernels is None:
            return self._assembler.assemble(tensor=self.tensor)
        for part in self.parts:
            part.array[...] = 0.0
        for function, arguments in self._kernels:
            function(*arguments)
        for part in self.parts:
            part.written()
        return self.tensor


class MatrixAssembly(_Assembly):
    """Assembles a bilinear form repeatedly into :attr:`matrix`."""

    def __init__(self, form: Form, mat_type: str) -> None:
        self._derived = derived_in(form)
        self.refresh()
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
        self.refresh()
        if self._kernels is None:
            self._assembler.assemble(tensor=self._tensor)
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
