"""Drawn shapes: areas, tags, tangents of walls, plies; meshes of another program."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Mesh,
    SpatialCoordinate,
    assemble,
    cos,
    diff,
    dx,
    inner,
    sin,
    sqrt,
    variable,
)
from sections.drawn import BECAS, STEEL, rectangle
from ufl.algorithms import expand_derivatives

import fdgeom as fg
from fdgeom.sections import bars, shapes


def area(shape):
    return assemble(Constant(1.0) * dx(domain=shape.mesh))


def test_areas():
    """Straight walls exactly; curved ones to the fourth power of the cells' angle."""
    for shape, exact in (
        (shapes.rectangle(2.0, 0.5, along=3, through=2), 1.0),
        (shapes.box(1.0, 0.5, (0.02, 0.05)), 0.5 - 0.9 * 0.46),
        (shapes.channel(1.0, 2.0, (0.1, 0.05)), 0.1 * 2 * 1.025 + 0.05 * 1.9),
        (shapes.angle(1.0, 0.7, 0.1), 0.1 * 1.05 + 0.1 * 0.65),
        (shapes.i_beam(1.0, 2.0, (0.1, 0.05)), 0.2 + 0.05 * 1.8),
        # The inner heights are .26 and .16 at the webs' inner faces, but for the slope: .258, .162.
        (
            shapes.spar_box(lambda x: 0.2 - 0.1 * x, lambda x: -0.1 + 0 * x, 0.0, 1.0, 0.02),
            0.25 - 0.96 * (0.258 + 0.162) / 2,
        ),
    ):
        assert area(shape) == pytest.approx(exact, rel=1e-12)
    for shape, exact in (
        (shapes.circle(2.0, cells=4), 4 * np.pi),
        (shapes.tube(1.0, 0.7, along=4), 0.51 * np.pi),
        (shapes.half_tube(1.0, 0.7, along=4), 0.51 * np.pi / 2),
    ):
        assert area(shape) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("layers", [(1, 2), (2, 1, 3)])
def test_layers_of_an_i_meet(layers):
    """The flanges share all nodes at the web, whose layers need not be of one thickness."""
    mesh = shapes.i_beam(1.0, 2.0, (0.1, 0.05), layers=layers, along=4, through=1).mesh
    # Euler's number of a plane region without holes.
    assert mesh.num_vertices() - mesh.num_edges() + mesh.num_cells() == 1


def test_walls_layers_and_tangents():
    """Each layer has its share of the wall, and the tangent runs counter-clockwise."""
    box = shapes.box(1.0, 0.6, 0.1, layers=(1, 3), along=6, through=1)
    assert box.walls == ("bottom", "right", "top", "left")
    assert sorted(box.tags.values()) == list(range(1, 9))
    bottom = assemble(Constant(1.0) * dx(box.tags["bottom", 0], domain=box.mesh))
    # The outer quarter of the thickness, mitred.
    assert bottom == pytest.approx(0.025 * 0.975, rel=1e-12)
    y = SpatialCoordinate(box.mesh)
    turn = (y[0] * sin(box.tangent) - y[1] * cos(box.tangent)) * dx
    assert assemble(turn) > 0
    for wall, angle in (("bottom", 0), ("right", np.pi / 2), ("top", np.pi), ("left", -np.pi / 2)):
        measure = dx(tuple(box.tags[wall, k] for k in (0, 1)), domain=box.mesh)
        assert assemble((cos(box.tangent) - np.cos(angle)) ** 2 * measure) < 1e-15
        assert assemble((sin(box.tangent) - np.sin(angle)) ** 2 * measure) < 1e-15
    # Round a tube the tangent is normal to the radius, inside the cells too.
    tube = shapes.tube(1.0, 0.8, along=6)
    y = SpatialCoordinate(tube.mesh)
    radial = (y[0] * cos(tube.tangent) + y[1] * sin(tube.tangent)) / sqrt(inner(y, y))
    assert assemble(radial**2 * dx) < 1e-7


def test_plies_are_laid():
    box = shapes.box(1.0, 0.6, 0.1, layers=(1, 1), along=4, through=1)
    plies = box.lay([(BECAS, 0.5), STEEL], top=(BECAS, 0.1))
    assert plies[box.tags["bottom", 0]].angle == 0.5
    assert plies[box.tags["bottom", 1]] is STEEL
    assert [plies[box.tags["top", k]].angle for k in (0, 1)] == [0.1, 0.1]
    assert plies[box.tags["left", 0]].along is box.tangent
    assert box.lay(BECAS)[1].angle == 0.0
    angle = Constant(0.3)
    assert {ply.angle for ply in box.lay((BECAS, angle)).values()} == {angle}
    for given, walls, message in (
        (STEEL, {"roof": STEEL}, "no wall is called 'roof'; there are bottom, right"),
        ([STEEL], {}, "plies: there are 2 layers, not 1"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            box.lay(given, **walls)


def test_a_wound_tube_couples_stretch_and_twist():
    """Fibres wound all one way round: the tube twists as it is pulled, by the wall's shear-stretch.

    A thin tube of one ply under N and with no torque: the wall bears σ_s = N/(2πrt) alone, so that
    γ_sθ = S₁₆ σ_s with the ply's turned compliance, and twist = γ/r.
    """
    radius, t, angle = 1.0, 0.01, 0.5
    tube = shapes.tube(radius + t / 2, radius - t / 2, along=6, through=1)
    section = fg.Section.from_mesh(tube.mesh, tube.lay((BECAS, angle)))
    e1, e2, g12, v12 = 480.0, 120.0, 60.0, 0.19
    c, s = np.cos(angle), np.sin(angle)
    s16 = (2 / e1 + 2 * v12 / e1 - 1 / g12) * c**3 * s - (
        2 / e2 + 2 * v12 / e1 - 1 / g12
    ) * c * s**3
    expected = s16 / (2 * np.pi * radius * t) / radius
    assert section.compliance[0, 3] == pytest.approx(expected, rel=5e-3)
    # And bending does not twist it, by symmetry.
    scale = section.compliance[0, 0]
    assert np.abs(section.compliance[0, 1:3]).max() < 1e-6 * scale


def test_bars_agree_with_meshes():
    """The closed forms that `Section.rectangle` takes by default."""
    for width, height in ((1.0, 1.0), (2.0, 1.0), (0.25, 1.0)):
        mesh = rectangle(width, height, (int(12 * max(width, 0.5)), 12))
        drawn = fg.Section.from_mesh(mesh, STEEL, origin="tension", axis=1)
        bar = fg.Section.rectangle(
            width, height, density=1.5, youngs_modulus=2.6, poisson_ratio=0.3, axis=1
        )
        assert drawn.stiffness == pytest.approx(bar.stiffness, rel=2e-4, abs=1e-9)
        assert drawn.inertia == pytest.approx(bar.inertia, rel=1e-10, abs=1e-12)
    circle = shapes.circle(1.0, cells=5)
    drawn = fg.Section.from_mesh(circle.mesh, STEEL)
    bar = fg.Section.circle(1.0, density=1.5, youngs_modulus=2.6, poisson_ratio=0.3)
    assert drawn.stiffness == pytest.approx(bar.stiffness, rel=1e-4, abs=1e-9)


def test_closed_forms_of_bars():
    """Values of the tables of Timoshenko & Goodier and of the flexure series; limits."""
    for ratio, beta in ((1, 0.141), (1.5, 0.196), (2, 0.229), (4, 0.281), (10, 0.312)):
        assert bars.rectangle_torsion_constant(ratio, 1.0) == pytest.approx(
            beta * ratio, abs=6e-4 * ratio
        )
        assert bars.rectangle_torsion_constant(1.0, ratio) == bars.rectangle_torsion_constant(
            ratio, 1.0
        )
    assert bars.rectangle_torsion_constant(1.0, 1.0) == pytest.approx(0.1405770149551, rel=1e-12)
    assert bars.rectangle_torsion_constant(1e6, 1.0) == pytest.approx(1e6 / 3, rel=1e-6)
    for breadth, factors in ((0.5, (0.833039, 0.832538)), (4.0, (0.630724, 0.445986))):
        for nu, k in zip((0.25, 0.49), factors, strict=True):
            assert bars.rectangle_shear_factor(1.0, breadth, nu) == pytest.approx(k, abs=1e-6)
    assert bars.rectangle_shear_factor(1.0, 1e-3, 0.3) == pytest.approx(5 / 6, rel=1e-9)
    nu = 0.3
    solid = 6 * (1 + nu) ** 2 / (7 + 14 * nu + 8 * nu**2)
    assert bars.ring_shear_factor(2.0, 0.0, nu) == pytest.approx(solid, rel=1e-14)
    # A thin ring: shear flow like sin θ, so that half the area counts.
    assert bars.ring_shear_factor(1.0, 0.9999, nu) == pytest.approx(0.5, rel=1e-3)


def test_varying_bars_by_expressions():
    """Sides as UFL expressions: the series are then cut after some terms."""
    sides = Constant(0.3), Constant(0.1)
    for depth, breadth in (sides, sides[::-1]):
        exact = bars.rectangle_shear_factor(float(depth), float(breadth), 0.3)
        assert _value(bars.rectangle_shear_factor(depth, breadth, 0.3)) == pytest.approx(
            exact, rel=1e-8
        )
        exact = bars.rectangle_torsion_constant(float(depth), float(breadth))
        assert _value(bars.rectangle_torsion_constant(depth, breadth)) == pytest.approx(
            exact, rel=1e-14
        )


def test_slopes_of_thin_bars():
    """b³/3 for the torsion constant b³ (a/3 - 0.21 b) by its long side; the shear factor."""
    long = variable(Constant(1.0))
    for torsion in (
        bars.rectangle_torsion_constant(long, 2e-3),
        bars.rectangle_torsion_constant(2e-3, long),
    ):
        slope = _value(expand_derivatives(diff(torsion, long)))
        assert slope == pytest.approx(8e-9 / 3, rel=1e-12)
    flat = diff(bars.rectangle_shear_factor(1.0, 1e3 * long, 0.3), long)
    exact = [bars.rectangle_shear_factor(1.0, 1e3 * (1 + h), 0.3) for h in (-1e-4, 1e-4)]
    slope = _value(expand_derivatives(flat))
    assert slope == pytest.approx((exact[1] - exact[0]) / 2e-4, rel=1e-5)


def _value(expression):
    return expression(())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: shapes.box(1.0, 0.5, 0.3), "thickness is too large"),
        (lambda: shapes.box(1.0, -0.5, 0.1), "height must be a positive"),
        (lambda: shapes.box(1.0, 0.5, (0.1, 0.1, 0.1)), "thickness must be one number or two"),
        (lambda: shapes.tube(1.0, 1.0), "inner_radius must be smaller"),
        (lambda: shapes.rectangle(1.0, 1.0, layers=()), "layers must be relative thicknesses"),
        (lambda: shapes.rectangle(1.0, 1.0, layers=(1, 0)), "layers must be a positive"),
        (lambda: shapes.rectangle(1.0, 1.0, along=0), "along must be a positive whole number"),
        (lambda: shapes.spar_box(np.cos, np.cos, 0, 1, 0.1), "upper must lie above lower"),
        (lambda: shapes.spar_box([1, 2, 3], np.cos, 0, 1, 0.1), "upper must be a callable or an"),
        (
            lambda: shapes.spar_box([[0.9, 1], [0.2, 1], [0.5, 1]], lambda x: 0 * x, 0.1, 0.8, 0.1),
            "upper: its points reach from 0.2 to 0.9, but the box from 0.1 to 0.8",
        ),
        (lambda: shapes.spar_box(np.cos, np.sin, 1, 0, 0.1), "front must be smaller than rear"),
    ],
)
def test_bad_shapes(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make()


MSH = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
6
1 0 0 0
2 0.5 0 0
3 1 0 0
4 0 1 0
5 0.5 1 0
6 1 1 0
$EndNodes
$Elements
4
1 2 2 7 1 1 2 5
2 2 2 7 1 1 5 4
3 2 2 9 2 2 3 6
4 2 2 9 2 2 6 5
$EndElements
"""


def test_a_file_of_gmsh(tmp_path):
    """Physical groups are the tags: two halves of different stiffness."""
    (tmp_path / "profile.msh").write_text(MSH)
    mesh = Mesh(str(tmp_path / "profile.msh"))
    section = fg.Section.from_mesh(
        mesh, {7: fg.Isotropic(3.0, 0.0, 1.0), 9: fg.Isotropic(1.0, 0.0, 2.0)}
    )
    assert section.stiffness[3, 3] == pytest.approx(2.0, rel=1e-12)
    assert section.tension_centre == pytest.approx([(1.5 * 0.25 + 0.5 * 0.75) / 2, 0.5])
    assert section.mass_centre == pytest.approx([(0.5 * 0.25 + 1.0 * 0.75) / 1.5, 0.5])
