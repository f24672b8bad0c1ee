"""Whether a disk has room for what is to be written, asked before HDF5 finds out."""

import shutil
from pathlib import Path

from fdgeom.collective import on_root

# HDF5's own tables.
_LEAST = 100_000


def check_room(path: Path, number: int, comm) -> None:
    """Raise ``ValueError`` on all ranks, naming `path`, if its disk cannot hold so many bytes of each."""
    needed = comm.allreduce(number) + _LEAST

    def check() -> None:
        free = shutil.disk_usage(path.parent).free
        if free < needed:
            raise OSError(
                f"the disk is full: about {_size(needed)} are needed and {_size(free)} are free"
            )

    on_root(comm, check, ValueError, f"path = '{path}' cannot be written")


def _size(number: int) -> str:
    return f"{number / 1e6:.3g} MB" if number >= 1e5 else f"{number / 1e3:.3g} kB"
