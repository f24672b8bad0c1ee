"""On several ranks the integrators on the group do what they do on one."""

import pytest
from verification import parallel_rods


@pytest.mark.parallel
def test_same_as_serial(on_ranks):
    serial = parallel_rods.everything()
    results = on_ranks(parallel_rods)
    assert set(results.files) == set(serial)
    for name, expected in serial.items():
        # Sums and factorisations in another order, and twenty steps of round-off.
        assert results[name] == pytest.approx(expected, rel=1e-10, abs=1e-10), name
    assert len(serial["failures"]) == 4
    assert list(serial["failures"][2:]) == [0.5, 0.5]
