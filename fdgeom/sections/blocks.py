"""Sections drawn as quadrilaterals, glued from blocks, each a grid mapped to its place.

A block is a unit square: its first coordinate runs along a wall, the second through it, layer by
layer. Blocks whose edges coincide share the nodes there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import finat.ufl
import numpy as np
import scipy
from firedrake import COMM_WORLD, Function, FunctionSpace, Mesh, SpatialCoordinate
from firedrake.mesh import plex_from_cell_list
from firedrake.petsc import PETSc

from fdgeom.forms import shaped_space

from .elasticity import broken_element
from .material import Isotropic, Ply
from .outline import coinciding

#: Degree of the coordinates where walls are curved.
CURVED = 2


@dataclass(frozen=True)
class Block:
    """A grid on the unit square, and the map from (ξ, η) to points (..., 2), with ξ along the wall."""

    wall: str
    #: Bilinear for a straight block.
    place: Callable[[np.ndarray, np.ndarray], np.ndarray]
    #: Number of cells along the wall, or values of ξ between them.
    along: int | np.ndarray
    #: Values of η between the rows of cells.
    rows: np.ndarray
    #: The layer of each row.
    layers: np.ndarray
    is_straight: bool = True

    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """(ξ, η) of the vertices, (vertices, 2), and the vertices of the cells, (cells, 4)."""
        is_number = np.ndim(self.along) == 0
        columns = np.linspace(0, 1, self.along + 1) if is_number else self.along
        xi, eta = np.meshgrid(columns, self.rows, indexing="ij")
        n = len(self.rows)
        first = (np.arange(len(columns) - 1)[:, None] * n + np.arange(n - 1)).ravel()
        cells = np.stack([first, first + n, first + n + 1, first + 1], axis=1)
        return np.stack([xi.ravel(), eta.ravel()], axis=1), cells

    def direction(self, xi: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Angle of the wall's tangent from the first axis."""
        # Central differences inside the square: round-off and truncation are about 1e-10.
        step = 1e-5
        inside = np.clip(xi, step, 1 - step)
        dx, dy = np.moveaxis(self.place(inside + step, eta) - self.place(inside - step, eta), -1, 0)
        return np.arctan2(dy, dx)


def rows_of(layers: Sequence[float], through: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of η between rows of cells, and the layer of each, from relative thicknesses."""
    thickness = np.repeat(np.asarray(layers, dtype=float) / through, through)
    edges = np.concatenate([[0.0], np.cumsum(thickness)]) / thickness.sum()
    edges[-1] = 1.0
    return edges, np.repeat(np.arange(len(layers)), through)


def straight(corners) -> Callable:
    """The bilinear map to a quadrilateral: corners at (0,0), (1,0), (1,1), (0,1)."""
    a, b, c, d = np.asarray(corners, dtype=float)

    def place(xi, eta):
        xi, eta = xi[..., None], eta[..., None]
        return (1 - eta) * ((1 - xi) * a + xi * b) + eta * ((1 - xi) * d + xi * c)

    return place


class Shape:
    """A drawn section: mesh, tags of its walls and layers, and the tangent of the walls.

    Attributes
    ----------
    mesh : firedrake.MeshGeometry
        Quadrilaterals, tagged.
    tags : dict
        (wall, layer) to tag; layers count from 0.
    """

    def __init__(self, blocks: Sequence[Block], comm=COMM_WORLD) -> None:
        self._blocks = blocks
        walls = list(dict.fromkeys(block.wall for block in blocks))
        count = 1 + max(block.layers.max() for block in blocks)
        self.tags = {
            (wall, layer): int(1 + count * k + layer)
            for k, wall in enumerate(walls)
            for layer in range(int(count))
        }
        self._glue()
        straight_mesh = Mesh(self._plex(comm), comm=comm)
        local = self._local(straight_mesh)
        if all(block.is_straight for block in blocks):
            self.mesh, self._at = straight_mesh, local
            return
        element = finat.ufl.FiniteElement("CG", straight_mesh.ufl_cell(), CURVED)
        broken = shaped_space((2,), straight_mesh, finat.ufl.BrokenElement(element))
        at = Function(broken).interpolate(local).dat.data_ro_with_halos
        nodes = broken.cell_node_list
        places = np.empty_like(at)
        for block, cells in self._by_block():
            xi, eta = np.moveaxis(at[nodes[cells]], -1, 0)
            places[nodes[cells]] = block.place(xi, eta)
        curved = Function(shaped_space((2,), straight_mesh, element))
        curved.dat.data_wo_with_halos[curved.function_space().cell_node_list] = places[nodes]
        self.mesh = Mesh(curved)
        self._at = Function(shaped_space((2,), self.mesh, broken_element(self.mesh, 1)))
        self._at.dat.data_wo_with_halos[...] = local.dat.data_ro_with_halos

    def _glue(self) -> None:
        """Vertices and cells of all blocks, with coinciding vertices made one."""
        grids = [block.grid() for block in self._blocks]
        starts = np.cumsum([0, *(len(at) for at, _ in grids)])
        self._corners = np.concatenate([at[cells] for at, cells in grids])
        self._block = np.repeat(np.arange(len(grids)), [len(cells) for _, cells in grids])
        tags = [
            [self.tags[block.wall, layer] for layer in block.layers]
            * (len(cells) // len(block.layers))
            for block, (_, cells) in zip(self._blocks, grids, strict=True)
        ]
        self._tag = np.concatenate(tags)
        places = np.concatenate(
            [b.place(*at.T) for b, (at, _) in zip(self._blocks, grids, strict=True)]
        )
        cells = np.concatenate(
            [cells + start for (_, cells), start in zip(grids, starts[:-1], strict=True)]
        )
        first, same = coinciding(places)
        self._vertices, self._cells = places[first], same[cells]

    def _plex(self, comm) -> PETSc.DMPlex:
        root = comm.rank == 0
        cells = self._cells.astype(np.int32) if root else np.empty((0, 4), dtype=np.int32)
        plex = plex_from_cell_list(2, cells, self._vertices if root else np.empty((0, 2)), comm)
        plex.createLabel("Cell Sets")
        if root:
            for cell, tag in enumerate(self._tag):
                plex.setLabelValue("Cell Sets", cell, tag)
        return plex

    def _local(self, mesh) -> Function:
        """(ξ, η) in its block of each corner of each cell (with halo), discontinuous."""
        space = shaped_space((2,), mesh, broken_element(mesh, 1))
        local, corners = Function(space), Function(space).interpolate(SpatialCoordinate(mesh))
        nodes = space.cell_node_list
        places = corners.dat.data_ro_with_halos[nodes]
        known = self._vertices[self._cells]
        # Firedrake numbers cells and corners anew: they are known by where they are.
        _, cell = scipy.spatial.cKDTree(known.mean(axis=1)).query(places.mean(axis=1))
        gap = np.linalg.norm(places[:, :, None] - known[cell][:, None], axis=-1)
        at = self._corners[cell]
        local.dat.data_wo_with_halos[nodes] = np.take_along_axis(
            at, gap.argmin(axis=-1)[..., None], axis=1
        )
        self._block_of_cell = self._block[cell]
        return local

    def _by_block(self):
        for k, block in enumerate(self._blocks):
            yield block, np.flatnonzero(self._block_of_cell == k)

    @cached_property
    def tangent(self) -> Function:
        """Angle of the wall's tangent from the first transverse axis, for ``Ply(along=...)``."""
        # DG0, or of degree 2 in curved walls.
        degree = 0 if all(block.is_straight for block in self._blocks) else CURVED
        element = broken_element(self.mesh, degree)
        space = FunctionSpace(self.mesh, element)
        at = Function(shaped_space((2,), self.mesh, element)).interpolate(self._at)
        angle, nodes = Function(space, name="tangent"), space.cell_node_list
        for block, cells in self._by_block():
            xi, eta = np.moveaxis(at.dat.data_ro_with_halos[nodes[cells]], -1, 0)
            values = block.direction(xi, eta)
            # One branch of the angle in a cell.
            first = values[:, :1]
            values = first + (values - first + np.pi) % (2 * np.pi) - np.pi
            angle.dat.data_wo_with_halos[nodes[cells]] = values
        return angle

    @property
    def walls(self) -> tuple[str, ...]:
        """Names of the walls."""
        return tuple(dict.fromkeys(wall for wall, _ in self.tags))

    def lay(self, plies, **walls) -> dict:
        """Materials by tag, for :meth:`fdgeom.Section.from_mesh`.

        Parameters
        ----------
        plies : material, (material, angle), or a sequence of these
            One ply for all layers, or one for each layer.
        **walls
            Plies of single walls, by their names.

        Returns
        -------
        dict
            Tag to material. A material that is not isotropic becomes a ply along the wall, and so does
            a :class:`Ply` without ``along``; its angle and that of the pair add up.

        Raises
        ------
        ValueError
            If a wall is unknown or the number of layers is wrong.
        """
        unknown = sorted(set(walls) - set(self.walls))
        if unknown:
            raise ValueError(f"no wall is called {unknown[0]!r}; there are {', '.join(self.walls)}")
        count = len({layer for _, layer in self.tags})
        given = {wall: _layers(walls.get(wall, plies), count) for wall in self.walls}
        return {tag: self._ply(given[wall][layer]) for (wall, layer), tag in self.tags.items()}

    def _ply(self, given):
        material, angle = given if isinstance(given, tuple) else (given, 0.0)
        if isinstance(material, Isotropic):
            return material
        if not isinstance(material, Ply):
            return Ply(material, angle, self.tangent)
        # One without a direction of its own lies along the wall, too.
        free = isinstance(material.along, float | int) and material.along == 0
        along = self.tangent if free else material.along
        return replace(material, angle=material.angle + angle, along=along)


def _layers(plies, count: int) -> list:
    # A pair is one ply unless its second entry is one too; an angle may be a UFL expression.
    is_pair = isinstance(plies, tuple) and len(plies) == 2
    is_two = is_pair and (isinstance(plies[1], tuple) or hasattr(plies[1], "stress"))
    if hasattr(plies, "stress") or (is_pair and not is_two):
        return [plies] * count
    plies = list(plies)
    if len(plies) != count:
        raise ValueError(f"plies: there are {count} layers, not {len(plies)}")
    return plies
