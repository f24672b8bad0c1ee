"""Constitutive laws of sections: energy, stress and tangent, checked and sampled along a beam."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.algorithms import expand_derivatives, extract_arguments, extract_coefficients, replace
from ufl.classes import Expr, SpatialCoordinate, Zero
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.beams.rod.variation import slope
from fdgeom.forms import shaped_space
from fdgeom.mean_slope import mean_slope_of
from fdgeom.messages import Described, format_value, reported_as
from fdgeom.operations.interpolate import sampled
from fdgeom.validation import Fixed, everywhere

_SHAPES = {"energy": (), "stress": (6,), "tangent": (6, 6)}
# Of the stiffness: the round-off of a stress at rest, and of derivatives that agree.
_ROUND_OFF = 1e-10
# Strains at which derivatives that a law gives are compared with those of its energy.
_PROBE = 0.01


class SectionLaw(Described, Fixed, ABC):
    """Elastic energy of a section per length: a function ψ(ε) of the elastic strain.

    Derive your own law with :meth:`energy`, in UFL. It may read Constants and Functions on the
    beam's mesh (which may change between steps), the mesh coordinate, and the stiffness of the
    section. At ε = 0, the shape at rest, the stress must be zero and the energy least, ``ValueError``
    in the beam otherwise. Use the beam's ``reference_strain`` for another shape at rest.

    The strain ε has six components, minus those of the shape at rest: three rotations about the
    section's axes 0, 1, 2, then three translations along them. For ``axis=0``: torsion, bending
    about y, bending about z, stretch, shear along y, shear along z. Functions of ε alone are
    invariant under rigid motions of the beam.

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
        return slope(lambda e: self.energy(e, stiffness), strain)

    def tangent(self, strain: Expr, stiffness: Expr) -> Expr:
        """ψ'' (6×6); the derivative of the stress if not given."""
        return slope(lambda e: self.stress(e, stiffness), strain)

    def mean_stress(self, old: Expr, new: Expr, stiffness: Expr) -> Expr:
        """σ̄ with σ̄·(ε¹ - ε⁰) = ψ(ε¹) - ψ(ε⁰) to round-off: the `MeanSlope` from ε⁰ to ε¹."""
        step = new - old
        rule = mean_slope_of(lambda e: self.energy(e, stiffness), 6)
        stresses = [self.stress(old + c * step, stiffness) for c in rule.nodes]
        mean = rule.mean(stresses)
        if rule.exact:
            return mean
        first, last = self.energy(old, stiffness), self.energy(new, stiffness)
        slopes = [ufl.dot(stress, step) for stress in stresses]
        size, reached = ufl.dot(step, step), ufl.dot(new, new)
        return mean + rule.correction(first, last, slopes, size, reached) * step


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
        symbols = [ufl.variable(Constant(np.zeros(a.ufl_shape))) for a in arguments]
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


def sampled_law(
    law: SectionLaw, stiffness: Expr, mesh, element, state: Sequence[Function]
) -> SectionLaw:
    """A law whose Functions and coordinates are fields of a space, which follow them; checked."""
    if law is LINEAR:
        return law
    if not isinstance(law, SectionLaw):
        raise TypeError(
            "law must be an instance of a subclass of fdgeom.SectionLaw with "
            f"energy(self, strain, stiffness), not {format_value(law)}"
        )
    made = {name: _made(law, name) for name in _SHAPES}
    if isinstance(expand_derivatives(made["stress"]), Zero):
        raise ValueError("law: its energy must depend on the strain")
    used = law_data(law)
    for part in used:
        if part in state:
            raise ValueError(
                f"law: the energy must be a function of the strain, and not of the beam's "
                f"{part}: else it changes when the beam is moved as a whole"
            )
    if any(ufl.domain.extract_unique_domain(part) is not mesh for part in used):
        raise ValueError("law: its Functions and coordinates must be on the mesh of the beam")
    found = law
    if used:
        spaces = {p: shaped_space(p.ufl_shape, mesh, element) for p in used}
        fields = {p: sampled("law", p, space, private=True) for p, space in spaces.items()}
        found = TranslatedLaw(law, fields)
    _check(found, stiffness, mesh, element)
    return found


def law_data(law: SectionLaw) -> list[Function | SpatialCoordinate]:
    """The Functions and coordinates that a law reads."""
    found: dict[Expr, None] = {}
    for name in _SHAPES:
        value = expand_derivatives(_made(law, name))
        found.update(dict.fromkeys(extract_coefficients(value)))
        nodes = unique_pre_traversal(value)
        found.update(dict.fromkeys(e for e in nodes if isinstance(e, SpatialCoordinate)))
    return list(found)


def _made(law: SectionLaw, name: str) -> Expr:
    """The energy, stress or tangent of symbols; ``ValueError`` if it is not valid."""
    strain, stiffness = Constant(np.zeros(6)), Constant(np.zeros((6, 6)))
    with reported_as(f"law: {name}(strain, stiffness) gives no UFL expression"):
        value = ufl.as_ufl(getattr(law, name)(ufl.variable(strain), stiffness))
    if value.ufl_shape != _SHAPES[name]:
        raise ValueError(f"law: the {name} must be of shape {_SHAPES[name]}, not {value.ufl_shape}")
    if extract_arguments(value):
        raise ValueError(f"law: the {name} must hold no test or trial function")
    return value


def _check(law: SectionLaw, stiffness: Expr, mesh, element) -> None:
    """Raise ``ValueError`` unless the energy is least at rest and has this stress and tangent."""
    comm = mesh.comm
    strain = Function(shaped_space((6,), mesh, element))

    def values(expression: Expr) -> np.ndarray:
        field = Function(shaped_space(expression.ufl_shape, mesh, element))
        return np.array(field.interpolate(expression).dat.data_ro)

    stress, tangent = values(law.stress(strain, stiffness)), values(law.tangent(strain, stiffness))
    everywhere(comm, lambda: _check_finite(stress, tangent))
    # Strains are measured in those that make energies alike, so that no unit matters: curvatures by a
    # length of the size of the section.
    roots = np.sqrt(np.abs(np.diagonal(tangent, axis1=1, axis2=2))).reshape(-1, 2, 3)
    turning, moving = np.max(comm.allgather(roots.max(axis=(0, 2), initial=0.0)), axis=0)
    turning, moving = turning or moving or 1.0, moving or turning or 1.0
    scale = np.array([1 / turning] * 3 + [1 / moving] * 3)
    scales = {"stress": scale, "tangent": scale[:, None] * scale}
    everywhere(comm, lambda: _check_rest(stress * scale / moving, tangent * scales["tangent"]))
    probe = np.random.default_rng(0).uniform(-_PROBE, _PROBE, (6,)) * scale * moving
    for name, given in (("stress", SectionLaw.stress), ("tangent", SectionLaw.tangent)):
        if getattr(type(law), name) is given:
            continue
        # Of a law that is defined for small strains only.
        for size in (1.0, 1e-2, 1e-4):
            strain.dat.data_wo[...] = size * probe
            expected = scales[name] * values(given(law, strain, stiffness))
            if not comm.allreduce(int(not np.all(np.isfinite(expected)))):
                break
        else:
            continue
        gap = scales[name] * values(getattr(law, name)(strain, stiffness)) - expected
        least = moving if name == "stress" else 1.0
        allowed = _ROUND_OFF * max(least, np.abs(expected).max(initial=0.0))
        wrong = bool(not np.all(np.abs(gap) <= allowed))
        if comm.allreduce(int(wrong)):
            of = {"stress": "energy", "tangent": "stress"}[name]
            raise ValueError(f"law: its {name} is not the derivative of its {of}; leave it out")


def _check_finite(stress: np.ndarray, tangent: np.ndarray) -> None:
    if not (np.all(np.isfinite(stress)) and np.all(np.isfinite(tangent))):
        raise ValueError(
            "law: stress and tangent at zero strain are not finite; look for a root or a quotient whose "
            "derivative is not defined there"
        )


def _check_rest(stress: np.ndarray, tangent: np.ndarray) -> None:
    # Both in the scales of `_check`: a strain of 1 has a stress of the size of the tangent.
    size = np.abs(tangent).max(initial=0.0)
    if np.abs(stress).max(initial=0.0) > _ROUND_OFF * size:
        raise ValueError(
            "law: the stress at zero strain must be zero; give the shape at rest by reference_strain"
        )
    if np.linalg.eigvalsh(tangent).min(initial=0.0) < -_ROUND_OFF * size:
        raise ValueError("law: the energy must be least at zero strain")
