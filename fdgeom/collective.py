"""What only rank 0 does, told to all ranks."""

from collections.abc import Callable


def on_root(comm, action: Callable[[], object], error: type[Exception], message: str):
    """Call `action` on rank 0 and raise on every rank if it failed there.

    Without this a full disk would stop rank 0 alone and leave the others waiting for it.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    action : callable without arguments
    error : exception class raised on all ranks
    message : str
        Beginning of the error's text; the cause is added.

    Returns
    -------
    object
        What `action` returned, on all ranks (it must be picklable).
    """
    value = cause = None
    if comm.rank == 0:
        try:
            value = action()
        except Exception as exc:
            cause = exc
    value, text = comm.bcast((value, None if cause is None else f"{cause}"))
    if text is not None:
        raise error(f"{message}: {text}") from cause
    return value
