"""On two and three ranks a beam does what it does on one."""

import pytest
from verification import parallel_beam


@pytest.fixture(scope="module")
def serial():
    return parallel_beam.everything()


@pytest.mark.parallel
@pytest.mark.parametrize("ranks", [2, 3])
def test_same_as_serial(serial, ranks, on_ranks):
    results = on_ranks(parallel_beam, ranks)
    assert set(results.files) == set(serial)
    for name, expected in serial.items():
        # Sums in another order, and thirty steps of round-off.
        assert results[name] == pytest.approx(expected, rel=1e-12, abs=1e-12), name
    assert list(serial["failures"]) == [0, 0]
