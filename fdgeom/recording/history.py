"""Samples of monitors: `History` in memory, and `CSVFile`, to which a run writes each at once."""

import csv
import os
import re
import warnings
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from firedrake import COMM_WORLD

from fdgeom.files import as_path, on_root, writable, write_text
from fdgeom.messages import Described

from .units import check_units, unit_of


def header(sample: Mapping) -> list[str]:
    """Column names: t, step, then `name` for numbers and `name[0]`, `name[1]`, ... for vectors."""
    columns = ["t", "step"]
    for name, value in sample.items():
        size = np.size(value)
        columns += [name] if np.ndim(value) == 0 else [f"{name}[{i}]" for i in range(size)]
    return columns


def _columns_of(sample: Mapping) -> dict[str, np.ndarray]:
    """The column of each value of a sample, behind the time and the step."""
    found, end = {}, 2
    for name, value in sample.items():
        if re.fullmatch(r".*\[\d+\]", name):
            raise ValueError(
                f"a monitor has the name '{name}', which tables give to a component of a vector; "
                "choose one that does not end in a number in brackets"
            )
        found[name] = np.arange(end, end + np.size(value)).reshape(np.shape(value))
        end += found[name].size
    return found


def _row(t: float, step: int, sample: Mapping, columns: Mapping[str, np.ndarray]) -> array:
    """The time, the step and the values of a sample in these columns; `ValueError` for other ones."""
    row: list[float] = [t, step]
    fits = sample.keys() == columns.keys()
    for name, places in columns.items() if fits else ():
        value = sample[name]
        values = [value] if isinstance(value, float) else np.ravel(value)
        row.extend(values)
        fits = fits and len(values) == places.size
    if not fits:
        found, expected = header(sample)[2:], header(columns)[2:]
        raise ValueError(f"sample has the columns {found}, expected {expected} as at first")
    return array("d", row)


def _text(row: Sequence[float]) -> list[str]:
    """A row as text that gives the same doubles when read again."""
    return [repr(row[0]), str(int(row[1])), *map(repr, row[2:])]


class History:
    """Samples of the monitors of a run; eight bytes of memory for each number.

    ``history[name]`` are the samples of a quantity, of shape (n,) or (n, components).

    Attributes
    ----------
    stats : dict
        The stepper's `solver_stats()` at the end of the run.
    wall_time : float
        Seconds that the run took; NaN when the history was read from a file.
    conserved : tuple of str
        Quantities that the stepper conserves (`Stepper.conserves`).
    units : "SI" or dict of str to str, optional
        Units of printed numbers and of plots, as given to `run`.
    """

    def __init__(self) -> None:
        # Row by row: the time, the step, and the values of each name in these columns.
        self._numbers, self._width = array("d"), 2
        self._columns: dict[str, np.ndarray] = {}
        self.stats: dict[str, int] = {}
        self.wall_time = float("nan")
        self.conserved: tuple[str, ...] = ()
        self.units: str | Mapping[str, str] | None = None

    def append(self, t: float, step: int, sample: dict) -> None:
        """Add one sample: `sample` maps each name to a float or a vector."""
        if not self._numbers:
            self._columns = _columns_of(sample)
        row = _row(t, step, sample, self._columns)
        self._width = len(row)
        self._numbers.extend(row)

    def _rows(self) -> np.ndarray:
        """A view of all numbers, which must not outlive the next sample."""
        return np.asarray(self._numbers).reshape(-1, self._width)

    @property
    def t(self) -> np.ndarray:
        """Times of the samples, shape (n,)."""
        return self._rows()[:, 0].copy()

    @property
    def step(self) -> np.ndarray:
        """Number of steps done at each sample, shape (n,)."""
        return self._rows()[:, 1].astype(int)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sampled quantities."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(self._numbers) // self._width

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._columns:
            raise KeyError(f"no monitor recorded '{name}'; recorded are {', '.join(self.names)}")
        return self._rows().take(self._columns[name], axis=1)

    def deviation(self, name: str) -> float:
        """Largest distance (of any component) of `name` from its first sample."""
        values = self[name]
        return float(np.max(np.abs(values - values[0]))) if len(values) else 0.0

    def __repr__(self) -> str:
        if not len(self):
            return "History(no samples)"
        t, step, units = self.t, self.step, check_units(self.units, self.names)
        end = f"{t[-1]:.6g} {units.get('time', '')}".rstrip()
        took = "" if np.isnan(self.wall_time) else f", {self.wall_time:.3g} s of computing"
        lines = [
            f"History({len(self)} samples, t = {t[0]:.6g} ... {end}, "
            f"steps {step[0]} ... {step[-1]}{took}"
        ]
        lines += [f"  {name}: {self._summary(name, unit_of(name, units))}" for name in self.names]
        lines += [f"  stats: {self.stats}"] if self.stats else []
        return "\n".join(lines) + ")"

    def _summary(self, name: str, unit: str) -> str:
        """The last value of a quantity and its largest change, relative to the first value."""
        values, change, first = self[name], self.deviation(name), _first(self, name)
        word = "deviation" if name.replace("_", " ") in self.conserved else "change"
        is_relative = has_ratio(self, name)
        found = f"relative {word} {change / first:.2e}" if is_relative else f"{word} {change:.2e}"
        end = f"{np.array2string(values[-1], precision=6)} {unit}".rstrip()
        return f"{end} at the end, {found if is_relative else f'{found} {unit}'.rstrip()}"

    def to_pandas(self):
        """The samples as a table: a row for each time, columns as in a CSV file.

        Returns
        -------
        pandas.DataFrame
            Indexed by the time t.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError as exc:
            raise ImportError('to_pandas needs pandas: pip install "fdgeom[pandas]"') from exc
        columns, rows = header(self._columns), self._rows().copy()
        table = pandas.DataFrame(rows, columns=columns).astype({"step": int})
        return table.set_index("t")

    def to_csv(self, path: str | os.PathLike, comm=COMM_WORLD) -> None:
        """Write all samples to `path` at full precision (rank 0 writes).

        Raises
        ------
        ValueError
            When `path` cannot be written.
        """

        def write(file) -> None:
            writer = csv.writer(file)
            writer.writerow(header(self._columns))
            writer.writerows(_text(row.tolist()) for row in self._rows())

        write_text(path, comm, write)

    @classmethod
    def from_csv(cls, path: str | os.PathLike) -> "History":
        """Read a file of `to_csv` or `run(csv=...)`, which does not hold `stats` and `wall_time`.

        Raises
        ------
        ValueError
            If the file cannot be read or is no such table.
        """
        path = as_path("path", path)
        try:
            with path.open(newline="") as file:
                columns = next(csv.reader([file.readline()]), [])
                groups = _groups(columns)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "loadtxt: input contained no data")
                    values = np.loadtxt(file, delimiter=",", ndmin=2, comments=None)
            values = values.reshape(-1, len(columns)) if values.size == 0 else values
            if values.shape[1] != len(columns):
                raise ValueError(f"{len(columns)} columns, but {values.shape[1]} numbers in a row")
            if not path.read_bytes().endswith(b"\n"):
                raise ValueError("its last row has no end of line, so it may be cut off; delete it")
            if not np.all(np.isfinite(values[:, :2])) or np.any(values[:, 1] % 1):
                raise ValueError("a time is not finite, or a step is not a whole number")
        except (OSError, ValueError, csv.Error) as exc:
            raise ValueError(f"path = '{path}' is not a table of samples: {exc}") from exc
        history = cls()
        if len(values):
            history._columns = {name: np.array(which) for name, which in groups.items()}
            history._width = len(columns)
            history._numbers.frombytes(values.tobytes())
        return history


def _groups(columns: Sequence[str]) -> dict[str, int | list[int]]:
    """The columns of each name; ``ValueError`` unless `header` would make them."""
    if columns[:2] != ["t", "step"]:
        raise ValueError(f"it must begin with the columns t, step, not {columns[:2]}")
    groups: dict[str, int | list[int]] = {}
    for i, column in enumerate(columns[2:], start=2):
        component = re.fullmatch(r"(.*)\[(\d+)\]", column)
        found = groups.setdefault(component[1] if component else column, [] if component else i)
        if component and isinstance(found, list) and len(found) == int(component[2]):
            found.append(i)
        elif component or found != i:
            raise ValueError(f"the column '{column}' occurs twice, or is out of order")
    return groups


def _first(history: History, name: str) -> float:
    """The largest component of the first sample of a quantity."""
    return float(np.max(np.abs(history[name][0])))


def has_ratio(history: History, name: str) -> bool:
    """Whether changes are relative: a ratio to zero, or to round-off, says nothing."""
    return history.deviation(name) <= _first(history, name) > 0


class CSVFile(Described):
    """Samples in a CSV file, one row each, on disk as soon as they are taken.

    Parameters
    ----------
    path : path-like
        Name of the file; a missing folder is made, and the run raises ``ValueError`` if the file
        cannot be written or continued.
    append : bool
        Continue an existing file (a resumed run): rows at or after the first new step are cut off,
        all others stay unchanged. With False (default) an existing file is overwritten. Monitors
        that sum over steps, such as `ContactMonitor`, count from the start of each run; they give a
        warning.
    """

    _shown = ("path",)

    def __init__(self, path: str | os.PathLike, append: bool = False) -> None:
        self.path = as_path("csv", path)
        self.append = append
        self._file: Any = None

    def open(self, comm, sample: Mapping, step: int) -> bool:
        """Begin the table for samples such as this one, the first of them at a step.

        Returns
        -------
        bool
            Whether the table has earlier rows.

        Raises
        ------
        ValueError
            On all ranks, naming `csv`, when the file cannot be written, or cannot be continued
            because it has other columns.
        """
        self.comm = comm
        self._columns = _columns_of(sample)
        writable("csv", self.path, comm)
        where = f"csv = '{self.path}'"
        return on_root(comm, lambda: self._open(header(sample), step), ValueError, where)

    def _open(self, columns: list[str], step: int) -> bool:
        goes_on = self.append and self.path.exists()
        rows = self._end_before(columns, step) if goes_on else None
        self._file = self.path.open("w" if rows is None else "a", newline="")
        if rows is None:
            self._write(columns)
        return bool(rows)

    def write(self, t: float, step: int, sample: dict) -> None:
        """Add one row and flush it. Raises OSError on all ranks when the disk refuses."""
        row = _text(_row(t, step, sample, self._columns))
        on_root(self.comm, lambda: self._write(row), OSError, f"csv = '{self.path}'")

    def _write(self, row: list[str]) -> None:
        csv.writer(self._file).writerow(row)
        self._file.flush()

    def _end_before(self, columns: list[str], step: int) -> int | None:
        """Cut off the rows from a step on; the number of the others, None without a header."""
        rows = 0
        with self.path.open("rb+") as file:
            first = next(csv.reader([file.readline().decode()]), None)
            if first is None:
                return None
            if first != columns:
                raise ValueError(f"append: the file has the columns {first}, this run {columns}")
            end, pattern = file.tell(), rb"[^,]*,(\d+)(,[^,]*){%d}\r?\n" % (len(columns) - 2)
            for row in file:
                # A kill may have cut it off.
                complete = re.fullmatch(pattern, row)
                if complete is None or int(complete[1]) >= step:
                    file.truncate(end)
                    break
                end, rows = end + len(row), rows + 1
        return rows

    def close(self) -> None:
        """Close the file; the rows are already on disk."""
        if self._file is not None:
            self._file.close()
            self._file = None
