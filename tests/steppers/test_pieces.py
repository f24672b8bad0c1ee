"""A run does not depend on the pieces in which it is taken, to the last bit."""

import numpy as np
import pytest
from verification.beams import SOFT, set_smooth, uneven_mesh

import fdgeom as fg


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("stepper", [fg.PoissonIntegrator, fg.SymmetricPoissonIntegrator])
def test_pieces_of_a_run(stepper, compiled):
    results = []
    for pieces in ((30,), (1, 2, 20, 7), (10, 10, 10)):
        beam = set_smooth(fg.Beam(uneven_mesh(9), SOFT))
        method = stepper(beam, 2e-3, compiled=compiled)
        for piece in pieces:
            method.advance(piece)
        results.append({name: f.dat.data_ro.copy() for name, f in beam.functions().items()})
        results[-1]["t"] = method.t
    for other in results[1:]:
        for name, expected in results[0].items():
            assert np.array_equal(other[name], expected), name


def test_a_change_of_the_momentum_through_a_held_array_is_noticed():
    """The velocity follows, whichever way the momentum was written."""
    beam = set_smooth(fg.Beam(uneven_mesh(9), SOFT))
    held = beam.momentum.dat.data
    method = fg.PoissonIntegrator(beam, 2e-3)
    method.advance(3)
    held *= 2
    start = {name: f.dat.data_ro.copy() for name, f in beam.functions().items()}
    method.advance(3)

    fresh = fg.Beam(uneven_mesh(9), SOFT)
    for name, f in fresh.functions().items():
        if name != "velocity":
            f.dat.data_wo[...] = start[name]
    fg.PoissonIntegrator(fresh, 2e-3).advance(3)
    assert np.array_equal(fresh.momentum.dat.data_ro, beam.momentum.dat.data_ro)


def test_resumed_equals_uninterrupted(tmp_path):
    def made():
        return fg.SymmetricPoissonIntegrator(set_smooth(fg.Beam(uneven_mesh(9), SOFT)), 2e-3)

    whole = made()
    whole.advance(13)
    fg.save(whole, tmp_path / "run.h5")
    whole.advance(9)
    resumed = made()
    fg.resume(resumed, tmp_path / "run.h5")
    resumed.advance(9)
    assert resumed.t == whole.t
    for name, f in whole.system.functions().items():
        assert np.array_equal(resumed.system.functions()[name].dat.data_ro, f.dat.data_ro), name
