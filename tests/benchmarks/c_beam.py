"""The program in C: compiled by gcc, called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
from case import END_WEIGHT, FIELDS, INERTIA, LENGTH, STIFFNESS, TANGENT, State, start, step

_SOURCE = Path(__file__).with_name("paper_beam.c")
FLAGS = ("-O3", "-march=native", "-ffast-math")


class _Beam(ctypes.Structure):
    _fields_ = [
        ("cells", ctypes.c_long),
        ("h", ctypes.c_double),
        ("end_weight", ctypes.c_double),
        ("inertia", ctypes.c_double * 6),
        ("stiffness", ctypes.c_double * 6),
        ("inverse", ctypes.c_double * 6),
        ("tangent", ctypes.c_double * 6),
        *((name, ctypes.c_void_p) for name in FIELDS),
    ]


def compile_program(folder: Path, *, unroll: bool = False) -> ctypes.CDLL:
    """Compile the program into a folder and load it; ``unroll``: with its elimination unrolled."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SystemExit("the benchmark needs gcc for its reference program")
    library = folder / ("paper_beam_unrolled.so" if unroll else "paper_beam.so")
    flags = (*FLAGS, *(["-DUNROLL"] if unroll else []), "-shared", "-fPIC")
    command = [compiler, *flags, "-o", str(library), str(_SOURCE), "-lm"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.advance.argtypes = [ctypes.POINTER(_Beam), ctypes.c_double, ctypes.c_long]
    loaded.advance.restype = ctypes.c_long
    return loaded


class CBeam:
    """The paper's run by the program in C."""

    def __init__(self, library: ctypes.CDLL, cells: int) -> None:
        self._library, self._dt = library, step(cells)
        self.steps = self.iterations = 0
        self._state = start(cells)
        made = self._beam = _Beam(cells=cells, h=LENGTH / cells, end_weight=END_WEIGHT)
        made.inertia[:], made.stiffness[:], made.tangent[:] = INERTIA, STIFFNESS, TANGENT
        made.inverse[:] = 1 / INERTIA
        for name in FIELDS:
            array = np.ascontiguousarray(getattr(self._state, name))
            setattr(self._state, name, array)
            setattr(made, name, array.ctypes.data)

    def restart(self, state: State) -> None:
        for name in FIELDS:
            getattr(self._state, name)[...] = getattr(state, name)

    def advance(self, steps: int) -> None:
        iterations = self._library.advance(ctypes.byref(self._beam), self._dt, steps)
        if iterations < 0:
            raise RuntimeError("the program in C: Newton's method did not converge")
        self.steps += steps
        self.iterations += iterations

    def state(self) -> State:
        return self._state
