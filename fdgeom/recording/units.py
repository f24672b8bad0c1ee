"""Units of recorded quantities, in tables and in the names of axes."""

import difflib
from collections.abc import Iterable, Mapping

from fdgeom.validation import instance, text

#: The units of ``units="SI"``.
SI = {
    "time": "s",
    "length": "m",
    "energy": "J",
    "force": "N",
    "moment": "N m",
    "linear_momentum": "kg m/s",
    "angular_momentum": "kg m²/s",
}

#: SI units of fields along beams, beside those.
FIELDS = {
    "curvature": "1/m",
    "velocity": "m/s",
    "angular_velocity": "1/s",
    "strain_energy": "J/m",
    "linear_momentum": "kg/s",
    "angular_momentum": "kg m/s",
}


def check_units(units: str | Mapping[str, str] | None, names: Iterable[str] = ()) -> dict[str, str]:
    """The units by quantity; an error names an unknown quantity."""
    if units is None:
        return {}
    if units == "SI":
        return dict(SI)
    known = list(dict.fromkeys([*SI, *names]))
    instance("units", units, Mapping, "'SI' or a dict such as {'time': 'ms', 'length': 'mm'}")
    for name, unit in units.items():
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"units: {name!r} is not among {', '.join(known)}{hint}")
        text(f"units: that of {name!r}", unit)
    return dict(units)


def unit_of(name: str, units: Mapping[str, str]) -> str:
    """The unit of a recorded quantity, by its name or by its last word, such as energy or force; or ""."""
    kind = "energy" if name == "load_potential" else name.rpartition("_")[2]
    return units.get(name) or units.get(kind, "")


def labelled(words: str, unit: str | None) -> str:
    """The name of a quantity with its unit, if it has one."""
    return f"{words} [{unit}]" if unit else words
