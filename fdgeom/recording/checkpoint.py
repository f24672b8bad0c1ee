"""Restart files: a stopped run goes on as if it had not been stopped."""

import json
import os
import warnings
from pathlib import Path

import h5py
import numpy as np
from firedrake import CheckpointFile, Function, FunctionSpace

from fdgeom.clock import Clock
from fdgeom.collective import on_root
from fdgeom.interrupt import INT, delayed, shielded
from fdgeom.solvers.petsc_words import reason
from fdgeom.taping import not_taped
from fdgeom.words import brief

from .arguments import as_path, check_stepper, positive_integer, writable_file
from .finite import require_finite_functions
from .identity import bits, differences, identity
from .room import check_room
from .transfer import Transfer

FORMAT = 2
GROUP = "/fdgeom"


class Checkpoint:
    """Restart file for `run(checkpoint=...)`, read by `resume`.

    Parameters
    ----------
    path : path-like
        Name of the HDF5 file; a missing folder is made.
    every : int, optional
        Number of steps between two writes; without it only the end of the run (or what stops it
        early) is written.

    Notes
    -----
    Each write goes to a temporary file that then takes the place of the old one, so a run killed
    while writing leaves the previous checkpoint.
    """

    def __init__(self, path: str | os.PathLike, every: int | None = None) -> None:
        self.path = as_path(path, "path")
        self.every = None if every is None else positive_integer(every, "every")

    def open(self, stepper) -> None:
        """Check that the file can be written; ValueError naming `path` if not."""
        writable_file(self.path, "path", stepper.system.mesh.comm)

    def write(self, stepper) -> None:
        """Write the present state."""
        save(stepper, self.path)

    def close(self) -> None:
        """Nothing is left open between writes."""


def save(stepper, path: str | os.PathLike) -> None:
    """Write the state of `stepper` to a restart file with Firedrake's CheckpointFile.

    The file holds the mesh, the system's functions (and the stepper's, where it has a method
    `functions()` of its own), the clock, and what made it: method, system, and the numbers in them.

    Parameters
    ----------
    stepper : stepper
    path : path-like
        Name of the HDF5 file, replaced in one move when the new one is complete.

    Raises
    ------
    ValueError
        Naming `path` when it cannot be written.
    StepFailed
        When a value is not finite; the old file is kept.
    """
    check_stepper(stepper)
    mesh = stepper.system.mesh
    comm = mesh.comm
    path = writable_file(path, "path", comm)
    functions = _functions(stepper)
    require_finite_functions(functions, comm, t=stepper.t, step=stepper.steps)
    check_room(path, functions, mesh)
    temporary = path.with_name(path.name + ".part")
    try:
        with CheckpointFile(str(temporary), "w", comm=comm) as file:
            file.save_mesh(mesh)
            for i, f in enumerate(functions.values()):
                # A space of its own: parts of a mixed Function carry their place in it along.
                space = FunctionSpace(mesh, f.function_space().ufl_element())
                file.save_function(Function(space, val=f.dat), name=f"function_{i}")
            file.require_group(GROUP)
            file.set_attr(GROUP, "format", FORMAT)
            file.set_attr(GROUP, "mesh", mesh.name)
            for name, value in _clock(stepper)._asdict().items():
                file.set_attr(GROUP, name, value)
            file.set_attr(GROUP, "identity", json.dumps(identity(stepper)))
            file.set_attr(GROUP, "functions", json.dumps(_description(functions, mesh)))
    except (RuntimeError, OSError) as exc:
        raise ValueError(
            f"path = '{path}' cannot be written: is the disk full? (HDF5: {reason(exc)})"
        ) from exc
    on_root(comm, lambda: _replace(temporary, path), ValueError, f"path = '{path}'")


def _replace(temporary: Path, path: Path) -> None:
    # On disk first: else a power cut could leave the new name with no content.
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


@not_taped
def resume(stepper, path: str | os.PathLike, *, strict: bool = True) -> None:
    """Fill `stepper` with the state in a restart file: its functions, time and number of steps.

    The stepper is constructed as it was for the run that wrote the file. The number of ranks may
    be another. All values are exact copies, so in serial the resumed run equals the uninterrupted
    one bit for bit, whatever the stepper. Another dt gives a warning and the stepper keeps its own;
    so do other numbers (Constants, Functions) in forms of one's own, which may change in time.

    Parameters
    ----------
    stepper : stepper
    path : path-like
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
    path = as_path(path, "path")
    system = stepper.system
    comm = system.mesh.comm
    wrong = f"path = '{path}' cannot be resumed from"
    found = on_root(comm, lambda: _read_header(path), ValueError, wrong)
    functions = _functions(stepper)
    expected = _description(functions, system.mesh)
    sums = {name: entry.pop("bits") for name, entry in found["functions"].items()}
    for entry in expected.values():
        entry.pop("bits")
    if found["functions"] != expected:
        raise ValueError(f"{wrong}: {_difference(found['functions'], expected)}")
    serious, others = differences(found["identity"], identity(stepper))
    if serious and strict:
        raise ValueError(f"{wrong}: {serious[0]} (strict=False takes it nevertheless)")
    try:
        values = _read(path, found, functions, system.mesh)
    except (RuntimeError, OSError, KeyError, AssertionError, ValueError) as exc:
        raise ValueError(f"{wrong}: {exc or type(exc).__name__}") from exc
    for name, array in values.items():
        if bits(array, functions[name]) != sums[name]:
            raise ValueError(f"{wrong}: the values of '{name}' are not those that were written")
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
            stepper.take_up(clock)
        else:
            stepper.t, stepper.steps = clock.t, clock.steps


def _clock(stepper) -> Clock:
    """The clock of a stepper; made up for one that has none."""
    dt, steps = float(stepper.dt), int(stepper.steps)
    made = Clock(begin=float(stepper.t), dt=dt, last_dt=dt, first=steps, steps=steps)
    return getattr(stepper, "clock", made)


def _functions(stepper) -> dict[str, Function]:
    """All Functions to keep, parts of mixed ones by themselves."""
    functions = dict(stepper.system.functions())
    functions |= getattr(stepper, "functions", dict)()
    parts: dict[str, Function] = {}
    for name, f in functions.items():
        several = len(f.subfunctions) > 1
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
            "bits": bits(f.dat.data_ro, f),
        }
        for name, f in functions.items()
    }


def _difference(found: dict, expected: dict) -> str:
    if found.keys() != expected.keys():
        return f"the file holds {', '.join(found)}; the stepper {', '.join(expected)}"
    name = next(n for n in found if found[n] != expected[n])
    what = next(k for k in expected[name] if found[name].get(k) != expected[name][k])
    return f"{what} of '{name}': {found[name].get(what)} in the file, {expected[name][what]} here"


def _read_header(path: Path) -> dict:
    """What the file says of itself, on rank 0; any error's text is passed on."""
    if not path.exists():
        raise FileNotFoundError("there is no such file")
    try:
        with h5py.File(path, "r") as file:
            attributes = file[GROUP].attrs
            if attributes["format"] != FORMAT:
                raise ValueError(f"format {attributes['format']}, this version reads {FORMAT}")
            return {
                "mesh": str(attributes["mesh"]),
                "clock": Clock(
                    **{name: float(attributes[name]) for name in ("begin", "dt", "last_dt")},
                    **{name: int(attributes[name]) for name in ("first", "steps")},
                ),
                "functions": json.loads(attributes["functions"]),
                "identity": json.loads(attributes["identity"]),
            }
    except (OSError, KeyError, RuntimeError, json.JSONDecodeError, TypeError) as exc:
        raise ValueError(f"it is damaged or was not written by fdgeom ({brief(exc)})") from exc


def _read(path: Path, found: dict, functions: dict[str, Function], mesh) -> dict[str, np.ndarray]:
    with CheckpointFile(str(path), "r", comm=mesh.comm) as file:
        stored = file.load_mesh(found["mesh"])
        transfer = Transfer(stored, mesh)
        return {
            name: transfer.values(file.load_function(stored, f"function_{i}"), f.function_space())
            for i, (name, f) in enumerate(functions.items())
        }
