"""Shapes of a system during a run, in memory or in a file (.npz), for pictures."""

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any
from weakref import ref

import finat.ufl
import numpy as np
import ufl
from firedrake import Function, FunctionSpace, SpatialCoordinate
from pyadjoint.tape import stop_annotating

from fdgeom.files import as_path, writing
from fdgeom.messages import Described, brief
from fdgeom.sections.matrices import check_axis
from fdgeom.sections.outline import of_section as outline_of
from fdgeom.sections.outline import rectangle
from fdgeom.validation import number, whole

from .interpolated import Interpolated, chosen
from .marks import Arrows, Mark, Obstacles, check_index, gravity_of, marks_of

#: Lists with an array for each time, which files hold in single precision, and other attributes.
_SERIES = ("positions", "orientations", "forces", "obstacles")
_PLAIN = ("times", "s", "parts", "gravity", "axis", "closed")


class Snapshots(Described):
    """Shapes of a system at some times, an output for `run`; nodes are in order along the system.

    If the stepper of the last run has gone back in time, as by `resume`, its next run replaces the
    later shapes of its earlier ones.

    Parameters
    ----------
    every : int
        Number of steps between two snapshots; the first and the last state are always saved.
    fields : sequence of str
        Fields that are saved too, for the colours of `save_scene`: names among the system's
        ``output.fields()``, such as "curvature", "moment", "force", "velocity", of which the norm is
        saved, and "strain_energy" (per length). A field has one number for each segment between
        two neighbouring nodes; the run raises ``ValueError`` for an unknown name.

    Attributes
    ----------
    times : list of float
        Time of each shape.
    positions : list of numpy.ndarray, shape (nodes, 3) each
        Space frame; on rank 0 only, empty on other ranks.
    orientations : list of numpy.ndarray, shape (nodes, 4) each
        Unit quaternions; empty where the system has none.
    values : dict of str to list of numpy.ndarray, shape (segments,) each
        The fields.
    s : numpy.ndarray, shape (nodes,)
        Mesh coordinate (arc length) of the nodes; on rank 0 only.
    parts : list of (int, int)
        First node of each beam, and the node after its last one.
    outlines : list of numpy.ndarray, shape (corners, 3) each
        Outline of each beam's section: coordinates along its two transverse axes and the number of
        the closed curve. A section without a known shape has the rectangle that bends as it does;
        no corners where that varies along the beam.
    marks : list of Mark
        Supports, joints and bodies.
    loaded : list of int
        Nodes at which forces act.
    forces : list of numpy.ndarray, shape (loaded, 3) each
        These forces in space; per length where they act along a beam. Those of `Contact` are sums
        over parts of a beam.
    gravity : numpy.ndarray, shape (3,)
        Constant acceleration of gravity, if there is one.
    obstacles : list of numpy.ndarray, shape (points, 3) each
        Points on the obstacles of `Contact`; a single array if none moves.
    obstacle_triangles : numpy.ndarray, shape (triangles, 3)
        Numbers of such points.
    axis : int
        Material axis along the beams.
    closed : bool
        Whether the mesh is periodic, so that the last node is joined to the first.
    """

    _shown = ("every",)

    def __init__(self, every: int = 1, fields: Sequence[str] = ()) -> None:
        self.every = whole("every", every, least=1)
        if isinstance(fields, str):
            raise ValueError(f"fields must be a sequence of names, such as [{fields!r}]")
        self.fields = tuple(fields)
        self.times: list[float] = []
        self.positions: list[np.ndarray] = []
        self.orientations: list[np.ndarray] = []
        self.values: dict[str, list[np.ndarray]] = {name: [] for name in self.fields}
        self.parts: list[tuple[int, int]] = []
        self.outlines: list[np.ndarray] = []
        self.marks: list[Mark] = []
        self.loaded: list[int] = []
        self.forces: list[np.ndarray] = []
        self.gravity = np.zeros(3)
        self.obstacles: list[np.ndarray] = []
        self.obstacle_triangles = np.zeros((0, 3), dtype=int)
        self.axis, self.closed = 0, False
        #: The system whose shapes are saved, after `open`.
        self._system: Any = None
        self._curve: Function | None = None
        #: A weak reference to the stepper of the last runs; the number of shapes before and after them.
        self._stepper: Any = None
        self._first = self._last = 0

    def open(self, stepper) -> None:
        """Find the order of the nodes; TypeError when the system has no curve in space."""
        self._begin(stepper.system)
        # A run that goes on saves the shape at its start again.
        kept = len(self.times) - (self.times[-1:] == [stepper.t])
        if self._stepper is None or self._stepper() is not stepper or self._last != len(self.times):
            # Shapes that `take` has added may have other parameters than times.
            self._stepper, self._first = ref(stepper), kept
        else:
            # The stepper may have gone back, as `resume` does.
            own = (np.array(self.times[self._first :]) - stepper.t) / stepper.dt
            kept = min(kept, self._first + int(np.sum(own < -1e-6)))
        series: list[list] = [self.times, self.positions, self.orientations, self.forces]
        series += [*self.values.values(), *([self.obstacles] if self._obstacles.move else [])]
        for shapes in series:
            del shapes[kept:]

    def _begin(self, system) -> None:
        position, beams = system.output.coordinates, system.output.beams
        if position is None:
            raise TypeError(
                f"Snapshots needs a system with output.coordinates, and {type(system).__name__} "
                "has none"
            )
        if position.ufl_shape != (3,) or system.mesh.topological_dimension != 1:
            raise TypeError(
                f"Snapshots needs a curve in space, and output.coordinates of {type(system).__name__} "
                f"has values of shape {position.ufl_shape} on a mesh of dimension "
                f"{system.mesh.topological_dimension}"
            )
        positions = [beam.position for beam in beams] or [position]
        counts = [f.function_space().dim() // 3 for f in positions]
        # First and last node of each beam: joints lie between them.
        parts = list(pairwise(np.cumsum([0, *counts]).tolist()))
        # Of shapes from a file only the numbers of nodes are known.
        other = self._curve is not None and self._curve is not position
        if self.times and (other or parts != self.parts):
            raise ValueError(
                "these Snapshots have shapes of another system: make new ones for this"
            )
        self.parts, self._curve = parts, position
        self.closed = system.mesh.coordinates.function_space().finat_element.is_dg()
        element = position.function_space().ufl_element().sub_elements[0]
        self._order, s = _sorted(system.mesh, element)
        if s is not None:
            self.s = s
        self.axis = beams[0].section.axis if beams else 0
        self.outlines = [outline_of(beam.section) for beam in beams]
        self._arrows, self._obstacles = Arrows(beams), Obstacles(system)
        self.marks, self.loaded = marks_of(system), self._arrows.nodes
        self.gravity = gravity_of(system)
        self._interpolated = self._norms(system, element) if self.fields else {}
        self._system = system

    def _norms(self, system, element) -> dict[str, Interpolated]:
        """The norms of the fields, a value between two nodes each."""
        known, energy = system.output.fields(), system.output.strain_energy()
        if energy is not None:
            known = known | {"strain_energy": energy}
        # Its nodes are inside of the cells, so that no two of them lie at one place.
        segments = finat.ufl.FiniteElement(
            "DG", system.mesh.ufl_cell(), element.degree() - 1, variant="spectral"
        )
        self._segments, places = _sorted(system.mesh, segments, system.output.cells())
        if places is not None:
            # The first node of a ring may be at either end of its first cell.
            self._segments = np.roll(self._segments, -np.searchsorted(places, self.s[0]))
        found = {}
        for name, value in chosen(self.fields, known).items():
            length = ufl.sqrt(ufl.dot(value, value)) if value.ufl_shape else value
            found[name] = Interpolated(length, segments, system.mesh)
        return found

    def write(self, stepper) -> None:
        """Save one snapshot at the stepper's time."""
        self.take(stepper.system, stepper.t)
        self._last = len(self.times)

    def take(self, system, t: float, *, load: float = 1.0) -> None:
        """Save one snapshot of a system in your own loop, such as one of equilibria.

        Parameters
        ----------
        system
            Always the same one, with a curve in space.
        t : float
            Time, or another parameter, such as a load.
        load : float
            Load factor of statics. `forces` are multiplied by it, except those of `Contact`.
        """
        load = number("load", load)
        if self._system is not system:
            self._begin(system)
        output = system.output
        with stop_annotating(), system.consistency.prepared():
            output.refresh()
            position = self.nodal(output.coordinates)
            orientation = None if output.orientation is None else self.nodal(output.orientation)
            values: dict[str, Any] = {
                name: _gathered(field.apply(), self._segments)
                for name, field in self._interpolated.items()
            }
            forces = self._arrows.read(load)
        self.times.append(float(t))
        if position is None:
            return
        self.forces.append(forces)
        if self._obstacles.move or not self.obstacles:
            points, self.obstacle_triangles = self._obstacles.read(position, t)
            self.obstacles.append(points)
        self.positions.append(position)
        if orientation is not None:
            self.orientations.append(orientation)
        for name, value in values.items():
            self.values[name].append(value)

    def nodal(self, function: Function) -> np.ndarray | None:
        """Values of a function at the nodes of the shapes; None on ranks other than 0."""
        # Behind the nodes of the beams come those of the ground, in joints.
        return _gathered(function, self._order, self.parts[-1][1])

    def close(self) -> None:
        """Do nothing."""

    def __len__(self) -> int:
        return len(self.times)

    # --- files -------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike) -> None:
        """Write all shapes to a small file (.npz) in single precision, for plots and scenes.

        Parameters
        ----------
        path : path-like
            Name of the file, which ends in .npz.

        Raises
        ------
        ValueError
            If no snapshot was taken, or `path` cannot be written.
        """
        path = as_path("path", path, ".npz")
        if not holds_shapes("snapshots", self):
            return
        series = {name: getattr(self, name) for name in _SERIES}
        series |= {f"field {name}": values for name, values in self.values.items()}
        arrays: dict[str, Any]
        arrays = {name: np.array(values, np.float32) for name, values in series.items()}
        arrays |= {name: np.array(getattr(self, name)) for name in _PLAIN}
        arrays |= {
            "outlines": _numbered(self.outlines),
            "marks": np.array([mark.numbers() for mark in self.marks]).reshape(-1, 6),
            "loaded": np.array(self.loaded, dtype=int),
        }
        if self.obstacle_triangles.size:
            arrays["obstacle triangles"] = self.obstacle_triangles
        else:
            del arrays["obstacles"]
        with writing(path):
            np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Snapshots":
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : path-like
            Name of the .npz file.

        Raises
        ------
        ValueError
            If there is no such file, or it holds something else.
        """
        path = as_path("path", path)
        try:
            with np.load(path) as file:
                arrays = dict(file)
            return cls._of(arrays)
        except Exception as failure:  # zipfile, zlib and NumPy have many for what is damaged
            raise ValueError(f"path = '{path}' holds no snapshots: {brief(failure)}") from None

    @classmethod
    def _of(cls, arrays: dict[str, np.ndarray]) -> "Snapshots":
        """The snapshots in the arrays of a file."""
        values = {name[6:]: array for name, array in arrays.items() if name.startswith("field ")}
        number, nodes, _ = arrays["positions"].shape
        arrays = _completed(arrays)
        points, triangles = arrays["obstacles"], arrays["obstacle triangles"]
        pieces = {array.shape[1] for array in values.values()}
        shapes: dict[str, list[tuple[int, ...]]] = {
            "positions": [(number, nodes, 3)],
            "orientations": [(number, nodes, 4), (0,)],
            "times": [(number,)],
            # Of an assembly also the places of the ground.
            "s": [(max(nodes, arrays["s"].size),)],
            "parts": [(len(arrays["parts"]), 2)],
            "outlines": [(len(arrays["outlines"]), 4)],
            "marks": [(len(arrays["marks"]), 6)],
            "loaded": [(arrays["loaded"].size,)],
            "forces": [(number, arrays["loaded"].size, 3)],
            "gravity": [(3,)],
            "obstacles": [(1, points.shape[1], 3), (number, points.shape[1], 3)],
            "obstacle triangles": [(len(triangles), 3)],
            "axis": [()],
            "closed": [()],
            **{f"field {name}": [(number, max(pieces))] for name in values},
        }
        for name, allowed in shapes.items():
            array = arrays[name]
            if array.shape not in allowed or not np.all(np.isfinite(array)):
                raise ValueError(f"'{name}' is not finite, or has the shape {array.shape}")
        found = cls(fields=tuple(values))
        for name in _SERIES:
            setattr(found, name, list(arrays[name].astype(float)))
        found.values = {name: list(array.astype(float)) for name, array in values.items()}
        found.times, found.s = arrays["times"].tolist(), arrays["s"]
        found.gravity, found.closed = arrays["gravity"], bool(arrays["closed"])
        found.axis = check_axis(int(arrays["axis"]))
        found.parts = [(int(first), int(last)) for first, last in arrays["parts"]]
        outlines, owners = arrays["outlines"][:, :3], arrays["outlines"][:, 3]
        found.outlines = [outlines[owners == k] for k in range(len(found.parts)) if len(outlines)]
        found.marks = [Mark.of_numbers(row, nodes) for row in arrays["marks"].tolist()]
        found.loaded = [check_index("node", node, nodes) for node in arrays["loaded"].tolist()]
        if not np.isin(triangles, range(points.shape[1])).all():
            raise ValueError("the triangles are not those of the obstacles")
        found.obstacle_triangles = triangles.astype(int)
        return found


def holds_shapes(name: str, snapshots: Snapshots) -> bool:
    """Whether this rank has the shapes; ``ValueError`` on all ranks if none were taken."""
    if not len(snapshots):
        raise ValueError(f"{name} is empty: give it to run(..., output={name}) first")
    return bool(snapshots.positions)


def _completed(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a file, and those that one without obstacles, or of version 0.1, has not."""
    rest = {"obstacles": np.zeros((1, 0, 3)), "obstacle triangles": np.zeros((0, 3), dtype=int)}
    if "sizes" in arrays:
        rest |= {
            "outlines": _numbered(rectangle(*sides) for sides in arrays["sizes"]),
            "marks": np.zeros((0, 6)),
            "loaded": np.zeros(0, dtype=int),
            "forces": np.zeros((len(arrays["positions"]), 0, 3)),
            "gravity": np.zeros(3),
        }
    return rest | arrays


def _numbered(outlines: Iterable[np.ndarray]) -> np.ndarray:
    """Outlines one after the other, with the number of each beside its corners."""
    rows = [np.column_stack([o, np.full(len(o), k)]) for k, o in enumerate(outlines)]
    return np.concatenate([np.zeros((0, 4)), *rows])


def _gathered(function: Function, order, last: int | None = None) -> np.ndarray | None:
    gathered = function.function_space().comm.gather(function.dat.data_ro.copy())
    return None if gathered is None else np.concatenate(gathered)[order][:last]


def _sorted(mesh, element, drawn=None) -> tuple[Any, Any]:
    """The order of an element's nodes along the mesh, in the cells that are drawn, and where they are."""
    space = FunctionSpace(mesh, element)
    there = Function(space).interpolate(SpatialCoordinate(mesh)[0]).dat.data_ro.copy()
    if drawn is not None:
        there[space.cell_node_map().values[~drawn]] = np.inf
    gathered = mesh.comm.gather(there)
    if gathered is None:
        return None, None
    s = np.concatenate(gathered)
    order = np.argsort(s, kind="stable")[: np.isfinite(s).sum()]
    return order, s[order]
