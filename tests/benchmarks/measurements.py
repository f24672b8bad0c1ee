"""Writes the measured parts of the site anew: python measurements.py [kept] [speed] (both by default).

``kept`` is what each method keeps in the paper's run (a minute), ``speed`` what ``bench.py``,
``rods.py`` and ``elastodynamics.py`` measure (ten minutes; the machine should do nothing else).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TOP = HERE.parents[1]
MEASURED = TOP / "demos" / "site" / "measured"
#: Rows of the table of speed: what stands there, and the program of ``bench.py``.
WAYS = {
    "`advance(n)`, compiled": "advance(n)",
    "`advance()`, one step per call": "advance(1)",
    "one step per call through SNES with `fdgeom.LocalNewton`": "SNES LocalNewton",
    "one step per call through SNES with its defaults": "SNES",
    "NumPy, vectorised over the nodes": "NumPy",
}

INTRODUCTION = (
    "Time of a step of the paper's beam, as a ratio to a hand-written scalar C program of the same "
    "scheme (gcc -O3 -march=native -ffast-math). Both ran side by side on one core; the time is "
    "processor time, the shortest of seven rounds."
)


def put(name: str, text: str) -> None:
    """Write a part, which the site includes."""
    (MEASURED / f"{name}.md").write_text(text + "\n")
    print(f"demos/site/measured/{name}.md is new")


def kept() -> str:
    """Table of energy bands and momenta."""
    sys.path[:0] = [str(TOP), str(HERE.parent)]
    import kept

    return f"{kept.start()}\n\n{kept.table()}"


def speed() -> str:
    """Ratios to C, and the other measurements in sentences."""
    run("bench.py")
    results = json.loads((HERE / "output" / "benchmark.json").read_text())
    rods = json.loads(run("rods.py", "--json").splitlines()[-1])
    elastic = json.loads(run("elastodynamics.py", "--json").splitlines()[-1])
    return "\n\n".join(
        [INTRODUCTION, ratios(results), sentences(results), of_rods(rods), of_bodies(elastic)]
    )


def short(number: float) -> str:
    """100, 1e4, 1e5."""
    return f"{number:g}" if number < 1e3 else f"{number:.0e}".replace("e+0", "e")


def ratios(results: dict) -> str:
    """The table of ratios to C."""
    steps = results["steps"]
    sizes = [n for n in ("100", "10000", "100000", "1000000") if n in steps]
    lines = [f"Measured by `make measurements` on: {results['machine']}", ""]
    first, *others = (short(float(n)) for n in sizes)
    lines += [f"| program | {' | '.join([f'{first} cells', *others])} |"]
    lines += ["|---" * (len(sizes) + 1) + "|"]
    for words, program in WAYS.items():
        cells = [
            f"{steps[n][program] / steps[n]['C']:.2g}" if program in steps[n] else "" for n in sizes
        ]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def sentences(results: dict) -> str:
    """What else ``bench.py`` measures."""
    steps = results["steps"]["100"]
    faster = steps["C"] / steps["C, unrolled"]
    out = [
        f"The C program takes {1e6 * steps['C']:.0f} µs per step for 100 cells. It is {faster:.1f} "
        "times as fast if pragmas unroll its 6×6 eliminations."
    ]
    if flight := results["flight"].get("100"):
        theirs = flight["PyElastica"]
        out.append(
            f"In the same run, on a free-flying beam of 100 cells, PyElastica's Verlet takes "
            f"{1e6 * theirs:.0f} µs per step. `advance(n)` takes "
            f"{flight['fdgeom, advance(n)'] / theirs:.2f} times as long, and `advance()` "
            f"{flight['fdgeom, advance(1)'] / theirs:.2f} times."
        )
    if ranks := results.get("ranks"):
        gains = " and ".join(
            f"{r['one'] / r['two']:.2f} times as fast as one at {short(r['cells'])} cells"
            for r in ranks
        )
        out.append(f"Two ranks with a core each are {gains}.")
    if times := results["startup"].get("advance(n)"):
        cold, warm = times
        out.append(
            f"The first step ends {warm:.1f} s after the stepper is created, or {cold:.0f} s if its "
            "code must be compiled."
        )
    return " ".join(out)


def of_rods(rows: list) -> str:
    """The table of the integrators on the group."""
    lines = [
        "Steppers in configuration form, on a free beam of 100 cells (`tests/benchmarks/rods.py`):",
        "",
        "| stepper | step | ms per step | s for a simulated second | energy error |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {n} | {dt:.0e} | {ms:.2g} | {s:.2g} | {e:.0e} |" for n, dt, ms, s, e in rows]
    return "\n".join(lines)


def of_bodies(found: dict) -> str:
    """The cost of a step of elastodynamics."""
    return (
        f"Linear elastodynamics with {short(found['unknowns'])} unknowns (quadratic triangles, PETSc's "
        "LU, factorised once): a step of `GeneralizedAlpha` takes "
        f"{found['step'] / found['solve']:.1f} times as long as its linear solve."
    )


def run(script: str, *arguments: str) -> str:
    """What a benchmark prints."""
    print(f"running {script}", flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / script), *arguments]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment
    ).stdout


PARTS = {"kept": kept, "speed": speed}

if __name__ == "__main__":
    chosen, sys.argv[1:] = sys.argv[1:] or list(PARTS), []
    for name in chosen:
        if name not in PARTS:
            raise SystemExit(f"no part {name!r}: choose among {', '.join(PARTS)}")
        put(name, PARTS[name]())
