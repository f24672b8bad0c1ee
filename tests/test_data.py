"""Numbers of all ranks."""

import numpy as np

from fdgeom.data import largest


class Ranks:
    """Two ranks, of which one is here."""

    def __init__(self, other):
        self.other = other

    def allgather(self, own):
        return [self.other, own]


def test_the_largest_value_of_ranks_is_no_number_if_one_is_none():
    assert largest(Ranks(2.0), np.array([1.0, -3.0])) == 3.0
    assert largest(Ranks(4.0), np.array([])) == 4.0
    assert np.isnan(largest(Ranks(0.0), np.array([1.0, np.nan])))
    assert np.isnan(largest(Ranks(np.nan), np.array([1.0])))
