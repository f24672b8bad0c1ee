"""What was sampled during a run, as NumPy arrays."""

from __future__ import annotations

import csv
import os
import re

import numpy as np
from firedrake import COMM_WORLD

from .collective import on_root, writable_file
from .csvfile import header, row


class History:
    """Samples of the monitors of a run, by name.

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
        self._t: list[float] = []
        self._step: list[int] = []
        self._columns: dict[str, list] = {}
        self.stats: dict[str, int] = {}
        self.wall_time = float("nan")

    def append(self, t: float, step: int, sample: dict) -> None:
        """Add one sample: `sample` maps each name to a float or a vector."""
        if not self._t:
            self._columns = {name: [] for name in sample}
        if sample.keys() != self._columns.keys():
            raise ValueError(f"sample has the names {list(sample)}, expected {list(self.names)}")
        self._t.append(float(t))
        self._step.append(int(step))
        for name, value in sample.items():
            self._columns[name].append(np.array(value, dtype=float))

    @property
    def t(self) -> np.ndarray:
        """Times of the samples, shape (n,)."""
        return np.array(self._t, dtype=float)

    @property
    def step(self) -> np.ndarray:
        """Number of steps done at each sample, shape (n,)."""
        return np.array(self._step, dtype=int)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sampled quantities."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(self._t)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._columns:
            raise KeyError(f"no monitor recorded '{name}'; recorded are {', '.join(self.names)}")
        return np.array(self._columns[name], dtype=float)

    def deviation(self, name: str) -> float:
        """Largest distance (of any component) of `name` from its first sample."""
        values = self[name]
        return float(np.max(np.abs(values - values[0]))) if len(values) else 0.0

    def __repr__(self) -> str:
        if not self._t:
            return "History(no samples)"
        lines = [
            f"History({len(self)} samples, t = {self._t[0]:.6g} ... {self._t[-1]:.6g}, "
            f"steps {self._step[0]} ... {self._step[-1]}, {self.wall_time:.3g} s"
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
            samples = [
                dict(zip(self._columns, v, strict=True))
                for v in zip(*self._columns.values(), strict=True)
            ] or [{}] * len(self)
            columns = header(samples[0] if samples else {})
            with path.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(map(row, self._t, self._step, samples))

        on_root(comm, write, ValueError, f"path = '{path}'")

    @classmethod
    def from_csv(cls, path: str | os.PathLike) -> History:
        """Read what `to_csv` or `run(csv=...)` wrote; `stats` and `wall_time` are not in the file.

        Raises
        ------
        ValueError
            When the file cannot be read or is no such table.
        """
        try:
            with open(path, newline="") as file:
                columns, *rows = csv.reader(file)
            values = np.array(rows, dtype=float).reshape(len(rows), len(columns))
        except (OSError, ValueError) as exc:
            raise ValueError(f"path = '{path}' is not a table of samples: {exc}") from exc
        if columns[:2] != ["t", "step"]:
            raise ValueError(f"path = '{path}' must begin with the columns t, step: {columns[:2]}")
        groups: dict[str, int | list[int]] = {}
        for i, column in enumerate(columns[2:], start=2):
            component = re.fullmatch(r"(.*)\[\d+\]", column)
            if component:
                groups.setdefault(component[1], []).append(i)
            else:
                groups[column] = i
        history = cls()
        for line in values:
            history.append(line[0], int(line[1]), {name: line[i] for name, i in groups.items()})
        return history
