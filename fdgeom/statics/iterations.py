"""Newton's method for equilibria: in compiled code where possible, else through PETSc SNES."""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from fdgeom.beams.contact import contacts_of
from fdgeom.errors import CannotCompile, SolveFailed
from fdgeom.execution.options import CompiledCode, SolveOptions, list_on_help
from fdgeom.operations import WORDS, Reason
from fdgeom.statics.problem import EquilibriumProblem, PathCondition
from fdgeom.statics.rigid_motions import free_motion
from fdgeom.statics.snes import DEFAULTS, GroupNewton
from fdgeom.statics.stability import Stability

_COUNTED = ("solves", "newton_iterations", "krylov_iterations")


class Iterations:
    """Newton's method at a given load, and along a path of equilibria."""

    # `given` are the user's PETSc options, `prefix` is that of the command line, `compiled` selects
    # compiled code (None: where possible).
    def __init__(
        self,
        problem: EquilibriumProblem,
        given: Mapping,
        prefix: str,
        compiled: bool | None,
    ) -> None:
        self._problem, self._motion = problem, problem.motion
        self.code = CompiledCode(
            given, prefix, compiled, self._motion.comm, what="this equilibrium",
            solve="an equilibrium", instead="equilibria go through PETSc SNES",
        )  # fmt: skip
        self._counts: Counter[str] = Counter()
        self._through_petsc: dict[bool, GroupNewton] = {}
        self._layout: Any = None
        list_on_help("StaticEquilibrium", prefix, (), self._motion.comm)
        if self.code.why_not is None:
            with self.code.making():
                # Inside of the method: statics can be read without the compiler.
                from fdgeom.compile import layout_of

                self._layout = layout_of(problem.pose)
        self._given = SolveOptions(given, prefix)
        if self._given.told:
            self._petsc(bordered=False)  # so that an unknown option is refused now

    # --- what is solved with, made when it is first needed -----------------------------------------
    def _options(self) -> tuple[dict, str, dict]:
        defaults = dict(DEFAULTS)
        if contacts_of(self._problem.rod):
            # On stiff obstacles the end of the contact moves by about a node per iteration.
            defaults["snes_max_it"] += self._problem.space.dim() // 6
        if self._motion.joints is not None:
            # Multipliers need pivoting, and room for it.
            defaults |= {"pc_factor_mat_solver_type": "mumps", "mat_mumps_icntl_14": 200}
        elif self._motion.comm.size > 1:
            defaults["pc_factor_mat_solver_type"] = "mumps"
        else:
            # The nodes are numbered along the beam: a band of 11 beside the diagonal.
            defaults["pc_factor_mat_ordering_type"] = "natural"
        return self._given.over(defaults)

    def _petsc(self, bordered: bool) -> GroupNewton:
        """PETSc's iteration, bordered for conditions along a path."""
        found = self._through_petsc.get(bordered)
        if found is None or not found.is_usable:
            options, prefix, given = self._options()
            if options.get("pc_factor_mat_ordering_type") == "natural":
                options.setdefault("pc_factor_zeropivot", self._least_pivot())
            found = self._through_petsc[bordered] = GroupNewton(
                self._problem, self._counts, bordered=bordered, options=options, prefix=prefix,
                given=given,
            )  # fmt: skip
        return found

    def _least_pivot(self) -> float:
        """A pivot that is round-off beside the entries, whatever the unit."""
        diagonal = self._problem.tangent(self._problem.start()).getDiagonal().getArray()
        free = np.delete(np.abs(diagonal), self._problem.rows)
        return 1e-14 * float(free[free > 0].min(initial=np.inf)) if free.any() else 0.0

    @cached_property
    def _compiled(self) -> Any:
        """The compiled iteration; None if there is none."""
        if self.code.why_not is None:
            from fdgeom.statics.compiled import CompiledNewton

            with self.code.making():
                # Of a beam by itself nothing else finds that out.
                if self._motion.joints is None and (free := free_motion(self._motion)):
                    raise CannotCompile(f"{free}, so that the stiffness may be singular")
                options, *_ = self._options()
                return CompiledNewton(self._problem, self._counts, options, self._layout)
        return None

    # --- solving -----------------------------------------------------------------------------------
    def solve(self, condition: PathCondition | None = None, *, may_fail: bool = True) -> Any:
        """Newton's iteration from the present configuration, at the present load or with a condition for
        it; the displacement with a condition. ``may_fail``: smaller steps come after a failure.
        """

        def through_petsc() -> np.ndarray:
            return self._petsc(condition is not None).solve(condition, provisional=may_fail)

        if self._compiled is None:
            return through_petsc()
        reason, moved = self._compiled.solve(condition)
        if reason > 0:
            return moved
        # PETSc would do the same but for pivots, and has the last word.
        if may_fail and reason != Reason.SINGULAR:
            raise SolveFailed(f"Newton's method ended with {WORDS[reason]}")
        with self.code.fallbacks.through_petsc(WORDS[reason]):
            return through_petsc()

    def direction(self, normal: np.ndarray, slope: float) -> tuple[np.ndarray, float, Stability]:
        """The direction (du, dλ) along the path, with normal·du + slope dλ = 1, and the stability."""
        if self._compiled is None:
            return self._petsc(bordered=True).direction(normal, slope)
        found = self._compiled.direction(normal, slope)
        if found is None:
            with self.code.fallbacks.through_petsc(f"{WORDS[Reason.SINGULAR]} on the path"):
                found = self._petsc(bordered=True).direction(normal, slope)
        return found

    def stats(self) -> dict[str, int]:
        """Solves, those of them through PETSc SNES, Newton and Krylov iterations since this was made."""
        found = {name: self._counts[name] for name in _COUNTED}
        petsc = found["solves"] if self.code.why_not else sum(self.code.fallbacks.values())
        return found | {"steps_through_petsc": petsc}
