"""Solves of operations by PETSc SNES, from one guess or in several attempts."""

from collections.abc import Iterator
from contextlib import contextmanager

from firedrake import Function

from fdgeom.data import Field, fields
from fdgeom.errors import SolveFailed
from fdgeom.execution.defaults import plain
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
            op.residual,
            op.unknown,
            essential=op.prescribed,
            options=options,
            prefix=prefix,
            wrote=wrote,
            name=op.name,
        )
        # In the same order on all ranks: to read a function's values is collective.
        guesses = dict.fromkeys(
            g for g in (*(a.guess for a in op.attempts), op.guess) if g is not None
        )
        self._guesses = {
            guess: list(zip(fields(op.unknown), fields(guess), strict=True)) for guess in guesses
        }

    def __call__(self) -> None:
        try:
            if self.op.attempts:
                self._try_all()
                return
            if self.op.guess is not None:
                self._put(self.op.guess)
            self.snes.solve()
        except SolveFailed as failure:
            failure.remedy = self.op.remedy() or failure.remedy
            raise

    def _put(self, guess: Function) -> None:
        for target, source in self._guesses[guess]:
            _copy(target, source)

    # The sequence depends on the state alone, so resumed runs repeat it; a good first guess costs no
    # extra evaluation, unless the guess of the smaller residual comes first.
    def _try_all(self) -> None:
        failure, circles = None, False
        for attempt in self._ordered():
            if circles and not attempt.damped:
                continue
            self._put(attempt.guess)
            try:
                with self._contracting(attempt.must_contract), self._damping(attempt):
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
            self._put(guess)
            norms.append(self.snes.residual_norm())
        if norms[1] > norms[0]:
            return found
        exchanged = {first: other, other: first}
        return [
            Attempt(
                guess=exchanged[a.guess],
                must_contract=a.must_contract,
                damped=a.damped,
                max_it=a.max_it,
            )
            for a in found
        ]

    def _takes_whole_steps(self) -> bool:
        """Whether the user's options leave Newton's whole steps."""
        snes = self.snes.snes
        return snes.getType() == "newtonls" and snes.getLineSearch().getType() == "basic"

    @contextmanager
    def _contracting(self, wanted: bool) -> Iterator[None]:
        """Context in which an iteration that does not contract ends, if requested."""
        watch = self._watch
        if watch is None:
            yield
            return
        watch.contracting = wanted
        try:
            yield
        finally:
            watch.contracting = False

    @contextmanager
    def _damping(self, attempt: Attempt) -> Iterator[None]:
        """Context with the line search and the limit of iterations of an attempt."""
        if not attempt.damped:
            yield
            return
        snes, watch = self.snes.snes, self._watch
        search, most = snes.getLineSearch(), snes.getTolerances()[3]
        search.setType("nleqerr")
        more = most if attempt.max_it is None or most < self._limit else max(most, attempt.max_it)
        snes.setTolerances(max_it=more)
        notices = watch is not None and watch.notices_circles
        if notices:
            watch.notices_circles = False
        try:
            yield
        finally:
            search.setType("basic")
            snes.setTolerances(max_it=most)
            if notices:
                watch.notices_circles = True


def _copy(target: Field, source: Field) -> None:
    source.update_ghosts()
    target.array[...] = source.array
    target.written(ghosts_too=True)
