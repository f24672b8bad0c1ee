"""Rigid motions of beams that their held ends and joints leave free, and their description."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sparse
import ufl
from firedrake import TestFunction, TrialFunction, assemble
from scipy.sparse.linalg import LinearOperator, onenormest, splu

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.forms import MATRIX_COMPILER
from fdgeom.lie.arrays import quaternion, so3
from fdgeom.statics.linear_algebra import gathered, to_scipy

# Of the size of the beams: what counts as no motion. Of the stiffness: what counts as none.
_NONE, _RESISTED = 1e-9, 1e-12
# Free motions whose stiffness is a full matrix.
_DENSE = 300
Condition = tuple[tuple[int, ...], np.ndarray]


def free_motion(motion: RodMotion) -> str:
    """Rigid motions that ends and joints leave free, described for all ranks; "" if none."""
    _, free, _ = _free(motion)
    ways = free.shape[1]
    if not ways:
        return ""
    moving = np.flatnonzero(_largest(free) > _NONE)
    who = _named(moving, len(motion.members))
    body = "a rigid body" if len(moving) == 1 else "rigid bodies"
    how = "one way" if ways == 1 else f"{ways} independent ways"
    return f"{who} can still move as {body} in {how}{_loose(motion, free)}"


def is_singular(motion: RodMotion, stiffness: Callable[[], sparse.csr_matrix]) -> bool:
    """Whether there are free motions that a tangent stiffness of all nodes does not resist either."""
    # The stress may resist them: a hanging chain of hinged bars is held by its tension. The
    # stiffness is computed only where there are free motions.
    rigid, free, size = _free(motion)
    if not free.shape[1]:
        return False
    stiffness = stiffness()
    moved = sparse.diags(np.tile([1.0] * 3 + [size] * 3, rigid.shape[0] // 6)) @ rigid @ free
    sizes = abs(moved).T @ (abs(stiffness) @ abs(moved))
    resisted = moved.T @ (stiffness @ moved)
    return _least(resisted) <= _RESISTED * sizes.max()


def _least(matrix: sparse.spmatrix) -> float:
    """The least size of an eigenvalue; for large matrices a norm of the inverse bounds it."""
    if matrix.shape[0] <= _DENSE:
        return float(np.abs(np.linalg.eigvals(matrix.toarray())).min())
    try:
        factors = splu(matrix.tocsc())
    except RuntimeError:
        return 0.0
    inverse = LinearOperator(
        matrix.shape,
        matvec=factors.solve,
        rmatvec=lambda b: factors.solve(b, trans="T"),
        dtype=float,
    )
    return 1.0 / float(onenormest(inverse))


def _free(motion: RodMotion) -> tuple[sparse.csr_matrix, sparse.csr_matrix, float]:
    """Displacements by rigid motions of the beams, the free ones (6 rows per beam), the size."""
    x = gathered(motion.comm, motion.position.dat.data_ro)
    size = float(np.linalg.norm(np.ptp(x, axis=0))) or 1.0
    rigid = _rigid_motions(motion, x / size)
    conditions = [rigid[held(motion)]]
    if motion.joints is not None:
        conditions += [part @ rigid for part in _in_joints(motion, size)]
    return rigid, null_space(sparse.vstack(conditions), 6, _NONE), size


def _largest(free: sparse.csr_matrix) -> np.ndarray:
    """The largest entry of each beam."""
    return abs(free).max(axis=1).toarray().reshape(-1, 6).max(axis=1)


def _of_beams(free: sparse.csr_matrix, beams: np.ndarray) -> sparse.csr_matrix:
    """The rows of some beams."""
    return free[(6 * beams[:, None] + np.arange(6)).ravel()]


def _rigid_motions(motion: RodMotion, x: np.ndarray) -> sparse.csr_matrix:
    """Displacements of all nodes by the rigid motions (ω, u) of each beam, with lengths over the
    size, where the node at x turns by ω and moves by u + ω × x.
    """
    turn = quaternion.matrix(gathered(motion.comm, motion.orientation.dat.data_ro))
    member = gathered(motion.comm, motion.consistency.member_of_nodes())
    blocks = np.zeros((len(x), 6, 6))
    blocks[:, :3, :3] = turn.transpose(0, 2, 1)
    blocks[:, 3:, :3] = -so3.hat(x)
    blocks[:, 3:, 3:] = np.eye(3)
    (node,) = np.nonzero(member >= 0)
    shape = (6 * len(x), 6 * len(motion.members))
    # Nodes of the ground stay where they are.
    start = np.concatenate([[0], np.cumsum(member >= 0)])
    return sparse.bsr_matrix((blocks[node], member[node], start), shape=shape).tocsr()


def held(motion: RodMotion) -> np.ndarray:
    """Mask of all nodes' degrees of freedom that are held."""
    found = np.zeros(motion.v.dat.data_ro.size, dtype=bool)
    if motion.held is not None:
        (dofs,) = motion.held.dofs
        found[dofs[dofs < len(found)]] = True
    return gathered(motion.comm, found)


def _in_joints(motion: RodMotion, size: float) -> Iterator[sparse.csr_matrix]:
    """Conditions and springs of the joints: rows of length 1 for displacements over the size."""
    joints, pose = motion.joints, motion.configuration
    trial = TrialFunction(motion.space)
    test = TestFunction(motion.space)
    forms = [
        joints.slope(TestFunction(joints.space), trial, pose),
        motion.rate(lambda g: joints.spring_work(g, ufl.zero(6), test), trial),
    ]
    for form in forms:
        if not form.empty():
            rows = to_scipy(assemble(form, form_compiler_parameters=MATRIX_COMPILER).petscmat)
            rows = rows @ sparse.diags(np.tile([1.0] * 3 + [size] * 3, rows.shape[1] // 6))
            length = sparse.linalg.norm(rows, axis=1)
            yield sparse.diags(1 / np.where(length > 0, length, 1.0)) @ rows


def _loose(motion: RodMotion, free: sparse.csr_matrix) -> str:
    """The joints in which the motions of the beams differ; "" if there are none."""
    if motion.joints is None:
        return ""
    number = {id(beam): k for k, beam in enumerate(motion.members)}
    # The ground comes last, and does not move.
    free = sparse.vstack([free, sparse.csr_matrix((6, free.shape[1]))], format="csr")
    sides = [
        [
            number.get(id(getattr(place, "beam", None)), len(number))
            for place in (joint.first, joint.second)
        ]
        for joint in motion.joints.joints
    ]
    first, second = np.transpose(sides)
    moves = _largest(_of_beams(free, first) - _of_beams(free, second)) > _NONE
    return f", in {_listed('joints', np.flatnonzero(moves))}" if moves.any() else ""


def _named(moving: np.ndarray, count: int) -> str:
    """The beams by their numbers."""
    if len(moving) == count:
        return "the beam" if count == 1 else "the assembly"
    return _listed("beams", moving)


def _listed(name: str, numbers: np.ndarray) -> str:
    names = [f"{name}[{k}]" for k in numbers[:4]]
    if len(numbers) > 4:
        names.append(f"{len(numbers) - 4} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def null_space(matrix: sparse.spmatrix, size: int, tolerance: float) -> sparse.csr_matrix:
    """Columns of length 1 that span all x with C x = 0, unknowns × columns, for rows of C of about
    length 1 and of few blocks of ``size`` unknowns.
    """
    # Singular values below the tolerance count as zero. Each block is expressed by its neighbours,
    # and the null space of its own conditions gives columns: block elimination with a singular
    # value decomposition instead of pivots, in SuperLU's order of minimum degree. So the cost of a
    # tree grows linearly with its blocks.
    matrix = sparse.csr_matrix(matrix)
    matrix.eliminate_zeros()
    matrix = matrix.tobsr((1, size)).sorted_indices()
    count, starts = matrix.shape[1] // size, matrix.indptr
    shape = (matrix.shape[0], count)
    pattern = sparse.csr_matrix((np.ones(len(matrix.indices)), matrix.indices, starts), shape)
    coupling = (pattern.T @ pattern + sparse.eye(count)).tocsc()

    # Conditions by the blocks that they are on, (rows, blocks, size), and those on each block.
    of_block: list[dict[int, Condition]] = [{} for _ in range(count)]
    numbers = itertools.count()

    def add(blocks: tuple[int, ...], rows: np.ndarray) -> None:
        number = next(numbers)
        for b in blocks:
            of_block[b][number] = blocks, rows.reshape(-1, len(blocks), size)

    groups: dict[tuple[int, ...], list[np.ndarray]] = {}
    for part in map(slice, starts, starts[1:]):
        groups.setdefault(tuple(matrix.indices[part].tolist()), []).append(matrix.data[part])
    groups.pop((), None)
    for blocks, rows in groups.items():
        add(blocks, np.array(rows))
    done: list[tuple[int, tuple[int, ...], np.ndarray, np.ndarray]] = []
    for b in np.argsort(splu(coupling, permc_spec="MMD_AT_PLUS_A").perm_c):
        mine = dict(of_block[b])
        others = tuple(sorted({other for blocks, _ in mine.values() for other in blocks} - {b}))
        at = {block: k for k, block in enumerate((b, *others))}
        parts = [np.zeros((0, len(at), size))]
        for blocks, rows in mine.values():
            parts.append(np.zeros((len(rows), len(at), size)))
            parts[-1][:, [at[block] for block in blocks]] = rows
        whole = np.concatenate(parts).reshape(-1, len(at) * size)
        left, values, right = np.linalg.svd(whole[:, :size])
        rank = int(np.sum(values > tolerance))
        # u_b = by_others u_others + free z.
        by_others = -(right[:rank].T / values[:rank]) @ (left[:, :rank].T @ whole[:, size:])
        done.append((b, others, by_others, right[rank:].T))
        for number, (blocks, _) in mine.items():
            for other in blocks:
                del of_block[other][number]
        rest = left[:, rank:].T @ whole[:, size:]
        if rest.size:
            _, values, right = np.linalg.svd(rest, full_matrices=False)
            found = values > tolerance
            if found.any():
                add(others, values[found, None] * right[found])
    return _columns(done, count, size)


def _columns(order, count: int, size: int) -> sparse.csr_matrix:
    """The blocks, each in terms of those that were eliminated after it."""
    width = sum(free.shape[1] for *_, free in order)
    found: list[sparse.csr_matrix] = [sparse.csr_matrix((size, width))] * count
    end = width
    for b, others, by_others, free in reversed(order):
        start = end - free.shape[1]
        total = sparse.csr_matrix(free) @ sparse.eye(end - start, width, k=start, format="csr")
        if others:
            total = total + sparse.csr_matrix(by_others) @ sparse.vstack([found[o] for o in others])
        found[b], end = total.tocsr(), start
    basis = sparse.vstack(found, format="csr")
    length = np.sqrt(np.asarray(basis.multiply(basis).sum(axis=0)).ravel())
    return (basis @ sparse.diags(1 / length)).tocsr()
