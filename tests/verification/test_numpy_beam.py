"""The Poisson and the Hamel field integrator against an independent NumPy program."""

import numpy as np
import pytest
from firedrake import Constant, SpatialCoordinate, as_matrix
from verification.beams import (
    INERTIA,
    SOFT,
    STIFFNESS,
    along,
    arc,
    order,
    set_smooth,
    uneven_mesh,
)
from verification.numpy_beam import NumpyBeam, rotation

import fdgeom as fg

STEPPERS = {"poisson": fg.PoissonIntegrator, "hamel": fg.HamelFieldIntegrator}
CELLS, STEPS, DT = 12, 50, 5e-3


def twin(beam, stiffness=STIFFNESS, inertia=INERTIA, **options):
    plain = NumpyBeam(arc(beam.momentum), stiffness, inertia, 0, beam.end_weight, **options)
    plain.strain, plain.momentum = along(beam.strain), along(beam.momentum)
    plain.reconstruct()
    return plain


def compare(beam, plain, tolerance=1e-10):
    """Both programs solve to round-off: fifty steps leave many digits to the tolerance."""
    for name, expected in (
        ("strain", plain.strain),
        ("momentum", plain.momentum),
        ("position", plain.pose[:, :3, 3]),
    ):
        got = along(getattr(beam, name))
        assert np.abs(got - expected).max() < tolerance * np.abs(expected).max(), name
    assert rotation(along(beam.orientation)) == pytest.approx(plain.pose[:, :3, :3], abs=tolerance)
    assert beam.kinetic_energy() == pytest.approx(plain.kinetic_energy(), rel=tolerance)
    assert beam.potential_energy() == pytest.approx(plain.potential_energy(), rel=tolerance)
    assert beam.linear_momentum() == pytest.approx(plain.linear_momentum(), abs=tolerance)
    assert beam.angular_momentum() == pytest.approx(plain.angular_momentum(), abs=tolerance)


@pytest.mark.parametrize(
    ("method", "end_weight", "configuration", "path"),
    [
        ("poisson", 0.5, "old", "compiled"),
        ("poisson", 0.5, "old", "compiled, step by step"),
        ("poisson", 0.5, "old", "snes"),
        ("poisson", 0.5, "new", "compiled"),
        ("poisson", 1.0, "mean", "compiled"),
        ("poisson", 1.0, "mean", "snes"),
        ("hamel", 0.5, "mean", "compiled, step by step"),
        ("hamel", 0.5, "mean", "snes"),
        ("hamel", 1.0, "old", "compiled"),
    ],
)
def test_fifty_steps(method, end_weight, configuration, path):
    beam = set_smooth(fg.Beam(uneven_mesh(CELLS), SOFT, end_weight=end_weight))
    plain = twin(beam)
    start = along(beam.momentum)
    stepper = STEPPERS[method](
        beam, DT, configuration=configuration, compiled=path.startswith("compiled")
    )
    # Many steps at once and single steps go through different memory layouts.
    for steps in [1] * STEPS if path.endswith("step by step") else [STEPS]:
        stepper.advance(steps)
    for _ in range(STEPS):
        plain.step(DT, method, configuration)
    # The comparison means something: the state has changed by its own size.
    assert np.abs(along(beam.momentum) - start).max() > 0.3
    compare(beam, plain)


def test_default_configuration_is_the_papers():
    """g¹ = g⁰ cay(Δt D₁⁻¹μ⁰), (55)."""
    beam = fg.Beam(uneven_mesh(CELLS), SOFT)
    for method, chosen in (
        (fg.PoissonIntegrator, "old"),
        (fg.HamelFieldIntegrator, "old"),
        (fg.SymmetricPoissonIntegrator, "mean"),
    ):
        assert method(beam, DT).configuration == chosen


@pytest.mark.parametrize("compiled", [True, False])
def test_tapered_and_clamped_beam(compiled):
    """Matrices that vary along the beam are sampled at the cell's middle and at the nodes."""
    mesh = uneven_mesh(CELLS)
    (s,) = SpatialCoordinate(mesh)
    taper = lambda s: 1 - 0.4 * s + 0.1 * s**2  # noqa: E731
    section = fg.Section(
        taper(s) ** 2 * Constant(STIFFNESS), taper(s) * as_matrix(INERTIA.tolist())
    )
    beam = set_smooth(fg.Beam(mesh, section, left="clamped"))
    momentum = beam.momentum.dat.data_wo
    first = order(beam.momentum)[0]
    momentum[first] = 0.0
    nodes = arc(beam.momentum)
    middles = arc(beam.strain)
    plain = twin(
        beam,
        taper(middles)[:, None, None] ** 2 * STIFFNESS,
        taper(nodes)[:, None, None] * INERTIA,
        held_left=range(6),
    )
    fg.PoissonIntegrator(beam, DT, compiled=compiled).advance(STEPS)
    for _ in range(STEPS):
        plain.step(DT)
    compare(beam, plain)
    assert np.array_equal(along(beam.position)[0], [0, 0, 0])
