"""Ghost exchange and agreement on failure for compiled units, through PETSc's and MPI's C functions."""

import ctypes

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from fdgeom.compat import mpi_type
from fdgeom.solvers.compiled.layout import ChainLayout, DirectLayout
from fdgeom.solvers.compiled.program import Program
from fdgeom.solvers.compiled.structs import Exchange, ExchangedField, FieldPointer


def make_exchange(
    program: Program, layout: ChainLayout | DirectLayout
) -> tuple[Exchange | None, dict[int, tuple[int, int]], list]:
    """The exchange (None on one rank), (first, number) of its entries by phase, and objects to keep alive."""
    # Owners solve at nodes, so ghosts need an exchange; all ranks that see a cell solve in it.
    comm = program.mesh.comm
    if comm.size == 1:
        return None, {}, []
    entries, numbers, keep = [], {}, []
    for phase, description in enumerate(program.phases):
        shared = [f for f in description.solved if description.nodal]
        if shared:
            numbers[phase] = len(entries), len(shared)
            entries += [_entry(program, layout, f, keep) for f in shared]
    fields = (ExchangedField * max(len(entries), 1))(*entries)
    library = ctypes.CDLL(PETSc.__file__)  # linked to the libraries of PETSc and MPI

    def address(name: str) -> int:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value

    made = Exchange(
        begin=address("PetscSFBcastBegin"),
        end=address("PetscSFBcastEnd"),
        allreduce=address("MPI_Allreduce"),
        replace=MPI.REPLACE.handle,
        integer=MPI.INT.handle,
        minimum=MPI.MIN.handle,
        comm=comm.handle,
        fields=ctypes.cast(fields, ctypes.c_void_p),
    )
    return made, numbers, [*keep, fields]


def _entry(program: Program, layout, function, keep: list) -> ExchangedField:
    space = function.function_space()
    forest = space.dof_dset.halo.sf
    kind = mpi_type(function.dat)
    values = layout.fields[program.tables.field(function)].array
    keep += [forest, kind]
    made = ExchangedField(
        sf=forest.handle,
        unit=kind.handle,
        values=values.ctypes.data,
        size=space.block_size,
    )
    if layout.is_chain:
        number = program.tables.space(function)
        total, owned = space.node_set.total_size, space.node_set.size
        wanted = np.flatnonzero(forest.computeDegree()[:total] > 0)
        ghosts = np.arange(owned, total)
        lists = [np.ascontiguousarray(a, dtype=np.int32) for a in (
            wanted, layout.number(number, wanted), ghosts, layout.number(number, ghosts),
        )]  # fmt: skip
        keep += lists
        made.sends, made.ghosts = len(wanted), len(ghosts)
        made.send_at, made.send_from, made.ghost_at, made.ghost_to = (a.ctypes.data for a in lists)
        made.chain = FieldPointer(*layout.pointer(program.tables.field(function)))
    return made
