"""What is kept for the page of verification: each row has its test, and a change is noticed."""

import re
from pathlib import Path

import pytest
from verification import recorded as records

TESTS = Path(__file__).parents[1]


def functions_that_record():
    """Tests that take the fixture, as ``file::name``."""
    for file in sorted(TESTS.rglob("test_*.py")):
        if not re.search(r"recorded\.(values|defect|order)\(", file.read_text()):
            continue
        found = re.findall(r"^def (test_\w+)\(.*\brecorded\b", file.read_text(), flags=re.MULTILINE)
        yield from (f"{file.relative_to(TESTS)}::{name}" for name in found)


def test_each_row_has_its_test():
    written = set(functions_that_record())
    assert len(written) > 20
    assert {row["test"].partition("[")[0] for row in records.read().values()} == written


def test_most_quantities_are_on_three_meshes():
    rows = [row for row in records.read().values() if row["kind"] == "values"]
    assert sum(len(row["meshes"]) >= 3 for row in rows) >= 10


@pytest.fixture
def kept():
    row = {"problem": "p", "quantity": "q", "reference": 1.0, "source": "s"}
    found = records.Recorded("test", {}, writes=True)
    found.values(**row, meshes=(1, 2), values=[1.1, 1.025])
    found.defect("S", "symmetric", "on", claimed=True, measured=1e-15, bound=1e-13)
    found.defect("S", "energy", "on", claimed=False, measured=1e-4, bound=1e-6)
    found.order("S", "on", claimed=2, measured=2.01, steps=(1, 2), errors=[0.4, 0.1])
    return found.kept, row


def test_the_same_is_found(kept):
    rows, row = kept
    again = records.Recorded("test", rows, writes=False)
    again.values(**row, meshes=(1, 2), values=[1.1, 1.026])
    again.defect("S", "symmetric", "on", claimed=True, measured=4e-14, bound=1e-13)
    again.defect("S", "energy", "on", claimed=False, measured=1.5e-4, bound=1e-6)
    again.order("S", "on", claimed=2, measured=2.02, steps=(1, 2), errors=[0.4, 0.101])


@pytest.mark.parametrize(
    "call",
    [
        lambda r, row: r.values(**row, meshes=(1, 2), values=[1.1, 1.04]),
        lambda r, row: r.values(**row | {"reference": 1.001}, meshes=(1, 2), values=[1.1, 1.025]),
        lambda r, row: r.values(**row | {"source": "x"}, meshes=(1, 2), values=[1.1, 1.025]),
        lambda r, row: r.defect("S", "energy", "on", claimed=False, measured=4e-4, bound=1e-6),
        lambda r, row: r.defect("S", "energy", "on", claimed=False, measured=1e-7, bound=1e-6),
        lambda r, row: r.order("S", "on", claimed=2, measured=1.9, steps=(1, 2), errors=[0.4, 0.1]),
        lambda r, row: r.order("S", "on", claimed=2, measured=2, steps=(1, 2), errors=[0.8, 0.2]),
        lambda r, row: r.order("S", "on", claimed=2, measured=2, steps=(1, 4), errors=[0.4, 0.1]),
    ],
)
def test_a_change_is_noticed(kept, call):
    rows, row = kept
    with pytest.raises(AssertionError):
        call(records.Recorded("test", rows, writes=False), row)


def test_orders():
    assert records.orders((1, 2, 4), (1.0, 0.25, 1 / 16)) == pytest.approx([2, 2])
