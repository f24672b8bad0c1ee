"""Projections of a state onto its constraints."""

from collections.abc import Callable, Sequence

from firedrake import Form, Function, TestFunctions, split

from fdgeom.errors import SolveFailed
from fdgeom.execution import HeldSNES, saddle
from fdgeom.forms import copy_into, simplify
from fdgeom.operations import Prescribed


class Projection:
    """The solve for a new value of a Function together with a multiplier of a constraint."""

    # `residual(x, mu, w, nu)` is the form of the new value x and the multiplier mu, for the tests w and
    # nu. Where `fixed` says, the Function keeps its value.
    def __init__(
        self,
        constraint,
        target: Function,
        residual: Callable[..., Form],
        fixed: Sequence[Prescribed] = (),
    ) -> None:
        space = target.function_space() * constraint.space
        unknown, self._target = Function(space), target
        form = simplify(residual(*split(unknown), *TestFunctions(space)))
        held = tuple(Prescribed(e.dofs, target) for e in fixed)
        self._solver = HeldSNES(
            form, unknown, saddle(form, unknown), essential=held, name="the projection"
        )

    def apply(self) -> None:
        """Solve from the present value; ``ValueError`` if there is no consistent state."""
        value, multiplier = self._solver.unknown.subfunctions
        copy_into(value, self._target)
        multiplier.dat.data_wo_with_halos[...] = 0.0
        try:
            self._solver.solve()
        except SolveFailed as failure:
            raise ValueError(
                f"project: no consistent state was found from this start: {failure}. Start nearer to "
                "the constraint, and check that its parts are independent and do not contradict"
            ) from failure
        copy_into(self._target, value)
