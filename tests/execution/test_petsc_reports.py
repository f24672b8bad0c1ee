"""PETSc's reports of a script: ``-log_view``, ``-help``, ``-snes_converged_reason``; warned of monitors."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

HEAD = """
    from firedrake import *
    import fdgeom as fg
    from steppers.test_sudden_loads import cantilever

    def beam():
        section = fg.Section.rectangle(
            0.02, 0.01, density=1100, youngs_modulus=1e7, poisson_ratio=0.45)
        loads = fg.Gravity((0, 0, -9.81))
        return fg.Beam(IntervalMesh(4, 1.0), section, left="clamped", loads=loads)
"""


@pytest.fixture
def run(tmp_path, request):
    def run(script, *options):
        file = tmp_path / "script.py"
        file.write_text(textwrap.dedent(HEAD) + textwrap.dedent(script))
        folder = str(request.config.rootpath)
        path = os.pathsep.join([folder, folder + "/tests", os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, file, *options],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return run


def test_log_view_has_stages_and_events(run):
    script = """
        fg.StaticEquilibrium(beam()).solve(steps=3)
        stepper = fg.GeneralizedAlpha(beam(), dt=0.01)
        stepper.run(steps=4, every=2, monitors=[fg.Energy()])
        x = stepper.system.beam.position if hasattr(stepper.system, "beam") else None
        fg.GeneralizedAlpha(beam(), dt=0.01, compiled=False).advance(5)
        moved = beam()
        objective = dot(moved.position, moved.position) * dx
        fg.gradient(fg.GeneralizedAlpha(moved, dt=0.01), 3, objective, [moved.velocity])
    """
    # A run cuts its pieces shorter after a slow one: compiling must not be part of the first.
    run("fg.GeneralizedAlpha(beam(), dt=0.01).advance(1)")
    out, _ = run(script, "-log_view")
    stages = set(re.findall(r"^ *\d+: +(fdgeom: [\w ]+):", out, flags=re.MULTILINE))
    events = dict(re.findall(r"^(fdgeom: [\w ]+?) +(\d+) 1\.0 ", out, flags=re.MULTILINE))
    assert stages == set(events)
    # Samples at the start, in the middle and at the end; an event for each call, not each step.
    assert events == {
        "fdgeom: statics": "3",
        "fdgeom: output": "3",
        "fdgeom: compiled steps": "3",
        "fdgeom: SNES steps": "1",
        "fdgeom: reverse sweep": "1",
    }


def test_help_lists_the_options_of_fdgeom(run):
    script = """
        fg.StaticEquilibrium(beam(), options_prefix="rest")
        fg.PoissonIntegrator(beam(), dt=1e-4, options_prefix="beam")
        fg.PoissonIntegrator(beam(), dt=1e-4)
    """
    out, _ = run(script, "-help", "-beam_snes_rtol", "1e-9")
    for prefix in ("rest", "beam"):
        assert f"  -{prefix}_fdgeom_compiled: <true>" in out
        for name in ("rtol", "atol", "stol", "max_it"):
            assert f"  -{prefix}_snes_{name}: " in out
    assert "  -beam_momentum_, -beam_strain_...: the same, for one of its solves" in out
    assert out.count("fdgeom: options of PoissonIntegrator") == 2
    assert "none from the command line: it has no options_prefix" in out


def test_reasons_are_those_of_accepted_solves(run):
    """The attempts that are repeated, from another guess or for half the load, are not shown."""
    script = """
        stepper = fg.GeneralizedAlpha(
            cantilever(40, "space"), 0.005, scheme=fg.hamel_alpha(0.8), options_prefix="sudden")
        stepper.advance(20)
        statics = fg.StaticEquilibrium(cantilever(40, "space"), options_prefix="rest")
        statics.solve(load=60.0)
        for it in stepper, statics:
            print("solves", it.solver_stats()["solves"])
    """
    out, err = run(script, "-sudden_snes_converged_reason", "-rest_snes_converged_reason")
    assert "did not converge" not in out
    shown = {
        prefix: len(
            re.findall(rf"Nonlinear {prefix}_ solve converged due to CONVERGED_\w+ iterations", out)
        )
        for prefix in ("sudden", "rest")
    }
    solves = [int(number) for number in re.findall(r"solves (\d+)", out)]
    # In each step one of the solves counts.
    assert shown["sudden"] == 20 < solves[0]
    assert 1 < shown["rest"] < solves[1]
    assert err.count("asks for PETSc SNES, which takes longer") == 2


def test_a_failure_that_counts_is_shown_and_a_monitor_warns_once(run):
    script = """
        for k in range(3):
            stepper = fg.GeneralizedAlpha(beam(), 0.01, options_prefix="beam")
        try:
            stepper.advance()
        except fg.StepFailed as error:
            assert "DIVERGED_MAX_IT" in str(error)
        else:
            raise AssertionError
    """
    options = ("-beam_snes_converged_reason", "-beam_snes_max_it", "1")
    out, err = run(script, *options)
    shown = [line.strip() for line in out.splitlines() if "Nonlinear" in line]
    failed = "Nonlinear beam_ solve did not converge due to DIVERGED_MAX_IT iterations 1"
    assert shown[-1] == failed
    assert shown.count(failed) == 1
    assert err.count("the option 'beam_snes_converged_reason' asks for PETSc SNES") == 1


def test_other_formats_of_reasons_are_left_to_petsc(run, tmp_path):
    script = """
        fg.GeneralizedAlpha(beam(), 0.01, options_prefix="beam").advance(2)
    """
    file = tmp_path / "reasons.txt"
    out, _ = run(script, "-beam_snes_converged_reason", f":{file}")
    assert "converged due to" not in out
    assert file.read_text().count("Nonlinear beam_ solve converged due to CONVERGED") >= 2
