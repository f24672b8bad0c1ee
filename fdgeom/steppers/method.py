"""Base class of all methods: the flows of a step, and what is particular to them."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from firedrake import Function

from fdgeom.operations import Flow


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
    symmetric: ClassVar[bool] = False
    #: Whether the step is a symplectic (Poisson) map, and on what.
    symplectic: ClassVar[bool] = False
    #: Quantities conserved to round-off.
    conserves: ClassVar[tuple[str, ...]] = ()
    #: Keys of papers, in citations.bib or given to ``petsctools.add_citation``.
    cites: ClassVar[tuple[str, ...]]

    # --- what it is made of ----------------------------------------------------------------------
    @abstractmethod
    def flows(self) -> list[Flow]:
        """Make and return the parts of one step, in order; called once, when the stepper is made.

        One flow may occur several times. An operation without a clock sees the time at the end of
        the step.
        """

    def _form_of(self, system):
        """The system in the form that the method integrates, if it is not the given one."""
        return system

    def _setup(self) -> None:
        """Checks and preparations before the solves are made."""
        self.system.check_start()

    def functions(self) -> dict[str, Function]:
        """Functions that the method carries from step to step beside the system's, by name.

        Checkpoints store them, and a failed step restores them.
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
