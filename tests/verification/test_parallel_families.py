"""On several ranks one case of each family does what it does on one: the quick part of the parallel tests."""

import pytest
from verification import parallel_families


@pytest.mark.parallel
def test_same_as_serial(on_ranks):
    serial = parallel_families.everything()
    results = on_ranks(parallel_families)
    assert set(results.files) == set(serial)
    assert {name.partition(" | ")[0] for name in serial} == set(parallel_families.FAMILIES)
    for name, expected in serial.items():
        size = abs(expected).max(initial=0)
        # Sums and factorisations in another order, twenty steps of round-off; tensions are forces, of a
        # momentum over half a step.
        off = 1e-8 if name.endswith("tension") else 1e-10
        assert results[name] == pytest.approx(expected, rel=1e-10, abs=off * max(size, 1)), name
