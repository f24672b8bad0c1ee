"""Monitors against integrals worked out by hand."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    TestFunction,
    UnitIntervalMesh,
    dx,
)
from recording_fakes import Oscillators, Rod

from fdgeom.recording import Casimir, Energy, Functional, Momentum, Probe


def sample(monitor, system):
    monitor.bind(system)
    return monitor.sample()


def test_energy_parts_and_total():
    system = Oscillators(cells=3)
    system.p.assign(Constant(2.0))
    values = sample(Energy(), system)
    # q = 1.5, 2.5, 3.5 and p = 2 in three cells of unit length
    assert values["potential_energy"] == pytest.approx(10.375, rel=1e-15)
    assert values["kinetic_energy"] == pytest.approx(6.0, rel=1e-15)
    assert values["energy"] == pytest.approx(16.375, rel=1e-15)


def test_momenta_are_vectors_and_follow_the_state():
    rod = Rod(cells=4)
    monitor = Momentum()
    monitor.bind(rod)
    rod.momentum.assign(0)
    rod.momentum.dat.data[:] = [1, 2, 3, 4, 5, 6]
    values = monitor.sample()
    # Constant fields on a rod of length 2; sums of four cells
    assert np.allclose(values["linear_momentum"], [8, 10, 12], rtol=1e-15)
    assert np.allclose(values["angular_momentum"], [2, 4, 6], rtol=1e-15)


def test_casimirs_of_the_system_and_of_ones_own():
    rod = Rod(cells=4)
    assert sample(Casimir(), rod).keys() == {"length", "twist"}
    # strain[0] = s at the midpoints: the integral over (0, 2) is exact, 2
    assert sample(Casimir("twist"), rod) == {"twist": pytest.approx(2.0, rel=1e-14)}
    assert sample(Casimir("mine", 3 * rod.strain[0] * dx), rod) == {
        "mine": pytest.approx(6.0, rel=1e-14)
    }


def test_functionals_of_numbers_and_vectors():
    system = Oscillators(cells=3)
    assert sample(Functional("mass", system.q * dx), system) == {"mass": pytest.approx(7.5)}
    two = sample(Functional("two", [system.q * dx, 0]), system)["two"]
    assert np.allclose(two, [7.5, 0.0], rtol=1e-15)


def test_probe_reads_the_value_at_a_point():
    rod = Rod(cells=4)
    # CG1 through s² at s = 0, 0.5: half-way 0.125; both ends are mesh points too
    assert sample(Probe("y", rod.position, 0.25), rod)["y"][1] == pytest.approx(0.0125, rel=1e-12)
    assert sample(Probe("tip", rod.position, 2.0), rod)["tip"] == pytest.approx(
        [2.0, 0.4, np.sin(2.0)], rel=1e-12
    )
    # The second one within half a cell.
    for outside in (3.0, 2.1, -1e-6):
        with pytest.raises(ValueError, match=r"Probe\('out'\): it is outside the mesh"):
            Probe("out", rod.position, outside).bind(rod)


def test_what_is_missing_is_named():
    system = Oscillators()
    with pytest.raises(TypeError, match=r"Momentum\(\).*momenta\(\).*Oscillators"):
        Momentum().bind(system)
    with pytest.raises(TypeError, match="Casimir"):
        Casimir().bind(system)
    with pytest.raises(TypeError, match="length, twist"):
        Casimir("mass").bind(Rod())


def test_only_zero_forms_are_functionals():
    system = Oscillators()
    space = FunctionSpace(system.mesh, "DG", 0)
    for wrong in (system.q * TestFunction(space) * dx, system.q, Function(space), "q"):
        with pytest.raises(TypeError, match="'a' must be a 0-form"):
            Functional("a", wrong)


@pytest.mark.parametrize("number", [0.0, 3, np.float64(1.5)])
def test_a_number_is_no_monitor(number):
    """It would be the same in all samples."""
    with pytest.raises(TypeError, match=r"'a' must be a 0-form.* \(which would stay as it is\)"):
        Functional("a", number)


def test_probe_of_a_derivative():
    """The slope of x² through its values at 0.25 and 0.5 is 0.75 between them."""
    mesh = UnitIntervalMesh(4)
    u = Function(FunctionSpace(mesh, "CG", 1)).interpolate(SpatialCoordinate(mesh)[0] ** 2)
    system = Oscillators()
    assert sample(Probe("slope", u.dx(0), 0.3), system)["slope"] == pytest.approx(0.75, rel=1e-12)
