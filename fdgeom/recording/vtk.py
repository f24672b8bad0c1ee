"""Time series for ParaView (VTK files): fields on curves in space, or on the system's own mesh."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import ufl
from firedrake import Function, FunctionSpace, Mesh, VTKFile, as_vector
from pyadjoint.tape import stop_annotating

from fdgeom.compat import set_topology
from fdgeom.files import as_path, on_root, writable
from fdgeom.messages import Described
from fdgeom.validation import whole

from .interpolated import Interpolated, chosen, common_element


class VTKOutput(Described):
    """Fields of the system as a .pvd time series, written with Firedrake's VTKFile.

    A beam is drawn as a curve where it is in space, other systems on their own mesh. Vectors of
    six components are split into `name_angular` and `name_linear` (rotation first, translation
    last), other vectors of more than three into numbers `name_0`, `name_1`, ...

    Parameters
    ----------
    path : path-like
        Name of the .pvd file; the data go to a folder of the same name beside it, in which letters
        beyond ASCII are written as their codes (``u00fc`` for ü).
    every : int
        Number of steps between two frames; the first and the last state are always written.
    fields : sequence of str, optional
        Names among `system.output.fields()`; all by default.
    append : bool
        Continue an existing series (a resumed run): frames at or after the present time are
        replaced. A second run with the same object continues its series too.
    solid : bool
        Draw a beam whose section is a mesh (`Section.from_mesh`) as a three-dimensional body of its
        warped sections; the fields are then `stress` (body frame) and `von_mises`, computed from
        the beam's strain.

    Raises
    ------
    ImportError
        When the vtk package is missing.
    ValueError
        Naming `path`, `every` or `fields`.
    TypeError
        At the start of a run, if `solid` is True and the system is no such beam.

    Notes
    -----
    All fields and the nodes are interpolated to one Lagrange space: continuous if all are,
    of the highest degree among them. A mixture of CG1 and DG0 fields is written as DG1, in which
    both are exact.
    """

    _shown = ("path", "every", "fields")

    def __init__(
        self,
        path: str | os.PathLike,
        every: int = 1,
        fields: Sequence[str] | None = None,
        append: bool = False,
        solid: bool = False,
    ) -> None:
        try:
            import vtkmodules.vtkCommonDataModel  # noqa: F401
        except ImportError as exc:
            raise ImportError('VTKOutput needs vtk: pip install "fdgeom[vtk]"') from exc
        self.path = as_path("path", path, ".pvd")
        if isinstance(fields, str):
            raise ValueError(f"fields must be a sequence of names, got the string '{fields}'")
        self.every = whole("every", every, least=1)
        self.fields = None if fields is None else tuple(fields)
        self.append = append
        self.solid = solid

    def open(self, stepper) -> None:
        """Build the curve mesh, the output spaces and the interpolators.

        Raises
        ------
        ValueError
            Naming `path` when it cannot be written, or `fields` when the system lacks one.
        """
        system = stepper.system
        comm = system.mesh.comm
        writable("path", self.path, comm)
        folder = self.path.with_name(_plain(self.path.stem))
        writable("path", folder / "part", comm)
        self._system = system
        self._updates: list[Callable[[], object]] = []
        if self.solid:
            from .solid import SolidMesh

            body = SolidMesh(system, self.fields)
            self._topology: Any = None
            self._mesh, self._functions = body.mesh, body.functions
            self._updates.append(body.update)
        else:
            fields = chosen(self.fields, system.output.fields())
            self._draw(system, {k: v for n, f in fields.items() for k, v in _parts(n, f).items()})
        if self.append:
            on_root(
                comm,
                lambda: _forget(self.path, stepper.t - 1e-6 * stepper.dt),
                ValueError,
                f"path = '{self.path}'",
            )
        self._file = VTKFile(str(self.path), comm=comm, mode="a" if self.append else "w")
        if comm.rank == 0 and folder.name != self.path.stem:
            with suppress(OSError):
                self.path.with_suffix("").rmdir()
        # Firedrake writes the names of files as ASCII.
        self._file.basename, self._file.vtu_basename = str(folder), str(folder / folder.name)
        if self._topology is not None:
            set_topology(self._file, self._topology)
        self.append = True

    def _draw(self, system, fields: dict) -> None:
        position, self._topology = system.output.coordinates, None
        drawn = [*fields.values(), *([] if position is None else [position])]
        element = common_element(system.mesh, drawn)
        if position is None:
            self._mesh = system.mesh
        else:
            self._mesh = Mesh(self._interpolated(position, element))
        self._functions = [self._carried(n, f, element) for n, f in fields.items()]
        cells = system.output.cells()
        if cells is None and element.degree() > 1 and system.mesh.ufl_cell() == ufl.interval:
            cells = slice(None)
        if cells is not None:
            self._topology = _topology(FunctionSpace(self._mesh, element), cells)

    def write(self, stepper) -> None:
        """Write one frame at the stepper's time."""
        with stop_annotating(), self._system.consistency.prepared():
            self._system.output.refresh()
            for update in self._updates:
                update()
        self._file.write(*(self._functions or [self._mesh]), time=float(stepper.t))

    def close(self) -> None:
        """Do nothing: the series is complete after each frame."""

    def _interpolated(self, expression, scalar_element) -> Function:
        """A Function on the system's mesh, interpolated from `expression` at each frame."""
        found = Interpolated(expression, scalar_element, self._system.mesh)
        self._updates.append(found.apply)
        return found.values

    def _carried(self, name: str, expression, element) -> Function:
        """A Function on the drawn mesh that shares its data with one on the system's mesh."""
        values = self._interpolated(expression, element)
        space = FunctionSpace(self._mesh, values.function_space().ufl_element())
        return Function(space, val=values.dat, name=_plain(name))


def _plain(name: str) -> str:
    """A name in ASCII, without the special characters of XML."""
    return re.sub(r'[^ -~]|["&<>]', lambda letter: f"u{ord(letter[0]):04x}", name)


def _parts(name: str, f) -> dict:
    """A field as fields of VTK: numbers, vectors of up to three components, matrices up to 3×3."""
    shape = f.ufl_shape
    if len(shape) > 2 or (len(shape) == 2 and max(shape) > 3):
        raise ValueError(f"fields: '{name}' has the shape {shape}; VTK takes at most (3, 3)")
    if len(shape) != 1 or shape[0] <= 3:
        return {name: f}
    if shape[0] == 6:
        return {
            f"{name}_angular": as_vector([f[i] for i in range(3)]),
            f"{name}_linear": as_vector([f[i] for i in range(3, 6)]),
        }
    return {f"{name}_{i}": f[i] for i in range(shape[0])}


def _topology(space, drawn: np.ndarray | slice) -> tuple:
    """Connectivity of the drawn cells of a line, each with both ends first, as VTK reads them."""
    from firedrake.output.vtk_output import get_topology  # needs the vtk package

    connectivity, offsets, types = get_topology(Function(space))
    # Firedrake's equispaced element has that order; its VTKFile would list nodes from end to end.
    nodes = space.cell_node_map().values[drawn].astype(connectivity.array.dtype)
    arrays = nodes.flatten(), offsets.array[: len(nodes)], types.array[: len(nodes)]
    whole = connectivity, offsets, types
    return tuple(type(w)(a, *w[1:]) for w, a in zip(whole, arrays, strict=True))


def _forget(path: Path, limit: float) -> None:
    """Remove the frames at or after a time from the .pvd file."""
    if not path.exists():
        return
    try:
        ElementTree.parse(path)
    except ElementTree.ParseError as error:
        raise ValueError(f"append: the file is not a series of frames ({error})") from None
    lines = path.read_text().splitlines(keepends=True)
    times = [re.match(r'<DataSet timestep="([^"]*)"', line) for line in lines]
    kept = [li for li, m in zip(lines, times, strict=True) if not m or float(m[1]) < limit]
    path.write_text("".join(kept))
