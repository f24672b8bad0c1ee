"""Demos run as their readers run them, only shorter. They write their files, print the lines that the
site shows, and reach all their assertions: where a short run does not, in a longer one."""

import os
import re
import sys
from pathlib import Path

import pytest

DEMOS = Path(__file__).parents[2] / "demos"
sys.path.append(str(DEMOS / "site"))

import program  # noqa: E402

# Arguments of a short run, and the files it leaves.
SHORT = {
    "poisson_beam": (
        ["--steps", "20", "--cells", "20", "--repeats", "1"],
        [
            "angular_momentum.png",
            "energy.png",
            "flight.pvd",
            "linear_momentum.png",
            "motion.gif",
            "motion.html",
            "motion.npz",
            "poisson.csv",
            "shapes.png",
        ],
    ),
    "flying_spaghetti": (
        ["--cells", "20", "--until", "5"],
        ["flight.gif", "flight.html", "flight.npz", "invariants.png", "shapes.png"],
    ),
    "flexible_double_pendulum": (
        ["--until", "0.2", "--dt", "0.001"],
        ["pendulum.gif", "pendulum.html", "pendulum.npz", "shapes.png", "trajectories.png"],
    ),
    "four_bar": (
        ["--until", "0.5", "--cells", "4", "--live", "0.2"],
        ["forces.png", "linkage.gif", "linkage.html", "linkage.npz", "linkage.png", "live.gif"],
    ),
    "capstan": (["--cells", "100", "--angles", "1"], ["capstan.png"]),
    "gripper": ([], ["gripper.png"]),
    "friction_identification": ([], ["sliding.png"]),
    "roll_up": (["--steps", "60"], ["helix.html", "helix.npz", "helix.png", "roll_up.png"]),
    "frame": (["--cells", "10"], ["frame.html", "frame.npz", "frame.png"]),
    "strip_modes": (["--loads", "13"], ["modes.png", "tipping.png"]),
    "strip_stiffness": (
        ["--cells", "8", "--frames", "2", "--tolerance", "10"],
        ["strip.png"],
    ),
    "soft_arm": (
        ["--cells", "4", "--steps", "20", "--waves", "3", "--iterations", "1"],
        ["arm.npz", "arm.png"],
    ),
    "swing_up": (
        ["--cells", "3", "--steps", "100", "--waves", "5", "--iterations", "1"],
        ["swing.npz", "swing_up.png"],
    ),
    "profiles": (["--along", "8"], ["profiles.png", "torsion.png"]),
    "blade_root": (
        ["--along", "8", "--angles", "3"],
        ["blade.png", "coupling.png", "section.png"],
    ),
    "henon_heiles": (["--steps", "20", "--copies", "5"], ["henon_heiles.png"]),
    "exploding_gradients": (
        ["--until", "40", "--grid", "20", "--long", "400"],
        ["landscapes.png", "sensitivity.png"],
    ),
    "chaplygin_ball": (
        ["--until", "2", "--long", "10", "--balls", "2"],
        ["centre.png", "convergence.png", "invariants.png"],
    ),
    "hanging_chain": (
        ["--cells", "10", "--until", "0.2", "--largest", "100"],
        ["chain.gif", "chain.html", "chain.npz", "chain.png"],
    ),
    "spherical_pendulum": (
        ["--until", "1", "--long", "20", "--copies", "10"],
        ["energy.png", "motion.png"],
    ),
    "generalized_alpha": (["--finest", "320"], ["convergence.png", "spectrum.png"]),
    "elastodynamics": (
        ["--cells", "10", "--until", "0.5", "--finest", "80"],
        ["cantilever.pvd", "front.png", "motion.gif", "motion.npz", "shaken.png"],
    ),
    "stiff_springs": (["--steps", "40"], ["difference.png", "springs.png"]),
    "heavy_top": (
        ["--until", "0.1", "--copies", "10", "--steps", "20"],
        ["multipliers.png", "orders.png", "position.png"],
    ),
    "own_bracket": (["--steps", "20", "--copies", "5"], ["own_bracket.png"]),
}

# Arguments of a run that comes to all assertions, of demos whose short run does not.
WHOLE = {
    "exploding_gradients": ["--grid", "20", "--long", "400"],
    "henon_heiles": ["--steps", "1000", "--copies", "5"],
    "poisson_beam": ["--repeats", "1"],
    "soft_arm": [],
    "strip_stiffness": [],
    "swing_up": [],
}


def test_no_demo_is_missing():
    found = {path.parent.name for path in DEMOS.glob("*/*.py.rst")}
    assert found == set(SHORT)
    listed = re.findall(r"<(\w+)/(\w+)\.py\.rst>", (DEMOS / "index.rst").read_text())
    assert sorted(listed) == sorted((name, name) for name in SHORT)


def text_of(name):
    return (DEMOS / name / f"{name}.py.rst").read_text()


@pytest.mark.parametrize("name", SHORT)
def test_pictures_are_there(name):
    """The first picture stands below the title; all are small enough to be kept beside the text."""
    text = text_of(name)
    pictures = re.findall(r"^\.\. (?:figure|image):: (\S+)", text, flags=re.MULTILINE)
    assert text.splitlines()[3].startswith(".. image:: ")
    for picture in pictures:
        assert (DEMOS / name / picture).stat().st_size < 300_000


@pytest.mark.parametrize("name", SHORT)
def test_lines_fit_their_column(name):
    """Code has at most 84 characters a line."""
    parts = program.split(text_of(name))
    lines = [line[2:] for part in parts if part.is_code for line in part.lines]
    assert not [line for line in lines if len(line) > 84]


def templates(lines):
    """Lines without their numbers, signs and spaces."""
    return {" ".join(re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "", line).split()) for line in lines}


@pytest.mark.parametrize("name", SHORT)
def test_demo(name, tmp_path):
    arguments, files = SHORT[name]
    reached, asserted = run(name, arguments, tmp_path)
    made = {path.name for path in (tmp_path / "output").iterdir() if path.is_file()}
    assert made == set(files)
    assert all((tmp_path / "output" / file).stat().st_size > 0 for file in files)
    assert asserted
    assert name in WHOLE or reached == asserted


@pytest.mark.parametrize("name", WHOLE)
def test_all_assertions(name, tmp_path):
    """What only a longer run can assert."""
    reached, asserted = run(name, WHOLE[name], tmp_path)
    assert reached == asserted


def run(name, arguments, folder):
    """The lines of assertions that a demo reaches, and all that there are."""
    done = program.run(
        DEMOS / name / f"{name}.py.rst",
        arguments,
        folder,
        os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"},
    )
    assert "WARNING" not in done["errors"] + str(done["printed"])
    # The site shows what a long run prints: the same lines with other numbers, and more.
    if shown := program.read_printed(DEMOS / name / "printed.txt"):
        for place, lines in done["printed"].items():
            assert templates(lines) <= templates(shown.get(place, [])), place
    return done["reached"], program.asserted(text_of(name))
