"""Gradients on any number of ranks: ``parallel_gradients.py FILE`` writes results (.npz)."""

import sys

import numpy as np
from firedrake import (
    COMM_WORLD,
    Constant,
    Function,
    FunctionSpace,
    RectangleMesh,
    SpatialCoordinate,
    UnitSquareMesh,
    as_vector,
    assemble,
    ds,
    dx,
    grad,
    inner,
    sin,
)
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.constrained_systems import chain
from verification.joined import double_pendulum, four_bar
from verification.parallel_beam import gathered

import fdgeom as fg


def everything():
    """Gradients of a beam, of a chain, of joined beams and by a section: local, coupled, on the tape."""
    found = local() | in_the_plane() | _implicit() | _joined() | _drawn() | _by_a_number()
    return found | of_an_eigenvalue() | _set_between()


def _by_a_number():
    """By a load that is a number of a Real space, in compiled steps and through PETSc."""
    out = {}
    mesh = uneven_mesh(8)
    force = Function(FunctionSpace(mesh, "R", 0)).assign(0.3)
    load = fg.Load(force=as_vector([0, 0, force]), at="right")
    beam = fg.Beam(mesh, SOFT, left="clamped", loads=load)
    for compiled in (True, False):
        stepper = fg.GeneralizedAlpha(beam, 0.01, compiled=compiled)
        value, (bar,) = fg.gradient(stepper, 2, beam.position[2] * dx, [force])
        out[f"by a number, {compiled}"] = np.array([value, float(bar.dat.data_ro[0])])
    return out


def _set_between():
    """By what was left after steps, where another part of the state has been set."""
    out = {}
    mesh = uneven_mesh(8)
    (x,), space = SpatialCoordinate(mesh), FunctionSpace(mesh, "CG", 1)
    for compiled in (None, False):
        q, v = Function(space).interpolate(1 + x), Function(space).interpolate(x**2)
        factor = Function(space).interpolate(2 + x)
        system = fg.SecondOrderSystem(
            lambda q, v, a, t, w, k=factor: (
                (inner(a + k * q, w) + 0.1 * inner(grad(q), grad(w))) * dx
            ),
            q,
            v,
        )
        stepper = fg.FourthOrderAlpha(system, 0.1, compiled=compiled)
        stepper.advance(2)
        q.interpolate(1 + 3 * x)
        controls = [v, q, factor]
        value, bars = fg.gradient(stepper, 2, q**2 * dx, controls)
        slopes = [_function(f, bar) for f, bar in zip(controls, bars, strict=True)]
        out[f"set between, {compiled}"] = np.array([value, *(assemble(g**2 * dx) for g in slopes)])
    return out


def of_an_eigenvalue():
    """Of vibrations, by a factor of the stiffness that is a number of a Real space."""
    mesh = uneven_mesh(8)
    factor = Function(FunctionSpace(mesh, "R", 0)).assign(1.0)
    stiffness = factor * Constant(np.diag([9.0, 2.0, 3.0, 90.0, 80.0, 80.0]))
    beam = fg.Beam(mesh, fg.Section(stiffness, np.eye(6)), left="clamped")
    continue_annotation()
    start = Function(factor.function_space()).assign(1.3)
    factor.assign(start)
    value = fg.VibrationModes(beam, 3).eigenvalue(0)
    pause_annotation()
    reduced = ReducedFunctional(value, Control(start))
    slope = float(reduced.derivative().dat.data_ro[0])
    tangent = reduced.tlm(Function(start.function_space()).assign(1.0))
    return {"eigenvalue": np.array([value / 1.3, slope, tangent])}


def local():
    """Of steps node by node, and along a chain."""
    out = {}
    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT))
    objective = (inner(beam.position, beam.position) + inner(beam.strain, beam.strain)) * dx(
        degree=2
    )
    stepper = fg.PoissonIntegrator(beam, 0.01)
    running = inner(beam.momentum, beam.momentum) * dx(degree=2) + beam.position[2] ** 2 * ds
    controls = [beam.strain, beam.momentum]
    out["beam"], found = fg.gradient(stepper, 4, objective, controls, running=running)
    assert stepper.replay.why_not_compiled is None
    for f, bar in zip((beam.strain, beam.momentum), found, strict=True):
        out[f"by {f.name()}"] = gathered(_function(f, bar))
    system = chain(6)
    stepper = fg.RATTLE(system, 0.01)
    objective = inner(system.q, system.q) * dx(degree=2)
    out["chain"], (bar,) = fg.gradient(stepper, 4, objective, [system.p])
    out["by p"] = gathered(_function(system.p, bar))
    return out


def in_the_plane():
    """Of waves on triangles, whose cells give forces to their nodes."""
    mesh = UnitSquareMesh(4, 4)
    x, y = SpatialCoordinate(mesh)
    space = FunctionSpace(mesh, "CG", 1)
    u, p = Function(space, name="u").interpolate(sin(3 * x) * y), Function(space, name="p")
    stiffness = Function(FunctionSpace(mesh, "DG", 0), name="stiffness").interpolate(1 + x * y)
    number = Function(FunctionSpace(mesh, "R", 0), name="number").assign(0.3)
    nodes, slope = dx(scheme="KMV", degree=1), inner(grad(u), grad(u))
    energy = (0.5 * p**2 + number * u**4) * nodes
    energy += (0.5 * stiffness + number * slope) * slope * dx
    system = fg.HamiltonianSystem(u, p, energy, measure=nodes)
    stepper = fg.StormerVerlet(system, 0.02)
    stepper.advance(10)
    assert stepper.is_compiled
    out = {f"{f.name()} in the plane": _by_place(f) for f in (u, p)}
    controls = [u, stiffness, number]
    value, found = fg.gradient(stepper, 5, u**4 * dx, controls, running=u**2 * dx)
    assert stepper.replay.why_not_compiled is None
    out["in the plane"] = np.array([value, float(found.pop().dat.data_ro[0])])
    for f, bar in zip((u, stiffness), found, strict=True):
        out[f"by {f.name()} in the plane"] = _by_place(_function(f, bar))
    return out


def _by_place(f):
    """All values in the order of the coordinates of nodes, on every rank."""
    space = f.function_space()
    x, y = SpatialCoordinate(space.mesh())
    # Irrational, so that no two nodes have the same number.
    number = Function(space).interpolate(x + np.sqrt(2) * y).dat.data_ro
    parts = f.comm.allgather((np.array(number), np.array(f.dat.data_ro)))
    number, values = (np.concatenate(both) for both in zip(*parts, strict=True))
    return values[np.argsort(number)]


def _implicit():
    """Of steps whose solves run along a beam, and through joints."""
    out = {}
    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT))
    for name, system, start in (
        ("implicit", beam, [beam.momentum]),
        ("loop", loop := four_bar(), [b.velocity for b in loop.beams]),
    ):
        stepper = fg.EnergyMomentum(system, 0.01)
        objective = inner(system.position, system.position) * dx(degree=2)
        out[name], found = fg.gradient(stepper, 5, objective, start)
        assert stepper.replay.why_not_compiled is None
        for k, (f, bar) in enumerate(zip(start, found, strict=True)):
            out[f"{name} by {k}"] = gathered(_function(f, bar))
    return out


def _joined():
    """Two blocks on the tape, replayed from elsewhere, and their derivatives."""
    system = double_pendulum()
    stepper, lower = fg.GeneralizedAlpha(system, 0.01), system.beams[1]
    continue_annotation()
    start = Function(lower.velocity.function_space()).assign(lower.velocity)
    lower.velocity.assign(start)
    stepper.advance(2)
    stepper.advance(1)
    value = assemble(inner(lower.position, lower.position) * dx(degree=2))
    pause_annotation()
    assert stepper.why_not_compiled is None
    reduced = ReducedFunctional(value, Control(start))
    out = {"joined": value, "there again": reduced(start)}
    out["by velocity"] = gathered(_function(start, reduced.derivative()))
    along = start.copy(deepcopy=True)
    out["tangent"] = reduced.tlm(along)
    out["elsewhere"] = reduced(along.assign(1.01 * start))
    return {name: np.asarray(found, dtype=float) for name, found in out.items()}


def _drawn():
    """By the materials of a drawn section: where a loaded beam stands, replayed from elsewhere too."""
    mesh = RectangleMesh(3, 2, 0.6, 0.5)
    y, z = SpatialCoordinate(mesh)
    modulus = Function(FunctionSpace(mesh, "CG", 1)).interpolate(20 + 20 * y + 6 * z)
    density = Function(FunctionSpace(mesh, "DG", 0)).assign(1.0)
    continue_annotation()
    start = modulus.copy(deepcopy=True)
    modulus.assign(start)
    section = fg.Section.from_mesh(mesh, fg.Isotropic(modulus, 0.3, density), origin="tension")
    load = fg.Load(force=(0.01, 0.03, -0.05), at="right")
    beam = fg.Beam(uneven_mesh(6), section, left="clamped", loads=load)
    fg.StaticEquilibrium(beam).solve()
    value = assemble(inner(beam.position, beam.position) * dx(degree=2))
    pause_annotation()
    reduced = ReducedFunctional(value, Control(start))
    out = {"drawn": value}
    bar = reduced.derivative().riesz_representation("l2")
    waves = [
        Function(start.function_space()).interpolate(f) for f in (1.0 + y, z, y * z, sin(9 * y))
    ]
    out["by modulus"] = [sum_of(bar, wave) for wave in waves]
    out["its tangents"] = [reduced.tlm(wave) for wave in waves]
    out["of a stiffer one"] = reduced(start.copy(deepcopy=True).assign(1.2 * start))
    return {name: np.asarray(found, dtype=float) for name, found in out.items()}


def sum_of(bar, change):
    """What a cotangent says of a change, all ranks together."""
    return COMM_WORLD.allreduce(float(np.sum(bar.dat.data_ro * change.dat.data_ro)))


def _function(f, bar):
    """The values of a cotangent."""
    made = Function(f.function_space())
    made.dat.data_wo[...] = bar.dat.data_ro
    return made


def main(path):
    out = everything()
    if COMM_WORLD.rank == 0:
        np.savez(path, **out)


if __name__ == "__main__":
    main(sys.argv[1])
