"""The free-flying beam in PyElastica (position Verlet) and in fdgeom, at equal step.

A beam of length 2π/3 and square section, bent to curvature 1 from straight, flies with the velocities
(1, ½, 2(2s/L - 1)) in space; shear factor 5/6, torsion constant 0.140577 a⁴.
"""

from __future__ import annotations

import numpy as np
from case import (
    AREA,
    DENSITY,
    LENGTH,
    POISSON_RATIO,
    SECOND_MOMENT,
    SHEAR_MODULUS,
    SIDE,
    YOUNGS_MODULUS,
    step,
)
from fdgeom_beam import LOCAL_NEWTON
from firedrake import IntervalMesh, SpatialCoordinate, as_vector

import fdgeom as fg

SHEAR_FACTOR, TORSION = 5 / 6, 0.140577 * SIDE**4


def velocity(s: np.ndarray) -> np.ndarray:
    """Velocities in space at arc lengths s: shape (3, n)."""
    return np.array([np.ones_like(s), np.full_like(s, 0.5), 2 * (2 * s / LENGTH - 1)])


class ElasticaBeam:
    """PyElastica's Cosserat rod; its forces and its bookkeeping as they come.

    Raises
    ------
    ImportError
        If PyElastica is not installed.
    """

    def __init__(self, cells: int) -> None:
        import elastica

        self._dt, self._time = step(cells), 0.0
        s = np.linspace(0, LENGTH, cells + 1)
        position = np.array([np.zeros_like(s), np.cos(s) - 1, np.sin(s)])
        chords = np.diff(position)
        tangents = chords / np.linalg.norm(chords, axis=0)
        directors = np.zeros((3, 3, cells))
        directors[0, 0], directors[2] = 1.0, tangents
        directors[1] = np.cross(directors[2], directors[0], axis=0)
        self._rod = rod = elastica.CosseratRod.straight_rod(
            cells,
            position[:, 0].copy(),
            tangents[:, 0].copy(),
            np.array([1.0, 0.0, 0.0]),
            LENGTH,
            np.sqrt(AREA / np.pi),
            DENSITY,
            youngs_modulus=YOUNGS_MODULUS,
            shear_modulus=SHEAR_MODULUS,
            position=position,
            directors=directors,
        )
        inertia = DENSITY * LENGTH / cells * SECOND_MOMENT * np.diag([1.0, 1.0, 2.0])
        bending = np.diag([YOUNGS_MODULUS * SECOND_MOMENT] * 2 + [SHEAR_MODULUS * TORSION])
        shear = AREA * np.diag([SHEAR_FACTOR * SHEAR_MODULUS] * 2 + [YOUNGS_MODULUS])
        rod.mass_second_moment_of_inertia[...] = inertia[..., None]
        rod.inv_mass_second_moment_of_inertia[...] = np.linalg.inv(inertia)[..., None]
        rod.bend_matrix[...] = bending[..., None]
        rod.shear_matrix[...] = shear[..., None]
        rod.velocity_collection[...] = velocity(s)
        self._systems = elastica.BaseSystemCollection()
        self._systems.append(rod)
        self._systems.finalize()
        self._stepper = elastica.PositionVerlet()

    def advance(self, steps: int) -> None:
        one, systems, dt = self._stepper.step, self._systems, self._dt
        for _ in range(steps):
            self._time = one(systems, self._time, dt)

    def positions(self) -> np.ndarray:
        """Shape (nodes, 3)."""
        return np.array(self._rod.position_collection).T


class FreeFlight:
    """The same beam in fdgeom: all steps in one call, or (``singly``) one step a call."""

    def __init__(self, cells: int, *, singly: bool = False, local: bool = False) -> None:
        section = fg.Section.rectangle(
            SIDE,
            SIDE,
            density=DENSITY,
            youngs_modulus=YOUNGS_MODULUS,
            poisson_ratio=POISSON_RATIO,
            shear_factor=SHEAR_FACTOR,
            torsion_constant=TORSION,
            axis=2,
        )
        mesh = IntervalMesh(cells, LENGTH)
        self._beam = beam = fg.Beam(mesh, section)
        beam.strain.interpolate(as_vector([1, 0, 0, 0, 0, 0]))
        beam.reconstruct()
        (s,) = SpatialCoordinate(mesh)
        arc = beam.position.copy(deepcopy=True).interpolate(as_vector([s, s, s])).dat.data_ro[:, 0]
        angle = 2 * np.arctan2(
            beam.orientation.dat.data_ro[:, 1], beam.orientation.dat.data_ro[:, 0]
        )
        c, d, (x, y, z) = np.cos(angle), np.sin(angle), velocity(arc)
        body = np.array([x, c * y + d * z, c * z - d * y])  # the sections are turned about axis 0
        beam.momentum.dat.data_wo[:, :3] = 0.0
        beam.momentum.dat.data_wo[:, 3:] = DENSITY * AREA * body.T
        beam.consistency.prepare()
        self._order = np.argsort(arc)
        options = {"compiled": False, "solver_parameters": LOCAL_NEWTON} if local else {}
        self._stepper = fg.PoissonIntegrator(beam, step(cells), **options)
        self._singly = singly

    def advance(self, steps: int) -> None:
        if not self._singly:
            self._stepper.advance(steps)
            return
        for _ in range(steps):
            self._stepper.advance()

    def positions(self) -> np.ndarray:
        """Shape (nodes, 3)."""
        return self._beam.position.dat.data_ro[self._order]
