"""Gradients of runs without a tape."""

from collections.abc import Sequence

from firedrake import Cofunction, Form, Function
from pyadjoint.tape import stop_annotating

from fdgeom.adjoint.block import NO_PLACES, replay_of
from fdgeom.adjoint.steps import StepReplay
from fdgeom.adjoint.values import Vectors, cotangent_of, keys, parts
from fdgeom.execution import FunctionalAssembly, VectorAssembly
from fdgeom.execution.petsc_messages import REVERSE_SWEEP
from fdgeom.forms import checked_form, slope_by
from fdgeom.messages import format_value
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
        A functional of the state after the last step.
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
    objective = checked_form("objective", objective)
    if running is not None:
        running = checked_form("running", running)
    with stop_annotating():
        replay = replay_of(stepper)
        forms = [form for form in (objective, running) if form is not None]
        _check_read(replay, wrt, forms)
        origin, wanted = replay.origin([keys(wrt)] * len(replay.snapshots())), replay.data(wrt)
        reached = replay.reached_by(wanted)
        active = keys(replay.state) | reached
        at_end = _slopes(replay, objective, active)
        at_each = None if running is None else _slopes(replay, running, active, stepper.dt)
        cotangents, present = Vectors(), list(replay.inputs)
        with replay.at(origin, present):
            replay.refuse_jump(origin, reached)
            sweep = replay.compiled_sweep(
                steps, at_end.by, wanted, None if at_each is None else at_each.form
            )
            if sweep is not None or at_each is None:
                value = 0.0
                replay.run(steps, sweep)
            else:
                value = replay.run_each(steps, at_each.value)
            value += at_end.value()
            at_end.add_to(cotangents)
            if sweep is not None:
                with REVERSE_SWEEP:
                    replay.follow(sweep, origin, cotangents, wanted)
                value += sweep.total
        if sweep is None:
            with replay.at(origin, present), REVERSE_SWEEP:
                replay.pull(
                    origin,
                    steps,
                    cotangents,
                    wanted,
                    None if at_each is None else at_each.add_to,
                )
        return value, [cotangents.read_all(f, cotangent_of(f)) for f in wrt]


def _slopes(replay: StepReplay, form: Form, active: set[int], factor: float = 1.0) -> "_Slopes":
    """The derivatives of a form, cached."""
    name = id(form), frozenset(active), factor
    kept: dict[tuple, tuple[Form, _Slopes]] = replay.kept
    if name not in kept:
        while len(kept) >= _MANY:
            del kept[next(iter(kept))]
        # The cache keeps the form alive, so that no other form gets its id.
        kept[name] = form, _Slopes(form if factor == 1.0 else factor * form, active)
    return kept[name][1]


class _Slopes:
    """A functional and its derivatives by all functions that steps change or that depend on data."""

    def __init__(self, form: Form, active: set[int]) -> None:
        self.form, self._value = form, FunctionalAssembly(form)
        self._slopes = []
        for f in form.coefficients():
            if keys([f]) & active and (slope := slope_by(form, f)) is not None:
                self._slopes.append((f, VectorAssembly(slope)))

    @property
    def by(self) -> set[int]:
        """The keys of the functions that it has derivatives by."""
        return keys(f for f, _ in self._slopes)

    def value(self) -> float:
        """The present value of the functional."""
        return self._value.assemble()

    def add_to(self, cotangents: Vectors) -> None:
        """Add its present derivatives to cotangents."""
        for f, slope in self._slopes:
            for part, values in zip(parts(f), slope.values(), strict=True):
                cotangents.add(part, values)


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


def _check_read(replay: StepReplay, wrt: Sequence[Function], forms: Sequence[Form]) -> None:
    read = keys([*replay.inputs, *replay.fields]) | keys(
        c for form in forms for c in form.coefficients()
    )
    for f in wrt:
        if not all(keys([part]) <= read for part in parts(f)):
            raise ValueError(
                f"wrt: neither the steps of {replay.name} nor the objective read {f.name()}"
            )
