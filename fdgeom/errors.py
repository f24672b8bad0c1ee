"""Errors of solves, steps, load steps and compilation."""

# No force of sensible data is larger, in any units.
_ABSURD = 1e30


class CannotCompile(ValueError):
    """Compiled code does not support a form or an operation; the message names the term."""


class NoCompiler(RuntimeError):
    """There is no working C++ compiler; the message names the alternative."""


class SolveFailed(RuntimeError):
    """A solve did not converge; the message says why."""

    def __init__(
        self, reason: str, residual: float | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(reason)
        # The norm of the residual, if known, and a remedy in place of the step's own, or None.
        self.residual, self.remedy = residual, remedy
        # In a few words why compiled code has failed where PETSc SNES may succeed; None otherwise.
        self.words: str | None = None


class StepFailed(RuntimeError):
    """A step could not be taken; the state is as it was before that step.

    The steppers raise it; ``remedy`` replaces the advice in the message, ``text`` the message.

    Attributes
    ----------
    t : float
        Time at the beginning of the step that failed.
    step : int
        Number of steps that had been completed.
    reason : str
        Reason of the failure: SNES's reason, or the field that was not finite.
    residual : float or None
        Norm of the residual, if it is known.
    """

    def __init__(
        self,
        reason: str,
        *,
        t: float,
        step: int,
        residual: float | None = None,
        remedy: str | None = None,
        text: str | None = None,
    ) -> None:
        super().__init__(
            text
            or f"step {step + 1} from t = {t:.8g} failed: {reason}. "
            f"The state is the one before this step; {remedy or _advice(step, residual)}."
        )
        self.reason, self.t, self.step, self.residual = reason, t, step, residual


class NotFinite(StepFailed):
    """A recorded quantity became NaN or infinite.

    Unlike other failed steps, the state is left as it was found, for inspection.
    """

    def __init__(self, reason: str, *, t: float, step: int) -> None:
        text = (
            f"after step {step}, at t = {t:.8g}: {reason}. The state is left as it is; try a "
            "smaller dt, or resume from a checkpoint."
        )
        super().__init__(reason, t=t, step=step, text=text)


class LoadStepFailed(StepFailed):
    """An equilibrium was not found; the configuration is as it was before that load step.

    `StaticEquilibrium` raises it; ``remedy`` replaces the advice in the message.

    Attributes
    ----------
    load : float
        Load factor at the beginning of the step that failed.
    free : str
        Rigid motions that the supports leave free; "" if there are none.
    step : int
        Number of load steps that had been completed.
    reason : str
        Reason of the failure, as in :class:`StepFailed`.
    """

    def __init__(
        self, reason: str, *, load: float, step: int, free: str = "", remedy: str | None = None
    ) -> None:
        advice = (
            f"{free}: hold that too, such as by clamping an end"
            if free
            else remedy or "try more and smaller steps, or other solver_parameters"
        )
        text = (
            f"load step {step + 1} from the load factor {load:.8g} failed: {reason}. The "
            f"configuration is the one before this step; {advice}."
        )
        super().__init__(reason, t=load, step=step, text=text)
        self.load, self.free = load, free


def _advice(step: int, residual: float | None) -> str:
    """Advice for a failed step; a first step fails for its data as often as for its length."""
    shorter = "try a smaller dt or other solver_parameters"
    data = "check the data: units, masses and stiffnesses, loads, the start"
    if step:
        return shorter
    if residual is not None and not residual < _ABSURD:
        return f"{data} (no time step is to blame for such numbers)"
    return f"{shorter}; if no step is short enough, {data}"
