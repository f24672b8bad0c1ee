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
#: More bytes than anything takes.
EVERYTHING = 2**40


def arguments() -> argparse.Namespace:
    """The options; all are taken off the command line, which PETSc reads too."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[100])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    sys.argv[1:] = []
    return args


def stiff_beam(cells: int):
    """The paper's beam with a stiffness that is a field of matrices, and that field."""
    import numpy as np
    from case import INERTIA, STIFFNESS
    from firedrake import Function, TensorFunctionSpace
    from verification.beams import papers_beam

    import fdgeom as fg

    plain = papers_beam(cells)
    field = Function(TensorFunctionSpace(plain.mesh, "DG", 0, shape=(6, 6)), name="stiffness")
    field.dat.data_wo[...] = np.diag(STIFFNESS)
    beam = fg.Beam(plain.mesh, fg.Section(field, np.diag(INERTIA), axis=1), end_weight=1.0)
    beam.strain.assign(plain.strain)
    beam.momentum.assign(plain.momentum)
    beam.reconstruct()
    return beam, field


def row(cells: int, steps: int, rounds: int) -> str:
    """Processor time of runs, of the same on the tape, and of gradients: the best of some rounds."""
    from firedrake import dx, inner
    from firedrake.adjoint import continue_annotation, pause_annotation
    from pyadjoint import Tape, set_working_tape
    from verification.beams import papers_beam

    import fdgeom as fg
    from fdgeom.adjoint import steps as replayed

    def prepared(beam):
        stepper = fg.PoissonIntegrator(beam, 1e-2 / max(cells, 100))
        return stepper, inner(beam.position, beam.position) * dx(degree=2)

    beam, (soft, field) = papers_beam(cells), stiff_beam(cells)
    stepper, distance = prepared(beam)
    softer, its_distance = prepared(soft)
    controls = [beam.strain, beam.momentum]

    def taped(blocks: int) -> None:
        set_working_tape(Tape())
        continue_annotation()
        for _ in range(blocks):
            stepper.advance(steps // blocks)
        pause_annotation()

    def gradient(memory: int) -> None:
        replayed.MEMORY = memory
        fg.gradient(stepper, steps, distance, controls)

    def by_stiffness() -> None:
        replayed.MEMORY = EVERYTHING
        fg.gradient(softer, steps, its_distance, [field])

    works = {
        "forward": lambda: stepper.advance(steps),
        "taped": lambda: taped(1),
        "in blocks": lambda: taped(BLOCKS),
        "all kept": lambda: gradient(EVERYTHING),
        "few kept": lambda: gradient(0),
        "forward, field": lambda: softer.advance(steps),
        "by stiffness": by_stiffness,
    }
    best: dict[str, float] = {}
    for number in range(rounds + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            spent = (time.process_time() - start) / steps * 1e6
            if number:  # the first time something is compiled
                best[name] = min(spent, best.get(name, spent))
    assert stepper.replay.why_not_compiled is None
    assert softer.replay.why_not_compiled is None
    numbers = sum(f.dat.data_ro.size for f in controls)
    run = best["forward"]
    block = (best["in blocks"] - best["taped"]) * steps / (BLOCKS - 1) / 1000
    return (
        f"| {cells} | {run:.1f} | {best['taped'] / run:.2f}× | {block:.1f} "
        f"| {best['all kept'] / run:.2f}× | {best['few kept'] / run:.2f}× "
        f"| {best['by stiffness'] / best['forward, field']:.2f}× | {numbers + 1}× "
        f"| {field.dat.data_ro.size + 1}× |"
    )


def implicit_row(system, rounds: int, steps: int = 200) -> str:
    """The same of steps of EnergyMomentum, each one solve along the beams and through the joints."""
    from firedrake import dx, inner

    import fdgeom as fg

    stepper = fg.EnergyMomentum(system, 1e-3)
    distance = inner(system.position, system.position) * dx(degree=2)
    beams = getattr(system, "beams", [system])
    clock = stepper.clock
    moved = {**system.functions(), **system.consistency.followers(), **stepper.functions()}
    start = [(f, f.dat.data_ro.copy()) for f in moved.values()]
    works = {
        "forward": lambda: stepper.advance(steps),
        "gradient": lambda: fg.gradient(stepper, steps, distance, [b.momentum for b in beams]),
    }
    best: dict[str, float] = {}
    for number in range(rounds + 1):
        for name, work in works.items():
            for f, values in start:
                f.dat.data_wo[...] = values
            stepper.take_up(clock)
            begin = time.process_time()
            work()
            spent = (time.process_time() - begin) / steps * 1e6
            if number:
                best[name] = min(spent, best.get(name, spent))
    assert stepper.replay.why_not_compiled is None
    return f"{best['forward']:.1f} | {best['gradient'] / best['forward']:.2f}× |"


def welded_net(cells: int):
    """Eight bars of so many cells, welded in six corners."""
    from verification.joined import straight

    import fdgeom as fg

    corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0.3), (0, 1, 0.2), (2, 0, 0.1), (2, 1, 0)]
    ends = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (4, 5), (5, 2), (0, 2)]
    bars = [straight(corners[a], corners[b], cells, strain_measure="directors") for a, b in ends]
    last: dict = {}
    joints = []
    for bar, pair in zip(bars, ends, strict=True):
        for corner, place in zip(pair, (bar.left, bar.right), strict=True):
            if corner in last:
                joints.append(fg.Rigid(last[corner], place))
            last[corner] = place
    return fg.Assembly(bars, joints, loads=fg.Gravity((0, 0, -1.0)))


def main() -> None:
    args = arguments()
    print(
        f"{args.steps} steps in one block; what each further block costs is measured with {BLOCKS} of "
        "them. Gradients beside a run: by strain and momentum at the start, with all kept that the way "
        "back reads, and with every k-th state; by all entries of a field of stiffness matrices."
    )
    print(
        "| cells | a step, µs | on the tape | a further block, ms | by the start, all kept | every k-th "
        "| by the stiffness | differences: start | stiffness |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for cells in args.cells:
        print(row(cells, args.steps, args.rounds))
    from verification.beams import papers_beam
    from verification.joined import double_pendulum

    print("200 steps of EnergyMomentum: gradients by the momentum at the start.")
    print("| system | a step, µs | gradient |")
    print("|---|---|---|")
    for cells in args.cells:
        print(f"| a beam of {cells} cells | {implicit_row(papers_beam(cells), args.rounds)}")
    pendulum = double_pendulum(strain_measure="directors")
    print(f"| two beams of 2 cells, hinge and ball | {implicit_row(pendulum, args.rounds)}")
    print(f"| eight bars of 8 cells, welded | {implicit_row(welded_net(8), args.rounds)}")


if __name__ == "__main__":
    main()
