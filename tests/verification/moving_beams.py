"""Published motions of beams in configuration form."""

import itertools

import numpy as np
from firedrake import IntervalMesh, as_vector, conditional, cos, lt, pi, sin

import fdgeom as fg


def end(beam, name="right"):
    """Position of an end, on every rank."""
    coordinates, position = beam.mesh.coordinates.dat.data_ro, beam.position.dat.data_ro
    owned = beam.position.dat.dataset.size
    sign = 1 if name == "right" else -1
    pieces = [(-np.inf, None)]
    if owned:
        k = np.argmax(sign * coordinates[:owned])
        pieces = [(sign * coordinates[k], position[k].copy())]
    found = [piece for part in beam.comm.allgather(pieces) for piece in part]
    return max(found, key=lambda piece: piece[0])[1]


def spaghetti(cells=100):
    """The plane flying spaghetti: pulled and turned at an end for 2.5 s."""
    section = fg.Section(np.diag([100.0] * 3 + [1e4] * 3), np.diag([10.0] * 3 + [1.0] * 3))

    # What ends with a step does not act on the next.
    def on(t):
        return conditional(lt(t, 2.5 + 1e-9), 1.0, 0.0)

    load = fg.Load(
        force=lambda t: as_vector([8 * on(t), 0, 0]),
        moment=lambda t: as_vector([0, 0, -80 * on(t)]),
        at="left",
    )
    beam = fg.Beam(IntervalMesh(cells, 10.0), section, loads=load)
    angle = np.arctan2(8, -6)
    turn = (np.cos(angle / 2), 0, 0, np.sin(angle / 2))
    beam.reconstruct(position=(6, 0, 0), orientation=turn)
    return beam


def rubber_rod(cells=20):
    """A rod of rubber, pinned, let go from the horizontal."""
    section = fg.Section.circle(
        5e-3, density=1100, youngs_modulus=5e6, poisson_ratio=0.5, shear_factor=1
    )
    mesh = IntervalMesh(cells, 1.0)
    return fg.Beam(mesh, section, left="pinned", loads=fg.Gravity((0, -9.81, 0)))


def spun_up(cells=20):
    """A beam whose left end is turned faster and faster, up to 6 rad/s at 15 s."""

    def angle(t):
        faster = 6 / 15 * (t**2 / 2 + (15 / (2 * pi)) ** 2 * (cos(2 * pi * t / 15) - 1))
        return conditional(lt(t, 15), faster, 6 * t - 45)

    section = fg.Section(np.diag([1.4e4] * 3 + [2.8e7, 1e7, 1e7]), np.diag([6e-4] * 3 + [1.2] * 3))
    turned = fg.GivenPose(
        position=lambda t: as_vector([0 * t, 0, 0]),
        orientation=lambda t: as_vector([cos(angle(t) / 2), 0, 0, sin(angle(t) / 2)]),
    )
    return fg.Beam(IntervalMesh(cells, 10.0), section, left=turned)


def flexible_double_pendulum(first=3, second=5, factor=1.0, **options):
    """Arms of 0.3 m and 0.5 m along x and y, of a section of half a millimetre, under gravity.

    ``factor`` multiplies the stiffness.
    """
    b, rho, E, nu = 5e-4, 2700.0, 2.1e10, 0.3
    area, moment, shear = b**2, b**4 / 12, E / 2 / (1 + nu)
    stiffness = [
        0.1406 * b**4 * shear,
        E * moment,
        E * moment,
        E * area,
        *[5 / 6 * shear * area] * 2,
    ]
    inertia = rho * np.diag([2 * moment, moment, moment, area, area, area])
    section = fg.Section(factor * np.diag(stiffness), inertia)
    options = {"strain_measure": "se3"} | options
    upper = fg.Beam(IntervalMesh(first, 0.3), section, **options)
    lower = fg.Beam(IntervalMesh(second, 0.5), section, **options)
    half = np.sqrt(0.5)
    lower.reconstruct(position=(0.3, 0, 0), orientation=(half, 0, 0, half))
    joints = [fg.Spherical(fg.ground, upper.left), fg.Spherical(upper.right, lower.left)]
    return fg.Assembly([upper, lower], joints, loads=fg.Gravity((0, 0, -9.81)))


def stiff_double_pendulum():
    """The same arms, hanging in a plane from the horizontal, ten thousand times as stiff."""
    known = flexible_double_pendulum(factor=1e5)
    upper, lower = (fg.Beam(beam.mesh, beam.section) for beam in known.beams)
    lower.reconstruct(position=(0.3, 0, 0))
    joints = [fg.Spherical(fg.ground, upper.left), fg.Spherical(upper.right, lower.left)]
    return fg.Assembly([upper, lower], joints, loads=fg.Gravity((0, 0, -9.81)))


#: Pivots of the four-bar linkage: crank from A to B, coupler to C, rocker to D.
FOUR_BAR = np.array([(0.0, 0.0), (0.1, 0.2), (0.8, 0.5), (0.8, 0.0)])


def four_bar(cells=4, radius=0.02, modulus=2e11):
    """Three bars (of steel) on four hinges, let go at rest under gravity along -y."""
    section = fg.Section.circle(
        radius, density=7800, youngs_modulus=modulus, poisson_ratio=0.3, shear_factor=1
    )
    bars = []
    for a, b in itertools.pairwise(FOUR_BAR):
        along = b - a
        angle = np.arctan2(along[1], along[0])
        bar = fg.Beam(IntervalMesh(cells, np.linalg.norm(along)), section)
        turn = (np.cos(angle / 2), 0, 0, np.sin(angle / 2))
        bar.reconstruct(position=(*a, 0), orientation=turn)
        bars.append(bar)
    crank, coupler, rocker = bars
    places = [
        (fg.ground, crank.left),
        (crank.right, coupler.left),
        (coupler.right, rocker.left),
        (rocker.right, fg.ground),
    ]
    hinges = [fg.Revolute(*pair, axis=(0, 0, 1)) for pair in places]
    return fg.Assembly(bars, hinges, loads=fg.Gravity((0, -9.81, 0)))
