"""Phases that compute the cotangents of local problems."""

from collections.abc import Sequence
from dataclasses import replace

from firedrake import Form, Function

from fdgeom.solvers.compiled import source
from fdgeom.solvers.compiled.kernel import cell_kernel
from fdgeom.solvers.compiled.problem import NodeProblem
from fdgeom.solvers.compiled.program import Phase, Program
from fdgeom.solvers.reverse import adjoint_source
from fdgeom.solvers.reverse.node_pull import NodePull


class AdjointProgram(Program):
    """A program whose phases are adjoints of the phases of another program."""

    def __init__(self, mesh) -> None:
        super().__init__(mesh)
        self.reads: list[tuple[Function, ...]] = []

    def add_adjoint(
        self,
        solve: Phase,
        bars: Sequence[Function | None],
        multipliers: Sequence[Function],
        bar_of_old: Function | None,
    ) -> int:
        """Add Jᵀ λ = ū for the solve of a phase; returns the number of the new phase."""
        number, problem = len(self.phases), solve.problem
        if isinstance(problem, NodeProblem):
            kernels = [part.jacobian for part in problem.parts if part.jacobian is not None]
            text = adjoint_source.node_adjoint(number, problem, bars, multipliers, self.tables)
        else:
            kernels = [problem.jacobian]
            text = adjoint_source.cell_adjoint(
                number, problem, bars[0], multipliers[0], self.tables
            )
        essential = tuple(replace(e, old=bar_of_old) for e in solve.essential)
        if bar_of_old is not None:
            self.tables.field(bar_of_old)
        self.kernels += kernels
        self._add(
            Phase(
                text=text,
                written=tuple(multipliers),
                solved=tuple(multipliers),
                block=solve.block,
                nodal=solve.nodal,
                essential=essential,
            ),
            (*solve.solved, *(f for k in kernels for f in k.coefficients)),
        )
        return number

    def add_gather(self, form: Form, bar: Function, adds: bool) -> int:
        """Add a phase that sets a cotangent to the vector of a form, or adds the vector to it."""
        number = len(self.phases)
        kernel = cell_kernel(form, f"k{number}a")
        self.kernels.append(kernel)
        self._add(
            Phase(
                text=adjoint_source.gather(number, kernel, bar, adds, self.tables),
                written=(bar,),
                solved=(bar,),
                guess=(bar,),
                block=bar.function_space().block_size,
                nodal=True,
                explicit=True,
            ),
            kernel.coefficients,
        )
        return number

    def add_pull(self, pull: NodePull, bars: Sequence[tuple[Function, Function, bool]]) -> int:
        """Add a phase of derivatives by (function, its cotangent, whether to add to it) in ``bars``."""
        number, targets = len(self.phases), [bar for _, bar, _ in bars]
        kernel = pull.kernel(f"k{number}p", bars)
        self.kernels.append(kernel)
        text = source.update(number, targets, kernel, self.tables)
        self._add(Phase(text=text, written=tuple(targets)), kernel.coefficients)
        return number

    def add_total(self, functional: Form) -> int:
        """Add a phase that adds the value of a functional to the ``sum`` of its report."""
        number = len(self.phases)
        kernel = cell_kernel(functional, f"k{number}t")
        self.kernels.append(kernel)
        text = adjoint_source.total(number, kernel, self.tables)
        self._add(Phase(text=text, written=()), kernel.coefficients)
        return number

    def add_node_total(self, pull: NodePull, function: Function) -> int:
        """Add a phase that adds a scalar at the nodes of a function to the ``sum`` of its report."""
        number = len(self.phases)
        kernel = pull.value_kernel(f"k{number}v")
        self.kernels.append(kernel)
        text = adjoint_source.node_total(number, kernel, function, self.tables)
        self._add(Phase(text=text, written=()), kernel.coefficients)
        return number

    def add_zero(self, bar: Function) -> int:
        """Add a phase that sets a cotangent to zero."""
        number = len(self.phases)
        self._add(Phase(text=adjoint_source.zero(number, bar, self.tables), written=(bar,)), ())
        return number

    def _add(self, phase: Phase, reads) -> None:
        self.phases.append(phase)
        self.reads.append(tuple(reads))

    def code(self) -> str:
        return source.program(
            self.kernels, [p.text for p in self.phases], (source.header("adjoint.hpp"),)
        )
