"""`save_scene`: shapes of a run as a page that a browser shows, with nothing beside it."""

import base64
import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fdgeom.files import as_path, writing
from fdgeom.messages import format_value
from fdgeom.recording.snapshots import Snapshots
from fdgeom.recording.units import check_units
from fdgeom.validation import choice, instance, text

_HERE = Path(__file__).parent
_OUTLINES = ("rectangle", "ellipse")
#: A rod that is thinner than this part of the scene is drawn thicker at first.
_VISIBLE = 0.006
#: Side of a curve that has no section, as a part of the scene.
_CURVE = 0.01


def save_scene(
    path: str | os.PathLike,
    shapes: Snapshots,
    *,
    title: str = "",
    outline: str | None = None,
    thickness: float | Sequence[float] | None = None,
    parameter: str = "t",
    units: str | Mapping[str, str] | None = None,
) -> None:
    """Write shapes of a run as a page that can be turned, played and coloured in a browser.

    The page needs nothing beside it, and no network: three.js (MIT licence) is in it. Faint lines show
    where the rods are at other times. ``run.html?at=0.3`` opens it at 0.3 of the run.

    Parameters
    ----------
    path : path-like
        Name of the .html file.
    shapes : Snapshots
        That a run has filled. Rods with directors show their twist; what ``Snapshots(fields=...)``
        has kept is there to colour by.
    title : str
        What is seen; the name of the file by default.
    outline : {"rectangle", "ellipse"}, optional
        Of the sections: a rectangle by default, an ellipse where there are no directors.
    thickness : float or two floats, optional
        Sides of the section along its two transverse axes; by default those of the rectangle that
        bends as the section does. Rods too thin to be seen are drawn thicker, by a factor that the
        page tells and lets the reader change.
    parameter : str
        Name of what changes from shape to shape, if it is not the time.
    units : "SI" or dict of str to str, optional
        Units of time and length.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or ``shapes`` is empty.

    Examples
    --------
    >>> shapes = fg.Snapshots(every=10, fields=["curvature", "moment"])
    >>> stepper.run(until=1.0, output=shapes)
    >>> fg.save_scene("run.html", shapes)  # doctest: +SKIP
    """
    instance("shapes", shapes, Snapshots, "a Snapshots that a run has filled")
    text("title", title)
    text("parameter", parameter)
    path = as_path("path", path, ".html")
    if outline is not None:
        choice("outline", outline, _OUTLINES)
    sides = None if thickness is None else _sides(thickness)
    units = check_units(units)
    if not len(shapes):
        raise ValueError("shapes is empty: give it to run(..., output=shapes) first")
    if not shapes.positions:
        return
    title = title or path.stem
    data = _data(shapes, outline, sides) | {
        "parameter": parameter,
        "unit": f" {units['time']}" if "time" in units and parameter == "t" else "",
        "length": units.get("length", ""),
    }
    page = _page(title, data)
    with writing(path):
        path.write_text(page, encoding="utf-8")


def _page(title: str, data: dict) -> str:
    """The template with all of its parts."""
    parts = {
        "TITLE": html.escape(title),
        "STYLE": (_HERE / "style.css").read_text(encoding="utf-8"),
        # A browser looks for tags in a script: "</script" ends it, "<!--<script" hides its end.
        "DATA": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "CORE": _library("three.core.min.js"),
        "MODULE": _library("three.module.min.js"),
        "ORBIT": _library("OrbitControls.js"),
        "VIEWER": (_HERE / "viewer.js").read_text(encoding="utf-8"),
    }
    template = (_HERE / "page.html").read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda match: parts[match[1]], template)


def _library(name: str) -> str:
    return (_HERE / "three" / name).read_text(encoding="utf-8").replace("</script", "<\\/script")


def _data(shapes: Snapshots, outline: str | None, sides: tuple[float, float] | None) -> dict:
    """What the viewer reads."""
    positions = np.array(shapes.positions)
    orientations = np.array(shapes.orientations) if shapes.orientations else None
    parts, values = list(shapes.parts), {n: np.array(v) for n, v in shapes.values.items()}
    if shapes.closed:
        positions = np.concatenate([positions, positions[:, :1]], axis=1)
        parts = [(0, positions.shape[1])]
        if orientations is not None:
            orientations = np.concatenate([orientations, orientations[:, :1]], axis=1)
    if not np.all(np.isfinite(positions)):
        raise ValueError("shapes: a position is not finite")
    extent = float(np.linalg.norm(np.ptp(positions.reshape(-1, 3), axis=0))) or 1.0
    sizes = list(shapes.sizes) or [(0.0, 0.0)] * len(parts)
    sizes = [sides or (s if min(s) > 0 else (_CURVE * extent,) * 2) for s in sizes]
    thickest = max(max(size) for size in sizes)
    factor = max(1.0, _VISIBLE * extent / thickest) if sides is None else 1.0
    steps = np.diff(np.unique(shapes.times))
    digits = max(0, -int(np.floor(np.log10(steps.max())))) if len(steps) else 3
    return {
        "times": [float(t) for t in shapes.times],
        "digits": digits + 1 if len(steps) else digits,
        "nodes": positions.shape[1],
        "parts": parts,
        "sizes": sizes,
        "thickness": float(f"{factor:.2g}"),
        "axis": shapes.axis,
        "outline": outline or ("ellipse" if orientations is None else "rectangle"),
        "positions": _packed(positions),
        "orientations": None if orientations is None else _packed(_continued(orientations)),
        "fields": {name: _packed(value) for name, value in values.items()},
    }


def _continued(quaternions: np.ndarray) -> np.ndarray:
    """Signs such that quaternions of neighbouring times may be mixed."""
    signs = np.sign(np.einsum("tnk,tnk->tn", quaternions[1:], quaternions[:-1]))
    signs = np.cumprod(np.where(signs == 0, 1.0, signs), axis=0)
    return np.concatenate([quaternions[:1], signs[..., None] * quaternions[1:]])


def _packed(values: np.ndarray) -> dict:
    """Integers of 16 bits between the bounds, in base 64."""
    low, high = float(values.min()), float(values.max())
    numbers = np.round((values - low) * (65535 / ((high - low) or 1.0))).astype("<u2")
    text = base64.b64encode(numbers.tobytes()).decode("ascii")
    return {"low": low, "high": high, "base64": text}


def _sides(thickness) -> tuple[float, float]:
    try:
        both = np.broadcast_to(np.asarray(thickness, dtype=float), 2)
    except (TypeError, ValueError):
        both = np.array([np.nan])
    if not np.all(np.isfinite(both)) or not np.all(both > 0):
        raise ValueError(
            f"thickness must be a positive length or two, not {format_value(thickness)}"
        )
    return float(both[0]), float(both[1])
