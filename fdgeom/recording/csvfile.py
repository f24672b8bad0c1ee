"""The table of samples as text, written while the run goes on."""

import csv
import os
from collections.abc import Callable

import numpy as np

from fdgeom.collective import on_root

from .arguments import as_path, writable_file


def header(sample: dict) -> list[str]:
    """Column names: t, step, then `name` for numbers and `name[0]`, `name[1]`, ... for vectors."""
    columns = ["t", "step"]
    for name, value in sample.items():
        size = np.size(value)
        columns += [name] if np.ndim(value) == 0 else [f"{name}[{i}]" for i in range(size)]
    return columns


def row(t: float, step: int, sample: dict) -> list[str]:
    """One sample as text that gives the same doubles when read again."""
    values = [np.ravel(value) for value in sample.values()]
    numbers = np.concatenate(values) if values else np.empty(0)
    return [repr(float(t)), str(int(step)), *(repr(float(x)) for x in numbers)]


class CSVFile:
    """Samples in a CSV file, one row each, on disk as soon as they are taken.

    Parameters
    ----------
    path : path-like
        A missing folder is made.
    append : bool
        Continue an existing file (a resumed run): what is there stays as it is and is not even
        read, but for rows at or after the first new step, which are cut off. With False (default) an
        existing file is overwritten.
    """

    def __init__(self, path: str | os.PathLike, append: bool = False) -> None:
        self.path = as_path(path, "csv")
        self.append = append
        self._file = None

    def open(self, comm, columns: list[str], step: int) -> None:
        """Begin the table: `columns` is its header, `step` the step of the first sample to come.

        Raises
        ------
        ValueError
            On all ranks, naming `csv`, when the file cannot be written, or cannot be continued
            because it has other columns.
        """
        self.comm = comm
        writable_file(self.path, "csv", comm)
        on_root(comm, lambda: self._open(columns, step), ValueError, f"csv = '{self.path}'")

    def _open(self, columns: list[str], step: int) -> None:
        if self.append and self.path.exists() and self._end_before(columns, step):
            self._file = self.path.open("a", newline="")
            return
        self._file = self.path.open("w", newline="")
        csv.writer(self._file).writerow(columns)
        self._file.flush()

    def write(self, t: float, step: int, sample: dict) -> None:
        """Add one row and flush it. Raises OSError on all ranks when the disk refuses."""
        on_root(self.comm, lambda: self._write(t, step, sample), OSError, f"csv = '{self.path}'")

    def _write(self, t: float, step: int, sample: dict) -> None:
        csv.writer(self._file).writerow(row(t, step, sample))
        self._file.flush()

    def _end_before(self, columns: list[str], step: int) -> bool:
        """Cut off the rows from a step on; False if there is not even a header."""
        with self.path.open("rb+") as file:
            first = next(csv.reader([file.readline().decode()]), None)
            if first is None:
                return False
            if first != columns:
                raise ValueError(f"append: the file has the columns {first}, this run {columns}")
            begin, size = file.tell(), file.seek(0, os.SEEK_END)
            end = _first_row(file, begin, size, lambda row: _is_before(row, step, len(columns)))
            if end < size:
                file.truncate(end)
        return True

    def close(self) -> None:
        """Close the file; the rows are already on disk."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _is_before(row: bytes, step: int, width: int) -> bool:
    """Whether a row is complete (a run may be killed while writing it) and of an earlier step."""
    values = row.split(b",")
    try:
        return row.endswith(b"\n") and len(values) == width and int(values[1]) < step
    except ValueError:
        return False


def _first_row(file, begin: int, end: int, keep: Callable[[bytes], bool]) -> int:
    """Where the first row starts that is not to be kept, by bisection of the file."""
    # Rows that start before `low` are kept, those that start at `high` or later are not.
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        file.seek(max(middle - 1, begin))
        if middle > begin:
            file.readline()
        start = file.tell()
        if start >= high:
            high = middle
            continue
        row = file.readline()
        if keep(row):
            low = file.tell()
        else:
            high = start
    return low
