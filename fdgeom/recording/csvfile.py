"""The table of samples as text, written while the run goes on."""

from __future__ import annotations

import csv
import os

import numpy as np

from .collective import as_path, on_root, writable_file


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
        Continue an existing file (a resumed run): rows at or after the first new step are
        replaced. With False (default) an existing file is overwritten.
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
        kept = self._earlier_rows(columns, step) if self.append and self.path.exists() else []
        self._file = self.path.open("w", newline="")
        csv.writer(self._file).writerows([columns, *kept])
        self._file.flush()

    def write(self, t: float, step: int, sample: dict) -> None:
        """Add one row and flush it. Raises OSError on all ranks when the disk refuses."""
        on_root(self.comm, lambda: self._write(t, step, sample), OSError, f"csv = '{self.path}'")

    def _write(self, t: float, step: int, sample: dict) -> None:
        csv.writer(self._file).writerow(row(t, step, sample))
        self._file.flush()

    def _earlier_rows(self, columns: list[str], step: int) -> list[list[str]]:
        with self.path.open(newline="") as file:
            rows = list(csv.reader(file))
        if rows and rows[0] != columns:
            raise ValueError(f"append: the file has the columns {rows[0]}, this run {columns}")
        # A run killed while writing may leave an incomplete last row.
        return [r for r in rows[1:] if len(r) == len(columns) and int(r[1]) < step]

    def close(self) -> None:
        """Close the file; the rows are already on disk."""
        if self._file is not None:
            self._file.close()
            self._file = None
