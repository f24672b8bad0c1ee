"""Derivatives of the solutions of solves."""

from collections.abc import Set
from functools import cached_property

import numpy as np
from firedrake import Form, Function, derivative
from petsc4py import PETSc
from ufl.algorithms import replace

from fdgeom.adjoint.linear import Linear
from fdgeom.adjoint.values import Vectors, fill, keys, parts
from fdgeom.forms import is_zero, simplify, slope_by
from fdgeom.solvers import MatrixAssembly, key


class Solved:
    """The solution u of F(u, c) = 0, with prescribed u_e = (1-share) old_e + share target_e."""

    # active: keys of the functions c that derivatives are taken by.
    def __init__(self, residual: Form, unknown: Function, essential, active: Set[int]) -> None:
        self._residual, self.unknown = residual, unknown
        self._essential = [_Given(e, unknown) for e in essential]
        own = keys([unknown])
        found = {key(c): c for f in residual.coefficients() for c in parts(f)}
        self._read = [c for k, c in found.items() if k in active and k not in own]
        (self._test,) = residual.arguments()
        self._multiplier = Function(self._test.function_space())
        self._solution = Function(unknown.function_space())

    def pull(self, bars: Vectors) -> None:
        """Replace ū by c̄ -= (∂F/∂c)ᵀλ with (∂F/∂u)ᵀλ = ū."""
        if all(part not in bars for part in parts(self.unknown)):
            return
        self._matrix.factorise()
        for part, own in zip(parts(self.unknown), parts(self._solution), strict=True):
            fill(own, bars.take(part))
        self._pull_on(bars)

    def _pull_on(self, bars: Vectors) -> None:
        """:meth:`pull` with the present factors, from the right-hand side in the place of the solution."""
        self._matrix.solve_transposed(self._solution, self._multiplier)
        for given in self._essential:
            given.pull(self._multiplier, bars)
        for c, form in self._slopes:
            (slope,) = form.assemble()
            bars.add(c, -slope)

    def pull_rates(self, bars: Vectors, rates: Vectors, tangents: Vectors) -> None:
        """:meth:`pull`, and its derivative along tangents, those of u among them:

        (∂F/∂u)ᵀ λ̇ = ū̇ - ∂/∂u (λ·Ḟ),   c̄̇ -= (∂F/∂c)ᵀ λ̇ + ∂/∂c (λ·Ḟ),   Ḟ = ∂F/∂u u̇ + ∂F/∂c ċ.
        """
        own = parts(self.unknown)
        if all(part not in bars and part not in rates for part in own):
            return
        turns, seed = [rates.take(part) for part in own], [bars.take(part) for part in own]
        self._matrix.factorise()
        for part, values in zip(parts(self._solution), seed, strict=True):
            fill(part, values)
        self._pull_on(bars)
        along, by_unknown, by_others = self._bend
        for c, place in along:
            for part, target in zip(parts(c), parts(place), strict=True):
                fill(target, tangents.of(part))
        bent = [None] * len(own) if by_unknown is None else by_unknown.assemble()
        changes = [(c, -np.array(form.assemble()[0])) for c, form in by_others]
        for part, values, bend in zip(parts(self._solution), turns, bent, strict=True):
            fill(part, values)
            if bend is not None:
                part.dat.data[...] -= bend
        self._pull_on(rates)
        for c, change in changes:
            rates.add(c, change)

    @cached_property
    def _bend(self):
        """Functions for the tangents, and the derivatives of λ·Ḟ by u and by the functions c."""
        along = [(c, Function(c.function_space())) for c in (self.unknown, *self._read)]
        work = replace(self._residual, {self._test: self._multiplier})
        change = simplify(sum((derivative(work, c, place) for c, place in along), Form([])))

        def by(c: Function) -> Linear | None:
            form = slope_by(change, c)
            return None if form is None else Linear(form)

        found = [(c, by(c)) for c in self._read]
        return along, by(self.unknown), [(c, form) for c, form in found if form is not None]

    def push(self, tangents: Vectors) -> None:
        """Set the tangent of u: ∂F/∂u δu = -∂F/∂c δc."""
        form, places = self._change
        for c, place in places:
            fill(place, tangents.of(c))
        rhs = self._multiplier
        if form is None:
            for part in parts(rhs):
                fill(part, None)
        else:
            for part, values in zip(parts(rhs), form.assemble(), strict=True):
                fill(part, -values)
        for given in self._essential:
            given.push(rhs, tangents)
        self._matrix.factorise()
        self._matrix.solve(rhs, self._solution)
        for part, found in zip(parts(self.unknown), parts(self._solution), strict=True):
            tangents.put(part, found.dat.data_ro)

    @cached_property
    def _matrix(self) -> "_Matrix":
        return _Matrix(derivative(self._residual, self.unknown), self.unknown, self._essential)

    @cached_property
    def _slopes(self) -> list[tuple[Function, Linear]]:
        work = replace(self._residual, {self._test: self._multiplier})
        found = ((c, slope_by(work, c)) for c in self._read)
        return [(c, Linear(form)) for c, form in found if form is not None]

    @cached_property
    def _change(self):
        places = [(c, Function(c.function_space())) for c in self._read]
        slopes = (derivative(self._residual, c, place) for c, place in places)
        form = simplify(sum(slopes, Form([])))
        return (None if is_zero(form) else Linear(form)), places


class _Matrix:
    """∂F/∂u with rows of the identity for prescribed degrees of freedom, and its factors."""

    def __init__(self, form: Form, unknown: Function, essential) -> None:
        self._assembly = MatrixAssembly(form, "aij")
        matrix = self._assembly.matrix
        first, _ = matrix.getOwnershipRange()
        rows = [given.rows for given in essential]
        own = np.concatenate(rows) if rows else np.array([], dtype=int)
        self._rows = (first + own).astype(PETSc.IntType)
        self._any = bool(essential)
        self._ksp = PETSc.KSP().create(comm=unknown.function_space().comm)
        self._ksp.setType("preonly")
        factors = self._ksp.getPC()
        factors.setType("lu")
        # MUMPS pivots: saddle points have zeros on their diagonals.
        factors.setFactorSolverType("mumps")
        self._ksp.setOperators(matrix)

    def factorise(self) -> None:
        """Assemble the matrix at the present values, for the next solves."""
        matrix = self._assembly.assemble()
        if self._any:
            matrix.zeroRows(self._rows, diag=1.0)
        self._ksp.setOperators(matrix)

    def solve(self, rhs: Function, result: Function) -> None:
        """K x = b."""
        with rhs.dat.vec_ro as b, result.dat.vec_wo as x:
            self._ksp.solve(b, x)
        self._check()

    def solve_transposed(self, rhs: Function, result: Function) -> None:
        """Kᵀ x = b."""
        with rhs.dat.vec_ro as b, result.dat.vec_wo as x:
            self._ksp.solveTranspose(b, x)
        self._check()

    def _check(self) -> None:
        if self._ksp.getConvergedReason() < 0:
            raise ValueError(
                "the derivative of a step could not be solved for: its matrix is singular"
            )


class _Given:
    """Prescribed degrees of freedom of an unknown, with values from other functions or numbers."""

    def __init__(self, essential, unknown: Function) -> None:
        self._part, self._target = essential.part, essential.target
        # Numbers (`GivenValues`) have no `old` and no derivatives.
        self._old = getattr(essential, "old", None)
        self._share = getattr(essential, "share", 1.0)
        sizes = [part.dat.data_ro.size for part in parts(unknown)]
        #: The entries of the part that this rank owns.
        self._dofs = essential.dofs[essential.dofs < sizes[self._part]]
        #: Their rows in the matrix, from the first one of this rank.
        self.rows = sum(sizes[: self._part]) + self._dofs

    def pull(self, multiplier: Function, bars: Vectors) -> None:
        values = parts(multiplier)[self._part].dat.data.reshape(-1)
        held = np.array(values[self._dofs])
        values[self._dofs] = 0.0
        for source, share in ((self._old, 1 - self._share), (self._target, self._share)):
            if source is not None and share:
                bar = np.zeros(source.dat.data_ro.shape)
                bar.reshape(-1)[self._dofs] = share * held
                bars.add(source, bar)

    def push(self, rhs: Function, tangents: Vectors) -> None:
        values = parts(rhs)[self._part].dat.data.reshape(-1)
        values[self._dofs] = 0.0
        for source, share in ((self._old, 1 - self._share), (self._target, self._share)):
            given = None if source is None else tangents.of(source)
            if given is not None:
                values[self._dofs] += share * given.reshape(-1)[self._dofs]
