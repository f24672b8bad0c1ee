"""The block LU and Newton's method along a chain, against NumPy and PETSc, path by path."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc

import fdgeom
from fdgeom.compile.build import WIDTH, declared
from fdgeom.operations import ConvergenceTest, Reason, Watch

CPP = Path(fdgeom.__file__).parent / "compile" / "cpp"
FLAGS = ["-std=c++17", "-shared", "-fPIC", "-O3", "-march=native", "-ffast-math"]
FLAGS += ["-fno-finite-math-only", "-fno-math-errno", "-Wno-attributes", f"-DFDGEOM_WIDTH={WIDTH}"]
SIZES = (1, 2, 3, 6, 8, 12)
NODES = (2, 3, 7, 8, 9, 100)
EPSILON = np.finfo(float).eps


Run, Limits = declared("Run", "fields.hpp"), declared("Test", "convergence.hpp")
Segment, Tree = declared("Segment", "chain_lu.hpp"), declared("Tree", "chain_lu.hpp")


def aligned(shape):
    """Zeros at a multiple of 64 bytes."""
    memory = np.zeros(int(np.prod(shape)) + WIDTH)
    first = -(memory.ctypes.data // 8) % WIDTH
    return memory[first : first + int(np.prod(shape))].reshape(shape)


def in_lanes(values):
    """[place][component] as [block][component][lane]."""
    blocks = len(values) // WIDTH + 2
    padded = np.zeros((blocks * WIDTH, values[0].size))
    padded[: len(values)] = values.reshape(len(values), -1)
    made = aligned((blocks, values[0].size, WIDTH))
    made[...] = padded.reshape(blocks, WIDTH, -1).transpose(0, 2, 1)
    return made


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("chain") / "harness.so"
    cases = " ".join(f"CASE({n})" for n in SIZES)
    source = Path(__file__).with_name("chain_harness.cpp")
    subprocess.run(["g++", *FLAGS, f"-I{CPP}", f"-DCASES={cases}", source, "-o", made], check=True)
    return ctypes.CDLL(str(made))


class Problem:
    """The residuals J_c u + r_c + c atan(s u) of cells, summed over them, with prescribed unknowns."""

    def __init__(self, n, nodes, matrices, seed=0, held=(), bend=(0.0, 1.0)):
        self.n, self.nodes, self.held, self.bend = n, nodes, np.asarray(held, dtype=int), bend
        rng = np.random.default_rng(seed)
        self.J, self.start = matrices, rng.uniform(-1, 1, (nodes, n))
        self.right = [rng.uniform(-1, 1, (nodes - 1, 2 * n)) for _ in range(2)]
        self.free = np.ones(nodes * n)
        self.free[self.held] = 0.0

    def vector(self, right=0):
        return self._sum(self.right[right])

    def _sum(self, values):
        total = np.zeros((self.nodes, self.n))
        total[:-1] += values[:, : self.n]
        total[1:] += values[:, self.n :]
        return total.reshape(-1)

    def matrix(self):
        A, n = np.zeros((self.nodes * self.n,) * 2), self.n
        for k, J in enumerate(self.J):
            A[k * n : (k + 2) * n, k * n : (k + 2) * n] += J
        return A

    def residual(self, u):
        c, s = self.bend
        cells = np.concatenate(
            [u.reshape(self.nodes, -1)[:-1], u.reshape(self.nodes, -1)[1:]], axis=1
        )
        return self.free * (self.vector() + self.matrix() @ u + self._sum(c * np.arctan(s * cells)))

    def tangent(self, u):
        c, s = self.bend
        cells = np.concatenate(
            [u.reshape(self.nodes, -1)[:-1], u.reshape(self.nodes, -1)[1:]], axis=1
        )
        A = self.matrix() + np.diag(self._sum(c * s / (1.0 + (s * cells) ** 2)))
        return self.free[:, None] * A + np.diag(1.0 - self.free)

    def run(self, library, what=0, test=None):
        """What the harness returns, its number, and two vectors of unknowns."""
        test = test or ConvergenceTest()
        given = {n: getattr(test, n) for n, _ in Limits._fields_}
        given["last"] = -1.0 if test.last is None else test.last
        blocks = self.nodes // WIDTH + 2
        counts = [
            np.clip(many - WIDTH * np.arange(blocks), 0, WIDTH).astype(np.int64)
            for many in (self.nodes, self.nodes - 1)
        ]
        mask, constants = in_lanes(np.ones((self.nodes, 1))), np.array(self.bend)
        tree, _kept = self._halves()
        ins = [
            in_lanes(x)
            for x in (self.J, self.right[0], 1 - self.free.reshape(self.nodes, -1), self.start)
        ]
        second, outs = in_lanes(self.right[1]), [in_lanes(0 * self.start) for _ in range(2)]
        pointers = [(ctypes.c_void_p * len(v))(*[x.ctypes.data for x in v]) for v in (ins, outs)]
        C, number = (ctypes.c_void_p * 1)(constants.ctypes.data), ctypes.c_long(0)
        X = Run(
            C=ctypes.addressof(C), nodes=self.nodes, blocks=-(-self.nodes // WIDTH),
            chain_blocks=-(-self.nodes // WIDTH), tree=ctypes.addressof(tree),
            node_counts=counts[0].ctypes.data, counts=counts[1].ctypes.data, mask=mask.ctypes.data,
        )  # fmt: skip
        found = library.harness(
            self.n, ctypes.byref(X), ctypes.byref(Limits(**given)), *pointers,
            ctypes.c_void_p(second.ctypes.data), what, ctypes.byref(number),
        )  # fmt: skip
        vectors = [u.transpose(0, 2, 1).reshape(-1, self.n)[: self.nodes].reshape(-1) for u in outs]
        return found, number.value, vectors

    def _halves(self):
        """The two halves of the chain, which end at its middle node, and the memory of them."""
        cells = self.nodes - 1
        blocks = -(-cells // WIDTH)
        half = blocks // 2
        middle, kept = half * WIDTH, [in_lanes(np.ones((self.nodes, 1))), np.zeros(2)]
        kept[0].reshape(-1)[middle] = 0.0
        both = [
            Segment(first=half, last=blocks, target=middle, begin=cells, start=-1,
                    count=cells - middle, other=-1, back=1, closes=not half),
            Segment(first=0, last=half, target=middle, begin=0, start=-1, count=middle, other=0,
                    back=0, closes=1),
        ]  # fmt: skip
        many, segments = 1 + (half > 0), (Segment * 2)(*both)
        tree = Tree(
            segments=ctypes.addressof(segments), count=many, alone=many, bordered=many,
            inner=kept[0].ctypes.data, small=kept[1].ctypes.data,
        )  # fmt: skip
        return tree, [*kept, segments]


def dominant(n, nodes, seed=1):
    """Cells whose blocks need no exchanges of rows."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (nodes - 1, 2 * n, 2 * n)) + 3 * n * np.eye(2 * n)


def hollow(n, nodes, seed=2):
    """Cells with zeros on their diagonals: every block needs exchanges, if it has rows to exchange."""
    J = dominant(n, nodes, seed)
    order = np.concatenate([np.roll(np.arange(n), 1), n + np.roll(np.arange(n), 1)])
    J = J[:, order]
    J[:, np.arange(2 * n), np.arange(2 * n)] = 0.0
    return J


def check(problem, library, growth=1.0):
    """Both right-hand sides, to round-off: κ(A) times some ε, times the growth by small pivots."""
    found, _, vectors = problem.run(library)
    assert found == 0
    A, start = problem.tangent(problem.start.reshape(-1)), problem.start.reshape(-1)
    for k, u in enumerate(vectors):
        residual = problem.free * (problem.vector(k) + problem.matrix() @ start)
        exact = start - np.linalg.solve(A, residual)
        bound = growth * EPSILON * np.linalg.cond(A, 1) * np.abs([*exact, *start]).max()
        assert np.abs(u - exact).max() <= 50 * bound


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("nodes", NODES)
def test_without_exchanges(library, n, nodes):
    check(Problem(n, nodes, dominant(n, nodes)), library)


@pytest.mark.parametrize("n", SIZES[1:])
@pytest.mark.parametrize("nodes", NODES)
def test_zero_leading_pivots(library, n, nodes):
    """Pivots above 1e-4 of their columns need no exchange: they may let entries grow by 1e4."""
    check(Problem(n, nodes, hollow(n, nodes)), library, growth=1e4)


@pytest.mark.parametrize("n", SIZES)
def test_one_block_of_many_needs_exchanges(library, n):
    J = dominant(n, 40)
    J[17] = hollow(n, 2)[0] if n > 1 else J[17]
    J[17, :n, :n] -= J[16, n:, n:]
    check(Problem(n, 40, J), library, growth=1e4)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("nodes", NODES)
def test_transposed(library, n, nodes):
    check(Problem(n, nodes, dominant(n, nodes).transpose(0, 2, 1)), library)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("nodes", [2, 9, 100])
def test_prescribed_unknowns(library, n, nodes):
    """Identity rows: prescribed unknowns keep their values, at the ends, in the middle and elsewhere."""
    held = [0, nodes * n - 1, (nodes // 2) * n, *range(n * (nodes // 3), n * (nodes // 3) + n)]
    problem = Problem(n, nodes, dominant(n, nodes), held=held)
    check(problem, library)
    for u in problem.run(library)[2]:
        assert np.array_equal(u[held], problem.start.reshape(-1)[held])


@pytest.mark.parametrize("n", SIZES)
def test_singular(library, n):
    found, _, _ = Problem(n, 20, np.zeros((19, 2 * n, 2 * n))).run(library)
    assert found == Reason.SINGULAR


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("held", [(), (3, 4)])
def test_inertia(library, n, held):
    """The number of negative eigenvalues of a symmetric matrix, without prescribed unknowns."""
    # Blocks of one row have no rows to exchange.
    for J in (dominant(n, 30), hollow(n, 30) if n > 1 else dominant(n, 30, 5), -dominant(n, 30)):
        symmetric = J + J.transpose(0, 2, 1)
        symmetric[::3] *= -0.7
        problem = Problem(n, 30, symmetric, held=held)
        rest = np.flatnonzero(problem.free)
        exact = np.sum(np.linalg.eigvalsh(problem.matrix()[np.ix_(rest, rest)]) < 0)
        assert problem.run(library)[1] == exact


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("bend", "cells"), [(1e-4, dominant), (1e-2, dominant), (0.5, hollow)])
def test_newton(library, n, bend, cells):
    """A small nonlinearity takes updates with old factors, a larger one new tangents; with exchanges."""
    problem = Problem(n, 50, cells(n, 50) if n > 1 else dominant(n, 50), bend=(bend, 1.0), held=[0])
    found, iterations, (u, _) = problem.run(library, 1, ConvergenceTest(rtol=0.0, stol=0.0))
    assert found > 0
    # The root by NumPy, from where the solve has ended: it does not move.
    step = np.linalg.solve(problem.tangent(u), problem.residual(u))
    assert np.abs(step).max() <= 20 * EPSILON * max(1.0, np.abs(u).max()) * np.linalg.cond(
        problem.tangent(u)
    )
    # Updates with old factors begin below 1e-4 and shrink by 0.01 at least: six in place of two.
    whole = _petsc(problem, ConvergenceTest(rtol=0.0, stol=0.0), "basic")[1]
    assert whole - 1 <= iterations <= whole + 4


@pytest.mark.parametrize("n", [2, 6])
def test_damped_steps_are_those_of_petsc(library, n):
    """NLEQ-ERR where whole steps diverge: the root and the number of iterations of PETSc's."""
    nodes = 12
    J = np.zeros((nodes - 1, 2 * n, 2 * n)) + 1e-2 * (
        np.eye(2 * n) - 0.5 * np.roll(np.eye(2 * n), n, 0)
    )
    problem = Problem(n, nodes, J, bend=(1.0, 2.0))
    problem.right = [1e-3 * r for r in problem.right]
    problem.start *= 5.0
    test = ConvergenceTest(rtol=0.0, stol=0.0, max_it=200)
    found, iterations, (u, _) = problem.run(library, 2, test)
    exact, count = _petsc(problem, test, "nleqerr")
    assert found > 0
    assert abs(iterations - count) <= 1
    assert np.abs(u - exact).max() < 1e-12 * np.abs(exact).max()
    assert problem.run(library, 1, test)[0] < 0


def _petsc(problem, test, search):
    size = problem.n * problem.nodes
    snes, matrix = PETSc.SNES().create(), PETSc.Mat().createDense((size, size))
    matrix.setUp()
    x = PETSc.Vec().createWithArray(problem.start.reshape(-1).copy())

    def function(snes, x, f):
        f.setArray(problem.residual(x.getArray(readonly=True)))

    def jacobian(snes, x, A, P):
        A.setValues(range(size), range(size), problem.tangent(x.getArray(readonly=True)))
        A.assemble()

    snes.setFunction(function, x.duplicate())
    snes.setJacobian(jacobian, matrix)
    snes.setType("newtonls")
    snes.getLineSearch().setType(search)
    snes.getKSP().setType("preonly")
    snes.getKSP().getPC().setType("lu")
    snes.setTolerances(rtol=test.rtol, atol=test.atol, stol=test.stol, max_it=test.max_it)
    snes.setConvergenceTest(Watch(test))
    snes.solve(None, x)
    assert snes.getConvergedReason() > 0
    return x.getArray().copy(), snes.getIterationNumber()
