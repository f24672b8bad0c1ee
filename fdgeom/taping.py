"""pyadjoint's tape: nothing of fdgeom is on it, and nothing goes past it unseen."""

from collections.abc import Callable, Sequence
from functools import partial, wraps

from pyadjoint import Block
from pyadjoint.tape import annotate_tape, stop_annotating

#: What puts deeds on the tape, from :func:`recorded_by`.
_records: list[Callable] = []


def recorded_by(record: Callable) -> None:
    """Let ``record(name, do, deeds, system)`` put onto the tape what changes a system; said once."""
    _records[:] = [record]


def record(name: str, do: Callable[[], None], deeds: Callable[[], Sequence], system) -> None:
    """Do something that changes a system, and put it onto the tape while pyadjoint records.

    Parameters
    ----------
    name : str
        What to call it.
    do : callable
        Does it.
    deeds : callable
        Gives it in equations: as of :meth:`fdgeom.systems.system.System.openings`.
    system : System
        What it changes.
    """
    if annotate_tape():
        _records[0](name, do, deeds(), system)
    else:
        do()


def refuse_annotation(what: str, instead: str = "") -> None:
    """Raise ``NotImplementedError`` while pyadjoint records.

    Parameters
    ----------
    what : str
        What would change a Function unseen.
    instead : str, optional
        What would do.
    """
    instead = instead or ("take the gradient of what it does by finite differences of whole runs")
    if annotate_tape():
        raise NotImplementedError(
            f"{what} is not recorded by pyadjoint: it would leave no trace on the tape, and gradients "
            "would be wrong without a word. Call it inside 'with firedrake.adjoint.stop_annotating():' "
            f"(its result then counts as given data), and {instead}"
        )


def not_taped(method: Callable | None = None, *, instead: str = "") -> Callable:
    """A method that changes Functions, refused while pyadjoint records.

    Everything of fdgeom that changes a Function is, in all its ways of doing so, unless it is on the
    tape; under ``stop_annotating()`` all works. ``instead`` is as of :func:`refuse_annotation`.
    """
    if method is None:
        return partial(not_taped, instead=instead)

    @wraps(method)
    def guarded(*args, **kwargs):
        if annotate_tape():
            refuse_annotation(_name(method, args), instead)
        return method(*args, **kwargs)

    return guarded


def off_the_tape(method: Callable) -> Callable:
    """A method that changes nothing of the user's, whatever it assembles and solves: unrecorded."""

    @wraps(method)
    def unrecorded(*args, **kwargs):
        with stop_annotating():
            return method(*args, **kwargs)

    return unrecorded


def _name(method: Callable, args: tuple) -> str:
    if "." not in method.__qualname__:
        return f"fdgeom.{method.__name__}()"
    owner = type(args[0]).__name__
    return f"{owner}()" if method.__name__ == "__init__" else f"{owner}.{method.__name__}()"


class PreparedBlock(Block):
    """A block whose derivatives are made all at once, by what its methods ``prepare_...`` return."""

    def evaluate_adj_component(self, inputs, adj_inputs, block_variable, idx, prepared=None):
        return prepared[idx]

    def evaluate_tlm_component(self, inputs, tlm_inputs, block_variable, idx, prepared=None):
        return prepared[idx]

    def evaluate_hessian_component(
        self,
        inputs,
        hessian_inputs,
        adj_inputs,
        block_variable,
        idx,
        relevant_dependencies,
        prepared=None,
    ):
        return prepared[idx]
