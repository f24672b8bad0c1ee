"""Files that are written: their paths, room on the disk, atomic replacement, errors on all ranks."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from fdgeom.messages import format_value

# Bytes of HDF5's own tables.
_OVERHEAD = 100_000


def on_root(comm, action: Callable[[], object], error: type[Exception], message: str):
    """Call `action` on rank 0; return its picklable value, or raise its error, on every rank."""
    # Without this a full disk, or Ctrl-C, would stop rank 0 alone and leave the others waiting for
    # it. The error's text is `message` and the cause.
    value = cause = None
    if comm.rank == 0:
        try:
            value = action()
        except BaseException as exc:
            cause = exc
    stopped = isinstance(cause, KeyboardInterrupt | SystemExit)
    text = None if cause is None else f"{cause}"
    value, text, stopped = comm.bcast((value, text, stopped))
    if stopped:
        raise cause or KeyboardInterrupt
    if text is not None:
        raise error(f"{message}: {text}") from cause
    return value


def as_path(name: str, value: object, suffix: str = "") -> Path:
    """Return `value` as a Path; raise an error that names the argument if it is none, or ends otherwise."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be the name of a file, not {format_value(value)}")
    path = Path(value)
    if suffix and path.suffix != suffix:
        raise ValueError(f"{name} must end in {suffix}, got '{path}'")
    return path


def writable(name: str, value: object, comm, *, replaced: bool = False, size: int = 0) -> Path:
    """Return the path of a file that can be written: its folder exists, or is made here, and the disk has
    room for `size` bytes of each rank. Raise ValueError on all ranks if not.
    """
    given = path = as_path(name, value)
    if replaced:  # the file that a symbolic link leads to
        path = Path(os.path.realpath(given))
    total = comm.allreduce(size)

    def check() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError("it is a folder; give the name of a file")
        if replaced and path.exists() and not path.is_file():
            raise OSError("it is a device or a pipe, which is not replaced; give another name")
        # Trying is the only test that also holds for the superuser and for read-only disks.
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        free, needed = shutil.disk_usage(path.parent).free, total + _OVERHEAD
        if total and free < needed:
            raise OSError(
                f"the disk is full: about {_bytes(needed)} are needed and {_bytes(free)} are free"
            )

    on_root(comm, check, ValueError, f"{name} = '{given}' cannot be written")
    return path


def _bytes(number: int) -> str:
    return f"{number / 1e6:.3g} MB" if number >= 1e5 else f"{number / 1e3:.3g} kB"


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of a file that one rank writes; turn an error of the system into ValueError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ValueError(f"path = '{path}' cannot be written: {error.strerror}") from error


@contextmanager
def replacing(path: Path, comm) -> Iterator[Path]:
    """Yield the name of a new file, which takes the place of `path` if the block ends well."""
    temporary = path.with_name(f"{path.name}.{comm.bcast(secrets.token_hex(8))}.part")

    def replace() -> None:
        # On disk first: else a power cut could leave the new name with no content.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)

    try:
        yield temporary
        on_root(comm, replace, ValueError, f"path = '{path}'")
    finally:
        if comm.rank == 0:
            temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, comm, write: Callable[[TextIO], object]) -> None:
    """Let rank 0 fill a text file; raise ValueError on all ranks if it cannot."""
    path = writable("path", path, comm)

    def action() -> None:
        with path.open("w", newline="") as file:
            write(file)

    on_root(comm, action, ValueError, f"path = '{path}'")
