"""No silent NaN: what is not finite stops the run and is named."""

import numpy as np

from fdgeom.errors import StepFailed


class NotFinite(StepFailed):
    """A recorded quantity became NaN or infinite.

    Unlike other failed steps, the state is left as it was found, for inspection.
    """

    def __init__(self, reason: str, *, t: float, step: int) -> None:
        RuntimeError.__init__(
            self,
            f"after step {step}, at t = {t:.8g}: {reason}. The state is left as it is; try a "
            "smaller dt, or resume from a checkpoint.",
        )
        self.reason = reason
        self.t = t
        self.step = step


def require_finite_sample(sample: dict, *, t: float, step: int) -> None:
    """Raise NotFinite naming the first monitor in `sample` that is NaN or infinite."""
    for name, value in sample.items():
        if not np.all(np.isfinite(value)):
            raise NotFinite(f"the monitor '{name}' is not finite ({value})", t=t, step=step)


def require_finite_functions(functions: dict, comm, *, t: float, step: int) -> None:
    """Raise NotFinite, on all ranks, naming the first Function with a NaN or infinite value."""
    names = list(functions)
    local = [not np.all(np.isfinite(f.dat.data_ro)) for f in functions.values()]
    anywhere = np.any(comm.allgather(local), axis=0)
    if anywhere.any():
        name = names[int(np.argmax(anywhere))]
        raise NotFinite(f"'{name}' has values that are not finite", t=t, step=step)
