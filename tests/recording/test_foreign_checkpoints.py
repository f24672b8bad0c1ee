"""Restart files from elsewhere: damaged ones are refused in a sentence, and none executes anything."""

import os
import pickle
import re
import warnings

import h5py
import numpy as np
import pytest
from firedrake import CheckpointFile
from recording_fakes import Oscillators, OscillatorStepper, state_of

from fdgeom.recording import resume, save


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a restart file."""
    path = tmp_path_factory.mktemp("good") / "a.h5"
    stepper = OscillatorStepper(Oscillators())
    stepper.advance(2)
    save(stepper, path)
    return path.read_bytes()


def refused(path, *why):
    """The message: one line that names the path; the stepper stays as it was."""
    stepper = OscillatorStepper(Oscillators())
    before = state_of(stepper.system)
    beginning = rf"^path = '{re.escape(str(path))}' cannot be resumed from: "
    with pytest.raises(ValueError, match=beginning) as caught:
        resume(stepper, path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))
    assert stepper.steps == 0
    assert all(np.array_equal(before[n], v) for n, v in state_of(stepper.system).items())
    assert all(w in message for w in why), message
    return message


def taken(path):
    """Whether a file is taken, with the right state; else it is refused as above."""
    stepper, right = OscillatorStepper(Oscillators()), OscillatorStepper(Oscillators())
    right.advance(2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            resume(stepper, path)
    except ValueError:
        refused(path)
        return False
    assert stepper.steps == 2
    assert all(
        np.array_equal(state_of(right.system)[n], v) for n, v in state_of(stepper.system).items()
    )
    return True


def everything(file):
    """Names of all objects but the root, and (object, attribute) of all attributes."""
    names, attributes = [], [("/", name) for name in file.attrs]

    def visit(name, thing):
        names.append(name)
        attributes.extend((name, attribute) for attribute in thing.attrs)

    file.visititems(visit)
    return names, attributes


def of(good, path):
    path.write_bytes(good)
    with h5py.File(path, "r") as file:
        return everything(file)


def test_each_attribute_and_object_that_is_missing(good, tmp_path):
    """Nothing can be missing without notice, but for who wrote the file."""
    path = tmp_path / "a.h5"
    names, attributes = of(good, path)
    assert len(names) >= 6
    assert len(attributes) >= 7
    for thing, attribute in attributes:
        path.write_bytes(good)
        with h5py.File(path, "r+") as file:
            del file[thing].attrs[attribute]
        if attribute == "writer":
            assert taken(path)
        else:
            refused(path)
    for name in names:
        path.write_bytes(good)
        with h5py.File(path, "r+") as file:
            del file[name]
        refused(path)
    path.write_bytes(good)
    assert taken(path)


@pytest.mark.parametrize("other", ["text", "", b"\x80", 3.5, np.nan, [1.0, 2.0], np.inf])
def test_attributes_of_another_kind(good, tmp_path, other):
    path = tmp_path / "a.h5"
    _, attributes = of(good, path)
    for thing, attribute in attributes:
        path.write_bytes(good)
        with h5py.File(path, "r+") as file:
            file[thing].attrs[attribute] = other
        # A time is as good as another, if it is a number.
        if attribute == "writer" or (attribute in ("begin", "last_dt", "dt") and other == 3.5):
            continue
        refused(path)


CHANGES = [
    lambda a: a[:-1],
    lambda a: np.append(a, a[-1:], 0),
    lambda a: a[..., None],
    lambda a: a[0],
    lambda a: a[:0],
    lambda a: a.astype(float) * np.nan,
    lambda a: a.astype(float) + 0.1,
    lambda a: a.astype(float) + 1e9,
    lambda a: np.full(a.shape, b"text"),
]


def test_values_of_another_shape_or_kind(good, tmp_path):
    """Of midpoints, points, values, and of the texts that describe them."""
    path = tmp_path / "a.h5"
    names, _ = of(good, path)
    with h5py.File(path, "r") as file:
        sets = {n: file[n][...] for n in names if isinstance(file[n], h5py.Dataset)}
    for name, values in sets.items():
        for change in CHANGES:
            if values.dtype == np.uint8 and change(values).tobytes() == values.tobytes():
                continue  # a text is the same in another shape
            path.write_bytes(good)
            with h5py.File(path, "r+") as file:
                del file[name]
                file[name] = change(values)
            refused(path)
        path.write_bytes(good)
        with h5py.File(path, "r+") as file:
            del file[name]
            file.create_group(name)
        refused(path)


def test_descriptions_that_are_json_and_something_else(good, tmp_path):
    path = tmp_path / "a.h5"
    for name in ("identity", "functions"):
        for text in ("{}", "[]", "3", '{"q": 3}', '{"q": {}}', '{"method": {}}', "[" * 100_000):
            path.write_bytes(good)
            with h5py.File(path, "r+") as file:
                del file["fdgeom"][name]
                file["fdgeom"][name] = np.frombuffer(text.encode(), dtype=np.uint8)
            refused(path)


def test_cut_off(good, tmp_path):
    path = tmp_path / "a.h5"
    for end in (0, 1, 8, 100, len(good) // 4, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:end])
        refused(path, "it is damaged or was not written by fdgeom")


def test_flipped_bits(good, tmp_path):
    """Anywhere: the state is that which was written, or the file is refused."""
    path = tmp_path / "a.h5"
    places = {*range(64), *np.random.default_rng(0).integers(len(good), size=100).tolist()}
    found = []
    for at in places:
        path.write_bytes(good[:at] + bytes([good[at] ^ 255]) + good[at + 1 :])
        found.append(taken(path))
    assert not all(found)


def test_no_file(tmp_path):
    refused(tmp_path / "none.h5", "there is no such file")
    refused(tmp_path, "it is a folder, a device or a pipe")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "it is a folder, a device or a pipe")


def test_the_format_before_this_one(good, tmp_path):
    path = tmp_path / "a.h5"
    path.write_bytes(good)
    with h5py.File(path, "r+") as file:
        file["fdgeom"].attrs["format"] = 2
    refused(path, "it has the format 2, and this version of fdgeom reads 5 only")


# --- files that would execute something ---------------------------------------------------------------


def harmful(folder):
    """A pickle and a text that make a folder when they are read, in all the ways of storing them."""

    class Harmful:
        def __reduce__(self):
            return os.mkdir, (str(folder),)

    data = pickle.dumps({"a": Harmful()})
    yield np.void(pickle.dumps(Harmful()))
    yield np.void(data)
    yield np.frombuffer(data, dtype=np.uint8)
    yield np.bytes_(data)
    yield f"__import__('os').mkdir({str(folder)!r})"


def test_nothing_is_executed(good, tmp_path):
    """In place of each attribute and of each set of values."""
    path, harm = tmp_path / "a.h5", tmp_path / "harm"
    names, attributes = of(good, path)
    for value in harmful(harm):
        for thing, attribute in attributes:
            path.write_bytes(good)
            with h5py.File(path, "r+") as file:
                file[thing].attrs[attribute] = value
            if attribute != "writer":  # a name, whatever it is
                refused(path)
            assert not harm.exists(), (thing, attribute, value)
        for name in names:
            path.write_bytes(good)
            with h5py.File(path, "r+") as file:
                del file[name]
                file[name] = value
            refused(path)
            assert not harm.exists(), (name, value)


def test_files_of_firedrake(tmp_path):
    """Firedrake would execute what is in one; it is none of fdgeom's, and not opened by Firedrake."""
    path, harm = tmp_path / "a.h5", tmp_path / "harm"
    q = Oscillators().q
    for value in harmful(harm):
        with CheckpointFile(str(path), "w") as file:
            file.save_mesh(q.function_space().mesh())
            file.save_function(q)
        with h5py.File(path, "r+") as file:
            _, attributes = everything(file)
            for thing, name in attributes:
                if name.endswith(("_map", "_repr")):
                    file[thing].attrs[name] = value
        refused(path, "it is damaged or was not written by fdgeom")
        assert not harm.exists()
