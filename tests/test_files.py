"""What rank 0 does alone ends on all ranks in the same way."""

import pytest

from fdgeom.files import on_root


class Ranks:
    """One rank of a communicator; what rank 0 has sent is there for the others."""

    def __init__(self, rank, sent):
        self.rank, self._sent = rank, sent

    def bcast(self, value):
        if self.rank == 0:
            self._sent.append(value)
        return self._sent[-1]


def everywhere(action, error=ValueError):
    """What rank 0 and then rank 1 get, values or errors."""
    sent, found = [], []
    for rank in range(2):
        try:
            found.append(on_root(Ranks(rank, sent), action, error, "path = 'x'"))
        except BaseException as exc:
            found.append(exc)
    assert len(sent) == 1
    return found


def raising(error):
    def action():
        raise error

    return action


def test_value():
    assert everywhere(lambda: 3) == [3, 3]


@pytest.mark.parametrize("error", [OSError("no space"), GeneratorExit("no space")])
def test_errors(error):
    for found in everywhere(raising(error), OSError):
        assert isinstance(found, OSError)
        assert str(found) == "path = 'x': no space"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_stopped_on_rank_0(error):
    """The others do not wait: they stop too."""
    first, second = everywhere(raising(error))
    assert first is error
    assert isinstance(second, KeyboardInterrupt)
