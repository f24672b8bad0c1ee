"""Beams at rest on obstacles: a lifted strip, loads that are scaled and contact that is not, modes."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, assemble, dx
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from verification.beams import along

import fdgeom as fg

FLOOR = fg.Plane((0, 0, 0), (0, 0, 1))
RADIUS = 0.01


def section(shear=1e4):
    return fg.Section(np.diag([1.0] * 3 + [shear] * 3), np.eye(6))


@pytest.mark.parametrize(
    ("stiffness", "rounding", "steps"), [(1e6, 1e-7, 5), (1e8, 1e-8, 1), (1e10, 1e-10, 1)]
)
def test_a_heavy_strip_is_lifted(stiffness, rounding, steps):
    """Its end is lifted by H under the force w (24 EI H/w)^¼ / 2; here EI = w = 1."""
    force = 0.5 * 0.24**0.25
    assert force == pytest.approx(0.349964, abs=1e-6)
    touch = fg.Contact(FLOOR, stiffness=stiffness, radius=RADIUS, rounding=rounding)
    loads = [touch, fg.Gravity((0, 0, -1.0)), fg.Load(force=(0, 0, force), at="right")]
    beam = fg.Beam(IntervalMesh(200, 2.0), section(), left="clamped", loads=loads)
    rest = RADIUS - 1 / stiffness - rounding / 2
    beam.reconstruct(position=(0, 0, rest))
    statics = fg.StaticEquilibrium(beam)
    statics.solve(steps=steps)
    assert not statics.fallbacks
    assert along(beam.position)[-1, 2] - rest == pytest.approx(0.01, rel=2e-3)
    # All of the weight is on the floor, the lifting force and the clamp.
    reaction = statics.reactions()["left"][1][2]
    assert touch.forces(beam)[:, 2].sum() + force + reaction == pytest.approx(2.0, abs=1e-8)


def pressed(stiffness=1e4):
    touch = fg.Contact(fg.Plane((0, 0, -0.02), (0, 0, 1)), stiffness=stiffness, radius=RADIUS)
    loads = [touch, fg.Load(force=(0, 0, -0.5), at="right")]
    beam = fg.Beam(IntervalMesh(20, 1.0), section(), left="clamped", loads=loads)
    return beam, touch


def test_the_load_factor_does_not_scale_contact():
    """At a factor of 2 the beam rests as under a load of 2, and at 0 it is straight."""
    beam, touch = pressed()
    statics = fg.StaticEquilibrium(beam)
    statics.solve(2.0)
    assert touch.depth(beam).max() > 1e-4
    reaction = statics.reactions()["left"][1]
    total = touch.forces(beam).sum(axis=0) + reaction
    assert total == pytest.approx([0, 0, 1.0], abs=1e-9)
    doubled, other = pressed()[0], fg.Load(force=(0, 0, -1.0), at="right")
    doubled = fg.Beam(doubled.mesh, section(), left="clamped", loads=[touch, other])
    fg.StaticEquilibrium(doubled).solve()
    assert along(beam.position) == pytest.approx(along(doubled.position), abs=1e-10)
    statics.solve(0.0, steps=2)
    assert np.abs(along(beam.position)[:, 2]).max() < 1e-10


def test_a_path_through_the_first_touch():
    """The load on the arc length of the path: below the first touch EI w''' = F, then stiffer."""
    beam, touch = pressed()
    statics = fg.StaticEquilibrium(beam)
    loads, depths = [], []
    for _ in range(6):
        loads.append(statics.follow(0.004))
        depths.append(touch.depth(beam).max())
    assert depths[0] < 0 < depths[-1]
    free = along(beam.position)[-1, 2]
    assert free < -0.01
    slopes = np.diff([0.0, *loads])
    assert slopes[0] < 0.2 * slopes[-1]
    through = fg.StaticEquilibrium(pressed()[0], compiled=False)
    through.solve(loads[-1], steps=4)
    assert along(through.beam.position) == pytest.approx(along(beam.position), abs=1e-9)


def test_modes_of_a_beam_that_touches():
    """A rigid beam on a bed of stiffness k: it rolls about its axis freely, tilts with k S/(S + J)
    for the second moment S and the inertia J of the sections, and moves up and down with k/m."""
    stiffness, rounding, slides = 5.0, 1e-6, fg.Sliding("z")
    touch = fg.Contact(FLOOR, stiffness=stiffness, radius=1.0, rounding=rounding)
    beam = fg.Beam(
        IntervalMesh(20, 1.0), section(), left=slides, right=slides,
        loads=[touch, fg.Gravity((0, 0, -1.0))],
    )  # fmt: skip
    beam.reconstruct(position=(0, 0, 1 - 1 / stiffness - rounding / 2))
    modes = fg.VibrationModes(beam, 4)
    s = np.linspace(-0.5, 0.5, 21)
    weights = np.full(21, 0.05)
    weights[[0, -1]] = 0.025
    moment = weights @ s**2
    # Bending of the beam, EI = 1, lowers the second one a little.
    expected = [0.0, stiffness * moment / (moment + 1), stiffness]
    assert modes.eigenvalues[:3] == pytest.approx(expected, rel=3e-3, abs=1e-9)
    assert modes.eigenvalues[2] == pytest.approx(stiffness, rel=1e-9)


def test_equilibria_have_derivatives_by_contact():
    """The tip by the stiffness of the floor, against differences; the load factor stays out."""
    mesh = IntervalMesh(10, 1.0)
    stiffness = Function(FunctionSpace(mesh, "R", 0)).assign(1e4)
    touch = fg.Contact(fg.Plane((0, 0, -0.02), (0, 0, 1)), stiffness=stiffness, radius=RADIUS)
    load = fg.Load(force=(0, 0, -0.5), at="right")
    beam = fg.Beam(mesh, section(), left="clamped", loads=[touch, load])
    statics = fg.StaticEquilibrium(beam)
    continue_annotation()
    try:
        statics.solve(2.0)
        objective = ReducedFunctional(assemble(beam.position[2] * dx(degree=1)), Control(stiffness))
        slope = float(objective.derivative().dat.data_ro.item())
    finally:
        pause_annotation()
    step = 1.0
    ends = [objective(Function(stiffness.function_space()).assign(1e4 + s)) for s in (step, -step)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_eigenvalues_have_derivatives_by_contact():
    """Of a pressed cantilever, by stiffness and radius through its equilibrium, against differences."""
    mesh = IntervalMesh(10, 1.0)
    values = 1e4, RADIUS
    numbers = [Function(FunctionSpace(mesh, "R", 0)).assign(value) for value in values]
    floor = fg.Plane((0, 0, -0.02), (0, 0, 1))
    touch = fg.Contact(floor, stiffness=numbers[0], radius=numbers[1], rounding=8e-3)
    loads = [touch, fg.Load(force=(0, 0, -0.5), at="right")]
    beam = fg.Beam(mesh, section(), left="clamped", loads=loads)
    statics = fg.StaticEquilibrium(beam)

    def modes(*changes):
        for number, value, change in zip(numbers, values, changes, strict=True):
            number.assign(value * (1 + change))
        statics.solve(2.0)
        return fg.VibrationModes(beam, 4, load=2.0)

    h, expected = 1e-3, []
    for way in np.eye(2):
        one, two = (
            modes(*(c * way)).eigenvalues - modes(*(-c * way)).eigenvalues for c in (h, 2 * h)
        )
        expected.append((8 * one - two)[:3] / (12 * h))
    continue_annotation()
    try:
        taped = modes(0, 0)
        found = [
            ReducedFunctional(taped.eigenvalue(k), list(map(Control, numbers))) for k in range(3)
        ]
        slopes = np.array([[d.dat.data_ro.item() for d in f.derivative()] for f in found])
    finally:
        pause_annotation()
    assert 1e-4 < touch.depth(beam).max() < 8e-3  # where the force begins smoothly
    for differences, by, value in zip(expected, slopes.T, values, strict=True):
        assert by * value == pytest.approx(differences, abs=1e-6 * np.abs(differences).max())
