"""Plots of sections with centres, axes and stress, and of beams as solids."""

from collections.abc import Mapping

import numpy as np

from fdgeom.sections.drawn_section import DrawnSection
from fdgeom.sections.outline import Tessellation
from fdgeom.validation import instance

from .plots import axes_in_space, matplotlib_pyplot
from .solid import Solid, von_mises
from .space import space_axes, trim

#: Mark and colour of each centre, told apart without colour too.
CENTRES = {"tension_centre": ("o", "black"), "shear_centre": ("x", "tab:red"),
           "mass_centre": ("+", "tab:blue")}  # fmt: skip


def plot_section(
    section: DrawnSection,
    field=None,
    *,
    component: tuple[int, int] | None = None,
    ax=None,
    centres: bool = True,
    edges: bool = True,
    colorbar: bool = True,
    colormap: str = "viridis",
    label: str | None = None,
    title: str | None = None,
):
    """Draw a section: its cells, centres and principal axes, or a field on it.

    Parameters
    ----------
    section : MeshSection
        Made by ``Section.from_mesh``; ``TypeError`` for any other.
    field : Function, optional
        A scalar or a stress, as ``section.recover`` or ``section.failure_index`` give it; the tags
        of the materials by default. Cells are blank where it is infinite.
    component : two ints, optional
        Of a matrix, in the body frame; of a stress, a field with that name, von Mises' by default.
    ax : matplotlib Axes, optional
        A new figure by default.
    centres, edges, colorbar : bool
        Whether to draw centres and principal axes, the edges of the cells, the scale of colours.
    colormap, label, title : str, optional
        Name of a colour map, text beside the scale of colours, title of the axes.

    Returns
    -------
    matplotlib Axes, or None on ranks other than 0
    """
    instance("section", section, DrawnSection, "one made by fdgeom.Section.from_mesh")
    cut = Tessellation(section.mesh, section.element)
    values, names = _field_values(section, cut, field, component)
    gathered = section.mesh.comm.gather((cut.places, cut.triangles, cut.rim, values))
    if gathered is None:
        return None
    pyplot = matplotlib_pyplot()
    ax = ax or pyplot.subplots(figsize=(6, 5), layout="constrained")[1]
    everything = np.concatenate([v[np.isfinite(v)] for *_, v in gathered])
    low, high = (everything.min(), everything.max()) if everything.size else (0.0, 0.0)
    colours = {"cmap": colormap, "vmin": low, "vmax": high if high > low else low + 1}
    for places, triangles, rim, value in gathered:
        points = places.reshape(-1, 2)
        drawn = ax.tripcolor(*points.T, triangles, value.ravel(), shading="gouraud", **colours)
        if edges:
            closed = np.concatenate([rim, rim[:, :1]], axis=1)
            lines = points[closed]
            ax.plot(*np.moveaxis(lines, -1, 0).swapaxes(1, 2), color="white", linewidth=0.3)
    if colorbar and high > low:
        ax.figure.colorbar(drawn, ax=ax, label=label or names, shrink=0.8)
    if centres:
        _draw_centres(ax, section)
    first, second = (k for k in range(3) if k != section.axis)
    ax.set(aspect="equal", xlabel=f"body axis {first}", ylabel=f"body axis {second}")
    if title is not None:
        ax.set_title(title)
    return ax


def _field_values(section, cut, field, component) -> tuple[np.ndarray, str]:
    if field is None:
        values = np.zeros(cut.cells.shape)
        for tag, _, cells in section.regions:
            values[cells] = 0 if tag is None else tag
        return values, "material"
    values, name = cut.values(field), field.name() if hasattr(field, "name") else ""
    return (values, name) if values.ndim == 2 else _scalar(values, component, name)


def _scalar(values: np.ndarray, component, name: str = "stress") -> tuple[np.ndarray, str]:
    """One component of matrices or von Mises' stress, and its name."""
    if component is not None:
        i, j = component
        return values[..., i, j], f"{name} {i}{j}"
    if name != "stress":
        raise TypeError(
            f"component must be two numbers, such as (0, 0), for the field '{name}': only a field "
            "with the name 'stress' has von Mises' stress"
        )
    return von_mises(values), "von Mises stress"


def _draw_centres(ax, section) -> None:
    for name, (mark, colour) in CENTRES.items():
        at = section.origin + getattr(section, name)
        ax.plot(*at, mark, color=colour, fillstyle="none", label=name.replace("_", " "))
    centre = section.origin + section.tension_centre
    size = 0.25 * np.sqrt(section.area)
    transverse = [k for k in range(3) if k != section.axis]
    for direction, style in zip(section.principal_axes[:, transverse], ("-", "--"), strict=True):
        ends = np.array([centre - size * direction, centre + size * direction])
        ax.plot(*ends.T, "k" + style, linewidth=0.8)
    # Below the axes by lines of text, so that a flat section keeps its axis label.
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 4}
    ax.legend(**place, ncols=3, fontsize="small", frameon=False)


def plot_solid(
    beam,
    ax=None,
    *,
    component: tuple[int, int] | None = None,
    colormap: str = "viridis",
    label: str | None = None,
    title: str | None = None,
    units: str | Mapping[str, str] | None = None,
):
    """Draw a beam as a body: its outline along it and the end sections, coloured by stress.

    Parameters
    ----------
    beam : Beam
        With a section made by ``Section.from_mesh``, ``TypeError`` otherwise; the stress is that of
        its strain.
    ax : matplotlib 3-D Axes, optional
        A new figure by default.
    component, colormap, label, title
        The same as in :func:`plot_section`.
    units : "SI" or dict of str to str, optional
        Units for the names of the axes, such as ``{"length": "mm"}``; none by default.

    Returns
    -------
    matplotlib 3-D Axes, or None on ranks other than 0
    """
    solid = Solid(beam)
    resultants = solid.resultants()
    places = solid.places(resultants)
    values, name = _scalar(solid.stress(resultants), component)
    faces, colours = _faces(solid.cut, places, values)
    gathered = solid.section.mesh.comm.gather((faces, colours))
    if gathered is None:
        return None
    pyplot = matplotlib_pyplot()
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    own = ax is None
    if own:
        ax = axes_in_space()
    colours = np.concatenate([c for _, c in gathered])
    mapping = pyplot.cm.ScalarMappable(pyplot.Normalize(colours.min(), colours.max()), colormap)
    polygons = [face for part, _ in gathered for face in part]
    ax.add_collection3d(
        Poly3DCollection(polygons, facecolors=mapping.to_rgba(colours)), autolim=False
    )
    ax.figure.colorbar(mapping, ax=ax, label=label or name, shrink=0.7, pad=0.1)
    space_axes(ax, np.concatenate(polygons), units)
    if title is not None:
        ax.set_title(title)
    if own:
        trim(ax)
    return ax


def _faces(cut: Tessellation, places: np.ndarray, values: np.ndarray) -> tuple[list, np.ndarray]:
    """Quadrilaterals of the outline between stations, and the triangles of both ends."""
    stations = len(places)
    flat, scalars = places.reshape(stations, -1, 3), values.reshape(stations, -1)
    a, b = cut.outline.T
    sides = np.stack([flat[:-1, a], flat[:-1, b], flat[1:, b], flat[1:, a]], axis=2)
    colours = np.stack([scalars[:-1, a], scalars[:-1, b], scalars[1:, b], scalars[1:, a]], axis=2)
    faces, means = list(sides.reshape(-1, 4, 3)), [colours.mean(axis=2).ravel()]
    for end in (0, -1):
        faces += list(flat[end][cut.triangles])
        means.append(scalars[end][cut.triangles].mean(axis=1))
    return faces, np.concatenate(means)
