"""Which rigid motions held ends leave, in words: against what is known of each by hand."""

import numpy as np
import pytest
from firedrake import IntervalMesh
from verification.beams import SOFT

import fdgeom as fg
from fdgeom.statics.freedom import free_motion

# A quarter turn about z: the beam lies along y.
ALONG_Y = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))

CASES = {
    "clamped": ({"left": "clamped"}, ""),
    "pinned": ({"left": "pinned"}, "the beam can still turn about its left end"),
    "pinned at the right": ({"right": "pinned"}, "the beam can still turn about its right end"),
    "pinned at both ends": (
        {"left": "pinned", "right": "pinned"},
        "the beam can still turn about the line along (0, 1, 0) through (3, 0, 0)",
    ),
    "on a rail": (
        {"left": fg.Sliding("y", turning=False)},
        "the beam can still move along (0, 1, 0)",
    ),
    "on a rail that turns": (
        {"left": fg.Sliding("y")},
        "the beam can still move as a rigid body in 4 independent ways",
    ),
    "a pin and a rail": (
        {"left": "pinned", "right": fg.Sliding("y")},
        "the beam can still turn about the line along (0, 1, 0) through (3, 0, 0)",
    ),
    "a pin and a fixed rail": ({"left": "pinned", "right": fg.Sliding("y", turning=False)}, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_free_motion(name):
    """Of a beam from (3, 2, 0) to (3, 3, 0)."""
    ends, words = CASES[name]
    beam = fg.Beam(IntervalMesh(4, 1.0), SOFT, **ends)
    beam.reconstruct(position=(3.0, 2.0, 0.0), orientation=ALONG_Y)
    assert free_motion(beam.motion) == words


def test_a_failed_equilibrium_says_what_is_free():
    beam = fg.Beam(
        IntervalMesh(4, 1.0), SOFT, left="pinned", loads=fg.Load(force=(0, 0, 1), at="right")
    )
    with pytest.raises(fg.LoadStepFailed, match="hold that too") as caught:
        fg.StaticEquilibrium(beam).solve()
    assert caught.value.free == "the beam can still turn about its left end"
