"""Options given where users give them: on the command line of a script."""

import os
import subprocess
import sys
import textwrap

SCRIPT = """
    from verification.beams import SOFT, set_smooth, uneven_mesh
    import fdgeom as fg

    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT))
    stepper = fg.PoissonIntegrator(
        beam, 0.01, options_prefix="beam", solver_parameters={"snes_max_it": 11}
    )
    stepper.advance(2)
    print("compiled", stepper.is_compiled)
    print("iterations", stepper.solver_stats()["newton_iterations"])
"""


def run(tmp_path, request, *options):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    folder = str(request.config.rootpath)
    path = os.pathsep.join([folder, folder + "/tests", os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, script, *options],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_monitor_view_and_precedence(tmp_path, request):
    out = run(
        tmp_path,
        request,
        "-beam_momentum_snes_monitor",
        "-beam_strain_snes_view",
        "-beam_snes_rtol",
        "1e-9",
        "-beam_momentum_snes_max_it",
        "13",
    )
    # Monitored: two solves of the momentum, each from iteration 0, and none of the strain.
    assert out.count("0 SNES Function norm") == 2
    assert out.count("SNES Object: (beam_strain_)") == 2
    assert "SNES Object: (beam_momentum_)" not in out
    assert "relative=1e-09" in out
    assert "maximum iterations=11" in out
    assert "compiled False" in out
    # The monitor shows the norms falling, and the count is that of the lines.
    lines = [line for line in out.splitlines() if "SNES Function norm" in line]
    momentum = len(lines) - 2
    assert f"iterations {momentum + 2}" in out
    norms = [float(line.split()[-1]) for line in lines]
    assert norms[1] < 1e-2 * norms[0]
