"""Base classes of all methods: the flows of a step, and actions before and after some steps."""

from abc import ABC, abstractmethod
from collections.abc import Set
from typing import Any, ClassVar

from firedrake import Constant, Function

from fdgeom.operations import Flow, Operation


class Method(ABC):
    """The part of :class:`Stepper` that a method defines; all but its first three items have
    defaults.

    ``moves`` is the class of systems, ``order`` the order of convergence, and :meth:`flows`
    returns the parts of a step. A stepper performs their operations, through PETSc SNES or in
    compiled code, counts their solves, reads the user's options for them, and takes derivatives. The
    fields of :meth:`functions` are part of the state: a checkpoint stores them, and a failed or
    interrupted step restores them.

    For authors: ``flows``, ``functions``, ``moves``, ``needs``, ``parameters``, ``uncompilable``,
    ``uncomposable``, ``underivable``.
    """

    #: The class of systems that the method moves, and what to call them in an error.
    moves: ClassVar[type[Any]]
    needs: ClassVar[str] = ""
    #: The system.
    system: Any
    #: Order of convergence in time.
    order: int
    #: Whether a step with -dt undoes a step with dt.
    symmetric: bool = False
    #: Whether the step is a symplectic (Poisson) map, and on what.
    symplectic: ClassVar[bool] = False
    #: Quantities conserved to round-off.
    conserves: ClassVar[tuple[str, ...]] = ()
    #: Keys of papers, in citations.bib or given to ``petsctools.add_citation``.
    cites: ClassVar[tuple[str, ...]]
    #: Whether it composes steps of another method.
    _is_composed: ClassVar[bool] = False

    # --- what it is made of ----------------------------------------------------------------------
    @abstractmethod
    def flows(self) -> list[Flow]:
        """Make and return the parts of one step, in order; called once, when the stepper is made.

        One flow may occur several times. An operation without a clock sees the time at the end of
        the step.
        """

    def _form_of(self, system):
        """The system in the form that the method integrates: of a beam this may be its motion."""
        return system if isinstance(system, self.moves) else getattr(system, "motion", system)

    def _setup(self) -> None:
        """Checks and preparations before the solves are made."""
        self.system.check_start()

    def functions(self) -> dict[str, Function]:
        """Functions that the method carries from step to step beside the system's, by name.

        Checkpoints store them, and a failed step restores them. Other Functions that the operations
        write have no values between two steps.
        """
        return {}

    def parameters(self) -> dict[str, object]:
        """Parameters of the method beside its class and Δt, by name, for checkpoints.

        Numbers, strings, arrays, forms.
        """
        return {}

    # --- what others may do with it --------------------------------------------------------------
    def uncomposable(self) -> str | None:
        """The reason why compositions of these steps lose their order; None if they keep it."""
        return None

    def uncompilable(self) -> str | None:
        """The reason why steps cannot be compiled, if it is known before the forms."""
        return None

    def underivable(self) -> str | None:
        """The reason why its steps have no derivatives; None if they have."""
        return None


class Restart:
    """The part of :class:`Stepper` for methods that carry fields; by default there are none.

    For authors: ``begins``, ``carried_for``, ``finish``, ``finished``, ``forget_coefficients``,
    ``remembered``, ``rescale``, ``restored``, ``samples_coefficients``, ``start``, ``started``.
    """

    #: Whether a coefficient that changes before one step after another is a function of time: with its
    #: value at the end of the step, as methods want it whose equations hold there and nowhere else.
    samples_coefficients: ClassVar[bool] = False

    def remembered(self) -> tuple[Any, ...]:
        """The snapshots by which :meth:`start` detects changes by hand."""
        return ()

    def start(self, modified: Set[int] | None = None) -> list[Operation]:
        """The operations before the first of some steps, such as updates after changes by hand.

        For derivatives fields with the keys ``modified`` count as set, beside those whose values
        have changed since the snapshots were taken.
        """
        return []

    def begins(self, operations: list[Operation]) -> bool:
        """Whether the operations of :meth:`start` make the carried fields anew, for the present Δt."""
        return False

    def started(self, operations: list[Operation]) -> None:
        """Note that the operations of :meth:`start` have been performed.

        Until something changes, :meth:`start` then returns none: it is also called where a run or a
        restart file begins, without a step.
        """

    def rescale(self, ratio: Constant) -> list[Operation]:
        """The operations before a step that is ``ratio`` times as long as the one before."""
        return []

    def finish(self) -> list[Operation]:
        """The operations after the last of some steps, also if one has failed."""
        return []

    def finished(self) -> None:
        """Note that the operations of :meth:`finish` have been performed."""

    def restored(self) -> None:
        """Note that the state and the carried fields have been read from a checkpoint."""
        self.finished()

    def forget_coefficients(self) -> None:
        """Let all coefficients count as changed: the checkpoint was written with others."""

    def carried_for(self, dt: float) -> float:
        """The step length to which the carried fields belong after a step of ``dt``."""
        return dt
