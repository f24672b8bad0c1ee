"""Programs of local solves and nodal updates, and their C++ text."""

from collections.abc import Callable, Mapping, Sequence
from ctypes import Structure
from dataclasses import dataclass, field

from firedrake import Form, Function
from ufl.core.expr import Expr

from fdgeom.solvers.compiled import source
from fdgeom.solvers.compiled.expressions import expression_kernel
from fdgeom.solvers.compiled.layout import ChainLayout
from fdgeom.solvers.compiled.problem import CellProblem, NodeProblem, local_problem, pieces
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.essential import EssentialValues
from fdgeom.solvers.links import inside_of


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
    #: The local problem or the assignments, for derivatives.
    problem: NodeProblem | CellProblem | None = None
    assignments: Mapping[Function, Expr] = field(default_factory=dict)
    #: Makes the struct of further data of the phase for a layout; and the header that it needs.
    data: Callable[[ChainLayout], Structure] | None = None
    header: str = ""


@dataclass
class Program:
    """Solves and updates to be compiled, in the order in which they were added."""

    mesh: object
    #: For whole meshes of several chains; cells that link chains are then no cells of the solves.
    side_by_side: bool = False
    phases: list[Phase] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables = Tables(self.mesh)
        self.tables.field(self.tables.coordinates)
        self.kernels = []

    @property
    def has_links(self) -> bool:
        """Whether the mesh has links, which are left out of the solves."""
        return self.side_by_side and inside_of(self.mesh) is not None

    def add_solve(
        self,
        residual: Form,
        unknown: Function,
        *,
        guess: Sequence[Function] | None = None,
        essential: Sequence[EssentialValues] = (),
        tolerances=(1e-13, 1e-50, 1e-14, 25),
    ) -> int:
        """Add the solve of a local residual; returns the number of the phase."""
        number = len(self.phases)
        inside = inside_of(self.mesh) if self.has_links else None
        problem: NodeProblem | CellProblem = local_problem(residual, unknown, f"k{number}", inside)
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

    def add_turn_check(self, before: Function, orientation: Function, soft: bool) -> int:
        """Add a check of the rotation of cells, see turns.hpp; returns the number of the phase."""
        number = len(self.phases)
        text = source.turn_check(number, before, orientation, soft, self.tables)
        self.phases.append(Phase(text=text, written=(), header=source.header("turns.hpp")))
        return number

    def code(self) -> str:
        """The C++ text."""
        more = dict.fromkeys(p.header for p in self.phases if p.header)
        return source.program(self.kernels, [p.text for p in self.phases], tuple(more))
