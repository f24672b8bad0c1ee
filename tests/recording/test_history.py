"""Samples as arrays and as text: what is read is what was sampled, bit for bit."""

import csv

import numpy as np
import pytest
from recording_fakes import Oscillators, OscillatorStepper

from fdgeom.recording import CSVFile, Energy, History, run


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


def test_repr_tells_the_names_and_the_span(history):
    text = repr(history)
    assert "5 samples" in text
    assert "steps 0 ... 12" in text
    assert "momentum" in text
    assert repr(History()) == "History(no samples)"


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
