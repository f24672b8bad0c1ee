"""On two ranks the integrators on the group do what they do on one."""

import os
import subprocess
import sys

import numpy as np
import pytest
from verification import parallel_rods


@pytest.mark.parallel
def test_same_as_serial(tmp_path, request):
    serial = parallel_rods.everything()
    file = tmp_path / "results.npz"
    root = str(request.config.rootpath)
    path = os.pathsep.join([root, root + "/tests", os.environ.get("PYTHONPATH", "")])
    command = ["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    done = subprocess.run(
        [*command, sys.executable, parallel_rods.__file__, str(file)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    results = np.load(file)
    assert set(results.files) == set(serial)
    for name, expected in serial.items():
        # Sums and factorisations in another order, and twenty steps of round-off.
        assert results[name] == pytest.approx(expected, rel=1e-10, abs=1e-10), name
    assert len(serial["failures"]) == 2
