"""A density that is given cell by cell: a node has half of each cell beside it."""

import numpy as np
import pytest
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    conditional,
    le,
    lt,
)
from verification.beams import along, uneven_mesh

import fdgeom as fg

AREA, CELLS = 0.02 * 0.01, 4
DENSITIES = np.array([1000.0, 4000.0, 2500.0, 8000.0])


def bar(density):
    return fg.Section.rectangle(0.02, 0.01, density=density, youngs_modulus=1e7, poisson_ratio=0.3)


def by_cell(mesh, values=DENSITIES):
    """A DG0 Function with these values in the order of the arc length."""
    field, place = (Function(FunctionSpace(mesh, "DG", 0)) for _ in range(2))
    place.interpolate(SpatialCoordinate(mesh)[0])
    field.dat.data_wo[np.argsort(place.dat.data_ro)] = values
    return field


def mirrored():
    """The uneven mesh with its cells numbered from the right."""
    mesh = uneven_mesh(CELLS)
    x = mesh.coordinates.dat.data_ro[::-1].copy()
    mesh.coordinates.dat.data_wo[...] = x
    return mesh


def test_two_densities():
    """Half a beam of 0.2 and half of 0.6 per length that turns about its left end.

    A velocity of 1 everywhere has the momentum of the mass: (0.2 + 0.6)/2.
    """
    mesh = IntervalMesh(4, 1.0)
    (s,) = SpatialCoordinate(mesh)
    density = Function(FunctionSpace(mesh, "DG", 0)).interpolate(
        conditional(s < 0.5, 1000.0, 3000.0)
    )
    beam = fg.Beam(mesh, bar(density))
    beam.velocity.interpolate(as_vector([0, 0, 0, 0, 0, 1.0]))
    beam.project()
    assert fg.Momentum()(beam)["linear_momentum"][2] == pytest.approx(0.4, rel=1e-14)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(
    "make", [lambda: uneven_mesh(CELLS), mirrored], ids=["as made", "mirrored"]
)
def test_momentum(make, degree):
    """Of a linear velocity it is the sum of ρAh times the mean of the cell, however numbered."""
    mesh = make()
    nodes = np.sort(mesh.coordinates.dat.data_ro)
    (s,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, bar(by_cell(mesh)), degree=degree)
    beam.velocity.interpolate(as_vector([0, 0, 0, 0, 0, 1 + s]))
    beam.project()
    wanted = (DENSITIES * AREA * np.diff(nodes) * (1 + (nodes[1:] + nodes[:-1]) / 2)).sum()
    found = fg.Momentum()(beam)["linear_momentum"]
    assert found[2] == pytest.approx(wanted, rel=1e-13)
    # The same through μ per length of a node: half of each neighbour by its length.
    mass = along(beam.momentum)[:, 5] / (1 + np.sort(np.unique(_places(beam))))
    ends = AREA * DENSITIES[[0, -1]]
    assert mass[[0, -1]] == pytest.approx(ends, rel=1e-13)
    assert mass[degree] == pytest.approx(
        AREA * (DENSITIES[:2] * np.diff(nodes)[:2]).sum() / (nodes[2] - nodes[0]), rel=1e-13
    )


def _places(beam):
    space = beam.momentum.function_space()
    scalar = FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0])
    (s,) = SpatialCoordinate(space.mesh())
    return Function(scalar).interpolate(s).dat.data_ro


def test_changed_between_steps():
    """The field follows; the velocity belongs to the same momentum."""
    mesh = uneven_mesh(CELLS)
    density = by_cell(mesh)
    beam = fg.Beam(mesh, bar(density))
    beam.velocity.interpolate(as_vector([0, 0, 0, 0, 0, 1.0]))
    stepper = fg.PoissonIntegrator(beam, 1e-6)
    stepper.advance(1)
    before = fg.Momentum()(beam)["linear_momentum"][2]
    density.assign(2 * density)
    stepper.advance(1)
    # Of the same momentum the velocity is half; what moves in two steps is of the order of the step.
    assert fg.Momentum()(beam)["linear_momentum"][2] == pytest.approx(before, rel=1e-12)
    assert beam.velocity.dat.data_ro[:, 5] == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("method", [fg.GeneralizedAlpha, fg.EnergyMomentum])
def test_weight_of_an_assembly(method):
    """Its weight is g times the mass of the cells, held and in free fall."""
    mesh = IntervalMesh(CELLS, 1.0)
    beam = fg.Beam(mesh, bar(by_cell(mesh)), left="clamped")
    assembly = fg.Assembly([beam], loads=fg.Gravity((0, 0, -10.0)))
    statics = fg.StaticEquilibrium(assembly)
    statics.solve(steps=20)  # it hangs down from its first cell
    mass = (DENSITIES * AREA / CELLS).sum()
    assert statics.reactions()[0]["left"][1][2] == pytest.approx(10.0 * mass, rel=1e-9)
    free = fg.Beam(mesh, bar(by_cell(mesh)), strain_measure="directors")
    stepper = method(fg.Assembly([free], loads=fg.Gravity((0, 0, -10.0))), 1e-3)
    stepper.advance(10)
    found = fg.Momentum()(stepper.system)["linear_momentum"][2]
    assert found == pytest.approx(-10.0 * mass * 1e-2, rel=1e-9)


def test_a_cell_without_mass_is_refused():
    """Though the means at its nodes are positive."""
    mesh = uneven_mesh(CELLS)
    with pytest.raises(ValueError, match=r"^section\.inertia must be positive definite"):
        fg.Beam(mesh, bar(by_cell(mesh, [1000.0, -10.0, 1000.0, 1000.0])))


def test_a_density_with_a_guard_inside_a_cell():
    """Each side has its own formula, which is asked on its own side alone."""
    mesh = IntervalMesh(4, 1.0)
    (s,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, bar(conditional(lt(s, 0.45), 1000.0 - 2000.0 * s, 100.0)))
    beam.velocity.interpolate(as_vector([0, 0, 0, 0, 0, 1.0]))
    beam.project()
    # The trapezoidal rule.
    mass = 0.25 * AREA * (500.0 + 500.0 + 100.0 + 100.0 + 50.0)
    assert beam.linear_momentum()[2] == pytest.approx(mass, rel=1e-13)


@pytest.mark.parametrize("compare", [lt, le])
def test_a_density_that_jumps_at_a_node(compare):
    """By a condition on the place: the mass is ρ₁ A L/2 + ρ₂ A L/2, whatever the condition says there."""
    mesh = IntervalMesh(4, 1.0)
    (s,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, bar(conditional(compare(s, 0.5), 1000.0, 3000.0)))
    beam.velocity.interpolate(as_vector([0, 0, 0, 0, 0, 1.0]))
    beam.project()
    assert beam.linear_momentum()[2] == pytest.approx(0.4, rel=1e-13)
