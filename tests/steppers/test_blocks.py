"""Long chains are taken through several steps block by block; nobody may notice."""

import numpy as np
import pytest
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.small_systems import blow_up
from ways import check_way

import fdgeom as fg

CELLS = 5000
DT = 2e-5  # a wave needs 7e-5 for a cell


def unit_of(stepper):
    return stepper.ready_steps().unit


def values(system):
    return {name: np.array(f.dat.data_ro) for name, f in system.functions().items()}


def assert_equal(one, other):
    for name, expected in one.items():
        assert np.array_equal(other[name], expected), name


@pytest.fixture(scope="module")
def beams():
    mesh = uneven_mesh(CELLS)
    return {left: fg.Beam(mesh, SOFT, left=left) for left in ("free", "pinned")}


def start(beam, left):
    set_smooth(beam)
    if left != "free":
        node = np.argmin(np.abs(beam.position.dat.data_ro).sum(axis=1))
        beam.momentum.dat.data_wo[node] = 0.0
        beam.consistency.prepare()


@pytest.mark.parametrize("left", ["free", "pinned"])
@pytest.mark.parametrize("method", [fg.PoissonIntegrator, fg.SymmetricPoissonIntegrator])
def test_blocks_and_pieces_give_the_same_to_the_last_bit(beams, left, method):
    beam, results = beams[left], []
    for pieces, blocks in (((75,), True), ((75,), False), ((1, 40, 2, 32), True)):
        start(beam, left)
        stepper = method(beam, DT, compiled=True)
        assert unit_of(stepper).blocks
        unit_of(stepper).blocks = blocks
        for piece in pieces:
            stepper.advance(piece)
        check_way(stepper)
        results.append(values(beam))
    for other in results[1:]:
        assert_equal(results[0], other)


def test_a_failure_is_found_in_its_step():
    """q' = q² from 1, in one cell of many; in the others from 0.1."""
    q = np.tile([0.1, 1.0], (CELLS, 1))
    q[4321, 0] = 1.0
    system = blow_up(q)
    stepper = fg.ImplicitMidpoint(system, 0.01, compiled=True)
    assert unit_of(stepper).blocks
    with pytest.raises(fg.StepFailed) as caught:
        stepper.advance(1000)
    # The same map in Python: q_m = q + dt/2 q_m², so q_m = (1 - √(1 - 2 dt q))/dt.
    wanted, steps = np.array([0.1, 1.0]), 0
    while np.all(1 - 0.02 * wanted >= 0):
        wanted = wanted + 2 * ((1 - np.sqrt(1 - 0.02 * wanted)) / 0.01 - wanted)
        steps += 1
    assert caught.value.step == stepper.steps == steps
    assert "at the node at 4321.5" in caught.value.reason
    # Near the end the solution is badly conditioned: round-off times the growth of q.
    left = system.state.dat.data_ro[:, 0]
    assert left[4321] == pytest.approx(wanted[1], rel=1e-8)
    np.testing.assert_allclose(np.delete(left, 4321), wanted[0], rtol=1e-12)
