"""What gradients cost beside the compiled run: python gradients.py [--cells N ...] [--steps N]"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy's libraries are loaded
sys.path.insert(0, str(Path(__file__).parents[1]))

#: Into so many blocks a run is cut.
BLOCKS = 10


def arguments() -> argparse.Namespace:
    """The options; all are taken off the command line, which PETSc reads too."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[100])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    sys.argv[1:] = []
    return args


def row(cells: int, steps: int, rounds: int) -> str:
    """Processor time of a run, of the same on the tape, and of a gradient: the best of some rounds."""
    from firedrake import dx, inner
    from firedrake.adjoint import continue_annotation, pause_annotation
    from pyadjoint import Tape, set_working_tape
    from verification.beams import papers_beam

    import fdgeom as fg

    beam = papers_beam(cells)
    stepper = fg.PoissonIntegrator(beam, 1e-2 / max(cells, 100))
    distance = inner(beam.position, beam.position) * dx(degree=2)
    controls = [beam.strain, beam.momentum]

    def taped(blocks: int) -> None:
        set_working_tape(Tape())
        continue_annotation()
        for _ in range(blocks):
            stepper.advance(steps // blocks)
        pause_annotation()

    works = {
        "forward": lambda: stepper.advance(steps),
        "taped": lambda: taped(1),
        "in blocks": lambda: taped(BLOCKS),
        "gradient": lambda: fg.gradient(stepper, steps, distance, controls),
    }
    best: dict[str, float] = {}
    for number in range(rounds + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            spent = (time.process_time() - start) / steps * 1e6
            if number:  # the first time something is compiled
                best[name] = min(spent, best.get(name, spent))
    numbers = sum(f.dat.data_ro.size for f in controls)
    run, gradient = best["forward"], best["gradient"]
    block = (best["in blocks"] - best["taped"]) * steps / (BLOCKS - 1) / 1000
    return (
        f"| {cells} | {run:.1f} | {best['taped'] / run:.2f}× | {block:.1f} "
        f"| {gradient / run:.0f}× ({gradient:.0f} µs) | {numbers + 1}× |"
    )


def main() -> None:
    args = arguments()
    print(
        f"{args.steps} steps in one block; what each further block costs is measured with {BLOCKS} of them"
    )
    print(
        "| cells | a step, µs | on the tape | a further block, ms | gradient | one-sided differences |"
    )
    print("|---|---|---|---|---|---|")
    for cells in args.cells:
        print(row(cells, args.steps, args.rounds))


if __name__ == "__main__":
    main()
