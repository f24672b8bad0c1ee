"""Canonical Hamiltonian systems."""

from functools import cached_property

from firedrake import Function, derivative, dx, inner, split
from ufl.algorithms import extract_coefficients
from ufl.classes import Form, Measure

from fdgeom.forms import has_kink, is_zero, parts_of, simplify, sorted_by, summands
from fdgeom.systems.poisson.poisson import PoissonSystem
from fdgeom.systems.poisson.stage import Substeps
from fdgeom.systems.system import named_energies
from fdgeom.validation import conjugates


class HamiltonianSubsteps(Substeps):
    """The substeps of a canonical system."""

    def with_energy(self, energy: Form) -> "HamiltonianSystem":
        """The system with the same q, p and pairing and another energy."""
        system = self._system
        return HamiltonianSystem(
            system.q, system.p, energy, measure=system.measure, names=system.names
        )


class HamiltonianSystem(PoissonSystem):
    """A canonical Hamiltonian system: q̇ = δh/δp, ṗ = -δh/δq.

    Parameters
    ----------
    q, p : Function
        Configuration and momentum, of one space: DG0 on :func:`copies` for many small systems, or
        any other space for a field theory.
    energy : UFL functional
        The Hamiltonian h(q, p).
    measure : Measure, optional
        The measure of the pairing ⟨a, b⟩ = ∫ a·b that defines δh/δq and δh/δp, ``dx`` if not given.
        With a quadrature at the nodes (mass lumping) the derivatives are pointwise, and explicit
        methods need no solve.
    names : pair of str, optional
        Names of the parts in output and solver prefixes.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.
    """

    _structure_is_known = True

    def __init__(
        self,
        q: Function,
        p: Function,
        energy: Form,
        *,
        measure: Measure | None = None,
        names: tuple[str, str] = ("q", "p"),
    ) -> None:
        conjugates(q, p, measure)
        self.q, self.p = q, p
        self.measure = measure
        mu = dx if measure is None else measure

        def bracket(a, b):
            (a_q, a_p), (b_q, b_p) = split(a), split(b)
            return (inner(a_q, b_p) - inner(a_p, b_q)) * mu

        def pairing(a, b):
            (a_q, a_p), (b_q, b_p) = split(a), split(b)
            return (inner(a_q, b_q) + inner(a_p, b_p)) * mu

        space = q.function_space()
        state = Function(space * space, name="state")
        super().__init__(state, energy, bracket, pairing, names=names, parts=(q, p))

    def motion(self, test, at=None) -> Form:
        """The form {w, h}(z) = dh(z)[(-w_p, w_q)] of the canonical bracket, without δh/δz.

        Parameters
        ----------
        test : pair of expressions
            w = (w_q, w_p).
        at : pair of expressions, optional
            z = (q, p); the present state if not given.
        """
        w_q, w_p = parts_of(test, self.forms.shapes, "test")
        return self.forms.energy_derivative((-w_p, w_q), at)

    def energies(self) -> dict[str, Form]:
        """The energy, its terms with p (kinetic) and its terms without p (potential)."""
        return named_energies(*sorted_by(self.energy_form(), self.p))

    @cached_property
    def is_separable(self) -> bool:
        """Whether h(q, p) = T(p) + V(q): δ²h/δqδp of the form vanishes term by term."""
        for integral in self.energy_form().integrals():
            for term in summands(integral.integrand()):
                read = extract_coefficients(term)
                if self.q in read and self.p in read and has_kink(term, self.q, self.p):
                    return False
        one, other = Function(self.q.function_space()), Function(self.q.function_space())
        slope = derivative(self.energy_form(), self.q, one)
        return is_zero(simplify(derivative(slope, self.p, other)))

    substeps = cached_property(HamiltonianSubsteps)
