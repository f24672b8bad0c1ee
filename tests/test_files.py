"""Files: what rank 0 does alone ends on all ranks in the same way; what is replaced stays whole."""

import pytest
from firedrake import COMM_SELF, IntervalMesh, SpatialCoordinate

import fdgeom as fg
from fdgeom.files import on_root, replacing, writable


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


def test_replaced_when_complete(tmp_path):
    """Until then, and after an error, the old file is there, and nothing else."""
    path = tmp_path / "a.txt"
    path.write_text("old")

    def stopped():
        with replacing(path, COMM_SELF) as new:
            new.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "old"
    with replacing(path, COMM_SELF) as new:
        new.write_text("whole")
        assert path.read_text() == "old"
    assert path.read_text() == "whole"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_leads_to_the_file_that_is_replaced(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "new folder" / "a.h5")
    found = writable("path", tmp_path / "link", COMM_SELF, replaced=True)
    assert found == tmp_path / "new folder" / "a.h5"
    assert writable("path", tmp_path / "link", COMM_SELF) == tmp_path / "link"


def test_a_section_that_cannot_be_written_leaves_the_file(tmp_path):
    path = tmp_path / "new folder" / "a.json"
    properties = {"density": 1.0, "youngs_modulus": 1e4, "poisson_ratio": 0.3}
    fg.Section.rectangle(0.1, 0.1, **properties).save(path)
    before = path.read_text()
    (s,) = SpatialCoordinate(IntervalMesh(2, 1.0))
    with pytest.raises(ValueError, match="cannot be written as numbers"):
        fg.Section.rectangle(0.1 + s, 0.1, **properties).save(path)
    assert path.read_text() == before
    with pytest.raises(TypeError, match="path must be the name of a file, not 3"):
        fg.Section.rectangle(0.1, 0.1, **properties).save(3)
