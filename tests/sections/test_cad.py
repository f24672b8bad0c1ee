"""Sections from meshes of other programs; those that are no part of the tests' packages if there."""

import pytest
from firedrake import Mesh
from sections.drawn import STEEL

import fdgeom as fg

SOFT = fg.Isotropic(youngs_modulus=0.26, poisson_ratio=0.3, density=1.0)

#: Two unit squares side by side, 2×2 cells each, with the physical groups 1 and 2.
NODES = [(x / 2, y / 2) for y in range(3) for x in range(5)]
CELLS = [(x // 2 + 1, (5 * y + x, 5 * y + x + 1, 5 * y + x + 6, 5 * y + x + 5))
         for y in range(2) for x in range(4)]  # fmt: skip


def check(mesh):
    """EA and mass of the squares, and where their centres are: exact on straight cells."""
    section = fg.Section.from_mesh(mesh, {1: STEEL, 2: SOFT}, origin=(1.0, 0.5))
    assert section.stiffness[3, 3] == pytest.approx(2.86, rel=1e-12)
    assert section.inertia[3, 3] == pytest.approx(2.5, rel=1e-12)
    assert section.tension_centre == pytest.approx([-0.5 * (2.6 - 0.26) / 2.86, 0.0], abs=1e-10)
    assert section.mass_centre == pytest.approx([-0.5 * 0.5 / 2.5, 0.0], abs=1e-12)


def test_file_of_gmsh(tmp_path):
    """PETSc reads it; gmsh itself is not needed."""
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(len(NODES))]
    lines += [f"{k} {x} {y} 0" for k, (x, y) in enumerate(NODES, 1)]
    lines += ["$EndNodes", "$Elements", str(len(CELLS))]
    for k, (tag, nodes) in enumerate(CELLS, 1):
        lines.append(f"{k} 3 2 {tag} {tag} " + " ".join(str(node + 1) for node in nodes))
    path = tmp_path / "profile.msh"
    path.write_text("\n".join([*lines, "$EndElements", ""]))
    check(Mesh(str(path)))


def test_gmsh(tmp_path):
    gmsh = pytest.importorskip("gmsh", reason="the extra cad is not installed")
    path = str(tmp_path / "profile.msh")
    gmsh.initialize()
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        squares = [gmsh.model.occ.addRectangle(x, 0, 0, 1, 1) for x in (0, 1)]
        gmsh.model.occ.fragment([(2, squares[0])], [(2, squares[1])])
        gmsh.model.occ.synchronize()
        for tag, square in enumerate(squares, 1):
            gmsh.model.addPhysicalGroup(2, [square], tag)
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.25)
        gmsh.model.mesh.generate(2)
        gmsh.write(path)
    finally:
        gmsh.finalize()
    check(Mesh(path))


def test_netgen():
    geom2d = pytest.importorskip("netgen.geom2d", reason="the extra cad is not installed")
    geometry = geom2d.SplineGeometry()
    corners = ((0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1))
    points = [geometry.AppendPoint(*corner) for corner in corners]
    # From, to, domain on the left, domain on the right.
    lines = ((0, 1, 1, 0), (1, 2, 2, 0), (2, 3, 2, 0), (3, 4, 2, 0), (4, 5, 1, 0), (5, 0, 1, 0),
             (1, 4, 1, 2))  # fmt: skip
    for start, end, left, right in lines:
        geometry.Append(["line", points[start], points[end]], leftdomain=left, rightdomain=right)
    check(Mesh(geometry.GenerateMesh(maxh=0.25)))
