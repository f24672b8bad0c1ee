"""Gradients of steps on pyadjoint's tape and without it, against differences of runs without a tape."""

import numpy as np
import pytest
from derivable import CASES, Run, directions, holding
from firedrake import assemble
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    pause_annotation,
    taylor_test,
)
from pyadjoint import get_working_tape

import fdgeom as fg

#: Two blocks on the tape.
PIECES = (3, 2)


def replayed_state(run):
    """What the last steps on the tape have given, when they were last taken."""
    blocks = [b for b in get_working_tape().get_blocks() if "steps of" in str(b)]
    assert len(blocks) == len(PIECES)
    given = {}
    for variable in blocks[-1].get_outputs():
        pairs = zip(variable.output.subfunctions, variable.saved_output.subfunctions, strict=True)
        given |= {id(part.dat): np.array(kept.dat.data_ro) for part, kept in pairs}
    return {name: given[id(f.dat)] for name, f in run.functions.items()}


@pytest.mark.parametrize("name", CASES)
def test_gradient(name, rng):
    """On the tape: the run, replayed to the last bit, and its derivatives; the same without a tape."""
    dt, make, names = CASES[name]
    run = Run(make(dt), names)
    stepper, controls = run.stepper, run.controls
    starts = [np.array(f.dat.data_ro) for f in controls]
    moved = directions(controls, rng)
    # Of a run without a tape; its own error is about 1e-10.
    expected = run.difference(moved, PIECES, 1e-3)
    plain = run.value(starts, PIECES)
    elsewhere = [x + 0.01 * d for x, d in zip(starts, moved, strict=True)]
    plain_elsewhere = run.value(elsewhere, PIECES)

    run.again()
    given = [holding(f, x) for f, x in zip(controls, starts, strict=True)]
    continue_annotation()
    for f, x in zip(controls, given, strict=True):
        f.assign(x)
    for steps in PIECES:
        stepper.advance(steps)
    value = assemble(run.objective)
    pause_annotation()
    reduced = ReducedFunctional(value, [Control(x) for x in given])
    assert value == plain
    here = {n: np.array(f.dat.data_ro) for n, f in run.functions.items()}
    there = reduced([holding(x, y) for x, y in zip(given, elsewhere, strict=True)])
    # pyadjoint assembles with Functions of its own, and may add the terms in another order.
    assert there == pytest.approx(plain_elsewhere, rel=1e-14)
    assert reduced(given) == pytest.approx(plain, rel=1e-14)
    for n, replayed in replayed_state(run).items():
        # The replay is the run, to the last bit, and leaves what is there as it is.
        assert np.array_equal(replayed, here[n]), n
        assert np.array_equal(run.functions[n].dat.data_ro, here[n]), n

    gradient = reduced.derivative()
    along = sum((g.dat.data_ro * d).sum() for g, d in zip(gradient, moved, strict=True))
    scale = sum(abs(g.dat.data_ro * d).sum() for g, d in zip(gradient, moved, strict=True))
    assert along == pytest.approx(expected, abs=1e-7 * scale)
    h = [holding(f, d) for f, d in zip(controls, moved, strict=True)]
    tangent = reduced.tlm(h)
    assert tangent == pytest.approx(along, abs=1e-12 * scale)
    small = [holding(f, 0.1 * d) for f, d in zip(controls, moved, strict=True)]
    assert taylor_test(reduced, given, small) > 1.95

    run.again()
    for f, x in zip(controls, starts, strict=True):
        f.dat.data_wo[...] = x
    number, found = fg.gradient(stepper, sum(PIECES), run.objective, controls)
    assert number == pytest.approx(value, rel=1e-14)
    for one, other in zip(found, gradient, strict=True):
        size = np.abs(other.dat.data_ro).max()
        # The block's boundary is the only difference.
        assert np.abs(one.dat.data_ro - other.dat.data_ro).max() <= 1e-13 * size
    # It stands where it stood.
    for f, x in zip(controls, starts, strict=True):
        assert np.array_equal(f.dat.data_ro, x)
