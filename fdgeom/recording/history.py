"""What was sampled during a run, as NumPy arrays."""

import csv
import os
import re
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from firedrake import COMM_WORLD

from fdgeom.collective import on_root

from .arguments import as_path, writable_file
from .csvfile import header, row


class History:
    """Samples of the monitors of a run, by name; eight bytes of memory for each number.

    Attributes
    ----------
    t : numpy.ndarray, shape (n,)
        Times of the samples.
    step : numpy.ndarray of int, shape (n,)
        Number of steps done at each sample.
    names : tuple of str
        Names of the sampled quantities; `history[name]` has shape (n,) or (n, components).
    stats : dict
        The stepper's `solver_stats()` at the end of the run.
    wall_time : float
        Seconds that the run took; NaN when the history was read from a file.
    """

    def __init__(self) -> None:
        self._table = Table(2)
        self._places: dict[str, tuple[slice, tuple[int, ...]]] = {}
        self.stats: dict[str, int] = {}
        self.wall_time = float("nan")

    def append(self, t: float, step: int, sample: dict) -> None:
        """Add one sample: `sample` maps each name to a float or a vector."""
        if not self._table:
            self._begin(sample)
        if sample.keys() != self._places.keys():
            raise ValueError(f"sample has the names {list(sample)}, expected {list(self.names)}")
        row = [t, step]
        for value in sample.values():
            row.extend(np.ravel(value)) if np.ndim(value) else row.append(value)
        self._table.append(row)

    def _begin(self, sample: dict) -> None:
        width = 2
        self._places = {}
        for name, value in sample.items():
            size = np.size(value)
            self._places[name] = slice(width, width + size), np.shape(value)
            width += size
        self._table = Table(width)

    @property
    def t(self) -> np.ndarray:
        """Times of the samples, shape (n,)."""
        return self._table.columns(0)

    @property
    def step(self) -> np.ndarray:
        """Number of steps done at each sample, shape (n,)."""
        return self._table.columns(1).astype(int)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sampled quantities."""
        return tuple(self._places)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._places:
            raise KeyError(f"no monitor recorded '{name}'; recorded are {', '.join(self.names)}")
        which, shape = self._places[name]
        return self._table.columns(which).reshape(len(self), *shape)

    def deviation(self, name: str) -> float:
        """Largest distance (of any component) of `name` from its first sample."""
        values = self[name]
        return float(np.max(np.abs(values - values[0]))) if len(values) else 0.0

    def __repr__(self) -> str:
        if not len(self):
            return "History(no samples)"
        t, step = self.t, self.step
        lines = [
            f"History({len(self)} samples, t = {t[0]:.6g} ... {t[-1]:.6g}, "
            f"steps {step[0]} ... {step[-1]}, {self.wall_time:.3g} s"
        ]
        lines += [
            f"  {name}: {np.array2string(self[name][-1], precision=6)} at the end, "
            f"deviation {self.deviation(name):.2e}"
            for name in self.names
        ]
        lines += [f"  stats: {self.stats}"] if self.stats else []
        return "\n".join(lines) + ")"

    def to_csv(self, path: str | os.PathLike, comm=COMM_WORLD) -> None:
        """Write all samples to `path` at full precision (rank 0 writes).

        Raises
        ------
        ValueError
            When `path` cannot be written.
        """
        path = writable_file(path, "path", comm)

        def write() -> None:
            with path.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(header(self._shaped(np.zeros(self._table.width))))
                for line in self._table:
                    writer.writerow(row(line[0], line[1], self._shaped(line)))

        on_root(comm, write, ValueError, f"path = '{path}'")

    def _shaped(self, line: np.ndarray) -> dict:
        """The sample in a line of the table."""
        return {name: line[which].reshape(shape) for name, (which, shape) in self._places.items()}

    @classmethod
    def from_csv(cls, path: str | os.PathLike) -> "History":
        """Read what `to_csv` or `run(csv=...)` wrote; `stats` and `wall_time` are not in the file.

        Raises
        ------
        ValueError
            When the file cannot be read or is no such table.
        """
        path = as_path(path, "path")
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
                raise ValueError("a time is not finite, or a step is no whole number")
        except (OSError, ValueError, csv.Error) as exc:
            raise ValueError(f"path = '{path}' is not a table of samples: {exc}") from exc
        history = cls()
        for line in values:
            history.append(line[0], int(line[1]), {name: line[i] for name, i in groups.items()})
        return history


def _groups(columns: Sequence[str]) -> dict[str, int | list[int]]:
    """The columns of each name; ``ValueError`` unless they are those that `header` makes."""
    if columns[:2] != ["t", "step"]:
        raise ValueError(f"it must begin with the columns t, step, not {columns[:2]}")
    groups: dict[str, int | list[int]] = {}
    for i, column in enumerate(columns[2:], start=2):
        component = re.fullmatch(r"(.*)\[(\d+)\]", column)
        found = groups.setdefault(component[1] if component else column, [] if component else i)
        if component and isinstance(found, list) and len(found) == int(component[2]):
            found.append(i)
        elif component or found != i:
            raise ValueError(f"the column '{column}' is there twice, or out of order")
    return groups


class Table:
    """Rows of numbers, eight bytes each, in blocks: none is copied as the table grows."""

    _LARGEST = 2**16

    def __init__(self, width: int) -> None:
        self.width = width
        self._full: list[np.ndarray] = []
        self._last, self._used = np.empty((64, width)), 0

    def append(self, row: Sequence[float]) -> None:
        """Add a row."""
        if self._used == len(self._last):
            self._full.append(self._last)
            size = min(2 * len(self._last), self._LARGEST)
            self._last, self._used = np.empty((size, self.width)), 0
        self._last[self._used] = row
        self._used += 1

    def _blocks(self) -> list[np.ndarray]:
        return [*self._full, self._last[: self._used]]

    def columns(self, which: int | slice) -> np.ndarray:
        """A copy of one or several columns."""
        return np.concatenate([block[:, which] for block in self._blocks()])

    def __len__(self) -> int:
        return sum(map(len, self._full)) + self._used

    def __iter__(self) -> Iterator[np.ndarray]:
        return (row for block in self._blocks() for row in block)
