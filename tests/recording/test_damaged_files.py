"""Files that are damaged, cut off or of another format: one sentence that names the path, and no loss."""

import json
import os
import re

import numpy as np
import pytest

import fdgeom as fg
from fdgeom.recording.marks import Mark
from fdgeom.sections.outline import rectangle


def refused(read, path, why=""):
    """The message of the ValueError, which is one line, names the path and gives a reason."""
    with pytest.raises(ValueError, match=rf"^path = '{re.escape(str(path))}' .*{why}") as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))
    return message


# --- tables ---------------------------------------------------------------------------------------


def table(path):
    """A table with a number and a vector, and what it holds."""
    history = fg.History()
    for k in range(4):
        history.append(0.1 * k, k, {"energy": 1.0 + k / 3, "m": np.array([k, 2.0, -k / 7])})
    history.to_csv(path)
    return history


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text.replace("energy", "m[0]"), r"'m\[0\]' occurs twice, or is out of order"),
        (lambda text: text.replace("energy", "m"), r"'m\[0\]' occurs twice"),
        (lambda text: text.replace("m[2]", "energy"), "'energy' occurs twice"),
        (
            lambda text: text.replace("m[1]", "m[2]", 1),
            r"'m\[2\]' occurs twice, or is out of order",
        ),
        (lambda text: text.replace("m[1]", "m[7]"), r"'m\[7\]' occurs twice, or is out of order"),
        (lambda text: text.replace("t,step", "step,t"), "must begin with the columns t, step"),
        (lambda text: text.replace("0.1,1,", "nan,1,"), "a time is not finite"),
        (lambda text: text.replace("0.1,1,", "0.1,nan,"), "a step is not a whole number"),
        (lambda text: text.replace("0.1,1,", "0.1,1.5,"), "a step is not a whole number"),
        (lambda text: text.replace("0.1,1,", "0.1,,"), ""),
        (lambda text: text.replace("0.1,1,", "0.1,one,"), ""),
        (lambda text: text.replace("0.1,1,", "0.1,1,2,"), ""),
        (lambda text: "", "must begin with the columns"),
        (lambda text: "\x00" + text, ""),
        (lambda text: "<html>\n" + text, "must begin with the columns"),
    ],
)
def test_tables(tmp_path, damage, why):
    path = tmp_path / "a.csv"
    table(path)
    path.write_text(damage(path.read_text()))
    refused(fg.History.from_csv, path, why)


def test_a_table_that_is_cut_off(tmp_path):
    """Wherever the file ends, either whole rows are read, each as it was, or it is refused."""
    path = tmp_path / "a.csv"
    whole = table(path)
    text = path.read_bytes()
    ends = {i + 1 for i, byte in enumerate(text) if byte == ord("\n")}
    for end in range(len(text)):
        path.write_bytes(text[:end])
        if end not in ends:
            refused(fg.History.from_csv, path)
            continue
        found = fg.History.from_csv(path)
        assert np.array_equal(
            found["m"] if len(found) else whole["m"][:0], whole["m"][: len(found)]
        )


def test_no_table_at_all(tmp_path):
    path = tmp_path / "a.csv"
    refused(fg.History.from_csv, path)
    path.write_bytes(bytes(range(256)))
    refused(fg.History.from_csv, path)
    refused(fg.History.from_csv, tmp_path)
    with pytest.raises(TypeError, match="path must be the name of a file, not 0"):
        fg.History.from_csv(0)


# --- sections ---------------------------------------------------------------------------------------


def section():
    return fg.Section(np.diag([3.0, 5, 8, 100, 100, 100]), np.eye(6))


def edited(change):
    def edit(data):
        change(data)
        return data

    return edit


@pytest.mark.parametrize("along", [False, True])
def test_sections_without_a_part(tmp_path, along):
    """Whatever of a file is missing, of another kind or not finite."""
    path = tmp_path / "a.json"
    made = fg.Section.along([(0.0, section()), (1.0, section())]) if along else section()
    made.save(path)
    good = json.loads(path.read_text())
    places = [(good, name) for name in good if name != "order"]
    places += [(good["stations"][1], name) for name in good["stations"][1]] if along else []
    for where, name in places:
        value = where.pop(name)
        path.write_text(json.dumps(good))
        refused(fg.Section.load, path, "is not a section written by fdgeom")
        for other in (None, "text", [1.0], {}, float("nan"), [[0.0] * 6] * 6):
            where[name] = other
            path.write_text(json.dumps(good))
            refused(fg.Section.load, path, "is not a section written by fdgeom")
        where[name] = value
    path.write_text(json.dumps(good))
    assert np.array_equal(fg.Section.load(path).inertia if not along else np.eye(6), np.eye(6))


def test_sections_cut_off_or_of_another_format(tmp_path):
    path = tmp_path / "a.json"
    refused(fg.Section.load, path, "No such file")
    refused(fg.Section.load, tmp_path)
    section().save(path)
    text = path.read_bytes()
    for end in (0, 1, 10, len(text) // 2, len(text) - 1):
        path.write_bytes(text[:end])
        refused(fg.Section.load, path)
    for other in (b"[]", b"3", b"null", b"\xff\xfe\x00", b"[" * 100_000):
        path.write_bytes(other)
        refused(fg.Section.load, path)


# --- snapshots --------------------------------------------------------------------------------------


def snapshots(path):
    shapes = fg.Snapshots(fields=["moment"])
    s = np.linspace(0, 1, 5)
    for k in range(3):
        shapes.times.append(0.1 * k)
        shapes.positions.append(np.stack([s, k * s, 0 * s], axis=1))
        shapes.orientations.append(np.tile([1.0, 0, 0, 0], (5, 1)))
        shapes.values["moment"].append(s[1:])
    shapes.s, shapes.parts, shapes.outlines = s, [(0, 5)], [rectangle(0.1, 0.2)]
    shapes.marks, shapes.loaded = [Mark("clamped", 0)], [4]
    shapes.forces = [np.array([[0.0, 0, k]]) for k in range(3)]
    shapes.save(path)
    with np.load(path) as file:
        return dict(file)


def test_snapshots_without_a_part(tmp_path):
    path = tmp_path / "a.npz"
    good = snapshots(path)
    for name, array in good.items():
        rest = {n: a for n, a in good.items() if n != name}
        if not name.startswith("field"):
            np.savez(path, **rest)
            refused(fg.Snapshots.load, path, f"holds no snapshots: '{name}' is missing")
        flat = array.reshape(-1)
        # More arc lengths than nodes are those of the ground of an assembly.
        size = np.delete(flat, -1) if name == "s" else np.append(flat, 1.0)
        others = [size, np.array("text"), np.full(array.shape, np.nan)]
        for other in [*others, array.reshape(*array.shape, 1)]:
            np.savez(path, **rest, **{name: other})
            refused(fg.Snapshots.load, path, "holds no snapshots")


def test_snapshots_of_other_nodes(tmp_path):
    """A mark or a force at a node that is not there, and a mark of no kind."""
    path = tmp_path / "a.npz"
    good = snapshots(path)
    marks = good["marks"]
    for name, bad in (
        ("loaded", np.array([5])),
        ("loaded", np.array([-1])),
        ("marks", marks + np.array([0, 5, 0, 0, 0, 0])),
        ("marks", marks + np.array([90, 0, 0, 0, 0, 0])),
        ("marks", marks + np.array([-1, 0, 0, 0, 0, 0])),
    ):
        np.savez(path, **good | {name: bad})
        refused(fg.Snapshots.load, path, "holds no snapshots")


def test_snapshots_cut_off_or_of_another_format(tmp_path):
    path = tmp_path / "a.npz"
    refused(fg.Snapshots.load, path)
    refused(fg.Snapshots.load, tmp_path)
    snapshots(path)
    data = path.read_bytes()
    for end in (0, 3, 30, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:end])
        refused(fg.Snapshots.load, path)
    for at in (0, 1, 2):
        path.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        refused(fg.Snapshots.load, path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    refused(fg.Snapshots.load, path)


def test_snapshots_execute_nothing(tmp_path):
    """An array of objects is pickled: it is not read."""

    class Harmful:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    path = tmp_path / "a.npz"
    good = snapshots(path)
    np.savez(path, **good | {"times": np.array([Harmful()], dtype=object)})
    refused(fg.Snapshots.load, path)
    assert not (tmp_path / "harm").exists()


def test_shapes_that_cannot_be_written(tmp_path):
    """Folders are made; where that is impossible, or a folder has the name, the message says so."""
    shapes = fg.Snapshots()
    shapes.times, shapes.s, shapes.parts = [0.0], np.arange(2.0), [(0, 2)]
    shapes.positions = [np.array([[0.0, 0, 0], [1, 0, 0]])]
    (tmp_path / "file").write_text("")
    for ending, save in (("npz", shapes.save), ("html", lambda path: fg.save_scene(path, shapes))):
        save(tmp_path / "new" / f"shapes.{ending}")
        assert (tmp_path / "new" / f"shapes.{ending}").stat().st_size > 0
        (tmp_path / f"folder.{ending}").mkdir()
        refused(save, tmp_path / f"folder.{ending}", "cannot be written: Is a directory")
        refused(save, tmp_path / "file" / f"shapes.{ending}", "cannot be written")
