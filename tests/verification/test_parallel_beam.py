"""On two and three ranks a beam does what it does on one."""

import os
import subprocess
import sys

import numpy as np
import pytest
from verification import parallel_beam


@pytest.fixture(scope="module")
def serial():
    return parallel_beam.everything()


@pytest.mark.parallel
@pytest.mark.parametrize("ranks", [2, 3])
def test_same_as_serial(serial, ranks, tmp_path, request):
    file = tmp_path / "results.npz"
    root = str(request.config.rootpath)
    path = os.pathsep.join([root, root + "/tests", os.environ.get("PYTHONPATH", "")])
    command = ["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
    done = subprocess.run(
        [*command, sys.executable, parallel_beam.__file__, str(file)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    results = np.load(file)
    assert set(results.files) == set(serial)
    for name, expected in serial.items():
        # Sums in another order, and thirty steps of round-off.
        assert results[name] == pytest.approx(expected, rel=1e-12, abs=1e-12), name
    assert list(serial["failures"]) == [0, 0]
