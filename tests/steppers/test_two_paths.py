"""Compiled steps and steps through PETSc SNES are the same map."""

import numpy as np
import pytest
from claims import CLAIMS, SMALL, make
from verification.beams import SOFT, order, set_smooth, uneven_mesh
from ways import check_way

import fdgeom as fg

# Both ways solve to round-off; it grows a little in thirty steps.
SAME = {"rtol": 1e-11, "atol": 1e-12}


def values(system):
    return {name: np.array(f.dat.data_ro) for name, f in system.functions().items()}


def put(system, start):
    for name, f in system.functions().items():
        f.dat.data_wo[...] = start[name]


def assert_same(system, one, other, start):
    results = []
    for stepper in (one, other):
        put(system, start)
        for steps in (3, 20, 7):  # a few at once, and many: two memory layouts
            stepper.advance(steps)
        check_way(stepper, stepper is one)
        results.append(values(system))
    for name, expected in results[0].items():
        np.testing.assert_allclose(results[1][name], expected, **SAME, err_msg=name)


@pytest.mark.parametrize("name", CLAIMS)
def test_small_systems(name):
    for build in (SMALL["nonseparable"], SMALL["rigid_body"]):
        built = build()
        one, other = (make(CLAIMS[name], built, 0.05, compiled=c) for c in (None, False))
        assert not other.is_compiled
        assert_same(built[0], one, other, values(built[0]))


def test_many_copies():
    """More copies than a vector register holds, and not a multiple of that."""
    start = np.random.default_rng(3).uniform(0.5, 3.0, (37, 2))
    built = SMALL["lotka_volterra"](start)
    one, other = (make(CLAIMS["DiscreteGradient"], built, 0.05, compiled=c) for c in (True, False))
    assert_same(built[0], one, other, values(built[0]))


P, H, C4 = (
    fg.PoissonIntegrator,
    fg.HamelFieldIntegrator,
    fg.Composition(fg.SymmetricPoissonIntegrator),
)


@pytest.mark.parametrize(
    ("stepper", "degree", "options"),
    [
        (P, 1, {}),
        (P, 1, {"end_weight": 1.0, "right": "clamped"}),
        (P, 2, {"left": "pinned"}),
        (H, 1, {"left": "pinned"}),
        (C4, 1, {"left": "clamped", "right": "pinned"}),
        (C4, 2, {}),
    ],
)
def test_beam(stepper, degree, options):
    beam = set_smooth(fg.Beam(uneven_mesh(9), SOFT, degree=degree, **options))
    nodes = order(beam.momentum)
    for end, node in (("left", nodes[0]), ("right", nodes[-1])):
        if end in options:
            beam.momentum.dat.data_wo[node] = 0.0
    one, other = (stepper(beam, 2e-3, compiled=c) for c in (True, False))
    assert_same(beam, one, other, values(beam))


def test_changes_between_calls():
    """Another dt, and a state changed by hand, reach the compiled steps."""
    beam = fg.Beam(uneven_mesh(9), SOFT)
    results = []
    for compiled in (True, False):
        set_smooth(beam)
        stepper = fg.SymmetricPoissonIntegrator(beam, 4e-3, compiled=compiled)
        for steps in (10, 2):
            stepper.advance(steps)
            stepper.dt *= 0.5
            beam.strain.dat.data_wo[3, 1] += 0.1
            beam.momentum.dat.data_wo[2, 4] -= 0.2
            beam.position.dat.data_wo[...] += 1.0
            stepper.advance(steps)
        check_way(stepper, compiled)
        results.append(values(beam))
    for name, expected in results[0].items():
        np.testing.assert_allclose(results[1][name], expected, **SAME, err_msg=name)
