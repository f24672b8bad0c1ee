"""Solves by PETSc SNES objects that are held for a whole run: from one guess, or in several attempts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np
import petsctools
from firedrake import Form, Function, derivative
from petsc4py import PETSc

from fdgeom.compat import options_read
from fdgeom.data import collect, fields, spread
from fdgeom.errors import SolveFailed
from fdgeom.execution.assembly import MatrixAssembly, VectorAssembly
from fdgeom.execution.defaults import Numerics, plain
from fdgeom.execution.options import (
    divergence,
    refuse_unknown,
    refusing,
    set_from_options,
    show_reason,
)
from fdgeom.execution.options import reason as petsc_reason
from fdgeom.forms import copy_into, is_real, simplify
from fdgeom.messages import describe
from fdgeom.operations import PROBLEM, Attempt, ConvergenceTest, Reason, Solve, Watch
from fdgeom.operations.dependent import Sources

_COMMON = ("snes_monitor", "snes_rtol", "snes_atol", "snes_stol", "snes_max_it", "snes_view",
           "snes_type", "ksp_type", "ksp_rtol", "ksp_monitor", "pc_type")  # fmt: skip

# The user's options that only PETSc's own convergence test obeys.
_OF_PETSC_TEST = {"snes_divergence_tolerance", "snes_force_iteration", "snes_max_funcs"}
_LINEAR_SOLVE = PETSc.SNES.ConvergedReason.DIVERGED_LINEAR_SOLVE
# A residual above this bound after some iterations says nothing about the data.
_LOST = 1e30


class HeldSNES:
    """Solves F(u) = 0 from the value of ``unknown``, with one SNES for the whole run."""

    # The options of numerics are complete; prefix "" leaves the command line unread; wrote: the user's
    # options and where they stand (see `SolveOptions.over`): unknown names among them raise ValueError,
    # here or in the first solve. Errors call the solve by name.
    def __init__(
        self,
        residual: Form,
        unknown: Function,
        numerics: Numerics,
        *,
        essential=(),
        prefix: str = "",
        wrote: Mapping | None = None,
        name: str = "",
    ) -> None:
        if is_real(unknown):
            raise ValueError(
                f"unknown must not be a number, as {unknown.name()!r} of a Real space is: take a "
                "Function in DG0 on fdgeom.copies(1)"
            )
        self.name = name
        self.unknown = unknown
        self.newton_iterations = self.krylov_iterations = self.solves = 0
        options, converged = dict(numerics.options), numerics.converged
        self._form = residual
        local = str(options.get("snes_type")) == "python"
        mat_type = options.pop("mat_type", "aij")
        self._matrix_of = derivative(residual, unknown), mat_type
        #: The data of the matrix if that is used again, and whether it has been assembled from them.
        self._data = Sources(simplify(self._matrix_of[0])) if numerics.reuse_matrix else None
        self._is_current = False
        with refusing({"mat_type": mat_type}):
            self._jacobian = None if local else MatrixAssembly(*self._matrix_of)
        self._fields = fields(unknown)
        # Local solves use their unknown only through x, so x may be the unknown itself.
        self._shared = local and len(self._fields) == 1
        self._rows = EssentialRows(unknown, self._jacobian and self._jacobian.matrix, essential)

        comm = unknown.function_space().comm
        self.snes = PETSc.SNES().create(comm=comm)
        with unknown.dat.vec_ro as own:
            self._x = own if self._shared else own.duplicate()
            self._f = own.duplicate()
        #: The exception that a callback has raised.
        self._raised: BaseException | None = None
        self._set_callbacks()
        # For types in Python, such as fdgeom.LocalNewton. Both are kept: petsc4py empties what setAttr has
        # set when the garbage collector finds an object of Python for the same PC and no other one is left.
        self._pc = self.snes.getKSP().getPC()
        for holder in (self.snes, self._pc):
            holder.setAttr(PROBLEM, (residual, unknown, tuple(essential)))
        self._shows_reason = set_from_options(self.snes, options, prefix, "fdgeom")
        self._wrote = dict(wrote or {})
        #: Whether PETSc has yet to look up one of the user's options.
        self._unread = refuse_unknown(self._wrote, options_read(self.snes), _COMMON)
        # Options such as snes_view are looked up while solving.
        self._reads_options = any(
            word in key
            for key in petsctools.get_options(self.snes).parameters
            for word in ("view", "reason", "monitor", "test")
        )
        #: Whether the objects that the first solve makes have looked up their options.
        self._set_up = False
        own = self._python_context()
        iterates = self.snes.getType() != "ksponly" and getattr(own, "calls_test", own is None)
        #: The convergence test in place of PETSc's own, if there is one.
        test = Watch(converged) if isinstance(converged, ConvergenceTest) else converged
        self.test = test if iterates and "snes_convergence_test" not in self._wrote else None
        if self.test is not None:
            if ignored := _OF_PETSC_TEST & set(self._wrote):
                raise ValueError(
                    f"{self._wrote[min(ignored)]}: {min(ignored)!r} has no effect on the convergence test "
                    "of fdgeom; with snes_convergence_test 'default' the test is PETSc's"
                )
            self.snes.setConvergenceTest(test)

    @cached_property
    def _residual(self) -> VectorAssembly:
        # Compiled solves have no use for it.
        return VectorAssembly(self._form)

    # --- callbacks -----------------------------------------------------------------------------
    def _set_callbacks(self) -> None:
        self.snes.setFunction(self._function, self._f)
        if self._jacobian is not None:
            self.snes.setJacobian(self._derivative, self._jacobian.matrix)

    def _function(self, snes, x: PETSc.Vec, f: PETSc.Vec) -> None:
        try:
            if self._raised is None:
                self._form_function(snes, x, f)
        except BaseException as error:
            self._raised = error
        if self._raised is not None:
            # NaN ends the solve; an exception would leave PETSc's vectors locked.
            f.set(np.nan)

    def _derivative(self, snes, x: PETSc.Vec, J: PETSc.Mat, P: PETSc.Mat) -> None:
        try:
            if self._raised is None:
                self._form_jacobian(snes, x, J, P)
        except BaseException as error:
            self._raised = error

    def _form_function(self, snes, x: PETSc.Vec, f: PETSc.Vec) -> None:
        self._put(x)
        self._residual.assemble()
        collect(self._residual.parts, f.getArray())
        self._rows.zero(f)

    def _form_jacobian(self, snes, x: PETSc.Vec, J: PETSc.Mat, P: PETSc.Mat) -> None:
        self._put(x)
        if self._data is not None:
            self._jacobian.dependents.refresh()
            if self._is_current and not self._data.changed():
                return
            self._is_current = False  # should the assembly fail
        self._jacobian.assemble()
        self._rows.make_identity()
        if self._data is not None:
            self._data.take()
            self._is_current = True

    def _put(self, x: PETSc.Vec) -> None:
        """Copy a PETSc vector into the unknown."""
        if not self._shared:
            spread(x.getArray(readonly=True), self._fields)

    def _get(self) -> None:
        """Copy the unknown into the SNES's vector."""
        if not self._shared:
            collect(self._fields, self._x.getArray())

    # --- solving -------------------------------------------------------------------------------
    def solve(self, *, provisional: bool = False) -> None:
        """Solve from the present value of the unknown; ``SolveFailed`` if that gives no finite solution."""
        # provisional: the caller shows the reason of the attempt that counts.
        self._rows.set_unknown(self._fields)
        self._get()
        if self._reads_options or self._unread or not self._set_up:
            with petsctools.inserted_options(self.snes):
                self._run()
            self._set_up = True
            if self._unread and self.snes.getLinearSolveIterations():
                used = options_read(self.snes)
                self._unread = refuse_unknown(self._wrote, used, _COMMON, solved=True)
        else:
            self._run()
        if not provisional:
            self.show_reason()
        snes = self.snes
        iterations, reason = snes.getIterationNumber(), snes.getConvergedReason()
        self.solves += 1
        self.newton_iterations += iterations
        self.krylov_iterations += snes.getLinearSolveIterations()
        if reason < 0:
            norm = snes.getFunctionNorm()
            own = getattr(self._python_context(), "failure", None)
            detail = own or f"residual norm {norm:.3g}{self._worst_place()}"
            if reason == _LINEAR_SOLVE and self._jacobian is not None:
                self._renew_matrix()
            raise SolveFailed(
                f"{self._label()} stopped with {divergence(reason)} after "
                f"{iterations} iterations ({detail})",
                residual=self._left_over(norm, iterations),
            )
        # Local solves check this themselves.
        if self._jacobian is not None and not np.isfinite(self._x.norm()):
            raise SolveFailed(f"{self._label()} gave values that are not finite", residual=np.nan)
        self._put(self._x)

    def show_reason(self) -> None:
        """Print how the last solve ended, if ``-snes_converged_reason`` asks for it."""
        if self._shows_reason:
            show_reason(self.snes)

    def _renew_matrix(self) -> None:
        """Replace matrix and preconditioner, which would fail again after one singular block."""
        self._jacobian = MatrixAssembly(*self._matrix_of)
        self._rows.matrix = self._jacobian.matrix
        self._set_up = self._is_current = False  # the new factors read options again
        self._set_callbacks()
        self.snes.getKSP().getPC().setFailedReason(PETSc.PC.FailedReason.NOERROR)

    def residual_norm(self) -> float:
        """The norm of F at the present value of the unknown, with essential values inserted."""
        self._rows.set_unknown(self._fields)
        self._get()
        self.snes.computeFunction(self._x, self._f)
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        return self._f.norm()

    def _left_over(self, norm: float, iterations: int) -> float | None:
        """The norm of the residual; None if the iteration has diverged beyond any meaning."""
        # SNES keeps the last finite norm, which says nothing if F is not finite now.
        left = norm if np.isfinite(self.snes.getFunction()[0].norm()) else np.nan
        return left if left < _LOST or not iterations else None

    def _worst_place(self) -> str:
        """Describe the place of the largest residual for an error message."""
        residual = np.abs(self.snes.getFunction()[0].getArray(readonly=True))
        start, found = 0, []
        for field in self._fields:
            name = describe(field.function)  # on all ranks: it interpolates coordinates
            values = residual[start : start + field.owned.size].reshape(-1, field.block)
            start += field.owned.size
            values = np.where(np.isfinite(values), values, np.inf).max(axis=1)
            node = int(np.argmax(values)) if len(values) else 0
            worst = (values[node], name(node)) if len(values) else (-1.0, "")
            found.append((*worst, int(np.isinf(values).sum()), len(values)))
        found = list(chain(*self.unknown.function_space().comm.allgather(found)))
        lost, nodes = (sum(x[k] for x in found) for k in (2, 3))
        if nodes > 1 and 2 * lost > nodes:  # as under a load that is not finite
            return ""
        largest, place, *_ = max(found, key=lambda x: x[0])
        return f", largest at {place}" if largest > 0 else ""

    def _python_context(self):
        return self.snes.getPythonContext() if self.snes.getType() == "python" else None

    def _run(self) -> None:
        failure = None
        try:
            self.snes.solve(None, self._x)
        except PETSc.Error as error:
            failure = error
            # From a callback outside this class, such as a monitor.
            self._raised = self._raised or error.__cause__
        if failure is None and self._raised is None:
            return
        raised, self._raised = self._raised, None
        self._renew()
        if raised is not None:
            raise raised
        raise SolveFailed(f"{self._label()}: PETSc: {petsc_reason(failure)}") from failure

    def _renew(self) -> None:
        """Replace all objects that an error may have left locked or incomplete."""
        self.snes.reset()
        self._shared = False
        self._x, self._f = self._x.duplicate(), self._f.duplicate()
        if self._jacobian is None:
            self._set_callbacks()
        else:
            self._renew_matrix()

    def _label(self) -> str:
        return f"the SNES for {self.name}" if self.name else "SNES"


class EssentialRows:
    """The rows of essential degrees of freedom: zero in the residual, identity in the Jacobian."""

    def __init__(self, unknown: Function, matrix: PETSc.Mat | None, essential) -> None:
        sizes = [V.dof_dset.size * V.block_size for V in unknown.function_space()]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.matrix = matrix
        # Kept on ranks without such degrees of freedom too: reading values exchanges ghosts.
        self._essential = list(essential)
        local = [offsets[e.part] + e.dofs[e.dofs < sizes[e.part]] for e in self._essential]
        self._local = np.concatenate(local) if local else np.array([], dtype=int)
        first, _ = matrix.getOwnershipRange() if matrix is not None else (0, 0)
        self._global = (first + self._local).astype(PETSc.IntType)
        comm = unknown.function_space().comm
        self._any = bool(comm.allreduce(len(self._global)))
        if self._any and matrix is not None and matrix.getType() == "python":
            raise ValueError(
                "solver_parameters: 'mat_type' cannot be 'matfree' where values are prescribed, since "
                "their rows of the matrix are replaced; give 'aij'"
            )

    def zero(self, f: PETSc.Vec) -> None:
        if len(self._local):
            f.getArray()[self._local] = 0.0

    def make_identity(self) -> None:
        if self._any:
            self.matrix.zeroRows(self._global, diag=1.0)

    def set_unknown(self, parts) -> None:
        for e in self._essential:
            parts[e.part].array.reshape(-1)[e.dofs] = e.values()


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
        self.snes = HeldSNES(
            op.residual, op.unknown, replace(numerics, options=options), essential=op.prescribed,
            prefix=prefix, wrote=wrote, name=op.name,
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
