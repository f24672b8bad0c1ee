"""Several ranks give what one gives."""

import numpy as np
import pytest
from sections import parallel_sections

pytestmark = pytest.mark.parallel


def test_ranks_equal_one(on_ranks):
    expected, found = parallel_sections.results(), on_ranks(parallel_sections)
    for name, value in expected.items():
        scale = np.abs(value).max()
        assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-12 * scale), name
