"""Derivatives of the elasticity of a section by one parameter of its materials."""

from typing import NamedTuple

import numpy as np
from firedrake import FunctionSpace

from .elasticity import Regions, matrix_of, values_at
from .material import Material, unchecked

#: A step along the imaginary axis: the imaginary part is the derivative to the last digit.
STEP = 1e-30


class Change(NamedTuple):
    """dC (points, 6, 6) and dρ (points,) on this rank."""

    elasticity: np.ndarray
    density: np.ndarray


def change_of(regions: Regions, parameter, tag, element) -> Change:
    """The derivative of C and ρ by a parameter of the material with a tag, or of all that have it."""
    name, index = parameter if isinstance(parameter, tuple) else (parameter, None)
    if tag is not None and tag not in regions.materials:
        raise ValueError(f"tag: no material has the tag {tag!r}")
    space = FunctionSpace(regions.mesh, element)
    # With the halo first, since cells are known with it.
    count = space.dof_dset.total_size
    elasticity, density = np.zeros((count, 6, 6)), np.zeros(count)
    found = False
    for here, material, cells in regions:
        if tag not in (None, here) or not isinstance(material, Material):
            continue
        nodes = space.cell_node_list[cells]
        moved = _moved(material.evaluated(values_at(space, nodes)), name, index)
        if moved is None:
            continue
        found = True
        elasticity[nodes] = matrix_of(moved).imag / STEP
        density[nodes] = np.imag(moved.density) / STEP
    if not found:
        raise ValueError(f"parameter: no material there has {parameter!r}")
    own = space.dof_dset.size
    return Change(elasticity[:own], density[:own])


def _moved(material, name: str, index: int | None):
    """The material with the parameter off the real axis; None if it has no such parameter."""
    values = vars(material)
    if name in values and not isinstance(values[name], Material):
        value = values[name]
        if index is None and not isinstance(value, tuple):
            return unchecked(material, **{name: value + 1j * STEP})
        if index is None or not isinstance(value, tuple) or not 0 <= index < len(value):
            return None
        moved = tuple(v + 1j * STEP if k == index else v for k, v in enumerate(value))
        return unchecked(material, **{name: moved})
    inner = values.get("material")
    moved = None if inner is None else _moved(inner, name, index)
    return None if moved is None else unchecked(material, material=moved)
