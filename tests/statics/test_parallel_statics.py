"""On two ranks statics and modes are what they are on one."""

import os
import subprocess
import sys

import numpy as np
import pytest
from statics import parallel_statics


@pytest.mark.parallel
def test_same_equilibria_as_serial(tmp_path, request):
    serial = parallel_statics.everything()
    file = tmp_path / "results.npz"
    root = str(request.config.rootpath)
    path = os.pathsep.join([root, root + "/tests", os.environ.get("PYTHONPATH", "")])
    command = ["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    done = subprocess.run(
        [*command, sys.executable, parallel_statics.__file__, str(file)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    results = np.load(file)
    assert set(results.files) == set(serial)
    assert serial["failed"] == 1
    assert np.array_equal(serial["kept"], serial["given"])
    for name, expected in serial.items():
        size = np.abs(expected).max()
        # Another factorisation; the iterations end at 1e-12 of the size, stresses lose EA/EI.
        assert results[name] == pytest.approx(expected, rel=1e-10, abs=1e-10 * size), name
