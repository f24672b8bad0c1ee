"""What is to be compiled: local solves and pointwise updates, in their order, as C++ text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from firedrake import Form, Function
from ufl.core.expr import Expr

from fdgeom.solvers.compiled import source
from fdgeom.solvers.compiled.expressions import expression_kernel
from fdgeom.solvers.compiled.problem import CellProblem, NodeProblem, local_problem, pieces
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.essential import EssentialValues


@dataclass
class Phase:
    """One solve or one update of a program."""

    text: str
    written: tuple[Function, ...]
    solved: tuple[Function, ...] = ()
    guess: tuple[Function, ...] = ()
    block: int = 0
    nodal: bool = False
    explicit: bool = False
    tolerances: tuple[float, ...] = (1e-13, 1e-50, 1e-14, 25)
    essential: tuple[EssentialValues, ...] = ()
    #: What it says, for those who differentiate it: a local problem, or assignments.
    problem: NodeProblem | CellProblem | None = None
    assignments: Mapping[Function, Expr] = field(default_factory=dict)


@dataclass
class Program:
    """What is to be compiled: phases in the order in which they were added."""

    mesh: object
    phases: list[Phase] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables = Tables(self.mesh)
        self.tables.field(self.tables.coordinates)
        self.kernels = []

    def add_solve(
        self,
        residual: Form,
        unknown: Function,
        *,
        guess: Sequence[Function] | None = None,
        essential: Sequence[EssentialValues] = (),
        tolerances=(1e-13, 1e-50, 1e-14, 25),
    ) -> int:
        """Add the solve of a local residual; returns the number of the phase.

        Raises
        ------
        CannotCompile
            If the residual is not local; says which term.
        """
        number = len(self.phases)
        problem: NodeProblem | CellProblem = local_problem(residual, unknown, f"k{number}")
        write = source.node_solve if isinstance(problem, NodeProblem) else source.cell_solve
        solved = pieces(unknown)
        start = solved if guess is None else tuple(guess)
        self.kernels += problem.kernels
        self.phases.append(
            Phase(
                text=write(number, problem, start, self.tables),
                written=solved,
                solved=solved,
                guess=start,
                block=sum(f.function_space().block_size for f in solved),
                nodal=isinstance(problem, NodeProblem),
                explicit=getattr(problem, "explicit", None) is not None,
                tolerances=tolerances,
                essential=tuple(essential),
                problem=problem,
            )
        )
        return number

    def add_update(self, assignments: Mapping[Function, Expr]) -> int:
        """Add a pointwise update; returns the number of the phase."""
        number = len(self.phases)
        kernel = expression_kernel(assignments, f"k{number}u")
        self.kernels.append(kernel)
        targets = list(assignments)
        text = source.update(number, targets, kernel, self.tables)
        self.phases.append(Phase(text=text, written=tuple(targets), assignments=dict(assignments)))
        return number

    def code(self) -> str:
        """The C++ text."""
        return source.program(self.kernels, [p.text for p in self.phases])
