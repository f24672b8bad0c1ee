"""Actions of rank 0 whose result or error is given to all ranks."""

from collections.abc import Callable


def on_root(comm, action: Callable[[], object], error: type[Exception], message: str):
    """Call `action` on rank 0; return its picklable value, or raise its error, on every rank."""
    # Without this a full disk, or Ctrl-C, would stop rank 0 alone and leave the others waiting for
    # it. The error's text is `message` and the cause.
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
