"""Chaplygin systems: embedded velocity constraints, and canonical equations where they exist."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import sympy as sp
from firedrake import Function, dx
from ufl.classes import Expr, Measure

from fdgeom import citations
from fdgeom.systems.chaplygin.inverse import (
    HelmholtzCondition,
    helmholtz_conditions,
    lagrangian_with_forces,
    legendre_transform,
)
from fdgeom.systems.chaplygin.jets import Jets, check_coordinate, is_zero, shortest
from fdgeom.systems.chaplygin.translate import as_ufl, components_of, constants_of
from fdgeom.systems.poisson.hamiltonian import HamiltonianSystem


class ChaplyginSystem:
    """A mechanical system whose last velocities are functions of the first coordinates, in SymPy.

    With the constraints q̇_{ε+β} = φ_β(q_σ, q̇_σ, t) put into the Lagrangian L the motion obeys
    Chaplygin's equations

        E_σ(L̃) = Φ_σ,    Φ_σ = ∂L/∂q̇_{ε+β} E_σ(φ_β),    E_σ = d/dt ∂/∂q̇_σ - ∂/∂q_σ.

    Where the generalized forces Φ, perhaps after adding terms that vanish along the motion
    (:meth:`adding`), satisfy Helmholtz's conditions, the motion is that of a Lagrangian L' without
    constraints, and of a Hamiltonian H' for every stepper of canonical systems: equations (1)-(7)
    of Liu, Liu, Chang, Wang & Guo, "The application of symplectic geometric algorithm in a special
    Chaplygin system" (Acta Phys. Sin., in Chinese), after Mei (1991).

    Parameters
    ----------
    lagrangian : SymPy expression
        L, in all coordinates and velocities, without the constraints.
    coordinates : sequence of SymPy functions of time
        The independent coordinates q_σ, such as ``sympy.physics.mechanics.dynamicsymbols`` gives.
    velocities : dict
        For each dependent coordinate (a function of time) its velocity φ_β, in the independent
        coordinates and velocities. L must depend on the dependent coordinates through their
        velocities only, by Chaplygin's definition.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.

    Notes
    -----
    Results are computed when they are first needed, in seconds for a rolling ball. Symbols that are
    not functions of time are parameters; declare positive ones with ``positive=True``, which helps
    SymPy to simplify.
    """

    cites = ("LiuLiuChangWangGuo",)

    def __init__(self, lagrangian, coordinates: Sequence, velocities: Mapping) -> None:
        citations.cite(type(self))
        if not isinstance(coordinates, (tuple, list)):
            raise TypeError(
                f"coordinates must be a list of functions of time, not {type(coordinates).__name__}"
            )
        if not isinstance(velocities, Mapping):
            raise TypeError(
                "velocities must be a dict from dependent coordinates to their velocities, "
                f"not {type(velocities).__name__}"
            )
        self._jets = jets = Jets(coordinates)
        dependent = [check_coordinate("velocities: its keys", x) for x in velocities]
        for x in dependent:
            if x in jets.coordinates:
                raise ValueError(f"velocities: {x} is an independent coordinate; leave it out")
            if x.args[0] != jets.t:
                raise ValueError(f"velocities: {x} is a function of another time")
        #: The independent and the dependent coordinates.
        self.coordinates, self.dependent = jets.coordinates, tuple(dependent)
        self._phi = tuple(
            jets.of_velocities(f"velocities[{x}]", phi) for x, phi in velocities.items()
        )
        free = {x.diff(jets.t): sp.Dummy(f"{x.func.__name__}'") for x in dependent}
        self._lagrangian = jets.of_velocities("lagrangian", lagrangian, free)
        put = dict(zip(free.values(), self._phi, strict=True))
        self._embedded = self._lagrangian.xreplace(put)
        self._forces = tuple(
            sum(
                sp.diff(self._lagrangian, u).xreplace(put) * jets.euler(phi, k)
                for u, phi in put.items()
            )
            + sp.Integer(0)
            for k in range(len(jets.q))
        )
        #: Momenta conjugate to the independent coordinates, as symbols.
        self.momenta = tuple(sp.Symbol(f"p_{name}", real=True) for name in jets.names)
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Raise ``ValueError`` if a parameter has the name of a momentum or of an argument."""
        if clash := {"base", "measure"}.intersection(self.parameters):
            raise ValueError(f"the parameter {clash.pop()} has the name of an argument; rename it")
        for name, momentum in zip(self._jets.names, self.momenta, strict=True):
            if momentum.name in self.parameters:
                raise ValueError(
                    f"the parameter {momentum} has the name of the momentum of {name}; rename it"
                )

    # --- Chaplygin's equations -----------------------------------------------------------------
    @cached_property
    def embedded_lagrangian(self) -> sp.Expr:
        """L̃, the Lagrangian with embedded constraints."""
        return self._jets.dynamic(shortest(self._embedded, self._jets.v))

    @cached_property
    def forces(self) -> dict:
        """The generalized forces Φ_σ, by coordinate."""
        jets = self._jets
        return {
            q: jets.dynamic(shortest(force, (*jets.a, *jets.v)))
            for q, force in zip(jets.coordinates, self._forces, strict=True)
        }

    def equation(self, coordinate) -> sp.Expr:
        """E_σ(L̃) - Φ_σ, which vanishes along the motion."""
        k = self._index(coordinate)
        return self._jets.dynamic(shortest(self._equations[k], (*self._jets.a, *self._jets.v)))

    def euler(self, coordinate) -> sp.Expr:
        """E_σ(L̃)."""
        k = self._index(coordinate)
        jets = self._jets
        return jets.dynamic(shortest(jets.euler(self._embedded, k), (*jets.a, *jets.v)))

    @cached_property
    def _equations(self) -> tuple[sp.Expr, ...]:
        jets = self._jets
        return tuple(jets.euler(self._embedded, k) - force for k, force in enumerate(self._forces))

    @cached_property
    def _accelerations(self) -> dict[sp.Symbol, sp.Expr]:
        jets = self._jets
        matrix, right = sp.linear_eq_to_matrix([sp.expand(e) for e in self._equations], jets.a)
        matrix = matrix.applyfunc(sp.simplify)
        if is_zero(matrix.det()):
            raise ValueError("the equations do not determine the accelerations: ∂²L̃ is singular")
        return dict(zip(jets.a, matrix.LUsolve(right), strict=True))

    @cached_property
    def accelerations(self) -> dict:
        """The accelerations that the equations of motion give, by coordinate."""
        return {
            q: self._jets.dynamic(sp.simplify(self._accelerations[a]))
            for q, a in zip(self.coordinates, self._jets.a, strict=True)
        }

    def _index(self, coordinate) -> int:
        if coordinate not in self.coordinates:
            raise ValueError(
                f"coordinate must be one of {', '.join(map(str, self.coordinates))}, "
                f"not {coordinate}"
            )
        return self.coordinates.index(coordinate)

    # --- Helmholtz's conditions ------------------------------------------------------------------
    @cached_property
    def helmholtz_conditions(self) -> tuple[HelmholtzCondition, ...]:
        """Helmholtz's conditions on Φ, for each pair of coordinates

        1. ∂Φ_σ/∂q̈_ν = ∂Φ_ν/∂q̈_σ,
        2. ∂Φ_σ/∂q̇_ν + ∂Φ_ν/∂q̇_σ = d/dt (∂Φ_σ/∂q̈_ν + ∂Φ_ν/∂q̈_σ),
        3. ∂Φ_σ/∂q_ν - ∂Φ_ν/∂q_σ = ½ d/dt (∂Φ_σ/∂q̇_ν - ∂Φ_ν/∂q̇_σ),

        for all q, q̇, q̈: equations (4) of the paper, whose second line misprints q̇ for q̈ on the
        right.
        """
        return helmholtz_conditions(self._jets, self._forces)

    def failing_conditions(self) -> tuple[HelmholtzCondition, ...]:
        """Helmholtz's conditions that do not hold."""
        return tuple(c for c in self.helmholtz_conditions if not c.holds)

    def adding(self, terms: Mapping) -> Self:
        """The system with other generalized forces: Φ_σ plus terms that vanish along the motion.

        Parameters
        ----------
        terms : dict
            Terms to add to Φ_σ, by independent coordinate, affine in the accelerations; for example
            a multiple of :meth:`equation`.

        Returns
        -------
        ChaplyginSystem

        Raises
        ------
        ValueError
            If a term does not vanish along the motion, or the equations with the terms no longer
            determine the accelerations.
        """
        if not isinstance(terms, Mapping):
            raise TypeError(f"terms must be a dict by coordinate, not {type(terms).__name__}")
        jets, forces = self._jets, list(self._forces)
        for coordinate, term in terms.items():
            k = self._index(coordinate)
            name = f"terms[{coordinate}]"
            plain = jets.plain(name, term)
            for a in jets.a:
                if plain.has(*jets.j) or sp.diff(plain, a).has(*jets.a):
                    raise ValueError(f"{name} must be of first degree in the accelerations")
            if not is_zero(plain.xreplace(self._accelerations)):
                raise ValueError(f"{name} does not vanish along the motion, so it cannot be added")
            forces[k] = forces[k] + plain
        result = object.__new__(type(self))
        kept = ("_jets", "coordinates", "dependent", "_phi", "_lagrangian", "_embedded", "momenta")
        result.__dict__.update({name: self.__dict__[name] for name in kept})
        result._forces = tuple(forces)
        result._check_parameters()
        try:
            _ = result._accelerations
        except ValueError:
            raise ValueError(
                "terms: with them the equations no longer determine the accelerations"
            ) from None
        return result

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the Lagrangian and the constraints."""
        found = set().union(*(e.free_symbols for e in (self._embedded, *self._phi, *self._forces)))
        jets = self._jets
        return tuple(sorted(s.name for s in found - {jets.t, *jets.q, *jets.v, *jets.a}))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._jets.names)})"

    # --- the system without constraints ----------------------------------------------------------
    def lagrangian(self, base: Mapping | None = None) -> sp.Expr:
        """L' with E_σ(L') = E_σ(L̃) - Φ_σ, by integration along rays (the formula after (5)).

        The paper prints ττ'q in place of ττ'q̇. L' is checked to give the equations.

        Parameters
        ----------
        base : dict, optional
            Values of the coordinates at the base of the rays, by default zero; needed if the forces
            are singular at zero. Another base changes L' by a total derivative at most.

        Returns
        -------
        SymPy expression

        Raises
        ------
        ValueError
            If Φ does not satisfy Helmholtz's conditions (the message names it), or an integral
            cannot be found.
        """
        return self._jets.dynamic(self._reduced(base))

    def _reduced(self, base: Mapping | None) -> sp.Expr:
        jets = self._jets
        origin = {jets.q[self._index(q)]: sp.sympify(value) for q, value in (base or {}).items()}
        key = tuple(sorted(origin.items(), key=str))
        held = self.__dict__.setdefault("_found", {})
        if key not in held:
            failing = self.failing_conditions()
            if failing:
                raise ValueError(
                    "the forces do not satisfy Helmholtz's conditions, so they have no L' (adding() "
                    "may help): " + "; ".join(map(str, failing))
                )
            found = lagrangian_with_forces(jets, self._embedded, self._forces, origin)
            for k, equation in enumerate(self._equations):
                if not is_zero(jets.euler(found, k) - equation):
                    raise ValueError(
                        f"the Lagrangian found does not give the equation of {jets.names[k]}: "
                        "choose another base point by base={coordinate: value}"
                    )
            held[key] = found
        return held[key]

    def hamiltonian(self, base: Mapping | None = None) -> sp.Expr:
        """H' = p_σ q̇_σ - L' in the coordinates and :attr:`momenta` p_σ = ∂L'/∂q̇_σ.

        Parameters
        ----------
        base : dict, optional
            As for :meth:`lagrangian`.

        Raises
        ------
        ValueError
            As for :meth:`lagrangian`, and if L' is degenerate.
        """
        return self._jets.dynamic(self._legendre(base)[0])

    def _legendre(self, base: Mapping | None):
        found = self._reduced(base)
        held = self.__dict__.setdefault("_transformed", {})
        if found not in held:
            held[found] = legendre_transform(self._jets, found, self.momenta)
        return held[found]

    # --- as UFL ------------------------------------------------------------------------------------
    def hamiltonian_system(
        self,
        q: Function,
        p: Function,
        /,
        *,
        base: Mapping | None = None,
        measure: Measure | None = None,
        **parameters,
    ) -> HamiltonianSystem:
        """The canonical system of H', for the steppers.

        Parameters
        ----------
        q, p : Function
            Independent coordinates and momenta, in their order: vectors with a component for each
            (or scalars if there is one), in DG0 on :func:`copies` or any other space.
        base : dict, optional
            As for :meth:`lagrangian`.
        measure : Measure, optional
            Measure of the integral and the pairing, by default ``dx``.
        **parameters : float or UFL expression
            A value for each parameter, by its name; with a Function each copy has its own.

        Returns
        -------
        HamiltonianSystem

        Raises
        ------
        TypeError, ValueError
            If q and p do not fit, a parameter has no value or is unknown, or H' depends on time.
        """
        energy = self._as_ufl(self._legendre(base)[0], q, p, parameters)
        mu = dx if measure is None else measure
        return HamiltonianSystem(q, p, energy * mu, measure=measure)

    def canonical(self, expression, *, base: Mapping | None = None) -> sp.Expr:
        """A quantity of coordinates and velocities, in coordinates and :attr:`momenta`.

        Parameters
        ----------
        expression : SymPy expression
            It may contain the velocities of the dependent coordinates.
        base : dict, optional
            As for :meth:`lagrangian`.

        Returns
        -------
        SymPy expression
            For numbers from arrays use ``sympy.lambdify``.
        """
        free = {x.diff(self._jets.t): phi for x, phi in zip(self.dependent, self._phi, strict=True)}
        plain = self._jets.of_velocities("expression", expression, free)
        put = dict(zip(self._jets.v, self._legendre(base)[1], strict=True))
        return self._jets.dynamic(sp.simplify(plain.xreplace(put)))

    def as_ufl(
        self, expression, q: Expr, p: Expr, /, *, base: Mapping | None = None, **parameters
    ) -> Expr:
        """A quantity of coordinates and velocities as UFL, for monitors and output.

        Parameters
        ----------
        expression, base
            As for :meth:`canonical`.
        q, p : UFL expression
            Independent coordinates and momenta.
        **parameters
            As for :meth:`hamiltonian_system`.
        """
        plain = self._jets.plain("expression", self.canonical(expression, base=base))
        return self._as_ufl(plain, q, p, parameters)

    def _as_ufl(self, expression: sp.Expr, q: Expr, p: Expr, parameters: Mapping) -> Expr:
        vectors = components_of({"q": (self._jets.q, q), "p": (self.momenta, p)})
        constants = constants_of(parameters, self.parameters)
        if expression.has(self._jets.t):
            raise ValueError("H' or the expression depends on time, which is not supported")
        return as_ufl(expression, vectors | constants)
