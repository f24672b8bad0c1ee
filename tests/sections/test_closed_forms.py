"""Sections from meshes against closed forms of Saint-Venant's problem, and their order."""

import numpy as np
import pytest
from firedrake import Function, Mesh, SpatialCoordinate, UnitTriangleMesh, as_vector
from sections.drawn import STEEL, rectangle

import fdgeom as fg

SQUARE = 0.1405770149551553  # torsion constant of the unit square, from the series
NU = 0.3
#: Energy shear factors k (force along h) of rectangles b×h for ν = ¼ and .49: Saint-Venant's series.
FLEXURE = {
    0.5: (0.833039, 0.832538),
    1.0: (0.829484, 0.823007),
    2.0: (0.796066, 0.739708),
    4.0: (0.630724, 0.445986),
}


def isotropic(nu):
    return fg.Isotropic(youngs_modulus=2 * (1 + nu), poisson_ratio=nu, density=1.0)


@pytest.mark.parametrize("quadrilateral", [True, False])
def test_order(quadrilateral):
    """Twice the degree of the warping, in torsion and shear; bending and stretch are exact."""
    errors = []
    exact = 0.8282160119
    for n in (4, 8, 16):
        section = fg.Section.from_mesh(rectangle(1, 1, n, quadrilateral), STEEL, origin="tension")
        errors.append((section.torsion_constant / SQUARE - 1, section.shear_factors[0] / exact - 1))
        diagonal = np.diag(section.stiffness)
        assert diagonal[[1, 2, 3]] == pytest.approx([2.6 / 12, 2.6 / 12, 2.6], rel=1e-12)
        assert section.balance < 1e-12
        assert section.area == pytest.approx(1, rel=1e-13)
        # ρ times the second moments and the area.
        inertia = 1.5 * np.array([1 / 6, 1 / 12, 1 / 12, 1, 1, 1])
        assert section.inertia == pytest.approx(np.diag(inertia), abs=1e-13)
    errors = np.abs(errors)
    # Corners are weak singularities: order 4 is reached from below in torsion.
    assert np.all(np.log2(errors[:-1] / errors[1:]) > 3.4)
    assert np.all(errors[-1] < [3e-5, 3e-6])


@pytest.mark.parametrize("breadth", FLEXURE)
def test_shear_factor_by_energy(breadth):
    """The flexure series, to 1e-4; 5/6 for ν = 0. Cowper's factor would not depend on b/h."""
    mesh = rectangle(breadth, 1.0, (int(max(8, 12 * breadth)), 12))
    assert fg.Section.from_mesh(mesh, isotropic(0.0)).shear_factors[1] == pytest.approx(
        5 / 6, rel=2e-5
    )
    for nu, exact in zip((0.25, 0.49), FLEXURE[breadth], strict=True):
        section = fg.Section.from_mesh(mesh, isotropic(nu))
        assert section.shear_factors[1] == pytest.approx(exact, rel=1e-4)


def test_equilateral_triangle():
    """J = √3/80 a⁴; its axes are all principal."""
    errors = []
    for level in (2, 3, 4):
        mesh = UnitTriangleMesh(level)
        x, y = SpatialCoordinate(mesh)
        place = Function(mesh.coordinates.function_space())
        mesh = Mesh(place.interpolate(as_vector([x + y / 2, np.sqrt(3) / 2 * y])))
        section = fg.Section.from_mesh(mesh, STEEL, origin="mass")
        errors.append(section.torsion_constant / (np.sqrt(3) / 80) - 1)
    # The warping is a cubic: no singular corner, so order 4 with degree 2.
    assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > 3.9)
    assert 0 < errors[-1] < 2e-5
    assert section.origin == pytest.approx([0.5, np.sqrt(3) / 6])
    assert section.shear_centre == pytest.approx([0, 0], abs=2e-5)


def test_ellipse():
    """GJ = Gπa³b³/(a²+b²), and bending; cells with curved sides."""
    a, b = 1.5, 0.6
    section = fg.Section.from_mesh(fg.sections.ellipse(a, b, cells=4).mesh, STEEL)
    assert section.torsion_constant == pytest.approx(np.pi * a**3 * b**3 / (a**2 + b**2), rel=1e-4)
    bending = np.diag(section.stiffness)[1:3]
    assert bending == pytest.approx(2.6 * np.pi / 4 * a * b * np.array([b**2, a**2]), rel=1e-4)
    assert section.principal_axes[0] == pytest.approx([0, 0, 1], abs=1e-9)


def test_ring():
    """A thick tube: torsion by its polar moment, shear by the closed flexure solution."""
    outer, inner = 1.0, 0.6
    section = fg.Section.from_mesh(fg.sections.tube(outer, inner, along=5).mesh, STEEL)
    exact = fg.Section.tube(
        outer, inner, density=1.5, youngs_modulus=2.6, poisson_ratio=NU
    ).stiffness
    # Sides of degree 2 follow the circle to (angle of a cell)⁴/100.
    assert np.diag(section.stiffness) == pytest.approx(np.diag(exact), rel=2e-4)
    assert np.abs(section.stiffness - np.diag(np.diag(section.stiffness))).max() < 1e-9


def test_thin_channel():
    """Shear centre at -3b²/(h+6b) from the web, J = Σ l t³/3, as the wall gets thin."""
    centres = []
    for t in (0.1, 0.05, 0.02):
        section = fg.Section.from_mesh(fg.sections.channel(1.0, 2.0, t, along=64).mesh, STEEL)
        assert section.shear_centre[1] == pytest.approx(0, abs=1e-10)
        assert section.torsion_constant == pytest.approx(4 * t**3 / 3, rel=6e-3)
        centres.append(section.shear_centre[0])
    # The prototype's meshes gave -.37172, -.37402, -.37483.
    gaps = np.array(centres) + 3 / 8
    assert np.all(np.diff(np.abs(gaps)) < 0)
    assert gaps[-1] == pytest.approx(0, abs=2e-4)


def test_thin_angle():
    """Shear centre of an L where the middle lines meet, principal axes at 45°."""
    section = fg.Section.from_mesh(fg.sections.angle(1.0, 1.0, 0.02).mesh, STEEL)
    assert section.shear_centre == pytest.approx([0, 0], abs=3e-4)
    assert np.abs(section.principal_axes[:, 1:]) == pytest.approx(
        np.full((2, 2), np.sqrt(0.5)), abs=1e-6
    )
    # Stiffest about the line of symmetry, which goes between the legs.
    assert section.principal_axes[0, 1] * section.principal_axes[0, 2] > 0


def test_closed_box_after_bredt():
    """J = 4A²/∮ds/t of the middle line, to the thickness squared."""
    b, h, t = 1.0, 0.5, 0.02
    section = fg.Section.from_mesh(fg.sections.box(b + t, h + t, t, along=48).mesh, STEEL)
    assert section.torsion_constant == pytest.approx(4 * (b * h) ** 2 * t / (2 * (b + h)), rel=0.02)


def test_no_locking():
    """ν → ½ and a soft core: bending stays what the beam theory says."""
    rubber = fg.Section.from_mesh(rectangle(1, 1, 4), isotropic(0.4999), origin="tension")
    assert rubber.stiffness[1, 1] == pytest.approx(2 * 1.4999 / 12, rel=1e-9)
    assert rubber.torsion_constant == pytest.approx(SQUARE, rel=2e-3)
    # Faces of thickness .05 on a core 1e4 times softer; bending about the first axis.
    sandwich = fg.sections.rectangle(1.0, 1.0, layers=(0.05, 0.9, 0.05), through=2, along=4)
    face, core = fg.Isotropic(1.0, 0.3, 1.0), fg.Isotropic(1e-4, 0.3, 1.0)
    section = fg.Section.from_mesh(sandwich.mesh, sandwich.lay([face, core, face]))
    exact = (1 - 0.9**3) / 12 + 1e-4 * 0.9**3 / 12
    assert section.stiffness[1, 1] == pytest.approx(exact, rel=1e-6)
    assert section.stiffness[3, 3] == pytest.approx(0.1 + 0.9e-4, rel=1e-6)
