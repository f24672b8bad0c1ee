"""Solves of operations by PETSc SNES, from one guess or in several attempts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fdgeom.errors import SolveFailed
from fdgeom.execution.defaults import plain
from fdgeom.forms import copy_into
from fdgeom.operations import Attempt, Reason, Solve, Watch


class SolveRun:
    """A call that performs a solve; its SNES is held."""

    def __init__(self, op: Solve) -> None:
        self.op = op
        numerics = op.default_numerics() or plain(op.residual, op.unknown, pivots=True)
        options, prefix, wrote = numerics.options, "", {}
        if op.options is not None:
            options, prefix, wrote = op.options.over(numerics.options)
        #: Iterations that the defaults allow.
        self._limit = int(numerics.options.get("snes_max_it", 50))
        self.snes = numerics.solver(
            op.residual, op.unknown, essential=op.prescribed, options=options, prefix=prefix,
            wrote=wrote, name=op.name,
        )  # fmt: skip

    def __call__(self) -> None:
        try:
            if self.op.attempts:
                self._try_all()
                return
            if self.op.guess is not None:
                copy_into(self.op.unknown, self.op.guess)
            self.snes.solve()
        except SolveFailed as failure:
            failure.remedy = self.op.remedy() or failure.remedy
            raise

    # The sequence depends on the state alone, so resumed runs repeat it; a good first guess costs no
    # extra evaluation, unless the guess of the smaller residual comes first.
    def _try_all(self) -> None:
        failure, circles = None, False
        for attempt in self._ordered():
            if circles and not attempt.damped:
                continue
            copy_into(self.op.unknown, attempt.guess)
            try:
                with self._settings(attempt):
                    self.snes.solve(provisional=True)
                if attempt.damped:
                    # An update may be small because it was damped: whole ones have the last word.
                    self.snes.solve(provisional=True)
            except SolveFailed as error:
                failure = failure if attempt.damped and failure else error
                circles = self._ended is Reason.CIRCLING
            else:
                if self._ended is not Reason.NOT_CONTRACTING:
                    self.snes.show_reason()
                    return
        self.snes.show_reason()
        raise failure

    @property
    def _watch(self) -> Watch | None:
        test = self.snes.test
        return test if isinstance(test, Watch) else None

    @property
    def _ended(self) -> Reason | None:
        """Why the last iteration ended, if fdgeom's convergence test ended it."""
        return None if self._watch is None else self._watch.reason

    def _ordered(self) -> list[Attempt]:
        """The attempts with these options, and with the chosen guess first."""
        found = list(self.op.attempts)
        if not self._takes_whole_steps():
            # With steps of another kind each guess is tried once.
            found = [Attempt(guess=guess) for guess in dict.fromkeys(a.guess for a in found)]
        if self.op.choose == "first":
            return found
        first, other = dict.fromkeys(a.guess for a in found)
        norms = []
        for guess in (first, other):
            copy_into(self.op.unknown, guess)
            norms.append(self.snes.residual_norm())
        if norms[1] > norms[0]:
            return found
        exchanged = {first: other, other: first}
        return [replace(a, guess=exchanged[a.guess]) for a in found]

    def _takes_whole_steps(self) -> bool:
        """Whether the user's options leave Newton's whole steps."""
        snes = self.snes.snes
        return snes.getType() == "newtonls" and snes.getLineSearch().getType() == "basic"

    @contextmanager
    def _settings(self, attempt: Attempt) -> Iterator[None]:
        """Context with the convergence test, the line search and the limit of iterations of an attempt."""
        snes, watch = self.snes.snes, self._watch
        search, most = snes.getLineSearch(), snes.getTolerances()[3]
        notices = watch is not None and watch.notices_circles
        if watch is not None:
            watch.contracting = attempt.must_contract
            watch.notices_circles = notices and not attempt.damped
        if attempt.damped:
            search.setType("nleqerr")
            more = max(most, attempt.max_it or 0) if most >= self._limit else most
            snes.setTolerances(max_it=more)
        try:
            yield
        finally:
            if watch is not None:
                watch.contracting, watch.notices_circles = False, notices
            if attempt.damped:
                search.setType("basic")
                snes.setTolerances(max_it=most)
