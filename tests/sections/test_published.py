"""The tables that BECAS and ANBA4 publish of their own verification, on the meshes named there.

BECAS: J. P. Blasques, User's manual for BECAS, DTU 2012, cases S1-S3 (10×10 bilinear cells) and C1
(119×3 bilinear cells round a tube). Their order is Fx Fy Fz Mx My Mz with z along the beam.
"""

import numpy as np
import pytest
from firedrake import COMM_WORLD, Mesh
from firedrake.mesh import plex_from_cell_list
from sections.drawn import BECAS, halves, rectangle

import fdgeom as fg

SIDE, CENTRE = 0.1, (0.05, 0.05)
# BECAS prints what bilinear cells give.
pytestmark = pytest.mark.filterwarnings("ignore:degree=1 is much too stiff")


def table(mesh, materials):
    section = fg.Section.from_mesh(mesh, materials, degree=1, origin=CENTRE, axis=2)
    return section.to_table("becas")[0]


def printed(values, text):
    """Whether numbers round to those printed, a unit in their last place allowed for."""
    for value, word in zip(values, text.split(), strict=True):
        mantissa = word.lower().partition("e")[0]
        unit = float("1e" + (word.lower().partition("e")[2] or "0"))
        unit *= 10.0 ** -len(mantissa.partition(".")[2])
        assert abs(value - float(word)) <= 0.6 * unit, (value, word)


def test_square():
    found = table(rectangle(SIDE, SIDE, 10), fg.Isotropic(100.0, 0.2, 1.0))
    printed(np.diag(found), ".34899 .34899 1.0 8.3384e-4 8.3384e-4 5.9084e-4")


def test_two_materials():
    materials = {1: fg.Isotropic(100.0, 0.2, 1.0), 2: fg.Isotropic(10.0, 0.2, 1.0)}
    found = table(halves(SIDE, SIDE, 10), materials)
    printed(np.diag(found), ".128 .192 .55 4.59e-4 4.59e-4 2.77e-4")
    printed([found[1, 5], found[2, 4]], "-3.93e-3 1.13e-2")


@pytest.mark.parametrize(
    ("angle", "text"),
    [
        (0.0, ".5039 .4201 4.8 4.001e-3 4.001e-3 7.737e-4"),
        (np.pi / 2, ".50202 .50406 1.2 1.0004e-3 1.0002e-3 8.5081e-4"),
    ],
)
def test_orthotropic(angle, text):
    found = table(rectangle(SIDE, SIDE, 10), fg.Ply(BECAS, angle=angle))
    printed(np.diag(found), text)


def test_limits(recorded):
    """What the same sections tend to, as BECAS gives it; degree 2 is near on the same mesh."""
    mesh = rectangle(SIDE, SIDE, 12)

    def stiffness(materials, mesh=mesh):
        section = fg.Section.from_mesh(mesh, materials, origin=CENTRE, axis=2)
        return np.diag(section.to_table("becas")[0])

    finer = [stiffness(fg.Ply(BECAS, angle=0.0), rectangle(SIDE, SIDE, n))[5] for n in (3, 6, 12)]
    recorded.values(
        "Orthotropic square (BECAS S3)", "torsional stiffness [N m²]", reference=7.67006e-4,
        source="BECAS user's manual 2012, the limit of its meshes", meshes=(3, 6, 12),
        values=finer, by="cells a side",
    )  # fmt: skip
    assert stiffness(fg.Isotropic(100.0, 0.2, 1.0)) == pytest.approx(
        [0.346107, 0.346107, 1, 8.33333e-4, 8.33333e-4, 5.85738e-4], rel=3e-5
    )
    assert stiffness(fg.Ply(BECAS, angle=0.0)) == pytest.approx(
        [0.499765, 0.416588, 4.8, 0.004, 0.004, 7.67006e-4], rel=3e-5
    )
    assert stiffness(fg.Ply(BECAS, angle=np.pi / 2)) == pytest.approx(
        [0.497915, 0.499869, 1.2, 0.001, 0.001, 8.43463e-4], rel=3e-5
    )


#: BECAS C1: R = .1, t = .01, E = 100, ν = .2.
TUBE_LIMIT = [0.124925, 0.124925, 0.596903, 2.70098e-3, 2.70098e-3, 2.25082e-3]


def polygon(corners, through):
    """A tube of straight cells, its corners on both circles."""
    angle, radius = np.arange(corners) * 2 * np.pi / corners, np.linspace(0.1, 0.09, through + 1)
    round_once = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    i, j = (k.ravel() for k in np.indices((through, corners)))
    after = (j + 1) % corners
    cells = [i * corners + j, i * corners + after, (i + 1) * corners + after, (i + 1) * corners + j]
    plex = plex_from_cell_list(
        2,
        np.stack(cells, axis=1).astype(np.int32),
        (radius[:, None, None] * round_once).reshape(-1, 2),
        COMM_WORLD,
    )
    return Mesh(plex)


def test_tube():
    """BECAS C1 on its own kind of mesh, and the limit on curved cells."""

    def stiffness(mesh, degree):
        section = fg.Section.from_mesh(
            mesh, fg.Isotropic(100.0, 0.2, 1.0), degree=degree, origin=(0.0, 0.0), axis=2
        )
        return np.diag(section.to_table("becas")[0])

    found = stiffness(polygon(119, 3), 1)
    # Where BECAS puts the corners is not printed; with them on the circles EI is 5.7e-4 off theirs,
    # and (2π/119)²/3 = 9.3e-4 below the circle's.
    assert found == pytest.approx([0.1249, 0.1249, 0.5965, 2.697e-3, 2.697e-3, 2.248e-3], rel=6e-4)
    assert found == pytest.approx(TUBE_LIMIT, rel=9.4e-4)
    area = 119 / 2 * np.sin(2 * np.pi / 119) * (0.1**2 - 0.09**2)
    assert found[2] == pytest.approx(100 * area, rel=1e-12)
    # Curved cells: 32 round.
    assert stiffness(fg.sections.tube(0.1, 0.09).mesh, 2) == pytest.approx(TUBE_LIMIT, rel=1e-5)


def test_ring():
    """The limit of BECAS C1: that of the closed formula of a circular ring."""
    section = fg.Section.tube(
        0.1, 0.09, density=1.0, youngs_modulus=100.0, poisson_ratio=0.2, axis=2
    )
    found = np.diag(section.to_table("becas")[0])
    assert found == pytest.approx(TUBE_LIMIT, rel=4e-6)


def test_anba(recorded):
    """The isotropic unit square of ANBA4's tests, ν = .33, P2 on 10×10 cells cut in two."""
    mesh = rectangle(1, 1, 10, quadrilateral=False)
    section = fg.Section.from_mesh(mesh, fg.Isotropic(1.0, 0.33, 1.0), origin=(0.5, 0.5), axis=2)
    found = np.diag(section.to_table("anba")[0])
    assert found[5] == pytest.approx(0.052855945, abs=1e-9)
    recorded.values(
        "Isotropic unit square (ANBA4)", "torsional stiffness", reference=0.052855945,
        source="ANBA4's tests, on the same mesh", meshes=(10,), values=[found[5]],
        by="cells a side",
    )  # fmt: skip
    # ANBA4 integrates the shear with a rule of degree 2.
    assert found[0] == pytest.approx(0.3110644, abs=1e-6)
