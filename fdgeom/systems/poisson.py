"""Poisson systems: a state, an energy, a bracket and a pairing, all UFL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import ufl
from firedrake import (
    Constant,
    Function,
    MixedFunctionSpace,
    TestFunction,
    TestFunctions,
    TrialFunction,
    derivative,
    split,
)
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.forms import (
    check_functional,
    copy_into,
    flatten,
    parts_of,
    polynomial_degree,
    substitute,
)
from fdgeom.solvers.functional import FunctionalAssembly
from fdgeom.systems.checks import antisymmetry_defect, jacobi_defect
from fdgeom.systems.gradient import pointwise_gradient
from fdgeom.systems.stage import Stage
from fdgeom.taping import not_taped
from fdgeom.words import brief, shown


class PoissonSystem:
    """A Poisson (Hamiltonian) system: ⟨w, ż⟩ = {w, h}(z) for all tests w.

    Parameters
    ----------
    state : Function
        The state z. In a mixed space its parts can be moved one after another by a splitting
        method; the forms may use ``split(state)``.
    energy : UFL functional
        The Hamiltonian h(z).
    bracket : callable
        ``bracket(a, b)`` gives the form {f, h}(z) for δf/δz = a and δh/δz = b: bilinear and
        antisymmetric. ``a`` and ``b`` come as functions of the state's space (``split`` them).
    pairing : callable
        ``pairing(a, b)`` gives the form ⟨a, b⟩ that defines the variational derivative,
        ⟨δh/δz, w⟩ = dh(z)[w]: bilinear, symmetric, positive definite.
    names : sequence of str, optional
        Names of the parts, for solver prefixes and output.
    gradient : callable, optional
        ``gradient(z)`` gives δh/δz as an expression (for a mixed state: ``z`` is a tuple of parts
        and so is the result), where it is known pointwise. If not given, fdgeom looks for one and
        verifies it; where there is none, δh/δz becomes an unknown of the solves.
    casimirs : dict of str to UFL functional, optional
        Casimirs of the bracket, for monitors.
    parts : sequence of Function, optional
        Functions that hold the parts of a mixed state, if not its own; ``state`` is then only a
        symbol in the forms, which may be written with either.

    Raises
    ------
    TypeError
        If an argument is not of the kind above.
    ValueError
        If a form has the wrong number of arguments, or the state is not finite.
    """

    def __init__(
        self,
        state: Function,
        energy: Form,
        bracket: Callable,
        pairing: Callable,
        *,
        names: Sequence[str] | None = None,
        gradient: Callable | None = None,
        casimirs: Mapping[str, Form] | None = None,
        parts: Sequence[Function] | None = None,
    ) -> None:
        if not isinstance(state, Function):
            raise TypeError(f"state must be a firedrake Function, not {type(state).__name__}")
        for name, form in (("bracket", bracket), ("pairing", pairing)):
            # A UFL form can be called too.
            if not callable(form) or isinstance(form, Form):
                raise TypeError(f"{name} must be a callable of two arguments (a, b) giving a form")
        if gradient is not None and not callable(gradient):
            raise TypeError(
                f"gradient must be a callable of the state giving δh/δz, not {shown(gradient)}"
            )
        self.state = state
        self.space = state.function_space()
        self.mesh = state.subfunctions[0].function_space().mesh()
        self.comm = self.space.comm
        own = tuple(state.subfunctions) if len(self.space) > 1 else (state,)
        self.parts = own if parts is None else tuple(parts)
        self.names = _check_names(names, len(self.parts))
        self._test, self._trial = TestFunction(self.space), TrialFunction(self.space)
        self._energy = self._in_terms_of_state(check_functional("energy", energy, 0))
        self._bracket = self._bilinear("bracket", bracket)
        self._pairing = self._bilinear("pairing", pairing)
        self._gradient = gradient
        self._gradient_known = gradient is not None
        self._casimirs = {
            name: self._in_terms_of_state(check_functional(f"casimirs[{name!r}]", form, 0))
            for name, form in (casimirs or {}).items()
        }
        self._held = {}
        self.check_state()

    # --- forms ---------------------------------------------------------------------------------
    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Value shapes of the parts of the state."""
        return tuple(p.ufl_shape for p in self.parts)

    def _in_terms_of_state(self, form: Form) -> Form:
        """Write a form with ``split(state)``, whether it came with that or with the subfunctions."""
        if len(self.parts) == 1:
            return substitute(form, {})
        return substitute(form, dict(zip(self.parts, split(self.state), strict=True)))

    def _bilinear(self, name: str, form: Callable) -> Form:
        try:
            result = form(self._test, self._trial)
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"{name}(a, b) is no valid form: {brief(error)}") from error
        return self._in_terms_of_state(check_functional(name, result, 2))

    def _state_map(self, at) -> dict[Expr, Expr]:
        """What to put for the state: ``at`` (all parts), by default the subfunctions themselves."""
        parts = self.parts if at is None else parts_of(at, self.shapes, "at")
        return {self.state: self._whole(parts)}

    def _whole(self, parts: Sequence[Expr]) -> Expr:
        return flatten(parts) if len(self.parts) > 1 else parts[0]

    def pairing(self, a, b) -> Form:
        """The form ⟨a, b⟩; each a function of the state's space, or a tuple of parts."""
        a, b = (parts_of(x, self.shapes, n) for x, n in ((a, "a"), (b, "b")))
        return substitute(
            self._pairing,
            {self._test: self._whole(a), self._trial: self._whole(b), **self._state_map(None)},
        )

    def bracket(self, a, b, at=None) -> Form:
        """The form {f, h}(z) for δf/δz = a, δh/δz = b.

        Parameters
        ----------
        a, b : Function, Argument or tuple of parts
            Elements of the state's space.
        at : the same, optional
            Where; the present state if not given.
        """
        a, b = (parts_of(x, self.shapes, n) for x, n in ((a, "a"), (b, "b")))
        return substitute(
            self._bracket,
            {self._test: self._whole(a), self._trial: self._whole(b), **self._state_map(at)},
        )

    def energy_form(self, at=None) -> Form:
        """The Hamiltonian as a functional, at the present state or another one."""
        return substitute(self._energy, self._state_map(at))

    def energy_derivative(self, direction, at=None) -> Form:
        """The form dh(z)[w] for a direction w (a test function, a function or a tuple of parts)."""
        w = parts_of(direction, self.shapes, "direction")
        form = substitute(derivative(self._energy, self.state, self._test), {})
        return substitute(form, {self._test: self._whole(w), **self._state_map(at)})

    def with_energy(self, energy: Form) -> PoissonSystem:
        """The system with the same state, bracket and pairing and another energy."""
        return PoissonSystem(
            self.state,
            energy,
            lambda a, b: self.bracket(a, b),
            lambda a, b: self.pairing(a, b),
            names=self.names,
            parts=self.parts,
        )

    @property
    def energy_degree(self) -> int | None:
        """Degree of the energy as a polynomial of the state; None if it is none (or above 8)."""
        if "degree" not in self._held:
            self._held["degree"] = polynomial_degree(self._energy, self.state)
        return self._held["degree"]

    # --- numbers -------------------------------------------------------------------------------
    def energy(self) -> float:
        """The Hamiltonian at the present state."""
        return self._value("energy", self.energy_form)

    def _value(self, key: str, form: Callable[[], Form]) -> float:
        if key not in self._held:
            self._held[key] = FunctionalAssembly(form())
        return self._held[key].assemble()

    @not_taped
    def gather_state(self) -> None:
        """Copy the parts into ``state``, where it does not hold them itself."""
        for own, part in zip(self.state.subfunctions, self.parts, strict=True):
            if own.dat is not part.dat:
                copy_into(own, part)

    def antisymmetry_defect(self) -> float:
        """Relative size of {·, b} + {b, ·} for random fields b, at the state; 0 to round-off if right."""
        return antisymmetry_defect(self)

    def jacobi_defect(self, samples: int = 3, seed: int = 0) -> float:
        """Relative defect of the Jacobi identity on random linear functionals, at the state.

        Zero to round-off for a Poisson bracket; a discretised bracket has a defect that falls with
        the mesh.
        """
        return jacobi_defect(self, samples, seed)

    def check_state(self) -> None:
        """Raise ``ValueError`` if a part of the state is not finite."""
        for name, part in zip(self.names, self.parts, strict=True):
            local = bool(np.all(np.isfinite(part.dat.data_ro)))
            if self.comm.allreduce(int(not local)):
                raise ValueError(f"{name} holds values that are not finite: set a finite start")

    # --- what the recording reads ----------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        """Everything that a step changes, by name: what a checkpoint holds."""
        return dict(zip(self.names, self.parts, strict=True))

    def parameters(self) -> dict[str, object]:
        """What makes the system beside its class and its equations, by name: a checkpoint says so."""
        return {}

    def equations(self) -> dict[str, Form]:
        """The forms that state it, by name: a checkpoint says of which it is."""
        return {
            "energy": self._energy,
            "bracket": self._bracket,
            "pairing": self._pairing,
        }

    def energies(self) -> dict[str, Form]:
        """Energy functionals by name; ``"energy"`` is the total."""
        return {"energy": self.energy_form()}

    def momenta(self) -> dict[str, tuple[Form, ...]]:
        """Momentum functionals by name (none in general)."""
        return {}

    def casimirs(self) -> dict[str, Form]:
        """Casimir functionals by name."""
        return {k: substitute(f, self._state_map(None)) for k, f in self._casimirs.items()}

    def output_fields(self) -> dict[str, Expr]:
        """Fields worth drawing, by name."""
        return self.functions()

    def output_coordinates(self) -> Function | None:
        """Where in space the nodes are, if elsewhere than on the mesh."""
        return None

    # --- what the steppers ask -------------------------------------------------------------------
    #: Constants that the steppers set to the time.
    clocks: tuple[Constant, ...] = ()

    def check_start(self) -> None:
        """Raise ``ValueError`` if no step can start from the present state."""
        self.check_state()

    def prepare(self) -> None:
        """Bring what depends on the state up to date before a step (nothing in general)."""

    def settle(self) -> None:
        """Note that all fields belong together: after steps, or when a checkpoint has been read."""

    def set_time(self, t: float) -> None:
        """Tell the system the time at the end of the coming substep (autonomous in general)."""

    def set_clock(self, t: float) -> None:
        """Set the time that coefficients are read at, halfway in a step (autonomous in general)."""

    def chart(self, k: int, unknown: Expr) -> tuple[Expr, Expr | None]:
        """Part ``k`` of the state, and of δh/δz if it follows directly, in terms of the unknown."""
        return unknown, None

    def frozen_gradient(self, k: int) -> Expr | None:
        """Part ``k`` of δh/δz at the present state, where the system holds it as a field."""
        return None

    def essential_values(self, active: Sequence[int]) -> tuple:
        """Degrees of freedom of a stage that boundary conditions give (none in general)."""
        return ()

    def forcing(self, test: Sequence[Expr], gradient: Sequence[Expr], dt: Expr) -> Form:
        """Work on the tests of forces that are in no energy (none in general).

        ``gradient`` is δh/δz in the middle of a step ``dt``.
        """
        return Form([])

    def companions(
        self, active: Sequence[int], new: dict[int, Expr], *, dt: Expr
    ) -> dict[Function, Expr]:
        """What else a substep writes, node by node: expressions in old fields and ``new`` parts."""
        return {}

    def gradient(self, state: Sequence[Expr]) -> tuple[Expr, ...] | None:
        """δh/δz as pointwise expressions of the parts ``state``; None where there are none."""
        if not self._gradient_known:
            self._gradient, self._gradient_known = pointwise_gradient(self), True
        if self._gradient is None:
            return None
        given = self._gradient(tuple(state) if len(self.parts) > 1 else state[0])
        return parts_of(given, self.shapes, "gradient")

    def stage(self, active: Sequence[int]) -> Stage:
        """The unknown of a substep that moves the parts ``active`` and freezes the others."""
        active = tuple(active)
        spaces = [self.parts[k].function_space() for k in active]
        pointwise = self._charted(active) or self.gradient(self.parts) is not None
        if not pointwise:
            spaces += [p.function_space() for p in self.parts]
        mixed = len(spaces) > 1
        space = MixedFunctionSpace(spaces) if mixed else spaces[0]
        unknown = Function(space, name="stage")
        fields = split(unknown) if mixed else (unknown,)
        tests = TestFunctions(space) if mixed else (TestFunction(space),)

        state = list(self.parts)
        slope = [self.frozen_gradient(k) for k in range(len(self.parts))]
        test = [ufl.zero(*s) if s else ufl.as_ufl(0) for s in self.shapes]
        for k, field, w in zip(active, fields, tests, strict=False):
            state[k], slope[k] = self.chart(k, field)
            test[k] = w
        if not pointwise:
            slope = fields[len(active) :]
        elif any(b is None for b in slope):
            known = self.gradient(state)
            slope = [g if b is None else b for b, g in zip(slope, known, strict=True)]
        return Stage(
            unknown=unknown,
            active=active,
            state=tuple(state),
            gradient=tuple(slope),
            test=tuple(test),
            gradient_test=None if pointwise else tuple(tests[len(active) :]),
            essential=self.essential_values(active),
        )

    def _charted(self, active: Sequence[int]) -> bool:
        """Whether charts and held fields give every part of δh/δz."""
        probe = [self.frozen_gradient(k) for k in range(len(self.parts))]
        for k in active:
            probe[k] = self.chart(k, self.parts[k])[1]
        return all(b is not None for b in probe)

    def start_values(self, stage: Stage) -> dict[Function, Function]:
        """A first guess of a stage's unknown: for each of its parts the function to copy."""
        mixed = len(stage.unknown.function_space()) > 1
        pieces = stage.unknown.subfunctions if mixed else (stage.unknown,)
        return {piece: self.parts[k] for k, piece in zip(stage.active, pieces, strict=False)}


def _check_names(names, number: int) -> tuple[str, ...]:
    if names is None:
        return ("state",) if number == 1 else tuple(f"part{k}" for k in range(number))
    names = tuple(names) if isinstance(names, list | tuple) else ()
    if len(names) != number or len(set(names)) != number:
        raise ValueError(f"names must be {number} different names, one for each part of the state")
    return names
