"""What cannot be a section is refused, and the message says what would do."""

import numpy as np
import pytest
from firedrake import (
    COMM_WORLD,
    Constant,
    Function,
    Identity,
    IntervalMesh,
    Mesh,
    SpatialCoordinate,
    UnitCubeMesh,
    UnitIcosahedralSphereMesh,
    VectorFunctionSpace,
    as_vector,
    conditional,
    inner,
    tr,
)
from sections.drawn import BECAS, STEEL, halves, rectangle

import fdgeom as fg
from fdgeom.sections.blocks import Block, Shape, rows_of, straight


def square():
    return rectangle(1, 1, 4)


def pieces(*corners):
    """Squares with the given lower left corners, as one mesh."""
    rows = rows_of([1], 2)
    blocks = [
        Block("wall", straight([(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]), 2, *rows)
        for x, y in corners
    ]
    return Shape(blocks, COMM_WORLD).mesh


def curved():
    mesh = square()
    x, y = SpatialCoordinate(mesh)
    return Mesh(Function(VectorFunctionSpace(mesh, "CG", 2)).interpolate(as_vector([x, y + x**2])))


class Skew:
    """Its stress is no derivative of an energy."""

    density = 1.0

    def stress(self, strain, frame):
        return strain + 3 * strain[0, 0] * Constant(np.diag([0.0, 1.0, 0.0]))


class Soft:
    """Loses energy in shear."""

    density = 1.0

    def stress(self, strain, frame):
        return Constant(np.ones((3, 3))) * strain[0, 0] + 0 * strain


class Plain:
    """A material of a user's own, whose formulas are known in UFL only."""

    density = 1.0

    def stress(self, strain, frame):
        return 2 * strain


class Stiff:
    density = 1.0


class Stiffening:
    """Its stress grows faster than the strain."""

    density = 1.0

    def stress(self, strain, frame):
        return 2 * (1 + 3 * inner(strain, strain)) * strain + tr(strain) * Identity(3)


class Cable:
    """Ten times softer in compression."""

    density = 1.0

    def stress(self, strain, frame):
        return conditional(tr(strain) < 0, 0.2, 2) * strain


make = fg.Section.from_mesh


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (lambda: make(IntervalMesh(3, 1.0), STEEL), ValueError, "mesh must be the drawing of a s"),
        (lambda: make(UnitCubeMesh(1, 1, 1), STEEL), ValueError, "mesh must be the drawing"),
        (lambda: make(UnitIcosahedralSphereMesh(0), STEEL), ValueError, "mesh must be the drawing"),
        (lambda: make("square", STEEL), TypeError, "mesh must be a Firedrake mesh"),
        (lambda: make(pieces((0, 0), (2, 0)), STEEL), ValueError, "mesh: the section is in 2 pie"),
        (lambda: make(pieces((0, 0), (1, 1)), STEEL), ValueError, "mesh: the section is in 2 pie"),
        (lambda: make(square(), STEEL, degree=0), ValueError, "degree must be one of 1, 2, 3"),
        (lambda: make(square(), STEEL, degree=True), ValueError, "degree must be one of 1, 2, 3"),
        (lambda: make(curved(), STEEL, degree=1), ValueError, "degree must be at least that of"),
        (lambda: make(square(), STEEL, axis=3), ValueError, "axis (the material axis"),
        (lambda: make(square(), STEEL, origin="middle"), ValueError, "origin, if not two numbers,"),
        (lambda: make(square(), STEEL, origin=(0, 0, 0)), ValueError, "origin must be two numbers"),
        (lambda: make(square(), STEEL, origin=(0, np.nan)), ValueError, "origin must be two numb"),
        (lambda: make(square(), {}), ValueError, "materials is empty"),
        (lambda: make(square(), 2.1e11), TypeError, "materials must be fdgeom.Isotropic"),
        (lambda: make(square(), Stiff()), TypeError, "materials must be fdgeom.Isotropic"),
        (lambda: make(square(), {1: STEEL}), ValueError, "materials: no cell has the tag 1"),
        (lambda: make(halves(1, 1, 4), {"left": STEEL}), TypeError, "materials: a tag of cells"),
        (lambda: make(halves(1, 1, 4), {1: STEEL}), ValueError, "materials: 8 cells of the mesh"),
        (lambda: make(halves(1, 1, 4), {1: STEEL, 7: STEEL}), ValueError, "materials: no cell has"),
        (
            lambda: make(square(), fg.Isotropic(1.0, 0.49, 1.0), degree=1),
            ValueError,
            "degree=1 locks",
        ),
        (lambda: make(square(), Skew()), ValueError, "materials: a stress is not the derivative"),
        (lambda: make(square(), Soft()), ValueError, "materials: "),
        (
            lambda: make(square(), Stiffening()),
            ValueError,
            "materials: the stress of a Stiffening is not",
        ),
        (
            lambda: make(square(), fg.Ply(Cable())),
            ValueError,
            "materials: the stress of a Ply is not",
        ),
        (
            lambda: make(square(), fg.Isotropic(Constant(-1.0), 0.3, 1.0)),
            ValueError,
            "materials: the stiffness of a material is not positive definite",
        ),
        (
            lambda: make(square(), fg.Isotropic(1.0, 0.3, Constant(-1.0))),
            ValueError,
            "materials: a density is not positive",
        ),
        (
            lambda: make(square(), STEEL, solver_parameters={"ksp_typ": "cg"}),
            ValueError,
            "solver_parameters: PETSc does not know the option 'ksp_typ'; did you mean",
        ),
        (
            lambda: make(square(), STEEL, solver_parameters={"ksp_max_it": 1, "pc_type": "none"}),
            RuntimeError,
            "the solve for the warping of the section failed",
        ),
        (lambda: fg.Isotropic(-1.0, 0.3, 1.0), ValueError, "youngs_modulus must be a positive"),
        (lambda: fg.Isotropic(1.0, 0.5, 1.0), ValueError, "poisson_ratio must lie in (-1, 0.5)"),
        (lambda: fg.Isotropic(1.0, 0.3, "heavy"), TypeError, "density must be a number"),
        (
            lambda: fg.Orthotropic((1.0, 1.0), (1.0,) * 3, (0.3,) * 3, 1.0),
            ValueError,
            "youngs_moduli must be three numbers",
        ),
        (
            lambda: fg.Orthotropic((140.0, 10.0, 10.0), (5.0, 5.0, 3.5), (4.0, 0.3, 0.4), 1.0),
            ValueError,
            "poisson_ratios: the stiffness is not positive definite",
        ),
        (lambda: fg.Ply("carbon", 0.1), TypeError, "material must be a fdgeom.Isotropic"),
        (lambda: fg.Ply(BECAS, "steep"), TypeError, "angle must be a number"),
        (lambda: fg.VonMises(0.0), ValueError, "yield_stress must be a positive"),
        (lambda: fg.TsaiWu((1, 1), (1, 1, 1), (1, 1, 1)), ValueError, "tensile must be three"),
        (
            lambda: fg.TsaiWu((1, 1, 1), (1, 1, 1), (1, 1, 1), interaction=2),
            ValueError,
            "interaction must lie in [-0.5, 0.5]",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:degree=1 is much too stiff")
def test_refused(action, error, message):
    with pytest.raises(error) as caught:
        action()
    assert str(caught.value).startswith(message)


def test_degree_one_warns():
    with pytest.warns(UserWarning, match="degree=1 is much too stiff in bending"):
        make(square(), STEEL, degree=1)


def test_refused_when_asked():
    section, own = make(square(), STEEL), make(square(), fg.Ply(Plain()))
    for action, message in (
        (lambda: section.recover([1, 2, 3]), "resultants must be six numbers"),
        (lambda: section.recover([np.inf] * 6), "resultants must be six numbers"),
        (lambda: section.failure_index([1] * 6, {3: fg.VonMises(1.0)}), "criteria: no material"),
        (lambda: section.derivative("angle"), "parameter: no material there has 'angle'"),
        (lambda: own.derivative("angle"), "parameter: no material there has 'angle'"),
        (lambda: section.derivative("density", 4), "tag: no material has the tag 4"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            action()
    with pytest.raises(TypeError, match=r"^criteria must be fdgeom\.VonMises"):
        section.failure_index([1] * 6, 2.0)
