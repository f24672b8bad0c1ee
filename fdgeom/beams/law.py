"""Constitutive laws of sections: elastic energy, stress and tangent as functions of the strain."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import ufl
from firedrake import Constant
from ufl.algorithms import expand_derivatives, replace
from ufl.core.expr import Expr

from fdgeom.mean_slope import mean_slope_of


class SectionLaw(ABC):
    """Elastic energy of a section per length: a function ψ(ε) of the elastic strain.

    Derive your own law with :meth:`energy`, in UFL. It may read Constants and Functions on the
    beam's mesh (which may change between steps), the mesh coordinate, and the stiffness of the
    section. At ε = 0, the shape at rest, the stress must be zero and the energy least. Use the
    beam's ``reference_strain`` for another shape at rest.

    The strain ε has six components in the section's axes, rotation first: curvatures and twist,
    then shears and stretch, minus those of the shape at rest. Functions of ε alone are invariant
    under rigid motions of the beam.

    Examples
    --------
    A section that stiffens with its stretch along the axis 0, ψ = ½ ε·Kε + ¼ c ε₃⁴:

    >>> class Stiffening(fg.SectionLaw):
    ...     def __init__(self, c):
    ...         self.c = Constant(c)
    ...
    ...     def energy(self, strain, stiffness):
    ...         return 0.5*dot(strain, stiffness*strain) + 0.25*self.c*strain[3]**4
    >>> beam = fg.Beam(mesh, section, law=Stiffening(1e5))  # doctest: +SKIP
    """

    @abstractmethod
    def energy(self, strain: Expr, stiffness: Expr) -> Expr:
        """ψ, a scalar.

        Parameters
        ----------
        strain : UFL expression of 6
            ε.
        stiffness : UFL expression, 6×6
            K, the stiffness of the section there.
        """

    def stress(self, strain: Expr, stiffness: Expr) -> Expr:
        """ψ' (6): moment and force of the section; the derivative of the energy if not given."""
        return _derivative(lambda e: self.energy(e, stiffness), strain)

    def tangent(self, strain: Expr, stiffness: Expr) -> Expr:
        """ψ'' (6×6); the derivative of the stress if not given."""
        return _derivative(lambda e: self.stress(e, stiffness), strain)

    def mean_stress(self, old: Expr, new: Expr, stiffness: Expr) -> Expr:
        """σ̄ with σ̄·(ε¹ - ε⁰) = ψ(ε¹) - ψ(ε⁰) to round-off: the `MeanSlope` from ε⁰ to ε¹."""
        step = new - old
        rule = mean_slope_of(lambda e: self.energy(e, stiffness), 6)
        stresses = [self.stress(old + c * step, stiffness) for c in rule.nodes]
        mean = rule.mean(stresses)
        if rule.exact:
            return mean
        ends = (self.energy(strain, stiffness) for strain in (old, new))
        slopes = [ufl.dot(stress, step) for stress in stresses]
        return mean + rule.correction(*ends, slopes, ufl.dot(step, step), ufl.dot(new, new)) * step


class LinearLaw(SectionLaw):
    """ψ = ½ ε·Kε, with the stiffness K of the section."""

    def energy(self, strain: Expr, stiffness: Expr) -> Expr:
        return 0.5 * ufl.dot(strain, ufl.dot(stiffness, strain))

    def stress(self, strain: Expr, stiffness: Expr) -> Expr:
        return ufl.dot(stiffness, strain)

    def tangent(self, strain: Expr, stiffness: Expr) -> Expr:
        return stiffness

    def mean_stress(self, old: Expr, new: Expr, stiffness: Expr) -> Expr:
        return ufl.dot(stiffness, 0.5 * (old + new))


#: The law of a beam that is given none.
LINEAR = LinearLaw()


class MadeOfLaws(SectionLaw):
    """A law whose functions combine those of other laws, all in the same way."""

    def energy(self, strain: Expr, stiffness: Expr) -> Expr:
        return self._made("energy", strain, stiffness)

    def stress(self, strain: Expr, stiffness: Expr) -> Expr:
        return self._made("stress", strain, stiffness)

    def tangent(self, strain: Expr, stiffness: Expr) -> Expr:
        return self._made("tangent", strain, stiffness)

    def mean_stress(self, old: Expr, new: Expr, stiffness: Expr) -> Expr:
        return self._made("mean_stress", old, new, stiffness)

    @abstractmethod
    def _made(self, name: str, *arguments: Expr) -> Expr:
        """The function of that name, of strains and the stiffness."""


class TranslatedLaw(MadeOfLaws):
    """A law with its own Functions and coordinates replaced by those of another mesh."""

    def __init__(self, law: SectionLaw, meanings: dict[Expr, Expr]) -> None:
        self._law, self.meanings = law, meanings

    def _made(self, name: str, *arguments: Expr) -> Expr:
        # By symbols, so that nothing is replaced in the arguments.
        symbols = [ufl.variable(_zeros(a.ufl_shape)) for a in arguments]
        found = expand_derivatives(getattr(self._law, name)(*symbols))
        return replace(replace(found, self.meanings), dict(zip(symbols, arguments, strict=True)))


class LawOfParts(MadeOfLaws):
    """Several laws, each in the cells of its own part; elsewhere, as in joints, the first at rest."""

    def __init__(self, parts) -> None:
        self._parts = tuple(parts)

    def _made(self, name: str, *arguments: Expr) -> Expr:
        *strains, stiffness = arguments
        terms = []
        for mask, law in self._parts:
            # At rest elsewhere: a law need not be defined for what strain there is in a joint.
            own = [ufl.conditional(ufl.gt(mask, 0.5), e, ufl.zero(6)) for e in strains]
            terms.append(getattr(law, name)(*own, stiffness))
        others = [mask for mask, _ in self._parts[1:]]
        first = 1 - sum(others[1:], others[0]) if others else ufl.as_ufl(1.0)
        return sum((m * t for m, t in zip(others, terms[1:], strict=True)), first * terms[0])


def _derivative(function: Callable[[Expr], Expr], at: Expr) -> Expr:
    """The derivative of a function of a vector."""
    e = ufl.variable(_zeros(at.ufl_shape))
    return replace(expand_derivatives(ufl.diff(function(e), e)), {e: at})


def _zeros(shape: tuple[int, ...]) -> Expr:
    if len(shape) == 1:
        return Constant([0.0] * shape[0])
    return Constant([[0.0] * shape[1] for _ in range(shape[0])])
