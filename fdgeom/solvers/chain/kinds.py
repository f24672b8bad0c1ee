"""Equations of the types of cells of a mesh: cells of chains, and links."""

import numpy as np
from firedrake import Form, Function

from fdgeom.errors import CannotCompile
from fdgeom.solvers.chain.cells import CellEquations, alike_in, cell_equations
from fdgeom.solvers.chain.layout import topology_of
from fdgeom.solvers.chain.ranks import largest_of_all
from fdgeom.solvers.compiled.tables import Tables


def kinds_of(
    residual: Form, unknown: Function, tables: Tables, tangent: Form | None = None
) -> list[CellEquations]:
    """The equations of a cell of the chains, and of a link if any rank has links."""
    topology = topology_of(tables)
    if not largest_of_all(tables.mesh.comm, len(topology.links)):
        return [cell_equations(residual, unknown, tangent=tangent)]
    forms = [residual] if tangent is None else [residual, tangent]
    found: list[CellEquations] = []
    for cells in (np.concatenate(topology.chains), topology.links):
        fixed = alike_in(cells, forms)
        # Updates need all components of a node in links too.
        also = found[0].components if found else ()
        found.append(cell_equations(residual, unknown, fixed, also, tangent))
    if any(not part.nodal for part in found[0].parts):
        raise CannotCompile("joints between chains with unknowns in their cells are not supported")
    return found
