"""`save_scene`: a run or its modes as a page that a browser shows without anything beside it."""

import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyadjoint.tape import stop_annotating

from fdgeom.files import as_path, writing
from fdgeom.lie.arrays import quaternion
from fdgeom.messages import format_value
from fdgeom.recording.snapshots import Snapshots, holds_shapes
from fdgeom.recording.units import FIELDS, check_units
from fdgeom.sections.outline import ellipse, rectangle
from fdgeom.statics.modes import VibrationModes
from fdgeom.validation import array, choice, instance, text

from .picture import picture

_HERE = Path(__file__).parent
_OUTLINES = {"rectangle": rectangle, "ellipse": lambda a, b: ellipse(a / 2, b / 2)}

#: Shapes in a period, and the largest displacement as a part of the scene.
_FRAMES, _LARGEST = 24, 0.1


class Scene:
    """A scene in a file; Jupyter shows it below the cell that made it."""

    def __init__(self, path: Path, page: str) -> None:
        self.path, self._page = path, page

    def __repr__(self) -> str:
        return f"Scene('{self.path}', {len(self._page) / 1e6:.1f} MB)"

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 520px; border: 0"
        return f'<iframe srcdoc="{html.escape(self._page)}" style="{style}"></iframe>'


def save_scene(
    path: str | os.PathLike,
    shapes: Snapshots | VibrationModes,
    *,
    title: str = "",
    outline: str | None = None,
    thickness: float | Sequence[float] | None = None,
    parameter: str = "t",
    units: str | Mapping[str, str] | None = None,
) -> Scene | None:
    """Write shapes of a run, or vibration modes, as a page for a browser.

    You can turn the scene, play it and colour it by a field. It shows the sections, supports,
    joints, bodies, loads and obstacles of the beams. The page works from a file and without a
    network: k3d, which draws it, is in the page (MIT licence). It plays once unless the reader
    prefers reduced motion, and follows the browser's dark mode. ``run.html?at=0.3`` opens it at 0.3
    of the run. In a Jupyter notebook, the result of this function shows the scene.

    Parameters
    ----------
    path : path-like
        Name of the .html file.
    shapes : Snapshots or VibrationModes
        Snapshots that a run has filled: fields of ``Snapshots(fields=...)`` become choices of
        colour. Of more than 400 snapshots, 400 are drawn. Modes are drawn one at a time.
    title : str
        Title of the page; the name of the file by default.
    outline : {"rectangle", "ellipse"}, optional
        Outline of all sections. The default is that of each section, and a circle where the beams
        have none.
    thickness : float or two floats, optional
        Sides of the outline along its two transverse axes. By default they are those of the
        sections; beams too thin to be seen are drawn thicker, and the page states by how much.
    parameter : str
        Name of the parameter of the shapes, if it is not the time.
    units : "SI" or dict of str to str, optional
        Units of time, length and the fields.

    Returns
    -------
    Scene, or None on ranks without data
        It displays itself in Jupyter.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or ``shapes`` is empty.
    ImportError
        Without k3d: ``pip install "fdgeom[scene]"``.

    Examples
    --------
    >>> shapes = fg.Snapshots(every=10, fields=["curvature", "moment"])
    >>> stepper.run(until=1.0, output=shapes)
    >>> fg.save_scene("run.html", shapes)  # doctest: +SKIP
    """
    path = as_path("path", path, ".html")
    wanted = "a Snapshots that a run has filled, or VibrationModes"
    instance("shapes", shapes, Snapshots | VibrationModes, wanted)
    text("title", title)
    text("parameter", parameter)
    if outline is not None:
        choice("outline", outline, tuple(_OUTLINES))
    sides = None if thickness is None else _sides(thickness)
    names = shapes.fields if isinstance(shapes, Snapshots) else ()
    units = check_units(units, names) | (FIELDS if units == "SI" else {})
    cases: list[dict] = []
    if isinstance(shapes, VibrationModes):
        with stop_annotating():
            shapes, cases = _shapes_of(shapes, units.get("time"))
    if not holds_shapes("shapes", shapes):
        return None
    unit = units.get("time", "") if parameter == "t" else ""
    words = {"title": title or path.stem, "parameter": parameter, "unit": unit}
    try:
        plot = picture(shapes, _outlines(shapes, outline, sides), words, units, cases)
    except ImportError as exc:
        raise ImportError('save_scene needs k3d: pip install "fdgeom[scene]"') from exc
    page = _page(plot, words["title"])
    with writing(path):
        path.write_text(page, encoding="utf-8")
    return Scene(path, page)


def _page(plot, title: str) -> str:
    """The page of a plot, with our controls."""
    page = plot.get_snapshot(additional_js_code=(_HERE / "controls.js").read_text("utf-8"))
    head = [
        "<head>",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="generator" content="fdgeom">',
        f"<title>{html.escape(title)}</title>",
    ]
    # The first title of a page counts, and of two equal rules of style the last.
    page = page.replace("<head>", "\n".join(head), 1)
    style = (_HERE / "controls.css").read_text("utf-8")
    return page.replace("</head>", f"<style>\n{style}</style>\n</head>", 1)


def _outlines(shapes: Snapshots, outline: str | None, sides) -> list[np.ndarray]:
    """The outlines of the parts: their own, or as the caller asks."""
    if outline is None and sides is None:
        return shapes.outlines
    made = _OUTLINES[outline or ("rectangle" if shapes.orientations else "ellipse")]
    if sides is not None:
        return [made(*sides)] * max(1, len(shapes.parts))
    return [made(*np.ptp(own[:, :2], axis=0)) if len(own) else own for own in shapes.outlines]


def _sides(thickness) -> tuple[float, float]:
    wanted = "a positive length or two"
    both = np.broadcast_to(array("thickness", thickness, (), (1,), (2,), wanted=wanted), 2)
    if not np.all(both > 0):
        raise ValueError(f"thickness must be {wanted}, not {format_value(thickness)}")
    return float(both[0]), float(both[1])


def _shapes_of(modes: VibrationModes, time: str | None) -> tuple[Snapshots, list[dict]]:
    """All modes one after the other, and where each begins and ends; ``time``: the unit of time."""
    found = Snapshots()
    found.take(modes.beam, 0.0)
    nodal: list[Any] = [found.nodal(shape) for shape in modes.shapes]
    if not found.positions:
        return found, []
    (position,), (orientation,) = found.positions, found.orientations
    extent, frames = np.linalg.norm(np.ptp(position, axis=0)), _FRAMES + 1
    phase = np.sin(np.linspace(0, 2 * np.pi, frames))[:, None, None]
    found.times = np.arange(float(len(nodal) * frames)).tolist()
    found.forces = found.forces * len(found.times)
    unit = {None: "", "s": " Hz"}.get(time, f"/{time}")
    cases = []
    found.positions, found.orientations = [], []
    for k, (value, shape) in enumerate(zip(modes.eigenvalues, nodal, strict=True)):
        turn, shift = shape[:, :3], shape[:, 3:]
        # A mode that only twists has hardly any displacement: then half a radian at most.
        amplitude = min(
            _LARGEST * extent / max(np.linalg.norm(shift, axis=1).max(), 1e-300),
            0.5 / max(np.linalg.norm(turn, axis=1).max(), 1e-300),
        )
        turns = quaternion.exp(amplitude * phase * turn)
        found.positions += list(position + amplitude * phase * shift)
        found.orientations += list(quaternion.product(orientation, turns))
        name = f"{k + 1}: unstable"
        if np.real(value) >= 0 and abs(np.imag(value)) <= 1e-7 * abs(value):
            name = f"{k + 1}: f = {np.sqrt(np.real(value)) / (2 * np.pi):.4g}{unit}"
        cases.append({"name": name, "first": k * frames, "last": (k + 1) * frames - 1})
    return found, cases
