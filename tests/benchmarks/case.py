"""The beam of the benchmarks and its start, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LENGTH, SIDE = 2 * np.pi / 3, 0.1
DENSITY, YOUNGS_MODULUS, POISSON_RATIO = 1000.0, 1e7, 0.35
SHEAR_MODULUS = YOUNGS_MODULUS / 2 / (1 + POISSON_RATIO)
AREA, SECOND_MOMENT = SIDE**2, SIDE**4 / 12

#: D₁ and D₂ of the paper (the beam lies along axis 1).
INERTIA = DENSITY * np.array([SECOND_MOMENT, 2 * SECOND_MOMENT, SECOND_MOMENT, AREA, AREA, AREA])
STIFFNESS = np.array(
    [
        YOUNGS_MODULUS * SECOND_MOMENT,
        SHEAR_MODULUS * 2 * SECOND_MOMENT,
        YOUNGS_MODULUS * SECOND_MOMENT,
        SHEAR_MODULUS * AREA,
        YOUNGS_MODULUS * AREA,
        SHEAR_MODULUS * AREA,
    ]
)
TANGENT = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
#: Weight of an end node in cells, as the paper sums.
END_WEIGHT = 1.0
#: Names and how many numbers each has at a node or in a cell.
FIELDS = {"strain": 6, "momentum": 6, "position": 3, "orientation": 4}


def step(cells: int) -> float:
    """The paper's step, scaled with the cell."""
    return 1e-4 * 100 / cells


@dataclass
class State:
    """Values along the beam: strain (cells, 6), momentum (nodes, 6), position, orientation."""

    strain: np.ndarray
    momentum: np.ndarray
    position: np.ndarray
    orientation: np.ndarray


def start(cells: int) -> State:
    """A circular arc of curvature -1 about E₁ that moves; g_{j+1} = g_j cay(h(γ+e))."""
    h, nodes = LENGTH / cells, np.arange(cells + 1)
    strain = np.tile([-1.0, 0, 0, 0, 0, 0], (cells, 1))
    momentum = np.zeros((cells + 1, 6))
    momentum[:, 3] = AREA * DENSITY * np.sin(np.pi * nodes / cells)
    momentum[:, 4] = AREA * DENSITY
    half = -nodes * np.arctan(h / 2)  # half the angle of the section at each node
    orientation = np.zeros((cells + 1, 4))
    orientation[:, 0], orientation[:, 1] = np.cos(half), np.sin(half)
    # One cell goes by cay's translation (E₂ - h/2 E₁×E₂) h/(1 + h²/4), turned by the section.
    y, z = h / (1 + h**2 / 4), -(h**2) / 2 / (1 + h**2 / 4)
    c, s = np.cos(2 * half[:-1]), np.sin(2 * half[:-1])
    position = np.zeros((cells + 1, 3))
    position[1:, 1] = np.cumsum(c * y - s * z)
    position[1:, 2] = np.cumsum(s * y + c * z)
    return State(strain, momentum, position, orientation)


def difference(a: State, b: State) -> float:
    """Largest difference of two states, each field measured by its largest value."""
    worst = 0.0
    for name in FIELDS:
        x, y = getattr(a, name), getattr(b, name)
        worst = max(worst, float(np.abs(x - y).max() / np.abs(y).max()))
    return worst
