"""How fast fdgeom steps the paper's beam, against C, NumPy and PyElastica: python bench.py [--quick]

Prints a table with the targets, and writes it with a picture and the numbers into ``output``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import report

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy's libraries are loaded


def arguments() -> argparse.Namespace:
    """The options; all are taken off the command line, which PETSc reads too."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1e5 cells, about a minute")
    parser.add_argument("--cells", type=int, nargs="+", help="numbers of cells")
    parser.add_argument("--rounds", type=int, help="rounds in which the programs take turns")
    parser.add_argument("--seconds", type=float, help="time of the program in C in one round")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("output"))
    args = parser.parse_args()
    sys.argv[1:] = []
    args.cells = args.cells or (
        [10**2, 10**4, 10**5] if args.quick else [10**k for k in range(2, 7)]
    )
    args.rounds = args.rounds or (5 if args.quick else 7)
    args.seconds = args.seconds or (0.03 if args.quick else 0.15)
    return args


def main() -> None:
    args = arguments()
    import runs

    results = {
        "machine": runs.machine(),
        "rounds": args.rounds,
        **{k: {} for k in ("steps", "differences", "iterations", "copying", "flight")},
    }
    results["startup"] = runs.start_up(args)
    runs.paper_run(args, results)
    runs.free_flight(args, results)
    results["ranks"] = runs.two_ranks(args)
    args.output.mkdir(parents=True, exist_ok=True)
    text = report.markdown(results)
    (args.output / "benchmark.md").write_text(text)
    (args.output / "benchmark.json").write_text(json.dumps(results, indent=1) + "\n")
    report.picture(results, args.output / "benchmark.png")
    print(text)
    print(f"Written to {args.output}: benchmark.md, benchmark.png, benchmark.json")


if __name__ == "__main__":
    main()
