"""Obstacles in snapshots, plots and scenes, and fields of contact."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, VectorFunctionSpace, as_vector

import fdgeom as fg


@pytest.fixture
def stepper():
    section = fg.Section.circle(0.02, density=1000, youngs_modulus=1e6, poisson_ratio=0.3)
    bodies = (
        fg.Plane((0, 0, 0), (0, 0, 1)),
        fg.Sphere(lambda t: as_vector([0.5, 0, 0.3 + t]), 0.1),
        fg.Cylinder((0.5, 0, 0.2), (0, 1, 0), 0.05),
    )
    touch = fg.Contact(*bodies, stiffness=1e4)
    beam = fg.Beam(IntervalMesh(4, 1.0), section, loads=touch, strain_measure="directors")
    beam.reconstruct(position=(0, 0, 0.015))
    return fg.EnergyMomentum(beam, 1e-3)


def test_obstacles_are_drawn(stepper):
    """The floor, the ball where it is at first, and the bar, as one grey surface."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    shapes = fg.Snapshots()
    stepper.run(steps=2, output=shapes)
    ax = fg.plot_shapes(shapes)
    (surface,) = ax.collections
    corners = np.array(shapes.obstacles[0])[shapes.obstacle_triangles]
    assert len(corners) > 1000
    assert np.abs(corners[..., 2]).min() < 1e-12
    assert surface.get_facecolor()[0, 3] < 0.5
    pyplot.close("all")


def test_forces_of_contact_are_kept(stepper):
    """Sums over parts of the beam: k (q - δ/2) times the length on the floor."""
    shapes = fg.Snapshots()
    shapes.take(stepper.system, 0.0)
    (forces,) = shapes.forces
    assert shapes.loaded == [0, 1, 2, 3, 4]
    ends = np.array([0.125, 0.25, 0.25, 0.25, 0.125])
    assert forces[:, 2] == pytest.approx(1e4 * (0.005 - 5e-4) * ends, rel=1e-12)
    assert np.abs(forces[:, :2]).max() < 1e-12


def test_fields_of_contact(stepper):
    """Force per length k (q - δ/2) on the floor, and the depth."""
    fields = stepper.system.output.fields()
    shape = fields["contact_force"].ufl_shape, fields["contact_depth"].ufl_shape
    assert shape == ((3,), ())
    at = stepper.system.position.function_space().mesh()
    depth = Function(FunctionSpace(at, "CG", 1)).interpolate(fields["contact_depth"])
    force = Function(VectorFunctionSpace(at, "CG", 1, dim=3)).interpolate(fields["contact_force"])
    assert depth.dat.data_ro == pytest.approx(0.005, abs=1e-15)
    assert force.dat.data_ro == pytest.approx(np.tile([0, 0, 1e4 * (0.005 - 5e-4)], (5, 1)))
