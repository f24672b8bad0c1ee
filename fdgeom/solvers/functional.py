"""Functionals evaluated again and again, without Python's overhead where one rank does all."""

from __future__ import annotations

from firedrake import Form
from firedrake.assemble import ZeroFormAssembler, get_assembler
from pyop2.global_kernel import compile_global_kernel

from fdgeom.solvers.collection import paused_collection
from fdgeom.solvers.derived import derived_in


class FunctionalAssembly:
    """Evaluates a form without arguments with the present values of its coefficients.

    Parameters
    ----------
    form : Form
        A form without arguments; one without integrals is zero.
    """

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
            self._kernels.append((kernel, (0, loop.iterset.size, *loop.arglist), total._data))

    def assemble(self) -> float:
        """The present value."""
        for derived in self._derived:
            derived.refresh()
        if self._kernels is None:
            return float(self._assembler.assemble())
        value = 0.0
        for kernel, arguments, total in self._kernels:
            total[0] = 0.0
            kernel(*arguments)
            value += total[0]
        return float(value)
