"""The law of a beam's section at the quadrature points: its data sampled, and the law checked."""

from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.algorithms import expand_derivatives, extract_arguments, extract_coefficients
from ufl.classes import Expr, SpatialCoordinate, Zero
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.beams.law import LINEAR, SectionLaw, TranslatedLaw
from fdgeom.forms import shaped_space
from fdgeom.messages import format_value, reported_as
from fdgeom.solvers.derived import sampled
from fdgeom.validation import everywhere

_SHAPES = {"energy": (), "stress": (6,), "tangent": (6, 6)}
# Of the stiffness: the round-off of a stress at rest, and of derivatives that agree.
_ROUND_OFF = 1e-10
# Strains at which derivatives that a law gives are compared with those of its energy.
_PROBE = 0.01


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
                f"{part.name()}: else it changes when the beam is moved as a whole"
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
    everywhere(comm, lambda: _check_rest(stress, tangent))
    size = np.abs(tangent).max(initial=0.0)
    strain.dat.data_wo[...] = np.random.default_rng(0).uniform(-_PROBE, _PROBE, (6,))
    for name, given in (("stress", SectionLaw.stress), ("tangent", SectionLaw.tangent)):
        expected = values(given(law, strain, stiffness))
        gap = values(getattr(law, name)(strain, stiffness)) - expected
        allowed = _ROUND_OFF * max(size, np.abs(expected).max(initial=0.0))
        wrong = bool(not np.all(np.abs(gap) <= allowed))
        if comm.allreduce(int(wrong)):
            of = {"stress": "energy", "tangent": "stress"}[name]
            raise ValueError(f"law: its {name} is not the derivative of its {of}; leave it out")


def _check_rest(stress: np.ndarray, tangent: np.ndarray) -> None:
    if not (np.all(np.isfinite(stress)) and np.all(np.isfinite(tangent))):
        raise ValueError(
            "law: stress and tangent at zero strain are not finite (a root or a quotient whose "
            "derivative is not defined there?)"
        )
    size = np.abs(tangent).max(initial=0.0)
    if np.abs(stress).max(initial=0.0) > _ROUND_OFF * size:
        raise ValueError(
            "law: the stress at zero strain must be zero; say the shape at rest by reference_strain"
        )
    if np.linalg.eigvalsh(tangent).min(initial=0.0) < -_ROUND_OFF * size:
        raise ValueError("law: the energy must be least at zero strain")
