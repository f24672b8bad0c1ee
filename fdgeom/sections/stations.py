"""Sections at stations along a beam, as a user gives them."""

import numpy as np
from ufl.core.expr import Expr

from fdgeom.messages import format_value
from fdgeom.taping import refuse_recorded

from .matrices import SectionMatrices


def check_stations(stations) -> tuple[np.ndarray, list]:
    """Arc lengths and sections of (s, section) pairs, in order."""
    try:
        stations = list(stations)
        refuse_recorded("stations", [s for s, _ in stations])
        pairs = sorted(((float(s), section) for s, section in stations), key=lambda pair: pair[0])
    except (TypeError, ValueError):
        raise TypeError(
            f"stations must be pairs (s, section), not {format_value(stations)}"
        ) from None
    for s, _ in stations:
        if isinstance(s, Expr):
            raise TypeError(
                f"stations: an arc length is read once: give a number, not {format_value(s)}"
            )
    for _, section in pairs:
        if not isinstance(section, SectionMatrices):
            raise TypeError(f"stations: {section!r} is no fdgeom.Section")
        if not section.is_constant:
            raise ValueError("stations: a section varies along the beam itself")
        if section.read_by_beams[0] is not section.stiffness:
            raise NotImplementedError(
                "gradients by materials of sections between stations are not there: make the drawn "
                "sections inside 'with firedrake.adjoint.stop_annotating():' (their matrices then "
                "count as given data), or give beams of one section each"
            )
    places = np.array([s for s, _ in pairs])
    if len(pairs) < 2 or not np.all(np.isfinite(places)) or np.any(np.diff(places) <= 0):
        raise ValueError("stations must be two or more, at different finite arc lengths")
    if len({section.axis for _, section in pairs}) > 1:
        raise ValueError("stations: all sections must have the same axis")
    return places, [section for _, section in pairs]
