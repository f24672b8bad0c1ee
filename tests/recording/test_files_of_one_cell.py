"""A checkpoint of a beam of one cell on two ranks, one of which owns nothing.

As a script: ``test_files_of_one_cell.py FOLDER`` writes and resumes it.
"""

import sys
from pathlib import Path

import pytest
from firedrake import IntervalMesh

import fdgeom as fg


def stepper():
    steel = fg.Section.rectangle(0.02, 0.01, density=1000.0, youngs_modulus=1e7, poisson_ratio=0.3)
    load = fg.Gravity((0, 0, -1.0))
    beam = fg.Beam(IntervalMesh(1, 1.0), steel, left="clamped", loads=load)
    return fg.GeneralizedAlpha(beam, 1e-3)


@pytest.mark.parallel
def test_resumed_on_several_ranks(tmp_path, several):
    from ranks import run_on  # the script on the ranks has no such module

    done = run_on(several, Path(__file__), tmp_path, timeout=300)
    assert not done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    path = Path(sys.argv[1]) / "a.h5"
    first, second = stepper(), stepper()
    first.advance(2)
    fg.save(first, path)
    fg.resume(second, path)
    assert second.t == first.t
    assert second.system.energy() == first.system.energy() != 0.0
