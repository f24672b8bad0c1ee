"""Lists whose solves couple nodes, on any number of ranks: ``lists_on_ranks.py FILE`` writes results."""

from __future__ import annotations

import sys

import numpy as np
from firedrake import (
    COMM_WORLD,
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    NonlinearVariationalProblem,
    NonlinearVariationalSolver,
    SpatialCoordinate,
    TestFunction,
    TestFunctions,
    dx,
    inner,
    split,
)
from test_chain_solves import steep
from test_chain_steppers import CASES, state_of
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.joined import four_bar
from ways import check_way

import fdgeom as fg
from fdgeom.compile import CompiledExecutor

STEPS = 5


def along(function):
    """All values in the order of the coordinates of their nodes, on every rank."""
    space = function.function_space()
    element = space.ufl_element()
    scalar = FunctionSpace(space.mesh(), element.sub_elements[0] if space.value_shape else element)
    (s,) = SpatialCoordinate(space.mesh())
    where = Function(scalar).interpolate(s).dat.data_ro
    values = np.reshape(function.dat.data_ro, (-1, function.dat.cdim))
    where, values = map(np.concatenate, zip(*function.comm.allgather((where, values)), strict=True))
    return values[np.argsort(where)]


def steppers():
    """States after some steps, and the iterations that they took."""
    out = {}
    for name, (method, build, dt) in CASES.items():
        stepper = method(build(), dt)
        stepper.advance(STEPS)
        check_way(stepper)
        for f in state_of(stepper):
            for k, part in enumerate(f.subfunctions):
                out[f"{name}: {f.name()} {k}"] = along(part)
        out[f"{name}: iterations"] = np.array([stepper.solver_stats()["newton_iterations"]])
    return out


def attempts():
    """Damped steps from far away; a solve that fails, which changes nothing on any rank."""
    out = {}
    for name, made in (
        ("damped", [("far", {}), ("far", {"damped": True, "max_it": 200})]),
        ("failed", [("far", {})]),
    ):
        (op,) = operations = steep(made)()
        executor = CompiledExecutor(operations)
        done, failure = executor.advance(1, 0.0, 1.0)
        out[f"{name}: u"] = along(op.unknown)
        out[f"{name}: iterations"] = np.array([done, executor.stats()["newton_iterations"]])
        words = op.unknown.comm.allgather(str(failure))
        assert len(set(words)) == 1, words
        out[f"{name}: words"] = np.array(words[0].partition("a residual")[0])
    return out


def reasons():
    """If two nodes fail for different reasons, the message has reason, node and residual of one."""
    mesh = IntervalMesh(12, 1.0)
    (x,) = SpatialCoordinate(mesh)
    space = FunctionSpace(mesh, "CG", 1)
    shift, place, u = (Function(space, name=name) for name in ("shift", "place", "u"))
    place.interpolate(x)
    work = (u**2 + shift) * TestFunction(space) * fg.measures.vertex(mesh)
    executor = CompiledExecutor([fg.Solve(work=work, unknown=u, name="u")])
    for first, last in ((1.0, np.nan), (np.nan, 1.0)):  # u² = -1 has no solution
        shift.assign(-1.0)
        shift.dat.data_wo[place.dat.data_ro < 0.01] = first
        shift.dat.data_wo[place.dat.data_ro > 0.99] = last
        u.assign(0.7)
        _, failure = executor.advance(1, 0.0, 1.0)
        (message,) = set(mesh.comm.allgather(str(failure)))
        node = first if "at the node at 0," in message else last
        assert np.isnan(node) == ("not finite" in message) == ("residual of nan" in message), (
            message
        )
    return {}


def types():
    """Equations of nodes and cells by the types of SNES and PC."""
    out = {}
    for name, options in (
        ("SNES", {"snes_type": "python", "snes_python_type": "fdgeom.ChainNewton"}),
        ("PC", {"ksp_type": "preonly", "pc_type": "python", "pc_python_type": "fdgeom.ChainLU"}),
    ):
        mesh = uneven_mesh(20)
        (x,) = SpatialCoordinate(mesh)
        space = FunctionSpace(mesh, "CG", 1) * FunctionSpace(mesh, "DG", 0)
        u, (v, w) = Function(space), TestFunctions(space)
        a, force = split(u)
        residual = force * v.dx(0) + (a**3 + a - x) * v + (force - a.dx(0)) * w
        problem = NonlinearVariationalProblem(
            residual * dx, u, bcs=DirichletBC(space.sub(0), 0.1, 1)
        )
        solver = NonlinearVariationalSolver(problem, solver_parameters=options)
        solver.solve()
        out |= {f"{name}: {k}": along(part) for k, part in enumerate(u.subfunctions)}
        out[f"{name}: iterations"] = np.array([solver.snes.getIterationNumber()])
    return out


def few_cells():
    """A beam of two cells, which not every rank has."""
    beam = set_smooth(fg.Beam(uneven_mesh(2), SOFT, left="clamped"))
    beam.velocity.dat.data_wo_with_halos[beam.velocity.function_space().boundary_nodes(1)] = 0.0
    stepper = fg.EnergyMomentum(beam, 0.01)
    stepper.advance(STEPS)
    check_way(stepper)
    return {
        "few cells: position": along(beam.position),
        "few cells: velocity": along(beam.velocity),
    }


def loop():
    """Four beams and four hinges."""
    out = {}
    for method in (fg.GeneralizedAlpha, fg.EnergyMomentum, fg.VariationalIntegrator):
        system = four_bar()
        stepper = method(system, 0.01)
        stepper.advance(STEPS)
        check_way(stepper)
        for k, beam in enumerate(system.beams):
            out[f"loop, {method.__name__}: position {k}"] = along(beam.position)
            out[f"loop, {method.__name__}: velocity {k}"] = along(beam.velocity)
    return out


def gradients():
    """By what stands at nodes, in cells, and in cells that links join."""
    out = {}
    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT))
    stepper = fg.ImplicitMidpoint(beam, 0.01)
    objective = (inner(beam.momentum, beam.momentum) + inner(beam.strain, beam.strain)) * dx(
        degree=2
    )
    controls = [beam.strain, beam.momentum]
    out["of a beam"], found = fg.gradient(stepper, 4, objective, controls)
    assert stepper.replay.why_not_compiled is None
    out |= {f"of a beam, by {f.name()}": _along(f, b) for f, b in zip(controls, found, strict=True)}
    system = four_bar()
    stepper = fg.VariationalIntegrator(system, 0.01)
    objective = inner(system.position, system.position) * dx(degree=2)
    controls = [b.velocity for b in system.beams]
    out["of a loop"], found = fg.gradient(stepper, 4, objective, controls)
    assert stepper.replay.why_not_compiled is None
    for k, (f, bar) in enumerate(zip(controls, found, strict=True)):
        out[f"of a loop, by {k}"] = _along(f, bar)
    return {f"gradient {name}": value for name, value in out.items()}


def _along(f, cotangent):
    return along(Function(f.function_space(), val=cotangent.dat))


def everything():
    """All results."""
    return steppers() | attempts() | reasons() | types() | few_cells() | loop() | gradients()


if __name__ == "__main__":
    results = everything()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
