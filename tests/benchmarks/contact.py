"""What contact with friction costs: python contact.py [--cells N ...] [--steps N] [--rounds N]

A rope that is held at one end falls onto a drum and slides over it. Prints, for each method, the processor
time of steps and of their gradient over that of the same rope without the drum, Newton iterations a step,
and how many steps needed damped iterations.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy's libraries are loaded

#: Whole attempts of Newton's method that circle end after so many iterations.
WHOLE = 8


def arguments() -> argparse.Namespace:
    """The options; all are taken off the command line, which PETSc reads too."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    sys.argv[1:] = []
    return args


def rope(cells: int, *, touches: bool):
    """A rope of a metre, a radius above the top of a drum, which swings in its plane and across it."""
    from firedrake import IntervalMesh, SpatialCoordinate, as_vector

    import fdgeom as fg

    section = fg.Section.circle(0.005, density=1e3, youngs_modulus=1e7, poisson_ratio=0.3)
    drum = fg.Cylinder((0.45, 0, -0.1), (0, 1, 0), 0.1)
    contact = fg.Contact(drum, stiffness=1e5, friction=0.3, slip=1e-2)
    loads = [fg.Gravity((0, 0, -9.81)), *([contact] if touches else [])]
    mesh = IntervalMesh(cells, 1.0)
    (x,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, section, left="pinned", loads=loads, damping=2e-3)
    beam.reconstruct(position=(0, 0, 0.0051))
    beam.velocity.interpolate(as_vector([0, 0, 3, 0, 3 * x, 0]))
    return beam, contact


def measured(method, cells: int, steps: int, *, touches: bool) -> tuple[float, float, list[int]]:
    """Processor time of a step and of its gradient, and Newton iterations of each step."""
    from firedrake import dx, inner

    import fdgeom as fg

    beam, contact = rope(cells, touches=touches)
    stepper = method(beam, 5e-4, compiled=True)
    stepper.advance(100)
    start = [f.copy(deepcopy=True) for f in (beam.position, beam.orientation, beam.velocity)]
    height = inner(beam.position, beam.position) * dx(degree=2)

    def again() -> None:
        for f, value in zip((beam.position, beam.orientation, beam.velocity), start, strict=True):
            f.assign(value)

    def cost(work) -> float:
        again()
        begin = time.process_time()
        work()
        return (time.process_time() - begin) / steps

    def gradient() -> None:
        fg.gradient(stepper, steps, height, [beam.velocity])

    found = []
    again()
    for _ in range(steps):
        before = stepper.solver_stats()["newton_iterations"]
        stepper.advance(1)
        found.append(stepper.solver_stats()["newton_iterations"] - before)
        if touches and not (contact.depth(beam) > 0).any():
            raise SystemExit("the rope does not touch the drum")
    again()
    gradient()
    forward = min(cost(lambda: stepper.advance(steps)) for _ in range(3))
    return forward, min(cost(gradient) for _ in range(3)), found


def row(method, cells: int, steps: int, rounds: int) -> str:
    """Medians of ratios of processes' times, side by side in one process."""
    import numpy as np

    ratios = []
    for _ in range(rounds):
        forward, back, iterations = measured(method, cells, steps, touches=True)
        alone, back_alone, its = measured(method, cells, steps, touches=False)
        ratios.append([forward / alone, back / back_alone])
    step, gradient = np.median(ratios, axis=0)
    damped = sum(k > WHOLE for k in iterations)
    return (
        f"{method.__name__}, {cells} cells: step {step:.2f}, gradient {gradient:.2f}; Newton iterations "
        f"a step {np.mean(iterations):.2f} (without drum {np.mean(its):.2f}); damped {damped} of {steps}"
    )


def main() -> None:
    args = arguments()
    import fdgeom as fg

    for method in (fg.GeneralizedAlpha, fg.EnergyMomentum):
        for cells in args.cells:
            print(row(method, cells, args.steps, args.rounds), flush=True)


if __name__ == "__main__":
    main()
