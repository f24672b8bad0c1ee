"""mypy reports wrong arguments in a user's script, from the annotations of the public names."""

import subprocess
import sys
from pathlib import Path

import fdgeom

ROOT = Path(fdgeom.__file__).parents[1]

RIGHT = """
import fdgeom as fg
from firedrake import IntervalMesh

section = fg.Section.circle(0.1, density=1.0, youngs_modulus=1.0, poisson_ratio=0.3)
beam = fg.Beam(IntervalMesh(4, 1.0), section, left="clamped")
stepper = fg.GeneralizedAlpha(beam.motion, 0.1, fg.hamel_alpha(0.8), halvings=1)
history = stepper.run(until=1.0, monitors=[fg.Energy()])
joint = fg.Revolute(fg.ground, beam.left, axis=(0, 0, 1), stiffness=2)
"""

WRONG = (
    'fg.Section.circle(0.1, density="light", youngs_modulus=1.0, poisson_ratio=0.3)',
    "fg.Section.circle(0.1, density=1.0, youngs_modulus=1.0)",
    'fg.Beam(IntervalMesh(4, 1.0), section, degree="two")',
    "fg.Beam(IntervalMesh(4, 1.0), 0.1)",
    "fg.GeneralizedAlpha(beam.motion, 0.1, rho_inf=0.8)",
    "fg.GeneralizedAlpha(beam.motion, 0.1, 0.8)",
    'fg.PoissonIntegrator(beam, "0.1")',
    "fg.PoissonIntegrator(beam, 0.1, solver_parameters=[])",
    "stepper.run(untill=1.0)",
    "stepper.advance(0.5)",
    "history.colour",
    'fg.Revolute(fg.ground, beam.left, axis=(0, 0, 1), stiffness="soft")',
    "fg.NoStepper",
    "beam.reconstruct(turn=1.0)",
    "fg.Section.from_mesh(IntervalMesh(4, 1.0), 7850.0)",
    'fg.Contact(fg.Plane((0, 0, 0), (0, 0, 1)), stiffness="stiff")',
    "fg.Load(force=1.0)",
    "fg.Snapshots(every=0.1)",
    'fg.VibrationModes(beam, number="all")',
)


def test_wrong_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(RIGHT + "\n".join(WRONG) + "\n")
    options = ("--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, script],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    first = RIGHT.count("\n") + 1
    lines = {int(line.split(":")[1]) for line in found.stdout.splitlines() if ": error:" in line}
    assert lines == set(range(first, first + len(WRONG))), found.stdout + found.stderr
