"""What several ranks record is what one records."""

from pathlib import Path

import numpy as np
import pytest
from ranks import run_on
from recording_fakes import read_vtu

pytestmark = pytest.mark.parallel
BOTH = ["one", "several"]


def mpiexec(ranks, case, folder):
    """Run a function of parallel_cases.py on so many ranks; fail with what it printed."""
    script = Path(__file__).with_name("parallel_cases.py")
    done = run_on(ranks, script, case, folder, timeout=300)
    if done.returncode:
        raise AssertionError(f"{case} on {ranks} ranks failed:\n{done.stdout}\n{done.stderr}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, several):
    path = tmp_path_factory.mktemp("ranks")
    mpiexec(several, "write", path)
    mpiexec(1, "write,resume_all", path)
    mpiexec(several, "resume_all,fail", path)
    # The scripts name folders and files by the number of ranks.
    (path / "one").symlink_to("1")
    (path / "several").symlink_to(str(several))
    return path


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("written", BOTH)
@pytest.mark.parametrize("read", BOTH)
def test_a_file_can_be_resumed_on_another_number_of_ranks(folder, degree, written, read):
    whole = np.load(folder / written / f"whole{degree}.npz")
    size = (folder / read).readlink()
    resumed = np.load(folder / written / f"resumed{degree}_{size}.npz")
    for name in whole:
        # Each node is stepped by itself, so no sum depends on the ranks: equal bit for bit.
        assert np.array_equal(whole[name], resumed[name]), name


def test_what_made_a_file_is_the_same_on_any_number_of_ranks(folder):
    one, more = ((folder / ranks / "fingerprint.json").read_text() for ranks in BOTH)
    assert one == more
    assert one.count("a formula") >= 5


def test_tables_and_shapes(folder):
    shapes = [np.load(folder / ranks / "shapes.npy") for ranks in BOTH]
    # Round-off of numbers of size 1 in ten steps
    assert np.allclose(*shapes, rtol=0, atol=1e-14)
    tables = [np.loadtxt(folder / ranks / "a.csv", delimiter=",", skiprows=1) for ranks in BOTH]
    # Sums over cells in another order: round-off of numbers of size 3
    assert np.allclose(*tables, rtol=0, atol=2e-14)
    for ranks in BOTH:
        assert (folder / ranks / "a.csv").read_text() == (folder / ranks / "b.csv").read_text()


@pytest.mark.parametrize("name", ["beam", "box"])
def test_outlines_supports_and_forces(folder, name):
    one, more = (np.load(folder / ranks / f"{name}.npz") for ranks in BOTH)
    assert one.keys() == more.keys()
    for key in one:
        assert np.allclose(one[key], more[key], rtol=0, atol=1e-12), key
    assert len(one["marks"]) == 1
    if name == "beam":
        assert one["forces"] == pytest.approx(np.array([[[np.sin(9 / 7), 3 / 7, 0.7]]]), rel=1e-6)
    else:
        assert np.unique(one["outlines"][:, 2]).tolist() == [0, 1]


def test_curves(folder):
    pytest.importorskip("vtkmodules")
    values = []
    for file in ("one/rod/rod_2.vtu", "several/rod/rod_2.pvtu"):
        points, fields, cells = read_vtu(folder / file)
        corners = np.concatenate([points[:, :1], points, *(np.c_[f] for f in fields.values())], 1)
        corners = corners[cells]
        # Cells and their ends in the order of x, which grows along the rod.
        flip = corners[:, 0, 0] > corners[:, 1, 0]
        corners[flip] = corners[flip][:, ::-1]
        values.append(corners[np.argsort(corners[:, 0, 0])])
    assert values[0].shape == (9, 2, 20)
    assert np.allclose(*values, rtol=0, atol=1e-14)
