"""Does a step with -dt undo a step with dt, exactly where it is claimed?"""

import numpy as np
import pytest
from claims import CLAIMS, make
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.small_systems import nonseparable

import fdgeom as fg

DT = 0.02


def values(system):
    return [np.array(f.dat.data_ro) for f in system.functions().values()]


def defect(stepper):
    """Largest change of any field over a step forth and back, the configuration included."""
    system = stepper.system
    system.consistency.prepare()
    start = values(system)
    stepper.advance()
    moved = max(np.abs(a - b).max() for a, b in zip(values(system), start, strict=True))
    stepper.clock = stepper.clock.with_dt(-stepper.dt)  # which the public attribute refuses
    stepper.advance()
    back = max(np.abs(a - b).max() for a, b in zip(values(system), start, strict=True))
    assert moved > 0.5 * abs(stepper.dt)
    return back


@pytest.mark.parametrize("name", CLAIMS)
def test_small_system(name, recorded):
    claim = CLAIMS[name]
    back = defect(make(claim, nonseparable(), 0.1))
    # The solves go to round-off; without symmetry the defect is of the order of dt².
    assert back < 1e-13 if claim.symmetric else back > 1e-4
    recorded.defect(
        name, "symmetric", "a small system of three variables", claimed=claim.symmetric,
        measured=back, bound=1e-13 if claim.symmetric else 1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("name", [n for n in CLAIMS if n != "Splitting"])
def test_beam(name, compiled):
    claim = CLAIMS[name]
    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT))
    back = defect(claim.stepper(beam, DT, compiled=compiled))
    assert back < 1e-13 if claim.symmetric else back > 1e-5


def test_only_the_mean_configuration_is_symmetric():
    beam = fg.Beam(uneven_mesh(8), SOFT)
    for configuration, symmetric in (("old", False), ("new", False), ("mean", True)):
        stepper = fg.SymmetricPoissonIntegrator(set_smooth(beam), DT, configuration=configuration)
        assert bool(defect(stepper) < 1e-13) is symmetric
        # As the stepper says.
        assert (stepper.symmetric, stepper.order) == (symmetric, 2 if symmetric else 1)
