"""Poisson systems: a state, an energy, a bracket and a pairing, all UFL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

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
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.forms import (
    check_functional,
    copy_into,
    depends_on,
    flatten,
    parts_of,
    polynomial_degree,
    substitute,
    with_fixed_quadrature,
)
from fdgeom.solvers.functional import FunctionalAssembly
from fdgeom.systems.energies import Energies
from fdgeom.systems.poisson.auxiliary import Auxiliary
from fdgeom.systems.poisson.checks import antisymmetry_defect, jacobi_defect
from fdgeom.systems.poisson.gradient import check_gradient, pointwise_gradient
from fdgeom.systems.poisson.stage import Stage
from fdgeom.taping import not_taped
from fdgeom.words import brief, shown


class PoissonSystem(Energies):
    """A Poisson (Hamiltonian) system: ⟨w, ż⟩ = {w, h}(z) for all tests w.

    Parameters
    ----------
    state : Function
        The state z. In a mixed space its parts can be moved one after another by a splitting
        method; the forms may use ``split(state)``.
    energy : UFL functional
        The Hamiltonian h(z). An integral without a quadrature degree gets one for good, that of its
        derivative, so that the motion keeps the energy that :meth:`energy` reports. Other Functions
        in it are coefficients: read as they are, not moved.
    bracket : callable
        ``bracket(a, b)`` gives the form {f, h}(z) for δf/δz = a and δh/δz = b: bilinear and
        antisymmetric. ``a`` and ``b`` come as functions of the state's space (``split`` them).
    pairing : callable
        ``pairing(a, b)`` gives the form ⟨a, b⟩ that defines the variational derivative,
        ⟨δh/δz, w⟩ = dh(z)[w]: bilinear, symmetric, positive definite. It may depend on the state
        (a metric ⟨a, b⟩_z); every method then takes it where it takes the bracket.
    names : sequence of str, optional
        Names of the parts, for solver prefixes and output.
    gradient : callable, optional
        ``gradient(z)`` gives δh/δz as an expression (for a mixed state: ``z`` is a tuple of parts
        and so is the result), where it is known pointwise. It is tested against the energy, at
        states near the present one. If not given, fdgeom looks for one and tests that; where there
        is none, δh/δz becomes an unknown of the solves.
    casimirs : dict of str to UFL functional, optional
        Casimirs of the bracket, for monitors.
    auxiliary : dict, optional
        ``{psi: form}``: Functions in the energy that follow from the state by linear elliptic
        equations. ``form`` is F(ψ, z; φ) with a test function φ of the space of ψ, F = 0 for all φ;
        ``{psi: (form, bcs)}`` with DirichletBCs. They are solved for with the state, and their share
        of δh/δz is that of the solve's adjoint. After each step, and when :meth:`energy` is called,
        they hold the values of the present state. Steppers by the midpoint rule take them.
    parts : sequence of Function, optional
        Functions that hold the parts of a mixed state, if not its own; ``state`` is then only a
        symbol in the forms, which may be written with either.

    Raises
    ------
    TypeError
        If an argument is not of the kind above.
    ValueError
        If a form has the wrong number of arguments, the state is not finite, ``gradient`` is not
        the derivative of the energy, or ``auxiliary`` does not determine its Functions.

    Examples
    --------
    The two-dimensional Euler equations, ω_t + u·∇ω = 0 with u = (ψ_y, -ψ_x) and -Δψ = ω:

    >>> phi = TestFunction(psi.function_space())
    >>> euler = PoissonSystem(
    ...     omega, 0.5*omega*psi*dx,
    ...     bracket=lambda a, b: omega*(a.dx(0)*b.dx(1) - a.dx(1)*b.dx(0))*dx,
    ...     pairing=lambda a, b: a*b*dx,
    ...     auxiliary={psi: (
    ...         inner(grad(psi), grad(phi))*dx - omega*phi*dx,
    ...         DirichletBC(psi.function_space(), 0, "on_boundary"))})  # doctest: +SKIP
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
        auxiliary: Mapping[Function, Form] | None = None,
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
        energy = self._in_terms_of_state(check_functional("energy", energy, 0))
        self._energy = with_fixed_quadrature(energy, state)
        self._bracket = self._bilinear("bracket", bracket)
        self._pairing = self._bilinear("pairing", pairing)
        self._given_gradient = gradient
        self._casimirs = {
            name: self._in_terms_of_state(check_functional(f"casimirs[{name!r}]", form, 0))
            for name, form in (casimirs or {}).items()
        }
        self._held = {}
        self.check_state()
        #: Functions that follow from the state, if there are any.
        self.auxiliary: Auxiliary | None = None
        if auxiliary:
            self.auxiliary = self._make_auxiliary(auxiliary)
            self.auxiliary.prepare(lambda form: substitute(form, self._state_map(None)))
            self.auxiliary.check()
        if gradient is not None:
            check_gradient(self, gradient)

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

    def _make_auxiliary(self, equations: Mapping) -> Auxiliary:
        made = Auxiliary(equations, self._energy, self.state, self._in_terms_of_state)
        for function in made.functions:
            if function in (self.state, *self.parts) or function.name() in self.names:
                raise ValueError(
                    f"auxiliary: {function.name()} is a part of the state, or named so"
                )
            for name, form in (("bracket", self._bracket), ("pairing", self._pairing)):
                if function in form.coefficients():
                    raise ValueError(f"{name} must not hold the auxiliary {function.name()}")
        return made

    def _state_map(self, at) -> dict[Expr, Expr]:
        """What to put for the state: ``at`` (all parts), by default the subfunctions themselves."""
        parts = self.parts if at is None else parts_of(at, self.shapes, "at")
        return {self.state: self.whole(parts)}

    def whole(self, parts: Sequence[Expr]) -> Expr:
        """The parts as one value of the state's space."""
        return flatten(parts) if len(self.parts) > 1 else parts[0]

    @property
    def test(self):
        """The test function in :attr:`forms`; the trial function there is the second argument."""
        return self._test

    @property
    def energy_in_state(self) -> Form:
        """The Hamiltonian as a functional of ``state``, whatever Functions hold its parts."""
        return self._energy

    @property
    def forms(self) -> tuple[Form, Form, Form]:
        """Energy, bracket and pairing in ``state``."""
        return self._energy, self._bracket, self._pairing

    def pairing(self, a, b, at=None) -> Form:
        """The form ⟨a, b⟩; each a function of the state's space, or a tuple of parts.

        ``at`` says where, for a pairing that depends on the state: the present one if not given.
        """
        a, b = (parts_of(x, self.shapes, n) for x, n in ((a, "a"), (b, "b")))
        return substitute(
            self._pairing,
            {self._test: self.whole(a), self._trial: self.whole(b), **self._state_map(at)},
        )

    @property
    def pairing_varies(self) -> bool:
        """Whether the pairing depends on the state."""
        return depends_on(self._pairing, self.state)

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
            {self._test: self.whole(a), self._trial: self.whole(b), **self._state_map(at)},
        )

    def energy_form(self, at=None) -> Form:
        """The Hamiltonian as a functional, at the present state or another one."""
        return substitute(self._energy, self._state_map(at))

    def lagrangian_form(self) -> Form:
        """h, and with auxiliary functions h + F(ψ, z; λ), at the present state."""
        return substitute(self._lagrangian, self._state_map(None))

    @property
    def _lagrangian(self) -> Form:
        return self._energy if self.auxiliary is None else self.auxiliary.lagrangian

    def energy_derivative(self, direction, at=None, auxiliary: Sequence[Expr] = ()) -> Form:
        """The form dh(z)[w] for a direction w (a test function, a function or a tuple of parts).

        With auxiliary functions it is ∂_z L, at their values and multipliers ``auxiliary``.
        """
        w = parts_of(direction, self.shapes, "direction")
        form = substitute(derivative(self._lagrangian, self.state, self._test), {})
        more = {} if self.auxiliary is None else self.auxiliary.at(auxiliary)
        return substitute(form, {self._test: self.whole(w), **self._state_map(at), **more})

    def with_energy(self, energy: Form) -> PoissonSystem:
        """The system with the same state, bracket and pairing and another energy."""
        if self.auxiliary is not None:
            raise ValueError("system: with auxiliary functions the energy cannot be exchanged")
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
            more, affine = (), True
            if self.auxiliary is not None:
                more, affine = self.auxiliary.functions, self.auxiliary.is_affine
            self._held["degree"] = (
                polynomial_degree(self._energy, self.state, *more) if affine else None
            )
        return self._held["degree"]

    # --- numbers -------------------------------------------------------------------------------
    def energy(self) -> float:
        """The total energy."""
        self.update_auxiliary()
        return super().energy()

    def update_auxiliary(self) -> None:
        """Solve for the auxiliary functions of the present state, if there are any."""
        if self.auxiliary is not None:
            self.auxiliary.update()

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
        found = dict(zip(self.names, self.parts, strict=True))
        if self.auxiliary is not None:
            found |= dict(zip(self.auxiliary.names, self.auxiliary.functions, strict=True))
        return found

    def parameters(self) -> dict[str, object]:
        """What makes the system beside its class and its equations, by name: a checkpoint says so."""
        return {}

    def equations(self) -> dict[str, Form]:
        """The forms that state it, by name: a checkpoint says of which it is."""
        return {
            "energy": self._energy,
            "bracket": self._bracket,
            "pairing": self._pairing,
            **(self.auxiliary.equations if self.auxiliary is not None else {}),
        }

    def energies(self) -> dict[str, Form]:
        """The Hamiltonian, ``"energy"``; its parts where the system knows them."""
        self.update_auxiliary()
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
        self.update_auxiliary()

    def prepare(self) -> None:
        """Bring what depends on the state up to date before a step (nothing in general)."""

    def settle(self) -> None:
        """Make all fields belong together: after steps, or when a checkpoint has been read."""
        self.update_auxiliary()

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

    def gradient(
        self, state: Sequence[Expr], auxiliary: Sequence[Expr] = ()
    ) -> tuple[Expr, ...] | None:
        """δh/δz as pointwise expressions of the parts ``state``; None where there are none.

        With auxiliary functions also of their values and multipliers ``auxiliary``.
        """
        found = self._given_gradient or self._density_gradient
        if found is None:
            return None
        given = found(tuple(state) if len(self.parts) > 1 else state[0])
        given = parts_of(given, self.shapes, "gradient")
        if auxiliary:
            more = self.auxiliary.at(auxiliary)
            given = tuple(replace(expand_derivatives(part), more) for part in given)
        return given

    @cached_property
    def _density_gradient(self) -> Callable | None:
        return pointwise_gradient(self)

    @property
    def has_pointwise_density(self) -> bool:
        """Whether δh/δz is the derivative of the energy's density, point by point."""
        return self._density_gradient is not None

    def stage(self, active: Sequence[int], pointwise: bool = True) -> Stage:
        """The unknown of a substep that moves the parts ``active`` and freezes the others.

        Where δh/δz is not pointwise, or is not to be taken so, it is an unknown too.
        """
        active = tuple(active)
        spaces = [self.parts[k].function_space() for k in active]
        pointwise = pointwise and (self._charted(active) or self.gradient(self.parts) is not None)
        if not pointwise:
            spaces += [p.function_space() for p in self.parts]
        own = len(spaces)
        if self.auxiliary is not None:
            spaces += self.auxiliary.spaces
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
        auxiliary, conditions = tuple(fields[own:]), Form([])
        essential = self.essential_values(active)
        if auxiliary:
            conditions = self.auxiliary.conditions(auxiliary, tests[own:])
            conditions = substitute(conditions, self._state_map(tuple(state)))
            essential += self.auxiliary.essential(own)
        if not pointwise:
            slope = fields[len(active) : own]
        elif any(b is None for b in slope):
            known = self.gradient(state, auxiliary)
            slope = [g if b is None else b for b, g in zip(slope, known, strict=True)]
        return Stage(
            unknown=unknown,
            active=active,
            state=tuple(state),
            gradient=tuple(slope),
            test=tuple(test),
            gradient_test=None if pointwise else tuple(tests[len(active) : own]),
            essential=essential,
            auxiliary=auxiliary,
            conditions=conditions,
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
