"""What a section from a mesh does as an object: axes, origin, materials, options, derivatives."""

import dataclasses

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    Identity,
    SpatialCoordinate,
    conditional,
    lt,
    tr,
)
from petsc4py import PETSc
from sections.drawn import BECAS, STEEL, halves, rectangle

import fdgeom as fg

PLY = fg.Ply(BECAS, angle=0.5, along=0.4)


def drawn(**options):
    return fg.Section.from_mesh(rectangle(1.0, 0.75, 4), PLY, **options)


def rotation(axis, angle):
    first, second = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[np.ix_([first, second], [first, second])] = [
        [np.cos(angle), -np.sin(angle)],
        [np.sin(angle), np.cos(angle)],
    ]
    return R


def test_axes():
    """The same numbers in their places: axes 0 and 2 by a cyclic turn, axis 1 by a reflection.

    A reflection of the drawing is the same body seen in a mirror: moments and curvatures, which are
    axial vectors, change sign.
    """
    sections = [drawn(axis=axis, origin=(0.1, 0.2)) for axis in range(3)]
    for axis, (first, second) in enumerate(((1, 2), (0, 2), (0, 1))):
        P = np.eye(3)[:, [axis, first, second]]
        T = np.kron(np.diag([np.linalg.det(P), 1]), P)
        for name in ("stiffness", "inertia", "compliance"):
            own = getattr(sections[0], name)
            assert getattr(sections[axis], name) == pytest.approx(
                T @ own @ T.T, rel=1e-12, abs=1e-12 * np.abs(own).max()
            )
        assert sections[axis].shear_centre == pytest.approx(sections[0].shear_centre, rel=1e-12)
        assert sections[axis].principal_axes @ np.eye(3)[axis] == pytest.approx([0, 0])
    assert repr(sections[1]) == "MeshSection(section of 16 cells, axis 1)"


def test_origin():
    """A moved origin is the rigid transform, and the centres move with it."""
    at, moved = drawn(origin=(0.0, 0.0)), drawn(origin=(0.3, -0.2))
    c = np.array([0.0, 0.3, -0.2])
    hat = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    # ε at the origin of the other: ε + κ×c.
    X = np.block([[np.eye(3), np.zeros((3, 3))], [-hat, np.eye(3)]])
    for name in ("stiffness", "inertia"):
        whole, other = getattr(at, name), getattr(moved, name)
        assert X.T @ other @ X == pytest.approx(whole, abs=1e-13 * np.abs(whole).max())
    for name in ("shear_centre", "tension_centre", "mass_centre"):
        assert getattr(moved, name) == pytest.approx(getattr(at, name) - c[1:], abs=1e-13)
        chosen = drawn(origin=name.partition("_")[0])
        assert getattr(chosen, name) == pytest.approx([0, 0], abs=1e-12)
        assert chosen.origin == pytest.approx(getattr(at, name), abs=1e-12)
    assert at.torsion_constant == pytest.approx(moved.torsion_constant, rel=1e-12)
    assert at.shear_factors == pytest.approx(moved.shear_factors, rel=1e-12)


def test_the_angles_of_a_ply():
    """A fibre in the section's plane, a turned drawing, and a ply turned back are what they say."""
    # Fibre along t₁: stretch along the beam is that of E₂.
    ply = fg.Ply(BECAS, angle=np.pi / 2)
    across = fg.Section.from_mesh(rectangle(1.0, 0.75, 4), ply, origin="tension")
    assert across.compliance[3, 3] == pytest.approx(1 / (120 * 0.75), rel=1e-12)
    # Turned by ±: mirrored in the plane of the ply's tangent, the couplings change sign.
    one, other = (
        fg.Section.from_mesh(
            rectangle(1.0, 0.75, 4), fg.Ply(BECAS, angle=a), origin="tension"
        ).stiffness
        for a in (0.5, -0.5)
    )
    assert np.diag(one) == pytest.approx(np.diag(other), rel=1e-12)
    # Twist with stretch along the ply's plane vanishes; bending about t₁ with twist does not.
    assert abs(one[0, 1]) > 1.0
    assert one[0, 1] == pytest.approx(-other[0, 1], rel=1e-12)
    # ``along`` turns the ply: on a circle-like shape (a square by 90°) the section turns with it.
    square = rectangle(1.0, 1.0, 4)
    a, b = (
        fg.Section.from_mesh(square, fg.Ply(BECAS, 0.5, along), origin=(0.5, 0.5)).stiffness
        for along in (0.0, np.pi / 2)
    )
    R = rotation(0, np.pi / 2)
    T = np.kron(np.eye(2), R)
    assert T @ a @ T.T == pytest.approx(b, abs=1e-12 * np.abs(a).max())


class Hooke:
    """A material of a user's own, in UFL."""

    density = 1.5

    def stress(self, strain, frame):
        return 2 * strain + 1.5 * tr(strain) * Identity(3)


def test_materials_of_all_kinds():
    """Numbers, fields, expressions and a material of one's own say the same thing."""
    mesh = halves(1.0, 0.75, 4)
    soft = dataclasses.replace(STEEL, youngs_modulus=0.26)
    by_tag = fg.Section.from_mesh(mesh, {1: STEEL, 2: soft})
    x, _ = SpatialCoordinate(mesh)
    modulus = conditional(lt(x, 0.5), Constant(2.6), Constant(0.26))
    field = Function(FunctionSpace(mesh, "DQ", 0)).interpolate(modulus)
    one = fg.Section.from_mesh(mesh, dataclasses.replace(STEEL, youngs_modulus=field))
    assert one.stiffness == pytest.approx(by_tag.stiffness, rel=1e-12, abs=1e-13)
    expression = fg.Section.from_mesh(mesh, dataclasses.replace(STEEL, youngs_modulus=modulus))
    assert expression.stiffness == pytest.approx(by_tag.stiffness, rel=1e-12, abs=1e-13)
    # λ = 1.5 and μ = 1 are E = 2.6, ν = .3.
    own = fg.Section.from_mesh(mesh, {1: Hooke(), 2: soft})
    assert own.stiffness == pytest.approx(by_tag.stiffness, rel=1e-12, abs=1e-13)
    same = fg.Orthotropic((2.6,) * 3, (1.0,) * 3, (0.3,) * 3, density=1.5)
    turned = fg.Section.from_mesh(mesh, {1: fg.Ply(same, 0.3, 0.7), 2: fg.Ply(soft, 1.0)})
    assert turned.stiffness == pytest.approx(by_tag.stiffness, rel=1e-12, abs=1e-13)


class Twice(fg.Isotropic):
    """A material whose stress is derived from that of another one."""

    def stress(self, strain, frame):
        return 2 * super().stress(strain, frame)


class Slanted(fg.Ply):
    """A ply with a stress of its own."""

    def stress(self, strain, frame):
        return 2 * super().stress(strain, frame)


@pytest.mark.parametrize("make", [Twice, lambda *data: Slanted(fg.Isotropic(*data))])
def test_a_derived_material_has_its_own_stress(make):
    """Twice E A."""
    section = fg.Section.from_mesh(rectangle(1.0, 0.75, 4), make(1.0, 0.3, 1.0), origin="tension")
    assert section.stiffness[3, 3] == pytest.approx(2 * 0.75, rel=1e-9)


def test_multigrid_and_command_line():
    exact = drawn().stiffness
    multigrid = drawn(solver_parameters={"pc_type": "gamg"})
    # The solver's tolerance is 1e-12.
    assert multigrid.stiffness == pytest.approx(exact, abs=1e-9 * np.abs(exact).max())
    options = PETSc.Options()
    options["blade_pc_type"] = "gamg"
    try:
        chosen = drawn(options_prefix="blade")
    finally:
        options.delValue("blade_pc_type")
    assert chosen._operators.ksp.getPC().getType() == "gamg"
    assert drawn(options_prefix="blade")._operators.ksp.getPC().getType() == "cholesky"


def test_derivatives():
    """By a parameter of one of two materials, against differences of the whole computation."""
    mesh = halves(1.0, 0.75, 4)

    def section(ply=PLY, core=STEEL):
        return fg.Section.from_mesh(mesh, {1: ply, 2: core}, origin=(0.1, 0.2), axis=1)

    def changed(name, index, step):
        if name == "angle":
            return section(ply=dataclasses.replace(PLY, angle=PLY.angle + step))
        if index is None:
            return section(core=dataclasses.replace(STEEL, **{name: getattr(STEEL, name) + step}))
        values = list(getattr(BECAS, name))
        values[index] += step
        return section(ply=dataclasses.replace(PLY, material=dataclasses.replace(
            BECAS, **{name: values})))  # fmt: skip

    base = section()
    for parameter, tag, step in (
        ("angle", 1, 1e-3),
        (("youngs_moduli", 0), 1, 1.0),
        (("poisson_ratios", 1), 1, 1e-3),
        ("poisson_ratio", 2, 1e-3),
        ("density", 2, 0.1),
    ):
        name, index = parameter if isinstance(parameter, tuple) else (parameter, None)
        found = base.derivative(parameter, tag)
        plus, minus = (changed(name, index, sign * step) for sign in (1, -1))
        for what, exact in zip(("stiffness", "inertia"), found, strict=True):
            difference = (getattr(plus, what) - getattr(minus, what)) / (2 * step)
            scale = max(np.abs(exact).max(), 1e-9)
            # Central differences: third derivative times step² / 6, and the tolerance of two solves
            # over the step, which is all there is where nothing depends on the parameter.
            tolerance = 1e-12 * np.abs(getattr(plus, what)).max() / step
            allowed = 1e-4 * scale + tolerance
            assert difference == pytest.approx(exact, abs=allowed), parameter
    # All materials at once is the sum over the tags that have the parameter.
    both = base.derivative("density")[1]
    parts = base.derivative("density", 1)[1] + base.derivative("density", 2)[1]
    assert both == pytest.approx(parts, rel=1e-13)
    assert both[3, 3] == pytest.approx(0.75)


def test_gradient():
    """One adjoint pass for all parameters, against the tangent of each and against differences."""
    mesh = halves(1.0, 0.75, 4)

    def section(angle=PLY.angle):
        ply = dataclasses.replace(PLY, angle=angle)
        return fg.Section.from_mesh(mesh, {1: ply, 2: STEEL}, origin=(0.1, 0.2), axis=1)

    base, rng = section(), np.random.default_rng(5)
    # Neither is symmetric: each entry counts by itself.
    weights, of_inertia = rng.normal(size=(2, 6, 6))
    parameters = [
        ("angle", 1),
        ("along", None),
        (("youngs_moduli", 1), 1),
        (("poisson_ratios", 1), 1),
        (("shear_moduli", 2), 1),
        ("poisson_ratio", 2),
        ("density", 2),
    ]
    found = base.gradient(weights, parameters, inertia_weights=of_inertia)
    for value, parameter in zip(found, parameters, strict=True):
        dK, dM = base.derivative(*parameter)
        size = np.abs(weights * dK).sum() + np.abs(of_inertia * dM).sum()
        # Both solve with a relative tolerance of 1e-12.
        assert value == pytest.approx((weights * dK + of_inertia * dM).sum(), abs=1e-10 * size)
    step = 2e-3
    stiffness = [section(PLY.angle + k * step).stiffness for k in (-2, -1, 1, 2)]
    # Central differences of fourth order: step⁴ is 2e-11.
    change = np.tensordot([1 / 12, -2 / 3, 2 / 3, -1 / 12], stiffness, axes=1) / step
    alone = base.gradient(weights, [("angle", 1)])
    assert alone.shape == (1,)
    assert alone[0] == pytest.approx((weights * change).sum(), rel=1e-7)
    for bad, message in (
        ("angle", "parameters must be pairs"),
        ([], "parameters must be pairs"),
        (["angle"], "parameters must be pairs"),
        ([("angel", 1)], "parameter: no material there has 'angel'"),
        ([("angle", 7)], "tag: no material has the tag 7"),
    ):
        with pytest.raises(ValueError, match=message):
            base.gradient(weights, bad)
    with pytest.raises(ValueError, match="weights must be a 6×6 array of finite numbers"):
        base.gradient(np.eye(3), parameters)
