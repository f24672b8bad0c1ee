"""Arguments of what records, checked: names of files, numbers, steppers."""

import operator
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fdgeom.collective import on_root
from fdgeom.words import shown


def writable_file(path: str | os.PathLike, argument: str, comm, *, replaced: bool = False) -> Path:
    """Return `path` as a Path in a folder that exists (it is made) and can be written to.

    ValueError on all ranks, naming `argument`, if it cannot be written. What is ``replaced`` by
    another file must be a regular one; of a symbolic link it is the file that the link leads to.
    """
    path = as_path(path, argument)

    def check() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError("it is a folder; give the name of a file")
        if replaced and path.exists() and not path.is_file():
            raise OSError("it is a device or a pipe, which is not replaced; give another name")
        # Trying is the only test that also holds for the superuser and for read-only disks.
        with tempfile.TemporaryFile(dir=path.parent):
            pass

    on_root(comm, check, ValueError, f"{argument} = '{path}' cannot be written")
    return Path(os.path.realpath(path)) if replaced else path


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of a file that is written; what the system refuses is a ``ValueError``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ValueError(f"path = '{path}' cannot be written: {error.strerror}") from error


def positive_integer(value: object, argument: str) -> int:
    """Return `value` as int; ValueError naming `argument` unless it is an integer >= 1."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"{argument} must be an integer >= 1, got {shown(value)}")
    return number


def as_path(value: object, argument: str) -> Path:
    """Return `value` as a Path; TypeError naming `argument` if it is no name of a file."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{argument} must be the name of a file, not {shown(value)}")
    return Path(value)


def check_stepper(value: object) -> None:
    """TypeError unless `value` can be run: has a system, a clock and `advance`."""
    if isinstance(value, type) or not all(
        hasattr(value, name) for name in ("system", "t", "dt", "steps", "advance")
    ):
        raise TypeError(
            "stepper must be a stepper of a system, such as ImplicitMidpoint(system, dt), not "
            f"{shown(value)}"
        )
