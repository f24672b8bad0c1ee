"""Whether a disk has room for what is to be written, asked before HDF5 finds out."""

import shutil
from pathlib import Path

from fdgeom.collective import on_root

# What the mesh takes in a restart file, by a little more than was seen.
_BYTES_A_CELL = 170
# HDF5's own tables.
_LEAST = 100_000


def check_room(path: Path, functions: dict, mesh) -> None:
    """Raise ``ValueError`` on all ranks, naming `path`, if its disk cannot hold these functions."""
    comm = mesh.comm
    values = sum(f.dat.data_ro.nbytes for f in functions.values())
    needed = comm.allreduce(values + _BYTES_A_CELL * mesh.cell_set.size) + _LEAST

    def check() -> None:
        free = shutil.disk_usage(path.parent).free
        if free < needed:
            raise OSError(
                f"the disk is full: about {_size(needed)} are needed and {_size(free)} are free"
            )

    on_root(comm, check, ValueError, f"path = '{path}' cannot be written")


def _size(number: int) -> str:
    return f"{number / 1e6:.3g} MB" if number >= 1e5 else f"{number / 1e3:.3g} kB"
