"""Command line: versions and a self-test (``python -m fdgeom``), and demos (``python -m fdgeom demo``)."""

import argparse
import difflib
import subprocess
import sys
from pathlib import Path

from petsc4py import PETSc

import fdgeom as fg

#: Each demo is a folder with a text, NAME/NAME.py.rst.
DEMOS = Path(__file__).parent / "demos"


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fdgeom",
        description="Without a command: versions, the cache folder and a self-test.",
    )
    commands = parser.add_subparsers(dest="command")
    demo = commands.add_parser("demo", help="list the demos, or write one as a script")
    demo.add_argument("name", nargs="?", help="the demo to write into the current folder")
    demo.add_argument("--force", action="store_true", help="overwrite an existing file")
    # PETSc has read the command line too, and would warn of options that it does not know.
    PETSc.Options()["options_left"] = False
    given = parser.parse_args(arguments)
    if given.command is None:
        return report()
    return list_demos() if given.name is None else write_demo(given.name, given.force)


# --- demos -------------------------------------------------------------------------------------
def titles() -> dict[str, str]:
    """The titles of the demos by name."""
    texts = {path.parent.name: path for path in sorted(DEMOS.glob("*/*.py.rst"))}
    return {name: path.read_text().partition("\n")[0] for name, path in texts.items()}


def script(text: str) -> str:
    """The code of a demo, with its text as comments: as pylit converts it, for code indented by two."""
    lines, is_code = [], False
    for line in text.splitlines():
        # Code follows a paragraph that ends in two colons, up to the next line that is not indented.
        is_code = is_code and (not line or line.startswith("  "))
        lines.append(line[2:] if is_code else f"# {line}".rstrip())
        is_code = is_code or (line.endswith("::") and not line.startswith(".."))
    return "\n".join(lines) + "\n"


def list_demos() -> int:
    """Print the names and the titles of all demos."""
    found = titles()
    width = max(map(len, found))
    for name, title in found.items():
        print(f"{name:{width}}  {title}")
    print("\npython -m fdgeom demo NAME writes NAME.py into the current folder")
    return 0


def write_demo(name: str, force: bool) -> int:
    """Write a demo as a script into the current folder."""
    if name not in (known := titles()):
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "python -m fdgeom demo lists them"
        print(f"There is no demo {name!r}: {hint}", file=sys.stderr)
        return 2
    path = Path(f"{name}.py")
    if path.exists() and not force:
        print(f"{path} exists already: remove it, or add --force to overwrite it", file=sys.stderr)
        return 2
    path.write_text(script((DEMOS / name / f"{name}.py.rst").read_text()))
    print(f"wrote {path}: run it with python {path} (--help lists its arguments)")
    return 0


# --- versions and self-test --------------------------------------------------------------------
def report() -> int:
    """Print versions, the cache folder and the result of the self-test."""
    from importlib.metadata import version

    from pyop2.configuration import configuration

    print(f"fdgeom     {fg.__version__} in {Path(__file__).parent}")
    print(f"Firedrake  {version('firedrake')}")
    print(f"PETSc      {'.'.join(map(str, PETSc.Sys.getVersion()))}")
    print(f"compiler   {_compiler()}")
    print(f"cache      {configuration['cache_dir']}", flush=True)
    try:
        difference = self_test()
    except Exception as error:
        print(f"self-test  FAILED: {type(error).__name__}: {error}")
        return 1
    passed = difference < 1e-12
    print(
        f"self-test  {'passed' if passed else 'FAILED'}: compiled steps and PETSc SNES differ by "
        f"{difference:.1e} of the state"
    )
    return 0 if passed else 1


def self_test() -> float:
    """The relative difference of a beam's state after compiled steps and after steps by PETSc SNES."""
    import numpy as np
    from firedrake import Constant, IntervalMesh

    states = []
    for compiled in (True, False):
        section = fg.Section.rectangle(
            0.1, 0.1, density=1000, youngs_modulus=1e7, poisson_ratio=0.35
        )
        beam = fg.Beam(IntervalMesh(4, 1.0), section)
        beam.velocity.interpolate(Constant((0.0, 0.0, 1.0, 0.0, 1.0, 0.0)))
        beam.project()
        fg.PoissonIntegrator(beam, dt=1e-4, compiled=compiled).advance(10)
        states.append(np.concatenate([f.dat.data_ro.ravel() for f in (beam.strain, beam.momentum)]))
    return float(np.max(np.abs(states[0] - states[1])) / np.max(np.abs(states[1])))


def _compiler() -> str:
    """PETSc's C++ compiler, which compiles fdgeom's code, and the first line of its ``--version``."""
    import petsctools

    name = petsctools.get_petscvariables()["CXX"]
    try:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{name} does not run: {error}"
    return f"{name}: {done.stdout.partition(chr(10))[0]}"


if __name__ == "__main__":
    sys.exit(main())
