"""Places on interval meshes: values copied to fields and back, gaps between chains, refused meshes."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    UnitSquareMesh,
    VectorFunctionSpace,
)
from verification.beams import SOFT, uneven_mesh

import fdgeom as fg
from fdgeom.compile import CompiledExecutor
from fdgeom.compile.build import WIDTH
from fdgeom.compile.layout import Layout, parts_of
from fdgeom.compile.map_layout import MapLayout
from fdgeom.errors import CannotCompile
from fdgeom.operations import Map


def two_rods(cells=(11, 8)):
    """Two separate rods on one mesh."""
    rods = [fg.Beam(IntervalMesh(n, 1.0), SOFT) for n in cells]
    return fg.Assembly(rods).mesh


@pytest.mark.parametrize("cells", [1, 7, 8, 21])
@pytest.mark.parametrize("family", ["CG", "DG"])
def test_a_list_reads_and_writes_the_values_of_functions(cells, family):
    """Each entry gets its own value, in the order that the mesh has."""
    mesh = uneven_mesh(cells)
    space = VectorFunctionSpace(mesh, family, int(family == "CG"), dim=3)
    f, g = Function(space), Function(space)
    f.dat.data_wo[...] = np.random.default_rng(1).uniform(-1, 1, f.dat.data_ro.shape)
    assert CompiledExecutor([Map(values={g: 2 * f})]).advance(1, 0.0, 1.0) == (1, None)
    assert np.array_equal(g.dat.data_ro, 2 * f.dat.data_ro)


def has_blocks(layout, *chains):
    """Whether the blocks hold the nodes and the cells of chains of so many nodes."""
    counts = [
        np.concatenate([np.clip(n - less - np.arange(0, n, WIDTH), 0, WIDTH) for n in chains])
        for less in (0, 1)
    ]
    found = layout.node_counts, layout.counts
    return all(np.array_equal(f, [*c, 0]) for f, c in zip(found, counts, strict=True))


def test_places_follow_the_arc_length():
    mesh = uneven_mesh(19)
    layout = Layout(mesh)
    x = Function(FunctionSpace(mesh, "CG", 1)).interpolate(SpatialCoordinate(mesh)[0])
    (part,) = parts_of(x)
    found = x.dat.data_ro[layout.dofs(part)[:20]]
    assert np.all(np.diff(found) > 0)
    assert has_blocks(layout, 20)


def test_chains_begin_at_blocks():
    """Two rods: 12 and 9 nodes; the gaps repeat the last node and the last cell."""
    mesh = two_rods()
    layout = Layout(mesh)
    assert has_blocks(layout, 12, 9)
    assert layout.own_nodes.sum() == 21
    (part,) = parts_of(Function(FunctionSpace(mesh, "CG", 1)))
    dofs = layout.dofs(part)
    assert len(np.unique(dofs)) == 21
    last = layout.starts[1] + 8
    assert np.all(dofs[last : last + WIDTH] == dofs[last])
    assert layout.nodes == last + 1


@pytest.mark.parametrize(
    ("mesh", "words"),
    [
        (lambda: PeriodicIntervalMesh(5, 1.0), "straight"),
        (lambda: UnitSquareMesh(1, 1), "straight"),
    ],
)
def test_other_meshes_are_refused(mesh, words):
    with pytest.raises(CannotCompile, match=words):
        Layout(mesh())


def test_other_elements_are_refused():
    space = FunctionSpace(uneven_mesh(3), "DG", 1)
    with pytest.raises(CannotCompile, match="not <DG1"):
        parts_of(Function(space))
    f, g = Function(space), Function(space)
    # They are compiled as on any mesh.
    assert isinstance(CompiledExecutor([Map(values={f: 2 * g})]).unit.layout, MapLayout)


def test_coordinates_of_other_meshes_are_refused():
    (x,) = SpatialCoordinate(uneven_mesh(3))
    f = Function(FunctionSpace(uneven_mesh(3), "CG", 1))
    with pytest.raises(CannotCompile, match="another mesh"):
        CompiledExecutor([Map(values={f: x * f})])


def test_parts_of_higher_degree():
    """The values of x in functions of degree 3: nodes and inner nodes of cells, from left to right."""
    mesh = uneven_mesh(10)
    mesh.coordinates.dat.data_wo[...] = 1.0 - mesh.coordinates.dat.data_ro
    (x,) = SpatialCoordinate(mesh)
    f, layout = Function(FunctionSpace(mesh, "CG", 3)).interpolate(x), Layout(mesh)
    parts = parts_of(f)
    assert [part.nodal for part in parts] == [True, False, False]
    values = [f.dat.data_ro[layout.dofs(part)] for part in parts]
    left, right = values[0][layout.cell_places], values[0][layout.cell_places + 1]
    assert np.all(left < right)
    for part, own in zip(parts[1:], values[1:], strict=True):
        node = basis_of(part.inner)
        assert np.abs(own[layout.cell_places] - (left + node * (right - left))).max() < 1e-15


def basis_of(inner):
    """The place of an inner node of degree 3 in a cell of length 1: Gauss–Lobatto points."""
    return 0.5 + (inner - 1.5) / np.sqrt(5)
