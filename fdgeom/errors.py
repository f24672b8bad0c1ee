"""What goes wrong while time goes on."""

from __future__ import annotations


class StepFailed(RuntimeError):
    """A step could not be taken; the state is as it was before that step.

    Attributes
    ----------
    t : float
        Time at the beginning of the step that failed.
    step : int
        Number of steps that had been completed.
    reason : str
        What stopped the step, in words: SNES's reason, or what was not finite.
    """

    def __init__(self, reason: str, *, t: float, step: int) -> None:
        super().__init__(
            f"step {step + 1} from t = {t:.8g} failed: {reason}. "
            "The state is the one before this step; try a smaller dt or other solver_parameters."
        )
        self.reason = reason
        self.t = t
        self.step = step


class LoadStepFailed(StepFailed):
    """An equilibrium was not found; the configuration is as it was before that load step.

    Attributes
    ----------
    load : float
        Load factor at the beginning of the step that failed.
    step, reason
        As of :class:`StepFailed`.
    """

    def __init__(self, reason: str, *, load: float, step: int) -> None:
        RuntimeError.__init__(
            self,
            f"load step {step + 1} from the load factor {load:.8g} failed: {reason}. The "
            "configuration is the one before this step; try more and smaller steps, hold what can "
            "still move freely, or other solver_parameters.",
        )
        self.reason, self.load, self.t, self.step = reason, load, load, step
