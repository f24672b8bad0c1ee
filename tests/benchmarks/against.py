"""Compare this checkout with another one: python tests/benchmarks/against.py PATH [CASE ...]

Runs each case of against_cases.py in processes that alternate between the two packages, and prints the
median of the ratios, this one over the other: of processor time on one rank, of time on several ranks and
for first steps, of the growth of the peak of memory for gradients, and of ratios within one process.
First steps marked "cold" begin with empty caches, each side with its own. A CASE is a name or the
beginning of one.

A case fails if both sides load the same files, if a side is not compiled, or if the results differ by more
than the tolerance of the case.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("path", type=Path, help="the other checkout")
parser.add_argument(
    "cases", nargs="*", help="names of cases, or what they begin with; all by default"
)
parser.add_argument("--rounds", type=int, default=7)
args, sys.argv[1:] = parser.parse_intermixed_args(), []

import numpy as np  # noqa: E402
from against_cases import CASES, Case  # noqa: E402

BYTECODE = tempfile.TemporaryDirectory()


def run(name: str, case: Case, package: Path) -> dict:
    """The numbers that a process of one side prints."""
    environment = os.environ | {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    # A module that is imported when used is read as bytecode, as on a user's machine.
    environment |= {"PYTHONPYCACHEPREFIX": BYTECODE.name, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, str(HERE / "against_cases.py"), name]
    if case.ranks > 1:
        launch = ["mpiexec", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        command = [*launch, "-n", str(case.ranks), *command]
    with tempfile.TemporaryDirectory() as folder:
        if case.cold:
            environment["PYOP2_CACHE_DIR"] = f"{folder}/pyop2"
            environment["FIREDRAKE_TSFC_KERNEL_CACHE_DIR"] = f"{folder}/tsfc"
        # Not from a folder that holds a package of the same name.
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{name} with {package} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(name: str, case: Case) -> str:
    """One line of the report."""
    ratios, sizes, here, there = [], [], {}, {}
    for number in range(args.rounds + 1):
        there = run(name, case, args.path.resolve())
        here = run(name, case, HERE.parents[1])
        if here["file"] == there["file"]:
            return f"FAILED: both sides load {here['file']}"
        for side in (here, there):
            if not side["compiled"]:
                return f"FAILED: not compiled with {side['file']}"
        ours, theirs = np.array(here["result"]), np.array(there["result"])
        difference = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-300)
        if not difference <= case.tolerance:
            return f"FAILED: the results differ by {difference:.1e} of their size"
        if number:  # the first pair fills the caches, and writes the bytecode of both sides
            sizes.append((here["amount"], there["amount"]))
            ratios.append(here["amount"] / max(there["amount"], 1e-300))
    unit = {"memory": "bytes", "ratio": ""}.get(case.clock, "s")
    own, other = map(statistics.median, zip(*sizes, strict=True))
    return (
        f"{statistics.median(ratios):.3f}  ({case.clock}: {own:.3g} {unit}, before {other:.3g} {unit}; "
        f"Newton iterations {here['iterations']}, before {there['iterations']}; "
        f"from {min(ratios):.3f} to {max(ratios):.3f})"
    )


def main() -> None:
    """Compare all chosen cases, one after the other."""
    chosen = [n for n in CASES if not args.cases or any(n.startswith(c) for c in args.cases)]
    if not chosen:
        raise SystemExit(f"no case begins with {args.cases}: there are {', '.join(CASES)}")
    lines = []
    for name in chosen:
        lines.append(compare(name, CASES[name]))
        print(f"{name:45s} {lines[-1]}", flush=True)
    if any(line.startswith("FAILED") for line in lines):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
