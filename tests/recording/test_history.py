"""Samples as arrays and as text: what is read is what was sampled, bit for bit."""

import csv
import re
import sys
import tracemalloc

import numpy as np
import pytest
from firedrake import dx
from recording_fakes import Oscillators, OscillatorStepper

from fdgeom.recording import CSVFile, Energy, History, plot_energy, run


@pytest.fixture
def history():
    rng = np.random.default_rng(1)
    made = History()
    for i in range(5):
        made.append(0.1 * i, 3 * i, {"energy": rng.normal(), "momentum": rng.normal(size=3)})
    return made


def test_arrays(history):
    rng = np.random.default_rng(1)
    samples = [(rng.normal(), rng.normal(size=3)) for _ in range(5)]
    assert history["energy"].tolist() == [a for a, _ in samples]
    assert np.array_equal(history["momentum"], [b for _, b in samples])
    assert history.step.tolist() == [0, 3, 6, 9, 12]
    assert history.names == ("energy", "momentum")
    assert len(history) == 5
    expected = max(np.abs(b - samples[0][1]).max() for _, b in samples)
    assert history.deviation("momentum") == expected
    with pytest.raises(KeyError, match="energy, momentum"):
        history["mass"]


def test_samples_have_one_shape(history):
    """Of matrices too; a sample of another shape or name leaves the history as it is."""
    before = history["momentum"]
    for other in ({"energy": 1.0, "momentum": np.zeros(2)}, {"energy": 1.0, "mass": np.zeros(3)}):
        with pytest.raises(ValueError, match="sample has the columns .*, expected"):
            history.append(1.0, 15, other)
    with pytest.raises(TypeError):
        history.append(1.0, 15, {"energy": "a", "momentum": np.zeros(3)})
    assert np.array_equal(history["momentum"], before)
    made = History()
    for k in range(3):
        made.append(k, k, {"spin": k * np.eye(3)})
    assert np.array_equal(made["spin"], np.arange(3.0)[:, None, None] * np.eye(3))
    # As many numbers as before are not enough.
    made = History()
    made.append(0.0, 0, {"one": 1.0, "two": [2.0, 3.0]})
    with pytest.raises(ValueError, match=r"columns \['one\[0\]', 'one\[1\]', 'two'\], expected"):
        made.append(1.0, 1, {"one": [1.0, 2.0], "two": 3.0})


def test_a_name_that_tables_use_for_components_is_refused(tmp_path):
    stepper = OscillatorStepper(Oscillators())
    for name in ("q[0]", "q[12]"):
        with pytest.raises(ValueError, match=re.escape(f"a monitor has the name '{name}'")):
            run(stepper, steps=1, monitors=(name, stepper.system.q * dx))
    assert stepper.pieces == []
    with pytest.raises(ValueError, match="does not end in a number in brackets"):
        History().append(0.0, 0, {"q[2]": 1.0})
    made = History()
    made.append(0.0, 0, {"q[a]": 1.0, "[0]q": 2.0})
    made.to_csv(tmp_path / "a.csv")
    assert History.from_csv(tmp_path / "a.csv")["[0]q"].tolist() == [2.0]


class Growing:
    """A monitor of a vector that gets longer."""

    def bind(self, system):
        self.size = 0

    def sample(self):
        self.size += 1
        return {"tip": np.zeros(self.size)}


def test_rows_of_a_table_have_one_length(tmp_path):
    """Also where the history keeps no sample."""
    path = tmp_path / "a.csv"
    with pytest.raises(ValueError, match="sample has the columns .*, expected"):
        run(OscillatorStepper(Oscillators()), steps=3, monitors=Growing(), csv=path, keep=0)
    assert path.read_text().splitlines() == ["t,step,tip[0]"]


class Restless:
    """A monitor whose names come in another order at each sample, or change."""

    def __init__(self, change=False):
        self.change = change

    def bind(self, system):
        self.count = 0

    def sample(self):
        self.count += 1
        values = {"first": 1.0, "second": 2.0}
        if self.change and self.count > 2:
            values = {"first": 1.0, "third": 3.0}
        return dict(sorted(values.items(), reverse=self.count % 2 == 0))


def test_values_belong_to_their_names_in_any_order(tmp_path):
    stepper = OscillatorStepper(Oscillators())
    recorded = run(stepper, steps=3, monitors=Restless(), csv=tmp_path / "a.csv")
    for found in (recorded, History.from_csv(tmp_path / "a.csv")):
        assert found["first"].tolist() == [1.0] * 4
        assert found["second"].tolist() == [2.0] * 4
    made = History()
    made.append(0.0, 0, {"first": 1.0, "second": 2.0})
    made.append(1.0, 1, {"second": 2.0, "first": 1.0})
    assert made["first"].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"sample has the columns .*third.*, expected .*second"):
        run(stepper, steps=3, monitors=Restless(change=True), csv=tmp_path / "b.csv", keep=0)


def test_repr_tells_the_names_and_the_span(history):
    text = repr(history)
    assert "5 samples" in text
    assert "steps 0 ... 12" in text
    assert "momentum" in text
    assert repr(History()) == "History(no samples)"


def told(history, name):
    """The line of a quantity in a printed history."""
    (line,) = (line for line in str(history).splitlines() if line.startswith(f"  {name}:"))
    return line.removesuffix(")")


def test_printed_changes_are_relative_and_only_what_is_conserved_deviates():
    made = History()
    made.conserved = ("energy", "linear momentum")
    for k in range(3):
        sample = {"energy": 4.0 + k, "linear_momentum": np.array([8.0, 1.0 - k, 0.0])}
        made.append(0.5 * k, k, sample | {"kinetic_energy": 2.0 + k / 2, "tip": float(k)})
    assert told(made, "energy") == "  energy: 6. at the end, relative deviation 5.00e-01"
    assert told(made, "kinetic_energy").endswith("3. at the end, relative change 5.00e-01")
    # The largest component of the change over that of the first vector.
    assert told(made, "linear_momentum").endswith("at the end, relative deviation 2.50e-01")
    # From zero there is no ratio.
    assert told(made, "tip") == "  tip: 2. at the end, change 2.00e+00"


def test_units_stand_at_printed_numbers_and_in_plots():
    made = History()
    for k in range(2):
        made.append(0.5 * k, k, {"energy": 4.0, "left_force": np.zeros(3), "tip": 0.1 * k})
    made.units = {"time": "ms", "energy": "mJ", "force": "mN", "tip": "mm"}
    assert "t = 0 ... 0.5 ms" in str(made)
    assert "4. mJ at the end" in told(made, "energy")
    assert told(made, "left_force").endswith("[0. 0. 0.] mN at the end, change 0.00e+00 mN")
    assert told(made, "tip").endswith("0.1 mm at the end, change 1.00e-01 mm")
    ax = plot_energy(made)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time t [ms]", "energy [mJ]")
    made.units = "SI"
    assert "4. J at the end" in told(made, "energy")


def test_a_run_tells_its_history_units_and_what_is_conserved():
    stepper = OscillatorStepper(Oscillators())
    stepper.conserves = ("energy",)
    found = run(stepper, steps=2, monitors=Energy(), units="SI")
    assert " J at the end, relative deviation" in told(found, "energy")
    assert " J at the end, relative change" in told(found, "potential_energy")
    with pytest.raises(ValueError, match="units: 'enrgy' .* did you mean 'energy'"):
        run(stepper, steps=2, monitors=Energy(), units={"enrgy": "J"})


def test_a_table_of_pandas_is_the_history(history):
    pandas = pytest.importorskip("pandas")
    table = history.to_pandas()
    assert list(table.columns) == ["step", "energy", "momentum[0]", "momentum[1]", "momentum[2]"]
    assert table.index.name == "t"
    assert np.array_equal(table.index, history.t)
    assert table["step"].dtype.kind == "i"
    assert np.array_equal(table[[f"momentum[{k}]" for k in range(3)]], history["momentum"])
    # The table owns its numbers.
    table.loc[:, "energy"] = 0.0
    assert np.all(history["energy"] != 0.0)
    assert isinstance(History().to_pandas(), pandas.DataFrame)


def test_missing_pandas_is_told(history, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=re.escape('pip install "fdgeom[pandas]"')):
        history.to_pandas()


def test_csv_round_trip_is_exact(history, tmp_path):
    history.to_csv(tmp_path / "a.csv")
    again = History.from_csv(tmp_path / "a.csv")
    assert again.names == history.names
    for name in history.names:
        assert np.array_equal(again[name], history[name])
    assert np.array_equal(again.t, history.t)
    assert np.array_equal(again.step, history.step)
    with (tmp_path / "a.csv").open() as file:
        assert next(csv.reader(file)) == (
            ["t", "step", "energy", "momentum[0]", "momentum[1]", "momentum[2]"]
        )


def test_unreadable_tables_are_refused(tmp_path):
    for text in ("", "a,b\n1,2\n", "t,step,x\n1,2\n", "t,step\n1,one\n"):
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(ValueError, match="path"):
            History.from_csv(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="path"):
        History.from_csv(tmp_path / "missing.csv")
    with pytest.raises(ValueError, match="path"):
        History().to_csv("/dev/null/a.csv")


def test_table_written_during_a_run_equals_its_history(tmp_path):
    history = run(
        OscillatorStepper(Oscillators()),
        steps=9,
        every=4,
        monitors=Energy(),
        csv=tmp_path / "a.csv",
    )
    history.to_csv(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_rows_are_on_disk_while_the_run_goes_on(tmp_path):
    rows = []

    class Reader:
        every = 1

        def open(self, stepper):
            pass

        def write(self, stepper):
            rows.append(len((tmp_path / "a.csv").read_text().splitlines()) - 1)

        def close(self):
            pass

    stepper = OscillatorStepper(Oscillators())
    run(stepper, steps=3, monitors=Energy(), output=Reader(), csv=tmp_path / "a.csv")
    assert rows == [1, 2, 3, 4]


def test_a_history_takes_eight_bytes_a_number():
    made, sample = History(), {"energy": 1.0, "momentum": np.zeros(3)}
    tracemalloc.start()
    for i in range(200_000):
        made.append(0.1 * i, i, sample)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Six numbers; the last block is half empty at the worst.
    assert size < 1.5 * 8 * 6 * len(made)
    assert made.step[-1] == 199_999
    assert made["momentum"].shape == (200_000, 3)


def test_only_some_samples_are_kept(tmp_path):
    def run_with(keep):
        stepper = OscillatorStepper(Oscillators())
        return run(
            stepper, steps=23, every=2, keep=keep, monitors=Energy(), csv=tmp_path / f"{keep}.csv"
        )

    whole = run_with(1)
    assert whole.step.tolist() == [*range(0, 23, 2), 23]
    assert run_with(5).step.tolist() == [0, 10, 20, 23]
    assert len(run_with(0)) == 0
    tables = [(tmp_path / f"{keep}.csv").read_text() for keep in (1, 5, 0)]
    assert tables[0] == tables[1] == tables[2]
    with pytest.raises(ValueError, match="keep must be"):
        run(OscillatorStepper(Oscillators()), steps=1, keep=-1)


def test_appending_leaves_what_is_there(tmp_path):
    """Nothing before the cut is written again, and nothing at all if there is nothing to cut."""
    path = tmp_path / "a.csv"
    stepper = OscillatorStepper(Oscillators())
    run(stepper, steps=50, monitors=Energy(), csv=path)
    # As a hand, or another program, might have left it.
    lines = path.read_text().splitlines()
    path.write_bytes(b"\n".join(line.encode() for line in lines) + b"\n")
    before, node, names = path.read_bytes(), path.stat().st_ino, lines[0].split(",")[2:]
    late = OscillatorStepper(Oscillators())
    for step in (0, 1, 7, 49, 50):
        path.write_bytes(before)
        late.t, late.steps = 0.1 * step, step
        CSVFile(path, append=True).open(late.system.mesh.comm, dict.fromkeys(names, 0.0), step)
        assert path.read_bytes() == b"".join(before.splitlines(keepends=True)[: step + 1])
        assert path.stat().st_ino == node
    path.write_bytes(before)
    late.t, late.steps = 5.1, 51
    run(late, steps=2, monitors=Energy(), csv=CSVFile(path, append=True))
    assert path.read_bytes().startswith(before)
    assert History.from_csv(path).step.tolist() == list(range(54))
    # What the machine left when its power went.
    path.write_bytes(before + b"\0" * 40)
    run(late, steps=1, monitors=Energy(), csv=CSVFile(path, append=True))
    assert History.from_csv(path).step.tolist() == [*range(51), 53, 54]


def test_appending_to_a_table_without_monitors(tmp_path):
    path, stepper = tmp_path / "a.csv", OscillatorStepper(Oscillators())
    run(stepper, steps=2, csv=path)
    run(stepper, steps=2, csv=CSVFile(path, append=True))
    assert History.from_csv(path).step.tolist() == [0, 2, 4]


class Summing:
    """A monitor that counts steps."""

    def bind(self, system):
        self.count = 0

    def step(self):
        self.count += 1

    def sample(self):
        return {"count": self.count}


def test_appending_warns_of_sums_that_begin_anew(tmp_path, recwarn):
    path, stepper = tmp_path / "a.csv", OscillatorStepper(Oscillators())
    for _ in range(2):  # the second time there is nothing before its first step
        stepper.steps = 0
        run(stepper, steps=2, monitors=Summing(), csv=CSVFile(path, append=True))
    run(stepper, steps=2, monitors=Summing())
    assert stepper.steps == 4
    assert not recwarn.list
    with pytest.warns(UserWarning, match="a.csv' has rows of an earlier run, and Summing begins"):
        run(stepper, steps=2, monitors=Summing(), csv=CSVFile(path, append=True))
    # Steps 0 to 2 of the first run, without the two that wrote no table.
    assert History.from_csv(path)["count"].tolist() == [0, 1, 2, 0, 1, 2]


def test_appending_replaces_what_the_resumed_run_repeats(tmp_path):
    path = tmp_path / "a.csv"
    whole = run(OscillatorStepper(Oscillators()), steps=12, every=2, monitors=Energy())
    stepper = OscillatorStepper(Oscillators())
    run(stepper, steps=6, every=2, monitors=Energy(), csv=path)
    # A run killed two samples after its checkpoint, in the middle of a row.
    with path.open("a") as file:
        file.write("9,8,1,1,1\n10,10")
    run(stepper, steps=6, every=2, monitors=Energy(), csv=CSVFile(path, append=True))
    again = History.from_csv(path)
    assert again.step.tolist() == whole.step.tolist()
    assert np.array_equal(again["energy"], whole["energy"])
    with pytest.raises(ValueError, match="csv.*columns"):
        run(stepper, steps=1, csv=CSVFile(path, append=True))
