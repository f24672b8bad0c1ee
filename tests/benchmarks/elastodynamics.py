"""Cost of a step of linear elastodynamics over that of its linear solve.

    python tests/benchmarks/elastodynamics.py [--cells 111] [--dimension 2] [--repeats 100]
        [--solver petsc|mumps|gamg] [--json]

The default has 1e5 unknowns: quadratic triangles in a square, PETSc's own LU, kept between steps. The
solve is repeated with the right-hand side that the step had. Times are the least of the repeats, of
steps and bare solves in turn, so that other work on the machine spoils both alike.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--cells", type=int, default=111, help="cells along a side")
parser.add_argument("--dimension", type=int, choices=(2, 3), default=2)
parser.add_argument("--repeats", type=int, default=100)
parser.add_argument("--solver", choices=("petsc", "mumps", "gamg"), default="petsc")
parser.add_argument("--json", action="store_true", help="print the numbers alone, as JSON")
# PETSc reads the command line as well.
args, sys.argv[1:] = parser.parse_known_args()

from firedrake import UnitCubeMesh, UnitSquareMesh, VectorFunctionSpace  # noqa: E402
from verification.elastic_bodies import linear_body  # noqa: E402

import fdgeom as fg  # noqa: E402

SOLVERS = {
    "petsc": None,
    "mumps": {"pc_factor_mat_solver_type": "mumps"},
    "gamg": {"ksp_type": "cg", "pc_type": "gamg", "ksp_rtol": 1e-8},
}


def seconds(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(cells: int, dimension: int, repeats: int, options: dict | None = None) -> dict:
    """Unknowns, and seconds of a step, of its linear solve and of an evaluation of its residual."""
    mesh = UnitSquareMesh(cells, cells) if dimension == 2 else UnitCubeMesh(*[cells] * 3)
    system = linear_body(mesh, VectorFunctionSpace(mesh, "CG", 2 if dimension == 2 else 1))
    stepper = fg.GeneralizedAlpha(system, 0.02, fg.hamel_alpha(0.8), solver_parameters=options)
    stepper.advance(3)
    (solver,) = stepper._executor.solvers
    ksp = solver.snes.getKSP()
    b, x = solver._f.duplicate(), solver._f.duplicate()
    times = {"step": [], "solve": [], "residual": []}
    for _ in range(repeats):
        times["step"].append(seconds(stepper.advance))
        solver._f.copy(b)
        times["solve"].append(seconds(lambda: ksp.solve(b, x)))
        times["residual"].append(seconds(solver._residual.assemble))
    return {"unknowns": system.space.dim(), **{name: min(t) for name, t in times.items()}}


def main() -> None:
    found = measure(args.cells, args.dimension, args.repeats, SOLVERS[args.solver])
    if args.json:
        print(json.dumps(found))
        return
    for name in ("step", "solve", "residual"):
        print(f"{name:>9}: {1e3 * found[name]:8.2f} ms")
    print(f"{found['unknowns']} unknowns: a step costs {found['step'] / found['solve']:.3f} solves")


if __name__ == "__main__":
    main()
