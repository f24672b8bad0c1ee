"""Newton's method for equilibria: in compiled code where possible, else through PETSc SNES."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fdgeom.beams.contact.contact import contacts_of
from fdgeom.errors import CannotCompile, SolveFailed
from fdgeom.execution.compiled_or_petsc import (
    Fallbacks,
    falling_back,
    only_shows,
    wants_compiled,
    warn_of_shown,
    who_asked_for_snes,
)
from fdgeom.execution.options import list_on_help, merge
from fdgeom.statics.newton import DEFAULTS, GroupNewton
from fdgeom.statics.problem import EquilibriumProblem
from fdgeom.statics.rigid_motions import free_motion, is_clamped

if TYPE_CHECKING:
    from fdgeom.statics.compiled import CompiledPath

_COUNTED = ("solves", "newton_iterations", "krylov_iterations")


class Iterations:
    """Newton's method at a given load, and along a path of equilibria."""

    # `given` are the user's PETSc options, `prefix` is that of the command line, `compiled` selects
    # compiled code (None: where possible). `why_not` is the reason for PETSc SNES, None if it is
    # compiled; `fallbacks` counts solves of compiled code that went through PETSc SNES.
    def __init__(
        self,
        problem: EquilibriumProblem,
        given: Mapping,
        prefix: str,
        compiled: bool | None,
    ) -> None:
        self._problem, self._motion = problem, problem.motion
        self._given, self._prefix = given, prefix
        shows = only_shows(given, prefix, compiled)
        wanted, self._required = wants_compiled(given, prefix, compiled), bool(compiled)
        self.fallbacks = Fallbacks(self._motion.comm, "an equilibrium", required=self._required)
        self._made: list[Any] = []
        self._layout: Any = None
        list_on_help("StaticEquilibrium", prefix, (), self._motion.comm)
        asked = who_asked_for_snes(given, prefix)
        self.why_not = None if wanted or shows else asked
        if wanted or shows:
            with self._falling_back():
                # Inside of the method: statics can be read without the compiler.
                from fdgeom.compile import layout_of

                self._layout = layout_of(problem.pose)
        if shows and self.why_not is None:
            self.why_not = asked
            warn_of_shown(asked, self._motion.comm)
        if merge({}, given, prefix, "", ())[2]:
            _ = self._newton  # so that an unknown option is refused now

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
        return merge(defaults, self._given, self._prefix, "", ())

    def _counted(self, made):
        self._made.append(made)
        return made

    @cached_property
    def _newton(self) -> GroupNewton:
        return self._through_petsc(bordered=False)

    @cached_property
    def _bordered(self) -> GroupNewton:
        return self._through_petsc(bordered=True)

    def _through_petsc(self, bordered: bool) -> GroupNewton:
        options, prefix, given = self._options()
        return self._counted(
            GroupNewton(
                self._problem, bordered=bordered, options=options, prefix=prefix, given=given
            )
        )

    @cached_property
    def _compiled(self) -> Any:
        """The compiled iteration; None if there is none."""
        if self.why_not is None:
            from fdgeom.statics.compiled import CompiledNewton

            with self._falling_back():
                # Of a beam by itself nothing else finds that out.
                motion = self._motion
                if (
                    motion.joints is None
                    and not is_clamped(motion)
                    and (free := free_motion(motion))
                ):
                    raise CannotCompile(f"{free}, so that the stiffness may be singular")
                options = self._options()[0]
                return self._counted(CompiledNewton(self._problem, options, self._layout))
        return None

    @cached_property
    def along_path(self) -> "GroupNewton | CompiledPath":
        """The iteration along a path, whose load is an unknown."""
        if self._compiled is None:
            return self._bordered
        from fdgeom.statics.compiled import CompiledPath

        found = CompiledPath(self._problem, self._compiled, lambda: self._bordered, self.fallbacks)
        return self._counted(found)

    def _falling_back(self) -> AbstractContextManager:
        return falling_back(
            self._give_up,
            self._motion.comm,
            required=self._required,
            what="this equilibrium",
            instead="equilibria go through PETSc SNES",
        )

    def _give_up(self, why: str) -> None:
        self.why_not = why

    # --- solving -----------------------------------------------------------------------------------
    def equilibrate(self, *, may_fail: bool) -> None:
        """Newton's iteration at the present load; ``may_fail``: smaller load steps come after it."""
        if self._compiled is None:
            self._newton.solve(provisional=may_fail)
            return
        why = self._compiled.solve()
        if why is None:
            return
        # PETSc would do the same but for pivots, and has the last word.
        if may_fail and not self._compiled.was_singular:
            raise SolveFailed(f"Newton's method ended with {why}")
        with self.fallbacks.through_petsc(why):
            self._newton.solve(provisional=may_fail)

    def stats(self) -> dict[str, int]:
        """Solves, those of them through PETSc SNES, Newton and Krylov iterations since this was made."""
        found = {name: sum(getattr(made, name) for made in self._made) for name in _COUNTED}
        petsc = found["solves"] if self.why_not else sum(self.fallbacks.values())
        return found | {"steps_through_petsc": petsc}
