"""Base class of all systems, for the steppers that move them and the recording of their motion."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from firedrake import Constant, Function
from ufl.classes import Expr, Form

from fdgeom.call import NotCopied
from fdgeom.solvers import FunctionalAssembly, Snapshot
from fdgeom.solvers.derived import read_in
from fdgeom.systems.energies import Energies


class System(Energies, NotCopied, ABC):
    """Something that moves: Functions that a step changes, and the forms that say how.

    How its equations are stated is a matter between a family of systems and its steppers. What
    stands here is all that the rest asks (the clock, runs, monitors, checkpoints, output), of any
    system; a subclass says what it has, the defaults are those of a system that has nothing.

    Parameters
    ----------
    mesh : firedrake.MeshGeometry
        Where its Functions live.
    coordinates : Function, optional
        Where in space the nodes are, for output, if elsewhere than on the mesh.

    Attributes
    ----------
    mesh, comm
        The mesh and its communicator.
    constraint
        What restricts its motion, with ``defect()`` and ``rate(velocity)``; None if nothing does.
    clocks : tuple of Constant
        What holds the time in its forms; the steppers set it.
    symbols : tuple of Function
        What stands for (parts of) the state in its forms, beside the functions that hold it.
    """

    constraint = None
    #: What a step may not turn too far: `fdgeom.beams.rod.turns.Turns` of beams; None in general.
    turns = None
    clocks: tuple[Constant, ...] = ()
    symbols: tuple[Function, ...] = ()

    def __init__(self, mesh, coordinates: Function | None = None) -> None:
        if not (coordinates is None or isinstance(coordinates, Function)):
            raise TypeError(
                f"coordinates must be a firedrake Function, not {type(coordinates).__name__}"
            )
        self.mesh, self.comm = mesh, mesh.comm
        self._coordinates = coordinates
        # What is made once, when it is first asked for.
        self._held: dict[str, object] = {}

    # --- what it is made of ----------------------------------------------------------------------
    @abstractmethod
    def functions(self) -> dict[str, Function]:
        """Everything that a step changes, by name: what a checkpoint holds."""

    @abstractmethod
    def all_forms(self) -> tuple[Form | Expr, ...]:
        """Every form and expression that its motion and its energies read."""

    def coefficients(self) -> tuple[Function | Constant, ...]:
        """Everything that its forms read and a user may change, beside the state and the time.

        Functions, those of Real spaces too, and Constants; in place of a field that fdgeom samples
        from an expression what stands in the expression. Found from the forms.
        """
        moved = self.moving()
        return tuple(c for c in read_in(*self.all_forms()) if id(c) not in moved)

    def moving(self) -> set[int]:
        """The ids of what its forms read and its steppers move: the state and the time."""
        state = (p for f in self.functions().values() for p in (f, *f.subfunctions))
        return {id(f) for f in (*state, *self.symbols, *self.clocks)}

    def parameters(self) -> dict[str, object]:
        """What makes it beside its class and its equations, by name: a checkpoint says so."""
        return {}

    def equations(self) -> dict[str, Form | Expr]:
        """The forms and expressions that state it, by name: a checkpoint says of which it is."""
        return {}

    # --- numbers -----------------------------------------------------------------------------------
    def momenta(self) -> dict[str, tuple[Form, ...]]:
        """Momentum functionals by name, component by component; none in general."""
        return {}

    def casimirs(self) -> dict[str, Form]:
        """Casimir functionals by name; none in general."""
        return {}

    def constraint_defect(self) -> float:
        """Largest \\|g(q)\\|, averaged with each test function of the multiplier's space."""
        return self.constraint.defect() if self.constraint else 0.0

    def velocity_defect(self) -> float:
        """Largest \\|Dg(q) q̇\\|, averaged in the same way."""
        return self.constraint.rate(self.velocity()) if self.constraint else 0.0

    def _momentum_named(self, name: str) -> np.ndarray:
        key = f"number of {name}"
        if key not in self._held:
            self._held[key] = [FunctionalAssembly(form) for form in self.momenta()[name]]
        return np.array([held.assemble() for held in self._held[key]])

    # --- what output draws -------------------------------------------------------------------------
    def output_fields(self) -> dict[str, Expr]:
        """Fields worth drawing, by name."""
        return self.functions()

    def output_coordinates(self) -> Function | None:
        """Where in space the nodes are, if elsewhere than on the mesh."""
        return self._coordinates

    def output_orientation(self) -> Function | None:
        """Unit quaternions at the nodes of :meth:`output_coordinates`, if there are any."""
        return None

    def strain_energy_density(self) -> Expr | None:
        """Elastic energy per length or volume, for drawing; none in general."""
        return None

    def drawn_beams(self) -> tuple:
        """The beams whose sections are drawn, in the order of the nodes; none in general."""
        return ()

    def output_cells(self) -> np.ndarray | None:
        """Which of this rank's cells are drawn; None: all."""
        return None

    def refresh_output(self) -> None:
        """Bring fields that are for drawing only up to date."""

    # --- what every stepper asks -------------------------------------------------------------------
    @abstractmethod
    def check_start(self) -> None:
        """Raise ``ValueError`` if no step can start from the present state."""

    def branch(self) -> np.ndarray | None:
        """Numbers whose signs no step may change; None in general."""
        return None

    def check_branch(self, before: np.ndarray) -> None:
        """Raise SolveFailed if one of them has another sign than ``before``."""

    def prepare(self) -> None:
        """Bring what depends on the state up to date before a step."""

    def openings(self, touched: Sequence[Function] = ()) -> list:
        """What :meth:`prepare` is about to change, for derivatives: nothing in general.

        ``touched`` are those of :meth:`functions` that are changed for derivatives, though perhaps
        not now. Groups of functions with the expressions that they get, `Deed` s, or what has ``targets``,
        ``apply()`` and derivatives ``pull(bars)`` and ``push(tangents)``.
        """
        return []

    def settle(self) -> None:
        """Make all fields belong together: after steps, or when a checkpoint has been read."""

    def followers(self) -> dict[str, Function]:
        """What :meth:`settle` makes of :meth:`functions`, and may be set instead of them, by name.

        Fields of what a system is put together from; nothing in general.
        """
        return {}

    def closings(self) -> list:
        """What :meth:`settle` changes, for derivatives: as :meth:`openings`."""
        return []

    def agree(self) -> None:
        """Take all fields for what belongs together, as they are."""
        self.settle()

    def remembered(self) -> tuple[Snapshot, ...]:
        """By what it sees what was set by hand; nothing in general."""
        return ()

    def underivable(self) -> str | None:
        """Why derivatives of its motion are not there; None if they are."""
        return None

    def given_in_time(self) -> tuple[Function, ...]:
        """What of its forms' Functions is set anew for every step, as functions of time."""
        return ()

    def set_time(self, t: float) -> None:
        """Tell the system the time at the end of the coming (sub)step."""

    def set_clock(self, t: float) -> None:
        """Set the time that coefficients are read at, where that is another."""

    def _check_finite(self, functions: dict[str, Function] | None = None) -> None:
        """Raise ``ValueError`` if a function is not finite; all that a step changes by default."""
        for name, f in (self.functions() if functions is None else functions).items():
            finite = all(np.all(np.isfinite(part.dat.data_ro)) for part in f.subfunctions)
            if self.comm.allreduce(int(not finite)):
                raise ValueError(f"{name} holds values that are not finite: set a finite start")
