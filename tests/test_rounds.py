"""Rounds of tests: which tests they have, in which order, and what CI's rounds fail on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rounds import is_long, long_tests, shuffled, unknown

LISTED = ["beams/test_a.py", "lie/test_b.py::test_order", "lie/test_b.py::test_map[SE3-1]"]


def test_a_line_is_a_file_a_test_or_one_of_its_parameters():
    assert is_long("tests/beams/test_a.py::test_any[1]", LISTED)
    assert is_long("tests/lie/test_b.py::test_order[2]", LISTED)
    assert is_long("tests/lie/test_b.py::test_map[SE3-1]", LISTED)
    assert not is_long("tests/lie/test_b.py::test_map[SE3-10]", LISTED)
    assert not is_long("tests/lie/test_b.py::test_orders", LISTED)


def test_what_is_no_test_is_found():
    nodes = ["tests/beams/test_a.py::test_any", "tests/lie/test_b.py::test_order[1]"]
    assert unknown(nodes, LISTED) == ["lie/test_b.py::test_map[SE3-1]"]


def test_no_line_says_what_another_has_said():
    listed = long_tests()
    assert len(set(listed)) == len(listed)
    for line in listed:
        assert not is_long(line, [other for other in listed if other != line]), line


def test_order_of_files():
    """Files stay whole; each text has its order, the same whatever the order of collection."""
    nodes = [f"tests/test_{name}.py::test_{k}" for name in "abcdefgh" for k in range(3)]
    found = {}
    for order in ("0a1b", "0a1c", "77de", "9f00"):
        found[order] = shuffled(nodes, order)
        assert sorted(found[order]) == nodes
        assert [node[-1] for node in found[order]] == list("012" * 8)
        files = [node.partition("::")[0] for node in found[order]]
        assert files[::3] == files[1::3] == files[2::3]
        backwards = [node for k in range(21, -1, -3) for node in nodes[k : k + 3]]
        assert shuffled(backwards, order) == found[order]
    # Eight files have 40320 orders; four texts with one order among them would be a constant.
    assert len({tuple(nodes) for nodes in found.values()}) == 4


# --- the command line, on small files of tests ---------------------------------------------------------
_CONFTEST = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import rounds
rounds._LIST = Path(__file__).with_name("long.txt")
pytest_addoption = rounds.add_options
def pytest_configure(config):
    for name in ("parallel", "always"):
        config.addinivalue_line("markers", name)
    config.pluginmanager.register(rounds.Rounds(config))
"""
_FILE = """
import time
import pytest
@pytest.mark.{marker}
def test_marked(): pass
def test_one(): time.sleep({seconds})
def test_two(): assert {right}
def test_quick(): pass
"""
_MORE = """
@pytest.mark.parametrize("k", range(4))
def test_more(k): pass
"""


@pytest.fixture
def run(tmp_path):
    """``run(*options, seconds=0, wrong=())``: exit code and words of pytest on four files."""

    def started(*options, seconds=0.0, wrong=()):
        tests = str(Path(__file__).parent)
        (tmp_path / "conftest.py").write_text(_CONFTEST.format(tests=tests))
        listed = []
        for name, marker in zip("abcd", ("parallel", "always", "slow", "slow"), strict=True):
            text = _FILE.format(marker=marker, seconds=seconds, right=name not in wrong)
            # xdist would begin with the file of most tests.
            text += _MORE if name == "d" else ""
            (tmp_path / f"test_{name}.py").write_text(text)
            listed += [f"test_{name}.py::test_{k}" for k in ("marked", "one", "two")]
        listed.append("test_d.py::test_more")
        (tmp_path / "long.txt").write_text("\n".join(listed))
        plain = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "OMPI", "PMIX"))
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", "-ra", "-p", "no:cacheprovider", *options],
            cwd=tmp_path,
            env=plain,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    return started


WORKERS = [(), ("-n", "2", "--dist", "loadfile")]


def passed(words):
    """Tests that passed, as pytest counts them; 0 where it counts none."""
    return int((re.findall(r"(\d+) passed", words) or [0])[-1])


@pytest.mark.parametrize("workers", WORKERS, ids=["alone", "workers"])
def test_rounds(run, workers):
    for name, count in {"quick": 4, "long": 16, "always": 2, "rotating": 14}.items():
        code, words = run("--round", name, *workers)
        assert (code, passed(words)) == (0, count), words
    assert "test_a.py::test_marked" not in words
    assert "test_b.py::test_marked" not in words
    assert passed(run(*workers)[1]) == 20


@pytest.mark.parametrize("workers", WORKERS, ids=["alone", "workers"])
def test_what_a_round_fails_on(run, workers):
    rotating = ("--round", "rotating", *workers)
    code, words = run(*rotating, "--least", "14")
    assert (code, passed(words)) == (0, 14), words
    code, words = run(*rotating, "--least", "15")
    assert code == 1
    assert "14 tests passed, at least 15 are wanted" in words
    assert run(*rotating, wrong="c")[0] == 1


@pytest.mark.parametrize("workers", WORKERS, ids=["alone", "workers"])
def test_what_is_not_reached_is_said(run, workers):
    """Each test that begins in time runs; the others are listed by file, and are no skipped ones."""
    options = ("--round", "rotating", "--order", "0a1b", *workers)
    code, words = run(*options, "--minutes", "0.02", "--least", "1", seconds=1.5)
    late = int(re.search(r"(\d+) not reached", words)[1])
    assert passed(words) + late == 14
    assert passed(words) >= 1
    assert late >= 4
    assert code == 0
    listed = re.findall(r"^test_[abcd]\.py: (\d+)$", words, flags=re.MULTILINE)
    assert sum(map(int, listed)) == late
    assert "skipped" not in words
    code, words = run(*options, "--minutes", "0", "--least", "1")
    assert (code, passed(words)) == (1, 0)
    assert "14 not reached" in words


def test_the_order_holds_with_workers(run):
    """Files begin in the order of the text, not with that of most tests, which xdist prefers."""
    for order in ("0a1b", "77de"):
        nodes = [f"test_{name}.py::test_{k}" for name in "abcd" for k in ("one", "two")]
        expected = list(dict.fromkeys(n[:9] for n in shuffled(nodes, order)))
        for workers in ((), ("-n", "1", "--dist", "loadfile")):
            _, words = run("--round", "rotating", "--order", order, *workers)
            ran = re.findall(r"^(?:\[gw.*\] .*PASSED )?(test_[abcd]\.py)::\w+", words, re.MULTILINE)
            ran = [file for file in ran if file]
            assert list(dict.fromkeys(ran)) == expected, words


# --- what the quick round has of each kind -------------------------------------------------------------
_RESTART = "steppers/test_whole_steps.py::test_cut_steps_and_resumed_runs"
_GRADIENT = "adjoint/test_gradients.py::test_gradient"
KINDS = {
    "an assembly in motion, and a run resumed": [
        f"{_RESTART}[EnergyMomentum, joints]",
        f"{_RESTART}[GeneralizedAlpha, joints]",
        f"{_RESTART}[VariationalIntegrator, joints]",
    ],
    "statics and vibrations of an assembly": [
        "statics/test_compiled.py::test_same_equilibria[joined]",
        "statics/test_frames.py::test_rigid_motions_of_free_assemblies[Spherical-9]",
        "statics/test_frames.py::test_a_body_at_the_tip",
    ],
    "compiled steps beside PETSc": [
        "steppers/test_chain_steps.py::test_same_steps[energy-momentum-free]",
        "steppers/test_chain_assemblies.py::test_same_steps[double_pendulum-EnergyMomentum]",
        "steppers/test_variational_joints.py::test_compiled_joints_are_those_of_petsc[pendulum]",
        "statics/test_compiled.py::test_same_equilibria[joined]",
        "steppers/test_rattle.py::test_compiled_and_snes_agree[RATTLE-spherical_pendulum-start1]",
    ],
    "two ranks": [
        "verification/test_parallel_families.py::test_same_as_serial",
        "recording/test_parallel.py::test_tables_and_shapes",
    ],
    "gradients": [
        f"{_GRADIENT}[EnergyMomentum]",
        f"{_GRADIENT}[GeneralizedAlpha]",
        f"{_GRADIENT}[GaussLegendre]",
        f"{_GRADIENT}[NonholonomicMidpoint]",
        f"{_GRADIENT}[PoissonIntegrator]",
        f"{_GRADIENT}[RATTLE]",
        f"{_GRADIENT}[Splitting]",
        f"{_GRADIENT}[StormerVerlet]",
        f"{_GRADIENT}[VariationalIntegrator]",
        "adjoint/test_statics.py::test_equilibrium[cantilever]",
    ],
    "runs resumed": [
        f"{_RESTART}[Composition]",
        f"{_RESTART}[HermiteSimpson]",
        f"{_RESTART}[PoissonIntegrator]",
        f"{_RESTART}[RATTLE]",
        f"{_RESTART}[StormerVerlet]",
    ],
    "README, site, demos, command line": [
        "test_readme.py::test_code",
        "website/test_one_page.py::test_theory_in_a_browser",
        "demos/test_demos.py::test_demo[poisson_beam]",
        "demos/test_demos.py::test_demo[spherical_pendulum]",
        "demos/test_demos.py::test_demo[stiff_springs]",
        "execution/test_command_line.py::test_monitor_view_and_precedence",
    ],
}


def test_the_quick_round_has_each_kind(request):
    """`make test` says what is broken, of whatever kind: these tests exist, and are not in the list."""
    wanted = {f"tests/{node}" for nodes in KINDS.values() for node in nodes}
    top = request.config.rootpath
    files = sorted({node.partition("::")[0] for node in wanted})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "--round", "quick", *files],
        cwd=top,
        env={k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "OMPI", "PMIX"))},
        capture_output=True,
        text=True,
    )
    assert wanted - set(done.stdout.splitlines()) == set(), done.stdout[-2000:] + done.stderr
