"""Gradients of runs without a tape."""

from collections.abc import Sequence

from firedrake import Cofunction, Form, Function
from pyadjoint.tape import stop_annotating

from fdgeom.adjoint.block import NO_PLACES, replay_of
from fdgeom.adjoint.lists import Derivatives, Objective, Slopes, cotangent_of, keys, parts
from fdgeom.adjoint.steps import StepReplay
from fdgeom.forms import checked_form
from fdgeom.line import without_links
from fdgeom.messages import format_value
from fdgeom.operations import each_part
from fdgeom.operations.dependent import dependent_of, read_in
from fdgeom.validation import whole

# Derivatives of so many functionals are cached.
_MANY = 4


def gradient(
    stepper,
    steps: int,
    objective: Form,
    wrt: Sequence[Function],
    *,
    running: Form | None = None,
) -> tuple[float, list[Cofunction]]:
    """Value of an objective after some steps, and its gradient by initial values and data.

        J = objective(z_N) + Δt Σ_n running(z_n),     n = 1, ..., N,

    where z_n is the state after n steps. One reverse sweep over the steps gives the derivatives by any
    number of Functions, at the price of a few runs. They are the exact derivatives of the discrete
    steps. pyadjoint's tape is not needed and not changed.

    Parameters
    ----------
    stepper : Stepper
        The stepper that runs the steps. It and its system are restored afterwards.
    steps : int
        Number of steps.
    objective : UFL functional
        A functional of the state after the last step. Integrals over the mesh of an assembly, which has a
        cell for each joint, count its beams alone.
    wrt : sequence of Function
        Functions that derivatives are taken by: Functions of the state (or parts of mixed ones), with
        their present values, and data of the system: loads, material data, Functions of Real spaces.
    running : UFL functional, optional
        A functional of the state after each step.

    Returns
    -------
    float
        J.
    list of Cofunction
        The derivative of J by each Function of ``wrt``: pyadjoint's gradient without a Riesz map;
        ``.riesz_representation()`` converts it to a Function.

    Raises
    ------
    NotImplementedError
        If a derivative is not implemented; the message says why.
    TypeError, ValueError
        If an argument is not as described.
    StepFailed
        If a step fails.
    """
    _check(stepper, steps, wrt)
    with stop_annotating():
        # Read before the origin, which holds the clock: it may be a Constant.
        replay, dt = replay_of(stepper), stepper.dt
        own = *replay.views, *replay.state, *each_part(replay.state), *wrt
        objective = without_links("objective", checked_form("objective", objective, state=own))
        if running is not None:
            running = without_links("running", checked_form("running", running, state=own))
        forms = [form for form in (objective, running) if form is not None]
        _check_read(replay, wrt, forms)
        origin, wanted = replay.origin([keys(wrt)] * len(replay.snapshots())), replay.data(wrt)
        active = keys(replay.state) | replay.reached_by(wanted)
        _check_fields(replay, forms, active)
        at_end = _slopes(replay, objective, active)
        at_each = None if running is None else _slopes(replay, running, active, dt)
        both, d = Objective(at_end, at_each), Derivatives()
        with replay.at(origin, replay.inputs):
            replay.pull(origin, steps, d, wanted, both)
        return both.value, [d.cotangents.read_all(f, cotangent_of(f)) for f in wrt]


def _slopes(replay: StepReplay, form: Form, active: set[int], factor: float = 1.0) -> Slopes:
    """The derivatives of a form, cached."""

    def make() -> Slopes:
        return Slopes(form if factor == 1.0 else factor * form, active)

    return replay.once(
        "slopes", (id(form), frozenset(active), factor), make, alive=form, most=_MANY
    )


def _check(stepper, steps: int, wrt) -> None:
    if not (hasattr(stepper, "operations") and hasattr(stepper, "advance")):
        raise TypeError(f"stepper must be a stepper of fdgeom, not {format_value(stepper)}")
    whole("steps", steps, least=1)
    if not isinstance(wrt, list | tuple) or not wrt:
        raise TypeError(f"wrt must be a list of Functions, not {format_value(wrt)}")
    for f in wrt:
        if not isinstance(f, Function):
            raise TypeError(
                f"wrt must be Functions, not {format_value(f)}; a number is a Function of a Real space"
            )
        if len(f.function_space()) == 1 and f is f.function_space().mesh().coordinates:
            raise NotImplementedError(f"wrt: {NO_PLACES}")


def _check_fields(replay: StepReplay, forms: Sequence[Form], active: set[int]) -> None:
    """Raise ``NotImplementedError`` for a field that objectives read and no step updates."""
    updated = keys(replay.fields)
    for f in (c for form in forms for c in form.coefficients()):
        dependent = dependent_of(f)
        if dependent is None or keys([f]) <= updated | keys(replay.state):
            continue
        if keys(x for x in read_in(f) if isinstance(x, Function)) & active:
            raise NotImplementedError(
                f"the objective reads {f.name()}, a field that is computed from others and that no "
                "step reads: state the objective by the fields that it is computed from"
            )


def _check_read(replay: StepReplay, wrt: Sequence[Function], forms: Sequence[Form]) -> None:
    read = keys([*replay.inputs, *replay.fields]) | keys(
        c for form in forms for c in form.coefficients()
    )
    for f in wrt:
        if not all(keys([part]) <= read for part in parts(f)):
            raise ValueError(
                f"wrt: neither the steps of {replay.name} nor the objective read {f.name()}"
            )
