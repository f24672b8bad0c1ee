"""Chaplygin systems: embedded velocity constraints, and canonical equations where they exist."""

from collections.abc import Mapping

import sympy as sp
from firedrake import Function, dx
from ufl.classes import Expr, Measure

from fdgeom.systems.chaplygin.equations import ChaplyginEquations
from fdgeom.systems.chaplygin.inverse import lagrangian_with_forces, legendre_transform
from fdgeom.systems.chaplygin.jets import is_zero
from fdgeom.systems.chaplygin.translate import as_ufl, components_of, constants_of
from fdgeom.systems.poisson.hamiltonian import HamiltonianSystem


class ChaplyginSystem(ChaplyginEquations):
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
        plain = self._jets.plain("expression", expression, free)
        if plain.has(*self._jets.a, *self._jets.j):
            raise ValueError("expression must not contain accelerations")
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
