"""Meshes of many copies of a small system, one cell per copy."""

from firedrake import COMM_WORLD, IntervalMesh

from fdgeom.validation import whole


def copies(n: int, comm=COMM_WORLD):
    """A mesh of ``n`` unit cells, for ``n`` independent copies of a small system in DG0.

    Functions in ``VectorFunctionSpace(copies(n), "DG", 0, dim=d)`` have one state per cell; an
    energy ``e(q, p)*dx`` is then the sum of the copies' energies, since each cell has length one.

    Parameters
    ----------
    n : int
        Number of copies.
    comm : MPI communicator, optional
        The processes that share them.

    Raises
    ------
    ValueError
        If ``n`` is not a positive whole number.
    """
    n = whole("n", n, least=1)
    return IntervalMesh(n, n, comm=comm)
