"""On several ranks gradients are those on one."""

import numpy as np
import pytest
from verification import parallel_gradients


@pytest.mark.parallel
def test_same_as_serial(on_ranks):
    serial = parallel_gradients.everything()
    results = on_ranks(parallel_gradients)
    assert set(results.files) == set(serial)
    for name, expected in serial.items():
        # Sums and factorisations in another order.
        allowed = 1e-12 * np.abs(expected).max()
        assert results[name] == pytest.approx(expected, abs=allowed), name
