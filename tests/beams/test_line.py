"""Beams on meshes of all sorts: right on every open line of cells, refused on anything else."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    IntervalMesh,
    Mesh,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    assemble,
)
from firedrake.mesh import plex_from_cell_list
from statics.rod_cases import section
from verification.beams import INERTIA, SOFT, STIFFNESS, along, set_smooth

import fdgeom as fg

CELLS, LENGTH = 5, 1.5
# Cells of different lengths, so that no mesh is its own mirror image.
NODES = LENGTH * np.linspace(0, 1, CELLS + 1) ** 1.2


def moved(coordinates, make=lambda: IntervalMesh(CELLS, LENGTH)):
    """A mesh of intervals with other coordinates, in the order of the old ones."""
    mesh = make()
    x = mesh.coordinates.dat.data_wo
    x[np.argsort(x.ravel())] = np.reshape(coordinates, (-1, 1)) if x.ndim == 2 else coordinates
    return mesh


def of_cells(cells, coordinates, reorder=False):
    """A mesh of given cells (pairs of nodes) that marks no ends."""
    base = IntervalMesh(1, 1.0)
    points = np.reshape(coordinates, (-1, 1)).astype(float)
    return Mesh(plex_from_cell_list(1, np.array(cells), points, base.comm), reorder=reorder)


def mixed():
    """Cells in any order, each running its own way, nodes numbered at random, no marks."""
    rng = np.random.default_rng(4)
    number = rng.permutation(CELLS + 1)
    points = np.empty(CELLS + 1)
    points[number] = NODES
    cells = np.stack([number[:-1], number[1:]], axis=1)
    for k in range(0, CELLS, 2):
        cells[k] = cells[k][::-1]
    return of_cells(cells[rng.permutation(CELLS)], points)


#: The same line: as it comes, run the other way with its marks changed over, and mixed up.
LINES = {"plain": lambda: moved(NODES), "reversed": lambda: moved(NODES[::-1]), "mixed": mixed}

STEPPERS = {
    "poisson": lambda beam: fg.SymmetricPoissonIntegrator(beam, 0.01),
    "snes": lambda beam: fg.SymmetricPoissonIntegrator(
        beam, 0.01, solver_parameters={"snes_type": "newtonls"}
    ),
    "hamel": lambda beam: fg.HamelFieldIntegrator(beam, 0.01),
    "midpoint": lambda beam: fg.ImplicitMidpoint(beam, 0.02),
    "gradient": lambda beam: fg.DiscreteGradient(beam, 0.02),
    "alpha": lambda beam: fg.GeneralizedAlpha(beam, 0.02),
    "energy": lambda beam: fg.EnergyMomentum(beam, 0.02),
    "variational": lambda beam: fg.VariationalIntegrator(beam, 0.005),
}


def values(beam):
    parts = beam.position, beam.orientation, beam.velocity, beam.strain, beam.momentum
    return [along(part) for part in parts]


@pytest.mark.parametrize("name", STEPPERS)
def test_motion_does_not_depend_on_the_numbering(name):
    """A bent beam, held at the smaller coordinate, springs back."""
    found = []
    for make in LINES.values():
        beam = set_smooth(fg.Beam(make(), SOFT, left="pinned"))
        beam.momentum.assign(0.0)
        beam.consistency.prepare()
        STEPPERS[name](beam).advance(3)
        found.append([*values(beam), beam.energy()])
    for other in found[1:]:
        for here, there in zip(found[0], other, strict=True):
            # Round-off of sums in another order, and of iterations that stop at 1e-12.
            assert there == pytest.approx(here, rel=1e-9, abs=1e-10)
    assert np.abs(found[0][2]).max() > 1e-3


@pytest.mark.parametrize("degree", [1, 3])
def test_shape_and_strain_do_not_depend_on_the_numbering(degree):
    found = []
    for make in LINES.values():
        beam = fg.Beam(make(), SOFT, degree=degree)
        set_smooth(beam)
        shape, energy = along(beam.position), beam.energy()
        strain = along(beam.strain)
        beam.strain.assign(0.0)
        beam.project()
        # Newton's method for the strain of higher degrees stops at round-off.
        assert along(beam.strain) == pytest.approx(strain, abs=1e-12)
        found.append((shape, energy, strain))
    for other in found[1:]:
        for here, there in zip(found[0], other, strict=True):
            assert there == pytest.approx(here, rel=1e-12, abs=1e-13)


def test_statics_and_modes_do_not_depend_on_the_numbering():
    """Held at the smaller coordinate, whatever the mesh calls it; by the formula of a cantilever."""
    for make in LINES.values():
        beam = fg.Beam(
            make(),
            fg.Section(section(1e6, 1e6, 1.0, 1.0).stiffness, np.diag([1e-4] * 3 + [1.0] * 3)),
            left="clamped",
            loads=fg.Load(force=(0, 0, 1e-3), at="right"),
        )
        statics = fg.StaticEquilibrium(beam)
        statics.solve()
        x = along(beam.position)
        assert x[0] == pytest.approx([0, 0, 0], abs=1e-15)
        # P L³/3EI + P L/GA, less P Σh³/12EI of the cells of one point.
        h = np.diff(NODES)
        tip = 1e-3 * (LENGTH**3 / 3 - (h**3).sum() / 12 + LENGTH / 1e6)
        assert x[-1, 2] == pytest.approx(tip, rel=1e-5)
        moment, force = statics.reactions()["left"]
        # Left by the last iteration, with an axial stiffness of 1e6.
        assert force == pytest.approx([0, 0, -1e-3], abs=1e-9)
        assert moment == pytest.approx([0, 1e-3 * LENGTH, 0], rel=1e-4, abs=1e-9)
        assert statics.stress().dat.data_ro[:, 5] == pytest.approx(1e-3, rel=1e-4)
    spectra = []
    for make in LINES.values():
        beam = fg.Beam(make(), fg.Section(STIFFNESS, INERTIA), left="clamped")
        spectra.append(fg.VibrationModes(beam, 6).eigenvalues)
    assert spectra[1] == pytest.approx(spectra[0], rel=1e-10)
    assert spectra[2] == pytest.approx(spectra[0], rel=1e-10)


def test_assembly_does_not_depend_on_the_numbering():
    found = []
    for make in LINES.values():
        first, second = (fg.Beam(make(), SOFT) for _ in range(2))
        second.reconstruct(position=(LENGTH, 0, 0))
        pendulum = fg.Assembly(
            [first, second],
            [
                fg.Spherical(fg.ground, first.left),
                fg.Revolute(first.right, second.left, axis=(0, 1, 0)),
            ],
            loads=fg.Gravity((0, 0, -9.81)),
        )
        fg.GeneralizedAlpha(pendulum, 0.01).advance(3)
        found.append([*values(first), *values(second)])
    for other in found[1:]:
        for here, there in zip(found[0], other, strict=True):
            assert there == pytest.approx(here, rel=1e-9, abs=1e-10)


def test_end_weight_is_at_the_ends():
    """All of the momentum of a beam that moves as one: half a cell's more at either end."""
    for make in LINES.values():
        beam = fg.Beam(make(), fg.Section(STIFFNESS, np.eye(6)), end_weight=1.0)
        mass = NODES[-1] + 0.5 * (NODES[1] - NODES[0]) + 0.5 * (NODES[-1] - NODES[-2])
        beam.momentum.dat.data_wo[:, 3] = 1.0
        assert beam.linear_momentum()[0] == pytest.approx(mass, rel=1e-13)
        assert assemble(beam.motion.inertia(beam.momentum, beam.momentum)) == pytest.approx(
            mass, rel=1e-13
        )


def curved():
    mesh = IntervalMesh(3, 1.0)
    return Mesh(Function(VectorFunctionSpace(mesh, "CG", 2)).interpolate(SpatialCoordinate(mesh)))


WRONG = {
    "closed": (lambda: PeriodicIntervalMesh(5, 1.0), "mesh: a closed mesh has no first node"),
    "folded": (lambda: moved([0, 0.5, 1.0, 0.7, 0.4, 0.1]), "mesh is folded"),
    "folded a little": (lambda: moved([0, 0.3, 0.6, 0.55, 1.0, 1.5]), "mesh is folded"),
    "no length": (
        lambda: moved([0, 0.3, 0.6, 0.6, 1.0, 1.5]),
        "mesh has a cell of no length at 0.6",
    ),
    "a point": (lambda: moved([0.2] * 6), "mesh has a cell of no length"),
    "nan": (lambda: moved([0, 0.3, np.nan, 0.6, 1.0, 1.5]), "mesh has coordinates that are not"),
    "pieces": (lambda: of_cells([[0, 1], [2, 3]], [0, 1, 2, 3]), "mesh is in pieces"),
    "pieces that touch": (lambda: of_cells([[0, 1], [2, 3]], [0, 1, 1, 2]), "mesh is in pieces"),
    "branched": (lambda: of_cells([[0, 1], [1, 2], [1, 3]], [0, 1, 2, 3]), "mesh is folded"),
    "ring": (lambda: of_cells([[0, 1], [1, 2], [2, 0]], [0, 1, 2]), "mesh is folded"),
    "curved": (curved, "mesh must have straight cells"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_meshes_are_refused(name):
    make, message = WRONG[name]
    mesh = make()
    for options in ({}, {"left": "clamped"}, {"degree": 3}):
        with pytest.raises(ValueError, match=f"^{message}"):
            fg.Beam(mesh, SOFT, **options)


COMPLEX = np.eye(6) * (1 + 0.1j)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fg.Section(COMPLEX, np.eye(6)), TypeError, "stiffness must be a 6×6 array of fin"),
        (lambda: fg.Section(np.eye(6), COMPLEX.tolist()), TypeError, "inertia must be a 6×6 array"),
        (
            lambda: fg.Section(np.eye(6).astype(str), np.eye(6)),
            TypeError,
            "stiffness must be a 6×6",
        ),
        (lambda: fg.Section(np.eye(6) > 0, np.eye(6)), TypeError, "stiffness must be a 6×6 array"),
        (
            lambda: fg.Section.circle(
                np.complex128(1), density=1, youngs_modulus=1, poisson_ratio=0
            ),
            TypeError,
            "radius must be a number",
        ),
        (
            lambda: fg.Section.circle(1.0, density=True, youngs_modulus=1, poisson_ratio=0),
            TypeError,
            "density must be a number",
        ),
        (
            lambda: fg.Beam(moved(NODES), SOFT, reference_strain=np.full(6, 1j)),
            TypeError,
            "reference_strain must be real numbers",
        ),
        (lambda: fg.Beam(moved(NODES), SOFT, damping="high"), TypeError, "damping must be a time"),
        (lambda: fg.Beam(moved(NODES), SOFT, damping=True), TypeError, "damping must be a time"),
        (lambda: fg.Beam(moved(NODES), SOFT, damping=COMPLEX), TypeError, "damping must be a time"),
        (
            lambda: fg.Beam(moved(NODES), SOFT, damping=-1),
            ValueError,
            "damping must be a number that is not negative",
        ),
        (
            lambda: fg.Beam(moved(NODES), SOFT, degree=2, damping=-np.eye(6)),
            ValueError,
            "damping must be symmetric and positive semidefinite",
        ),
        (lambda: fg.Load(force=(0, 0, 1j)), TypeError, "force must be a vector of 3 finite"),
        (lambda: fg.Load(force=("0", "0", "1")), TypeError, "force must be a vector of 3 finite"),
        (
            lambda: fg.Load(force=[Constant(1.0), np.nan, 0]),
            ValueError,
            "force must be a vector of finite numbers",
        ),
        (
            lambda: (
                fg.Beam(
                    moved(NODES),
                    SOFT,
                    loads=fg.Load(
                        force=Function(VectorFunctionSpace(moved(NODES), "CG", 1, dim=3))
                    ),
                ).motion
            ),
            ValueError,
            "loads: <dead force along the rod> holds Functions of several meshes",
        ),
        (
            lambda: fg.Beam(moved(NODES), SOFT).stress_at("right"),
            TypeError,
            "s must be an arc length",
        ),
        (lambda: fg.Gravity((0, 0, -9.81 + 0j)), TypeError, "acceleration must be a vector of 3"),
        (lambda: fg.Load(force=(0, 0, 1), at="tip"), ValueError, "at must be 'left', 'right' or"),
        (
            lambda: fg.Load(force=(0, 0, 1), at=np.nan),
            ValueError,
            "at must be 'left', 'right' or",
        ),
        (lambda: fg.Load(force=(0, 0, 1), at=True), ValueError, "at must be 'left', 'right' or"),
        (
            lambda: fg.Beam(moved(NODES), SOFT, loads=fg.Load(force=(0, 0, 1), at=0.77)),
            ValueError,
            "at: the mesh of the beam has no node at 0.77",
        ),
        (
            lambda: fg.Spherical(fg.ground, fg.Beam(moved(NODES), SOFT).left, axis=(0, 0, 1)),
            ValueError,
            "Spherical has no axis",
        ),
        (
            lambda: fg.Spherical(
                fg.ground, fg.Beam(moved(NODES), SOFT).left, stiffness=1, rest=0.3
            ),
            ValueError,
            "Spherical has no rest",
        ),
        (
            lambda: fg.Revolute(fg.ground, fg.Beam(moved(NODES), SOFT).left, axis=(0, 1j, 0)),
            TypeError,
            "axis must be a vector of 3 finite numbers",
        ),
        (
            lambda: fg.PointBody(fg.Beam(moved(NODES), SOFT).left, mass=1, inertia=[1j, 1, 1]),
            TypeError,
            "inertia must",
        ),
        (
            lambda: fg.PointBody(fg.Beam(moved(NODES), SOFT).left, mass=1, offset=(1j, 0, 0)),
            TypeError,
            "offset must",
        ),
        (
            lambda: fg.Beam(moved(NODES), SOFT).reconstruct(position=(0, 0, 1j)),
            TypeError,
            "position must be a vector of 3",
        ),
    ],
)
def test_what_is_no_number_or_place_is_refused_where_it_is_given(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_nodal_values():
    """In order on meshes of any numbering; nodes of quadratic elements lie in the middle too."""
    mesh = moved(NODES[::-1])
    (s,) = SpatialCoordinate(mesh)
    middles = (NODES[1:] + NODES[:-1]) / 2
    both = np.sort([*NODES, *middles])
    for (family, degree), at in {("CG", 1): NODES, ("CG", 2): both, ("DG", 0): middles}.items():
        space = VectorFunctionSpace(mesh, family, degree, dim=2)
        found, values = fg.nodal_values(Function(space).interpolate(as_vector([s, 2 - s])))
        assert found == pytest.approx(at, abs=1e-14)
        assert values == pytest.approx(np.transpose([at, 2 - at]), abs=1e-14)
    for family, degree in (("DG", 1), ("DG", 2)):
        with pytest.raises(ValueError, match="^function must be continuous"):
            fg.nodal_values(Function(VectorFunctionSpace(mesh, family, degree, dim=2)))
    with pytest.raises(ValueError, match="^function must be continuous"):
        fg.nodal_values(fg.Beam(mesh, SOFT).state)
    with pytest.raises(TypeError, match="^function must be a firedrake Function"):
        fg.nodal_values(NODES)
