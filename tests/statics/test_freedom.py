"""Which rigid motions held ends leave, in words: against what is known of each by hand."""

import numpy as np
import pytest
from firedrake import IntervalMesh
from scipy.sparse import csr_matrix
from verification.beams import SOFT

import fdgeom as fg
from fdgeom.statics.rigid_motions import free_motion, null_space

# A quarter turn about z: the beam lies along y.
ALONG_Y = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))

CASES = {
    "clamped": ({"left": "clamped"}, ""),
    "pinned": (
        {"left": "pinned"},
        "the beam can still move as a rigid body in 3 independent ways",
    ),
    "pinned at the right": (
        {"right": "pinned"},
        "the beam can still move as a rigid body in 3 independent ways",
    ),
    "pinned at both ends": (
        {"left": "pinned", "right": "pinned"},
        "the beam can still move as a rigid body in one way",
    ),
    "on a rail": (
        {"left": fg.Sliding("y", turning=False)},
        "the beam can still move as a rigid body in one way",
    ),
    "on a rail that turns": (
        {"left": fg.Sliding("y")},
        "the beam can still move as a rigid body in 4 independent ways",
    ),
    "a pin and a rail": (
        {"left": "pinned", "right": fg.Sliding("y")},
        "the beam can still move as a rigid body in one way",
    ),
    "a pin and a fixed rail": ({"left": "pinned", "right": fg.Sliding("y", turning=False)}, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_free_motion(name):
    """Of a beam from (3, 2, 0) to (3, 3, 0)."""
    ends, words = CASES[name]
    beam = fg.Beam(IntervalMesh(4, 1.0), SOFT, **ends)
    beam.reconstruct(position=(3.0, 2.0, 0.0), orientation=ALONG_Y)
    assert free_motion(beam.motion) == words


def test_a_failed_equilibrium_says_what_is_free():
    beam = fg.Beam(
        IntervalMesh(4, 1.0), SOFT, left="pinned", loads=fg.Load(force=(0, 0, 1), at="right")
    )
    with pytest.raises(fg.LoadStepFailed, match="hold that too") as caught:
        fg.StaticEquilibrium(beam).solve()
    assert caught.value.free == "the beam can still move as a rigid body in 3 independent ways"


@pytest.mark.parametrize("loops", [0, 3])
def test_null_space_by_blocks(loops):
    """Against a singular value decomposition of all: a tree of 30 blocks, and loops in it."""
    rng, count = np.random.default_rng(loops), 30
    pairs = [(k, int(rng.integers(k))) for k in range(1, count)]
    pairs += [tuple(rng.choice(count, 2, replace=False)) for _ in range(loops)]
    rows = []
    for a, b in pairs:
        row = np.zeros((int(rng.integers(3, 7)), 6 * count))
        for block in (a, b):
            row[:, 6 * block : 6 * block + 6] = rng.normal(size=(len(row), 6))
        rows.append(row)
    # One condition twice, and one that says nothing.
    rows += [rows[3][:1], np.zeros((1, 6 * count))]
    matrix = np.vstack(rows)
    found = null_space(csr_matrix(matrix), 6, 1e-9).toarray()
    values = np.linalg.svd(matrix, compute_uv=False)
    assert found.shape[1] == 6 * count - np.sum(values > 1e-9)
    assert np.linalg.norm(found, axis=0) == pytest.approx(np.ones(found.shape[1]), rel=1e-12)
    assert np.abs(matrix @ found).max() < 1e-9
    assert np.linalg.svd(found, compute_uv=False)[-1] > 1e-6
