"""Solves along chains as scalar programs: the equations of a cell in the values of its two nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from firedrake import Function
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import structural_rank
from ufl.core.expr import Expr

from fdgeom.compile.differentiate import Entries, jacobian, of_one_node, operations, slopes_of
from fdgeom.compile.layout import Layout, Part, marked, parts_of
from fdgeom.compile.program import ScalarProgram
from fdgeom.compile.terms import whole_integrals
from fdgeom.errors import CannotCompile
from fdgeom.operations import Attempt, ConvergenceTest, Solve, parts

#: More unknowns of a node, or longer residuals, take too long to compile.
_UNKNOWNS, _OPERATIONS = 24, 8000
_SIDES = "AB"


@dataclass(frozen=True, kw_only=True, eq=False)
class Update(Solve):
    """The linear equations of one update of Newton's method; its report has norms and the inertia.

    With ``by`` the work is the residual of that Function and the update solves ∂F/∂u d = F(u);
    ``linear``: CannotCompile if the equations are not linear in it.
    """

    by: Function | None = None
    linear: bool = True

    def _check_unknown(self) -> None:
        if self.by is None:
            super()._check_unknown()


@dataclass(frozen=True)
class Unknown:
    """A component of an unknown, at the nodes or in the cells."""

    part: Part
    component: int
    #: The field that is 1 where it is prescribed, if it is prescribed anywhere.
    held: Part | None = None
    #: The field with the right-hand side of a transposed solve.
    source: Part | None = None


@dataclass
class ChainProgram:
    """A solve along chains as a scalar program of a cell; that is also of one place for the guesses."""

    op: Solve
    test: ConvergenceTest
    #: Those of a block of the equations: of a node, then of the cell after it; or those of the chains'
    #: cells, then those of links alone.
    unknowns: list[Unknown]
    #: First guesses, and the attempts: numbers of guesses with their attempts.
    guesses: list[list[int]]
    attempts: list[tuple[int, Attempt]]
    cell: ScalarProgram = field(default_factory=ScalarProgram)
    #: The residuals of the two nodes of a cell, and their derivatives by the unknowns there.
    residual: list[int] = field(default_factory=list)
    tangent: Entries = field(default_factory=dict)
    #: The same of a cell that links chains.
    link: ScalarProgram = field(default_factory=ScalarProgram)
    link_residual: list[int] = field(default_factory=list)
    link_tangent: Entries = field(default_factory=dict)
    #: Whether one update solves the equations.
    affine: bool = False
    #: How many unknowns are those of the chains' cells.
    in_chains: int = 0
    #: Whether the nodes are eliminated from the right to the left: the multiplier of a cell gets an
    #: equation from its right node where the left one is prescribed.
    from_right: bool = False
    #: Whether chains meet, at links or at the ends of ranks.
    meets: bool = False
    #: Whether it has so few unknowns on one chain that scalars are faster than vectors.
    small: bool = False
    #: Whether the cells of chains couple no nodes, only links do.
    local: bool = False


def _numerics(op: Solve) -> tuple[ConvergenceTest, int]:
    """The convergence test, and the limit of iterations without the user's options."""
    options, test = {}, None
    if (numerics := op.default_numerics()) is not None:
        options, test = numerics.options, numerics.converged
    test = ConvergenceTest() if test is None else test
    if not isinstance(test, ConvergenceTest):
        raise CannotCompile(f"{op.name}: a convergence test of its own")
    if isinstance(test.unnoticed, Expr):
        raise CannotCompile(f"{op.name}: a tolerance that depends on a Constant")
    usual = test.with_options(options).max_it
    given = options if op.options is None else op.options.over(options)[0]
    return test.with_options(given), usual


def lower_chain(lowering, op: Solve) -> ChainProgram:
    """The program of a solve that couples neighbours; CannotCompile names what is not supported."""
    layout = lowering.layout
    test, usual = _numerics(op)
    unknowns = _unknowns(op, layout)
    if len(unknowns) > _UNKNOWNS:
        raise CannotCompile(f"{op.name} has {len(unknowns)} unknowns a node, more than {_UNKNOWNS}")
    made = ChainProgram(op, test, unknowns, [], [], in_chains=len(unknowns))
    made.meets = layout.has_links or layout.comm.size > 1
    is_single = not made.meets and len(layout.starts) == 1
    terms = whole_integrals(op.work)
    made.residual, made.tangent, made.affine = _equations(
        made, made.cell, lowering.cell_works(made.cell, terms)
    )
    if layout.has_links:
        if not all(u.part.nodal for u in unknowns):
            raise CannotCompile(f"{op.name}: unknowns of cells, where links join chains")
        works = lowering.cell_works(made.link, terms, of_links=True)
        made.link_residual, made.link_tangent, affine = _equations(made, made.link, works)
        made.affine = made.affine and affine
        _sort(made)
        n = made.in_chains
        couples = any((i < n) != (j < n) for i, j in made.tangent)
        made.local = not couples and not isinstance(op, Update)
    elif _lacks_equations(made):
        if not is_single:
            raise CannotCompile(f"{op.name}: a prescribed node has no equation for a multiplier")
        made.from_right = True
    in_cells = not all(u.part.nodal for u in unknowns)
    made.small = is_single and not made.from_right and len(unknowns) <= (3 if in_cells else 2)
    if isinstance(op, Update):
        if op.linear and not made.affine:
            raise CannotCompile(f"{op.name}: the equations are not linear")
        made.affine = True
    if made.affine:
        _begin_at_zero(made)
    for program, residual in ((made.cell, made.residual), (made.link, made.link_residual)):
        if (length := operations(program, residual)) > _OPERATIONS:
            raise CannotCompile(
                f"{op.name} takes {length} operations a cell, more than {_OPERATIONS}"
            )
    _attempts(made, layout, usual)
    return made


def _unknowns(op: Solve, layout: Layout) -> list[Unknown]:
    """The unknowns of a block, those of nodes first."""
    sources = {}
    if op.source is not None:
        sources = dict(zip(parts_of(op.unknown), parts_of(op.source), strict=True))
    found = []
    for number, piece in enumerate(parts(op.unknown)):
        dofs = [np.asarray(p.dofs) for p in op.prescribed if p.part == number]
        mask = marked(piece, np.concatenate(dofs)) if dofs else None
        for part in parts_of(piece):
            own = set(np.concatenate(dofs) % part.size) if dofs else set()
            components = set().union(*layout.comm.allgather(own))
            for k in range(part.size):
                held = layout.part_like(part, mask) if k in components else None
                found.append(Unknown(part, k, held, sources[part] if sources else None))
    return sorted(found, key=lambda u: not u.part.nodal)


def _lacks_equations(made: ChainProgram) -> bool:
    """Whether a block is singular where components are prescribed, as for a multiplier."""
    size = len(made.unknowns)
    free = [i for i, u in enumerate(made.unknowns) if u.held is None]
    block = [
        [float((i, j) in made.tangent or (size + i, size + j) in made.tangent) for j in free]
        for i in free
    ]
    return bool(free) and structural_rank(csr_matrix(block)) < len(free)


def _inputs(p: ScalarProgram, pairs: Sequence[tuple[Part, int]]) -> list[int | None]:
    """The values at both nodes of a cell; those of cells belong to the first node."""
    return [
        p.input(("value", part, side if part.nodal else "C", k))
        if part.nodal or side == "A"
        else None
        for side in _SIDES
        for part, k in pairs
    ]


def _equations(made: ChainProgram, p: ScalarProgram, works) -> tuple[list[int], Entries, bool]:
    """Residual and tangent of a cell, and whether they are affine."""
    op = made.op
    by = op.by if isinstance(op, Update) and op.by is not None else op.unknown
    unknowns = _inputs(p, _alike(made.unknowns, parts_of(op.unknown), parts_of(by)))
    tests = _inputs(p, _alike(made.unknowns, parts_of(op.unknown), parts_of(op.test)))
    first = [of_one_node(p, side, range(len(p.ops))) for side in _SIDES]
    if op.source is None:
        residual = _slopes(p, works, tests)
        tangent = _entries(p, residual, unknowns, first)
        changing = p.depending([x for x in unknowns if x is not None])
        affine = not any(e in changing for e in tangent.values())
        return residual, tangent, affine and not p.asks(residual, changing)
    # The matrix of the solve that is transposed; its residual at zero is the source alone.
    entries = _entries(p, _slopes(p, works, unknowns), tests, first)
    return [p.zero] * len(unknowns), {(j, i): e for (i, j), e in entries.items()}, True


def _begin_at_zero(made: ChainProgram) -> None:
    """Linear equations are solved from zero and the prescribed values."""
    if any(q.value is not None for q in made.op.prescribed) or made.op.source is not None:
        return
    for p, name in ((made.cell, "residual"), (made.link, "link_residual")):
        unknowns = _inputs(p, [(u.part, u.component) for u in made.unknowns])
        zero = {x: p.zero for x in unknowns if x is not None}
        setattr(made, name, p.replaced(getattr(made, name), zero))


def _sort(made: ChainProgram) -> None:
    """Put the unknowns that the cells of chains contain before those of links alone."""
    m = len(made.unknowns)
    used = {k % m for k, x in enumerate(made.residual) if x != made.cell.zero}
    used |= {k % m for entry in made.tangent for k in entry}
    n = made.in_chains = len(used)
    order = [*sorted(used), *(k for k in range(m) if k not in used)]
    place = {k + side * m: i + side * n for side in range(2) for i, k in enumerate(order[:n])}
    made.residual = [made.residual[k] for k in place]
    made.tangent = {(place[i], place[j]): e for (i, j), e in made.tangent.items()}
    place = {k + side * m: i + side * m for side in range(2) for i, k in enumerate(order)}
    made.link_residual = [made.link_residual[k] for k in place]
    made.link_tangent = {(place[i], place[j]): e for (i, j), e in made.link_tangent.items()}
    made.unknowns = [made.unknowns[k] for k in order]


def _alike(unknowns: Sequence[Unknown], parts: Sequence[Part], others: Sequence[Part]):
    """The components of other parts in the order of the unknowns."""
    other = dict(zip(parts, others, strict=True))
    return [(other[u.part], u.component) for u in unknowns]


def _slopes(p: ScalarProgram, works, inputs: Sequence[int | None]) -> list[int]:
    there = [x for x in inputs if x is not None]
    by = dict(zip(there, slopes_of(p, works, there), strict=True))
    return [p.zero if x is None else by[x] for x in inputs]


def _entries(p: ScalarProgram, outputs, inputs, first) -> Entries:
    numbers = [k for k, x in enumerate(inputs) if x is not None]
    found = jacobian(p, outputs, [inputs[k] for k in numbers], first)
    return {(i, numbers[j]): e for (i, j), e in found.items()}


def _attempts(made: ChainProgram, layout: Layout, usual: int) -> None:
    """The first guesses with prescribed values, and which attempts begin with them."""
    op, most = made.op, made.test.max_it
    attempts = list(op.attempts)
    guesses = list(dict.fromkeys(a.guess for a in attempts)) or [op.guess]
    for guess in guesses:
        made.guesses.append(_guess(made, layout, guess))
    # A smaller limit of the user's is that of all attempts.
    limits = [max(most, a.max_it or 0) if most >= usual else most for a in attempts]
    made.attempts = [
        (guesses.index(a.guess), replace(a, max_it=limit))
        for a, limit in zip(attempts, limits, strict=True)
    ] or [(0, Attempt(guess=op.unknown, max_it=most))]


def _guess(made: ChainProgram, layout: Layout, guess: Function | None) -> list[int]:
    """The first guess of the unknowns of a block; without one it is the present value."""
    op, p = made.op, made.cell
    if made.affine:
        values = [p.zero] * len(made.unknowns)
    elif guess is None or guess.dat is op.unknown.dat:
        values = [p.input(("start", u.part, "C", u.component)) for u in made.unknowns]
    else:
        pairs = _alike(made.unknowns, parts_of(op.unknown), parts_of(guess))
        values = [p.input(("value", part, "C", k)) for part, k in pairs]
    for q in op.prescribed:
        piece = parts(op.unknown)[q.part]
        alone = sum(other.part == q.part for other in op.prescribed) == 1
        own = None if alone else marked(piece, q.dofs)
        for i, u in enumerate(made.unknowns):
            if u.held is None or u.part not in parts_of(piece):
                continue
            held = u.held if alone else layout.part_like(u.part, own)
            mask = p.input(("value", held, "C", u.component))
            value = p.zero
            if q.value is not None:
                part = layout.part_like(u.part, q.value)
                value = p.input(("value", part, "C", u.component))
            chosen = p.compare(">", mask, p.const(0.5))
            values[i] = p.select(chosen, value, values[i])
    return values
