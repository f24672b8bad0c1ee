"""What only rank 0 does, told to all ranks."""

from collections.abc import Callable


def on_root(comm, action: Callable[[], object], error: type[Exception], message: str):
    """Call `action` on rank 0 and raise on every rank if it failed there.

    Without this a full disk, or Ctrl-C, would stop rank 0 alone and leave the others waiting for it.
    The error's text is `message` and the cause; returned is what `action` did, which must be
    picklable.
    """
    value = cause = None
    if comm.rank == 0:
        try:
            value = action()
        except BaseException as exc:
            cause = exc
    stopped = isinstance(cause, KeyboardInterrupt | SystemExit)
    text = None if cause is None else f"{cause}"
    value, text, stopped = comm.bcast((value, text, stopped))
    if stopped:
        raise cause or KeyboardInterrupt
    if text is not None:
        raise error(f"{message}: {text}") from cause
    return value
