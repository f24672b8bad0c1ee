"""Restart files (HDF5), which a run writes and a later one resumes from."""

import json
import operator
import os
import warnings
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
from firedrake import Function
from pyadjoint import annotate_tape

from fdgeom.clock import Clock
from fdgeom.errors import NotFinite
from fdgeom.execution.options import reason
from fdgeom.files import as_path, on_root, replacing, writable
from fdgeom.forms import is_real
from fdgeom.interrupt import INT, delayed, shielded
from fdgeom.messages import Described, brief, format_value
from fdgeom.taping import not_taped
from fdgeom.validation import number, whole

from .stepper_fingerprint import KINDS, bits, differences, fingerprint
from .transfer import Transfer, cellwise, places_of, points_of, rows_of, scalar_element

FORMAT = 5  # in which fields of the system have places
GROUP = "/fdgeom"
#: Attributes of the clock in a file.
CLOCK = ("begin", "dt", "last_dt", "first", "steps", "last_change")


class Checkpoint(Described):
    """Restart file for `run(checkpoint=...)`, read by `resume`.

    Parameters
    ----------
    path : path-like
        Name of the HDF5 file; a missing folder is made, and the run raises ``ValueError`` if the
        file cannot be written.
    every : int, optional
        Number of steps between two writes; without it the file is written only when the run ends.

    Notes
    -----
    Each write goes to a temporary file that then replaces the old one, so a run killed while writing
    leaves the previous checkpoint. If the path is a symbolic link, the link stays and its target is
    replaced. If another run has written the file meanwhile, it stays and the run ends with a
    ValueError.
    """

    _shown = ("path", "every")

    #: The writer of the file when this run last read it, "" if there was no file; None before.
    _writer: str | None = None

    def __init__(self, path: str | os.PathLike, every: int | None = None) -> None:
        self.path = as_path("path", path)
        self.every = None if every is None else whole("every", every, least=1)

    def open(self, stepper) -> None:
        """Check that the file can be written; ValueError naming `path` if not."""
        comm = stepper.system.mesh.comm
        writable("path", self.path, comm, replaced=True)
        self._writer = _writer_of(self.path, comm)

    def write(self, stepper, *, as_it_is: bool = False) -> None:
        """Write the present state; ValueError if another run has written to the path. ``as_it_is``:
        also if no step can start from it.
        """
        comm = stepper.system.mesh.comm
        if self._writer is not None and _writer_of(self.path, comm) not in ("", self._writer):
            raise ValueError(
                f"checkpoint = '{self.path}' was written by another run meanwhile: give each run a "
                "path of its own"
            )
        (_save if as_it_is else save)(stepper, self.path)
        self._writer = _writer_of(self.path, comm)

    def close(self) -> None:
        """Do nothing: the file is closed after each write."""


def save(stepper, path: str | os.PathLike) -> None:
    """Write the state of `stepper` to a restart file (HDF5).

    The file holds the system's functions (and the stepper's, where it has a method `functions()` of
    its own) cell by cell, the clock, and the method, the system and the numbers in them.

    Parameters
    ----------
    stepper : Stepper
        Its system's functions and its clock are written.
    path : path-like
        Name of the HDF5 file, replaced in one move when the new one is complete.

    Raises
    ------
    ValueError
        Naming `path` when it cannot be written; for extruded meshes; if no step can start from the
        state.
    StepFailed
        When a value is not finite; the old file is kept.

    Notes
    -----
    Fields that depend on values set by hand are computed first, as before a step, by the stepper's
    ``prepare()`` if it has one; not while pyadjoint records.
    """
    check_stepper(stepper)
    if stepper.system.mesh.extruded:
        raise ValueError(
            "restart files of extruded meshes are not available: write the Functions of "
            "stepper.system.functions() with Firedrake's CheckpointFile"
        )
    prepare(stepper)
    _save(stepper, path)


def _save(stepper, path: str | os.PathLike) -> None:
    mesh, comm = stepper.system.mesh, stepper.system.mesh.comm
    functions = _functions(stepper)
    _require_finite(functions, stepper)
    # Tables with a row for each cell, of which this rank has the rows of its cells.
    spaces = {name: f.function_space() for name, f in functions.items() if not is_real(f)}
    points = {_points_name(space): space for space in spaces.values()}
    tables = {"places": places_of(mesh)} | {name: points_of(V) for name, V in points.items()}
    tables |= {f"values of {name}": cellwise(functions[name]) for name in spaces}
    own, total = rows_of(mesh)
    size = sum(table.nbytes for table in tables.values())
    path = writable("path", path, comm, replaced=True, size=size)
    described = _description(functions, mesh)
    for name, f in functions.items():
        described[name]["bits"] = bits(f.dat.data_ro, f)
    texts = {"identity": fingerprint(stepper), "functions": described}
    dt, steps = float(stepper.dt), int(stepper.steps)
    clock = getattr(stepper, "clock", Clock(float(stepper.t), dt, dt, steps, steps))
    together = {"driver": "mpio", "comm": comm} if comm.size > 1 else {}
    try:
        with replacing(path, comm) as temporary, h5py.File(temporary, "w", **together) as file:
            group = file.create_group(GROUP)
            group.attrs.update({name: getattr(clock, name) for name in CLOCK})
            group.attrs.update(format=FORMAT, writer=temporary.name)
            group.attrs["changed"] = json.dumps(clock.changed)
            for name, text in texts.items():
                group[name] = np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)
            for name, f in functions.items():
                if is_real(f):
                    group[f"values of {name}"] = f.dat.data_ro
            for name, table in tables.items():
                group.create_dataset(name, (total, *table.shape[1:]), float)[own] = table
    except (RuntimeError, OSError) as exc:
        raise ValueError(
            f"path = '{path}' cannot be written: is the disk full? (HDF5: {reason(exc)})"
        ) from exc


def check_stepper(value: object) -> None:
    """TypeError unless `value` can be run: has a system, a clock and `advance`."""
    if isinstance(value, type) or not all(
        hasattr(value, name) for name in ("system", "t", "dt", "steps", "advance")
    ):
        raise TypeError(
            "stepper must be a stepper of a system, such as ImplicitMidpoint(system, dt), not "
            f"{format_value(value)}"
        )


def prepare(stepper) -> None:
    """Update what follows from values that were set by hand, as the next step would."""
    # While pyadjoint records, the next step does so on the tape.
    if hasattr(stepper, "prepare") and not annotate_tape():
        stepper.prepare()


def _require_finite(functions: dict[str, Function], stepper) -> None:
    """Raise NotFinite, on all ranks, naming the first Function with a NaN or infinite value."""
    local = [not np.all(np.isfinite(f.dat.data_ro)) for f in functions.values()]
    anywhere = np.any(stepper.system.mesh.comm.allgather(local), axis=0)
    for name, wrong in zip(functions, anywhere, strict=True):
        if wrong:
            text = f"'{name}' has values that are not finite"
            raise NotFinite(text, t=stepper.t, step=stepper.steps)


def _points_name(space) -> str:
    return f"points of {scalar_element(space)}"


@not_taped
def resume(stepper, path: str | os.PathLike, *, strict: bool = True) -> None:
    """Fill `stepper` with the state in a restart file: its functions, time and number of steps.

    The stepper is constructed as it was for the run that wrote the file. The number of ranks may
    be another. All values are exact copies, so in serial the resumed run equals the uninterrupted
    one bit for bit, whatever the stepper. Another dt gives a warning and the stepper keeps its own;
    so do other numbers (Constants, Functions) in forms of one's own, which may change in time and
    count as changed at the time of the file.

    Parameters
    ----------
    stepper : Stepper
        Its system's functions and its clock are overwritten.
    path : path-like
        Name of the HDF5 file.
    strict : bool
        Whether the method and its parameters, the system, its sections, ends, loads and joints, and
        its equations must be those that made the file; with False a difference is a warning.

    Raises
    ------
    ValueError
        Naming `path` when the file is missing, damaged, or of another system or method (then with
        the difference). The stepper is unchanged in that case.
    """
    check_stepper(stepper)
    path = as_path("path", path)
    mesh, comm = stepper.system.mesh, stepper.system.mesh.comm
    wrong = f"path = '{path}' cannot be resumed from"
    found = on_root(comm, lambda: _read_header(path), ValueError, wrong)
    functions = _functions(stepper)
    expected = _description(functions, mesh)
    if found["functions"] != expected:
        raise ValueError(f"{wrong}: {_difference(found['functions'], expected)}")
    serious, others = differences(found["identity"], fingerprint(stepper))
    if serious and strict:
        raise ValueError(f"{wrong}: {serious[0]} (strict=False accepts it)")
    try:
        values = _read(path, functions, mesh)
    except Exception as exc:  # h5py has many for what is damaged
        raise ValueError(f"{wrong}: it is damaged, or of another mesh ({brief(exc)})") from exc
    for name, array in values.items():
        if bits(array, functions[name]) != found["bits"][name]:
            raise ValueError(
                f"{wrong}: the values of '{name}' have changed since they were written"
            )
    clock = found["clock"]
    said = [f"'{path}' was made by something else: {difference}" for difference in serious + others]
    if clock.dt != stepper.dt:
        said.append(
            f"'{path}' was written with dt = {clock.dt}, the stepper has {stepper.dt} and keeps it"
        )
    for text in said if comm.rank == 0 else ():
        warnings.warn(text, stacklevel=3)
    clock = clock.with_dt(stepper.dt)
    with delayed(comm, INT), shielded():
        for name, f in functions.items():
            f.dat.data_wo[...] = values[name]
            # Bring the halos up to date now: compiled steps read them without asking.
            _ = f.dat.data_ro_with_halos
        if hasattr(stepper, "take_up"):
            stepper.take_up(clock, changed=bool(serious or others))
        else:
            stepper.t, stepper.steps = clock.t, clock.steps


def _functions(stepper) -> dict[str, Function]:
    """All Functions of a file, parts of mixed ones by themselves."""
    functions = stepper.system.functions() | getattr(stepper, "functions", dict)()
    parts: dict[str, Function] = {}
    for name, f in functions.items():
        several = f.subfunctions[1:]
        parts |= {f"{name}[{i}]": g for i, g in enumerate(f.subfunctions)} if several else {name: f}
    return parts


def _description(functions: dict[str, Function], mesh) -> dict[str, dict]:
    cells = int(mesh.comm.allreduce(mesh.cell_set.size))
    return {
        name: {
            "shape": list(f.ufl_shape),
            "element": str(f.function_space().ufl_element()),
            "degrees of freedom": int(f.function_space().dim()),
            "cells": cells,
        }
        for name, f in functions.items()
    }


def _difference(found: dict, expected: dict) -> str:
    if found.keys() != expected.keys():
        return f"the file holds {', '.join(found)}; the stepper {', '.join(expected)}"
    name = next(n for n in found if found[n] != expected[n])
    what = next(k for k in expected[name] if found[name].get(k) != expected[name][k])
    return f"{what} of '{name}': {found[name].get(what)} in the file, {expected[name][what]} here"


def _writer_of(path: Path, comm) -> str:
    """The name that the writer of a restart file has left in it, "" if there is no file."""

    def read() -> str:
        with suppress(OSError, KeyError), h5py.File(path, "r") as file:
            return str(file[GROUP].attrs["writer"])
        return ""

    return on_root(comm, read, ValueError, "checkpoint")


def _read_header(path: Path) -> dict:
    """The description, the fingerprint and the clock in a file."""
    if not path.exists():
        raise FileNotFoundError("there is no such file")
    if not path.is_file():
        raise OSError("it is a folder, a device or a pipe")
    try:
        with h5py.File(path, "r") as file:
            group = file[GROUP]
            attributes = group.attrs
            if attributes["format"] != FORMAT:
                raise ValueError(
                    f"it has the format {attributes['format']}, and this version of fdgeom reads "
                    f"{FORMAT} only"
                )
            found = {n: json.loads(group[n][...].tobytes()) for n in ("functions", "identity")}
            parts = *found["functions"].values(), *map(found["identity"].get, KINDS)
            if not all(isinstance(part, dict) for part in parts):
                raise TypeError("a description is missing")
            clock = Clock(
                begin=number("begin", attributes["begin"]),
                first=operator.index(attributes["first"]),
                steps=operator.index(attributes["steps"]),
                dt=number("dt", attributes["dt"], above=0),
                last_dt=number("last_dt", attributes["last_dt"]),
                last_change=operator.index(attributes["last_change"]),
                changed=tuple(json.loads(attributes["changed"])),
            )
            sums = {name: part.pop("bits") for name, part in found["functions"].items()}
            return found | {"clock": clock, "bits": sums}
    except Exception as exc:  # h5py has many for what is damaged
        if type(exc) is ValueError:  # which says itself what is wrong
            raise
        raise ValueError(f"it is damaged or was not written by fdgeom ({brief(exc)})") from exc


def _read(path: Path, functions: dict[str, Function], mesh) -> dict[str, np.ndarray]:
    """The values of this rank; ValueError if those in the file are of another mesh or shape."""
    with h5py.File(path, "r") as file:
        group, found = file[GROUP], {}
        transfer = Transfer(group["places"], mesh)
        for name, f in functions.items():
            values, space = group[f"values of {name}"], f.function_space()
            if not is_real(f):
                found[name] = transfer.values(name, values, group[_points_name(space)], space)
            elif values.shape == f.dat.data_ro.shape:
                found[name] = values[...].astype(float)
            else:
                raise ValueError(f"the values of '{name}' have another shape")
        return found
