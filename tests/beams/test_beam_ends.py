"""Beams held at their ends, and beams that are curved at rest."""

import numpy as np
import pytest
from firedrake import Constant, PeriodicIntervalMesh, SpatialCoordinate, as_vector, cos, sin
from verification.beams import (
    INERTIA,
    SOFT,
    STIFFNESS,
    along,
    arc,
    order,
    set_random,
    set_smooth,
    uneven_mesh,
)
from verification.numpy_beam import NumpyBeam

import fdgeom as fg

CELLS, DT = 12, 5e-3
HELD = {"clamped": [0, 1, 2, 3, 4, 5], "pinned": [3, 4, 5]}
END = {"left": 0, "right": -1}


def held_beam(start_at_rest=(), **ends):
    """A smooth start in which the nodes ``start_at_rest`` have no velocity."""
    beam = set_smooth(fg.Beam(uneven_mesh(CELLS), SOFT, **ends))
    momentum = beam.momentum.dat.data_wo
    for end in start_at_rest:
        momentum[order(beam.momentum)[END[end]]] = 0.0
    return beam


@pytest.mark.parametrize(
    "cls", [fg.PoissonIntegrator, fg.SymmetricPoissonIntegrator, fg.ImplicitMidpoint]
)
@pytest.mark.parametrize(("end", "kind"), [("left", "clamped"), ("right", "pinned")])
def test_held_node_does_not_move(cls, end, kind):
    beam = held_beam([end], **{end: kind})
    start = along(beam.position)[END[end]], along(beam.orientation)[END[end]]
    stepper = cls(beam, DT)
    energy, band = beam.energy(), 0.0
    for _ in range(20):
        stepper.advance(10)
        band = max(band, abs(beam.energy() - energy) / energy)
        # Round-off of one product with the inertia.
        assert np.abs(along(beam.velocity)[END[end], HELD[kind]]).max() < 1e-15
        assert np.abs(along(beam.position)[END[end]] - start[0]).max() < 1e-14
    turned = np.abs(along(beam.orientation)[END[end]] - start[1]).max()
    if kind == "clamped":
        assert turned == 0.0
    else:
        assert turned > 0.05
    # A held end does no work: kept by the midpoint rule, bounded for the others.
    assert band < (1e-12 if cls is fg.ImplicitMidpoint else 0.1)


@pytest.mark.parametrize("compiled", [True, False])
def test_pinned_against_numpy(compiled):
    beam = held_beam(["left"], left="pinned")
    plain = NumpyBeam(arc(beam.momentum), STIFFNESS, INERTIA, held_left=HELD["pinned"])
    plain.strain, plain.momentum = along(beam.strain), along(beam.momentum)
    plain.reconstruct()
    fg.PoissonIntegrator(beam, DT, compiled=compiled).advance(50)
    for _ in range(50):
        plain.step(DT)
    # Both solve to round-off.
    assert along(beam.momentum) == pytest.approx(plain.momentum, abs=1e-11)
    assert along(beam.strain) == pytest.approx(plain.strain, abs=1e-11)
    assert along(beam.position) == pytest.approx(plain.pose[:, :3, 3], abs=1e-11)


@pytest.mark.parametrize(
    ("cls", "method"), [(fg.PoissonIntegrator, "poisson"), (fg.HamelFieldIntegrator, "hamel")]
)
def test_prescribed_motion_against_numpy(cls, method):
    """The new velocity is the one prescribed for the new time, whatever the unknown of a stage is."""

    def motion(t, sin=sin, cos=cos):
        return [0.3 * sin(2 * t), 0.1 * t, 0.2 * t, t**2, 0.2 * (cos(t) - 1), 0.4 * sin(t)]

    beam = held_beam(["left"], left=lambda t: as_vector(motion(t)))
    plain = NumpyBeam(arc(beam.momentum), STIFFNESS, INERTIA, held_left=HELD["clamped"])
    plain.strain, plain.momentum = along(beam.strain), along(beam.momentum)
    plain.reconstruct()
    stepper = cls(beam, 0.01)
    assert stepper.is_compiled
    for k in range(50):
        stepper.advance()
        plain.given_left = np.array(motion(0.01 * (k + 1), np.sin, np.cos))
        plain.step(0.01, method)
        assert along(beam.velocity)[0] == pytest.approx(plain.given_left, abs=1e-15)
    assert along(beam.momentum) == pytest.approx(plain.momentum, abs=1e-11)
    assert along(beam.position) == pytest.approx(plain.pose[:, :3, 3], abs=1e-11)


def test_prescribed_motion_in_compositions():
    """Substeps forwards and backwards: the time of the motion goes with them, and ends right."""
    beam = held_beam(["left"], left=lambda t: as_vector([0, 0, sin(t), 0, t, 0]))
    stepper = fg.Composition(fg.SymmetricPoissonIntegrator)(beam, 0.01)
    stepper.advance(7)
    expected = [0, 0, np.sin(0.07), 0, 0.07, 0]
    assert along(beam.velocity)[0] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("degree", [1, 2])
def test_curved_at_rest_stays_at_rest(degree):
    def shape(s, sin=sin, cos=cos):
        return [0.5 * cos(s), 0.3 + s, 1.0, 0.1 * sin(s), -0.1, 0.2 * s]

    mesh = uneven_mesh(6)
    (s,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, SOFT, degree=degree, reference_strain=as_vector(shape(s)))
    beam.strain.interpolate(as_vector(shape(s)))
    beam.reconstruct()
    position = along(beam.position)
    assert beam.energy() == 0.0
    fg.SymmetricPoissonIntegrator(beam, 0.005).advance(100)
    assert np.abs(along(beam.momentum)).max() == 0.0
    assert np.array_equal(along(beam.position), position)
    # Straight, it is strained: ½ ∫ γ₀·D₂γ₀, here by the Gauss points of each cell.
    beam.strain.assign(0.0)
    points = arc(beam.strain)
    lengths = np.diff(arc(beam.momentum)[::degree])
    weights = (lengths[:, None] * np.polynomial.legendre.leggauss(degree)[1] / 2).ravel()
    one = np.ones_like(points)
    gamma = np.array([x * one for x in shape(points, np.sin, np.cos)]).T
    expected = 0.5 * weights @ np.einsum("ni,ij,nj->n", gamma, STIFFNESS, gamma)
    assert beam.potential_energy() == pytest.approx(expected, rel=1e-13)


def test_start_that_contradicts_an_end():
    beam = set_smooth(fg.Beam(uneven_mesh(CELLS), SOFT, right="clamped"))
    with pytest.raises(ValueError, match=r"^momentum: the right end is clamped, but the start"):
        fg.PoissonIntegrator(beam, DT)
    beam = held_beam(["left"], left=lambda t: as_vector([0, 0, cos(t), 0, 0, 0]))
    with pytest.raises(ValueError, match=r"^momentum: the left end is prescribed, but the start"):
        fg.PoissonIntegrator(beam, DT)


def infinite():
    """Written so that no infinite number stands in the generated code."""
    zero = Constant(0.0)
    return as_vector([1 / zero, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"left": "fixed"}, ValueError, "left must be one of 'free', 'clamped', 'pinned'"),
        ({"right": None}, ValueError, "right must be one of"),
        ({"left": lambda t: as_vector([t, 0, 0])}, ValueError, "left: velocity(t) must give a vec"),
        ({"right": lambda t: t}, ValueError, "right: velocity(t) must give a vector of 6"),
        ({"left": lambda t: "fast"}, ValueError, "left: velocity(t) must give a UFL vector"),
        ({"section": STIFFNESS}, TypeError, "section must be a fdgeom.Section, not an array"),
        ({"degree": 5}, ValueError, "degree must be one of 1, 2, 3, 4"),
        ({"degree": True}, ValueError, "degree must be one of"),
        ({"end_weight": 0.0}, ValueError, "end_weight must be a positive number"),
        ({"end_weight": "full"}, TypeError, "end_weight must be a number"),
        ({"end_weight": 1.0, "degree": 2}, ValueError, "end_weight needs degree=1"),
        ({"reference_strain": [0.0] * 5}, ValueError, "reference_strain must be a vector of 6"),
        ({"reference_strain": infinite()}, ValueError, "reference_strain must be finite"),
        ({"reference_strain": 1.0}, ValueError, "reference_strain must be a vector"),
        ({"mesh": 10}, TypeError, "mesh must be a Firedrake mesh"),
    ],
)
def test_bad_beam(arguments, error, message):
    given = {"mesh": uneven_mesh(2), "section": SOFT, **arguments}
    with pytest.raises(error) as caught:
        fg.Beam(**given)
    assert str(caught.value).startswith(message)


def test_ring_has_no_ends():
    with pytest.raises(ValueError, match=r"^mesh: a closed mesh has no first node"):
        fg.Beam(PeriodicIntervalMesh(5, 1.0), SOFT, left="clamped")


def test_varying_section_that_is_not_positive():
    mesh = uneven_mesh(4)
    (s,) = SpatialCoordinate(mesh)
    material = {"density": 1.0, "youngs_modulus": 1.0, "poisson_ratio": 0.3}
    section = fg.Section.rectangle(0.3, 0.5 - s, **material)
    with pytest.raises(ValueError, match=r"^section.stiffness must be positive definite"):
        fg.Beam(mesh, section)


def test_state_that_is_not_finite_is_found():
    beam = set_random(fg.Beam(uneven_mesh(3), SOFT))
    beam.strain.dat.data_wo[1, 2] = np.inf
    with pytest.raises(ValueError, match=r"^strain holds values that are not finite"):
        beam.check_start()
