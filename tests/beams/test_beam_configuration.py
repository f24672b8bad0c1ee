"""From strain to configuration and back."""

import numpy as np
import pytest
from firedrake import IntervalMesh, PeriodicIntervalMesh, SpatialCoordinate, as_vector, cos, sin
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm
from verification.beams import INERTIA, SOFT, STIFFNESS, along, arc, set_random, uneven_mesh
from verification.numpy_beam import NumpyBeam, hat, rotation

import fdgeom as fg

DEGREES = (1, 2, 3, 4)
LENGTH = 1.5
E = np.eye(6)[3]


def strain_of_curve(s, sin, cos):
    """A strain that bends, twists, shears and stretches along a curve in space."""
    return [
        0.8 * cos(2 * s),
        0.7 * sin(3 * s) + 0.3,
        1.5 + 0.5 * s,
        0.1 * sin(2 * s),
        0.2 * s,
        -0.1 * cos(s),
    ]


def exact_curve(points):
    """g' = g (γ+e)^ by a Runge–Kutta method of order 8."""

    def slope(s, g):
        return (g.reshape(4, 4) @ hat(np.array(strain_of_curve(s, np.sin, np.cos)) + E)).ravel()

    solution = solve_ivp(
        slope, (0, LENGTH), np.eye(4).ravel(), "DOP853", points, rtol=3e-14, atol=1e-15
    )
    return solution.y.T.reshape(-1, 4, 4)


def poses(beam):
    g = np.tile(np.eye(4), (len(along(beam.position)), 1, 1))
    g[:, :3, :3], g[:, :3, 3] = rotation(along(beam.orientation)), along(beam.position)
    return g


def test_chain_of_cayley_maps(rng):
    """Degree 1: g_{j+1} = g_j cay(Δs (γ+e)), by a loop with 4×4 matrices."""
    beam = set_random(fg.Beam(uneven_mesh(7), SOFT))
    plain = NumpyBeam(arc(beam.momentum), STIFFNESS, INERTIA)
    plain.strain = along(beam.strain)
    plain.reconstruct()
    # Seven products of matrices of order one.
    assert poses(beam) == pytest.approx(plain.pose, abs=1e-14)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    beam.reconstruct(position=[1.0, -2.0, 0.5], orientation=q)
    start = np.eye(4)
    start[:3, :3], start[:3, 3] = rotation(q), [1.0, -2.0, 0.5]
    assert poses(beam) == pytest.approx(start @ plain.pose, abs=1e-14)


@pytest.mark.parametrize("degree", DEGREES)
def test_project_inverts_reconstruct(degree):
    beam = set_random(fg.Beam(uneven_mesh(5), SOFT, degree=degree))
    strain, momentum = along(beam.strain), along(beam.momentum)
    beam.strain.assign(0.0)
    beam.momentum.assign(0.0)
    beam.project()
    # Differences of poses over short pieces of a cell lose a digit or two.
    assert along(beam.strain) == pytest.approx(strain, abs=1e-12)
    assert along(beam.momentum) == pytest.approx(momentum, abs=1e-14)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_helix_is_exact(degree):
    """Constant strain: g(s) = exp(s (γ+e))."""
    beam = fg.Beam(uneven_mesh(4), SOFT, degree=degree)
    strain = [0.7, -0.4, 1.9, 0.1, 0.2, -0.3]
    beam.strain.interpolate(as_vector(strain))
    beam.reconstruct()
    exact = np.array([expm(s * hat(strain + E)) for s in arc(beam.momentum)])
    assert poses(beam) == pytest.approx(exact, abs=1e-13)


def test_clothoid():
    """Curvature growing with the arc length, in the plane: Magnus gives order 6 (degree 2)."""
    errors = []
    for cells in (2, 4, 8):
        beam = fg.Beam(IntervalMesh(cells, LENGTH), SOFT, degree=2)
        (s,) = SpatialCoordinate(beam.mesh)
        beam.strain.interpolate(as_vector([0.0, 0.0, 4.0 * s, 0.0, 0.0, 0.0]))
        beam.reconstruct()
        x = quad(lambda s: np.cos(2 * s**2), 0, LENGTH, epsabs=1e-14)[0]
        y = quad(lambda s: np.sin(2 * s**2), 0, LENGTH, epsabs=1e-14)[0]
        errors.append(np.abs(along(beam.position)[-1] - [x, y, 0]).max())
    assert errors[-1] < 1e-6
    assert np.log2(errors[1] / errors[2]) == pytest.approx(6, abs=0.4)


@pytest.mark.parametrize(
    # At all nodes; at the nodes that bound the cells.
    ("degree", "everywhere", "between_cells"),
    [(1, 2, 2), (2, 4, 4), (3, 5, 6), (4, 6, 6)],
)
def test_order_on_a_curve_in_space(degree, everywhere, between_cells):
    errors = []
    for cells in (4, 8, 16):
        beam = fg.Beam(IntervalMesh(cells, LENGTH), SOFT, degree=degree)
        (s,) = SpatialCoordinate(beam.mesh)
        beam.strain.interpolate(as_vector(strain_of_curve(s, sin, cos)))
        beam.reconstruct()
        gap = np.abs(poses(beam) - exact_curve(arc(beam.momentum))).max(axis=(1, 2))
        errors.append((gap.max(), gap[::degree].max()))
    rates = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))[-1]
    assert rates[0] == pytest.approx(everywhere, abs=0.2)
    # Superconvergence fluctuates a little more.
    assert rates[1] == pytest.approx(between_cells, abs=0.3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"position": (0, 0)}, ValueError, "position must be a vector of 3 finite"),
        ({"position": (0, 0, np.nan)}, ValueError, "position must be a vector of 3 finite"),
        ({"position": "here"}, TypeError, "position must be a vector of 3"),
        ({"orientation": (1, 0, 0)}, ValueError, "orientation must be a unit quaternion"),
        ({"orientation": (2, 0, 0, 0)}, ValueError, "orientation must be a unit quaternion"),
    ],
)
def test_bad_start(arguments, error, message):
    beam = fg.Beam(IntervalMesh(2, 1.0), SOFT)
    with pytest.raises(error) as caught:
        beam.reconstruct(**arguments)
    assert str(caught.value).startswith(message)


def test_ring_has_no_first_node():
    with pytest.raises(ValueError, match="closed mesh"):
        fg.Beam(PeriodicIntervalMesh(5, 1.0), SOFT).reconstruct()
