"""What a user's functions give is part of what made a checkpoint: forms, and the numbers in them."""

from types import SimpleNamespace

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    dot,
    dx,
    sin,
)

import fdgeom as fg
from fdgeom.recording.stepper_fingerprint import differences, fingerprint

SECTION = fg.Section(np.diag([3.0, 5, 8, 100, 100, 100]), np.eye(6))


class Drag(fg.BodyLoad):
    """A load of one's own, whose numbers are in no public attribute."""

    def __init__(self, c, power=1):
        self._c, self._power = c, power

    def work(self, rod, g, v, t, virtual):
        return -self._c * dot(fg.lie.halves(v)[1], fg.lie.halves(virtual)[1]) ** self._power


class Spring(fg.BodyLoad):
    """A load with a potential."""

    def __init__(self, k):
        self._k = k

    def potential(self, rod, g, t):
        return self._k * dot(g[0], g[0])


class Stiffening(fg.SectionLaw):
    def __init__(self, c, power=4):
        self._c, self._power = c, power

    def energy(self, strain, stiffness):
        return 0.5 * dot(strain, stiffness * strain) + self._c * strain[3] ** self._power


def beam(**options):
    return fg.Beam(IntervalMesh(2, 1.0), SECTION, **options)


def up(f):
    return lambda t: as_vector([0.0, 0.0, f(t)])


def times(number):
    c = Constant(number)
    return lambda t: c * t


def moved(f):
    return lambda t: as_vector([0, 0, 0, 0, 0, f(t)])


def turned(f):
    return lambda t: as_vector([1.0, 0, 0, f(t)])


def gravity_on_all(acceleration):
    return fg.Assembly([beam(), beam()], loads=fg.Gravity(acceleration)), "gravity"


def load(**options):
    return beam(loads=fg.Load(**options)), "loads"


def oscillator(stiffness=lambda t: 1.0, bcs=(), damping=0.0):
    space = FunctionSpace(IntervalMesh(3, 1.0), "CG", 1)
    q, v = Function(space), Function(space)
    bcs = bcs(space) if callable(bcs) else bcs
    return fg.systems.SecondOrderSystem(
        lambda q, v, a, t, w: (a + damping * v + stiffness(t) * q) * w * dx, q, v, bcs=bcs
    )


def held(where, value=None):
    """The conditions of a space: zero, or a function of time."""
    if value is None:
        return lambda V: [DirichletBC(V, 0, where)]
    return lambda V: lambda t: [DirichletBC(V, value(t), where)]


def of(name, system):
    return system, name


def pendulum(length=1.0, measure=None, bcs=False):
    one = fg.copies(1)
    space, numbers = VectorFunctionSpace(one, "DG", 0, dim=3), FunctionSpace(one, "DG", 0)
    q, p, mult = Function(space), Function(space), Function(numbers)
    q.dat.data[:] = [length, 0, 0]
    return fg.systems.ConstrainedSystem(
        q,
        p,
        0.5 * dot(p, p) * dx,
        9.81 * q[2] * dx,
        lambda m: m * (dot(q, q) - length**2) * dx,
        mult,
        measure=measure,
        bcs=[DirichletBC(space.sub(1), 0, "on_boundary")] if bcs else (),
    )


def body(group, force=None):
    one = fg.copies(1)
    q = Function(VectorFunctionSpace(one, "DG", 0, dim=4))
    q.dat.data[:, 0] = 1.0
    v = Function(VectorFunctionSpace(one, "DG", 0, dim=3))
    return fg.systems.RigidBodies(q, v, inertia=[1.0, 2.0, 3.0], group=group, force=force)


SO3 = fg.lie.groups.SO3
FINE, COARSE = dx(degree=4), dx(degree=0)

# What differs, by the name in the sentence; each made by a function, so that it can be made twice.
OTHERS = {
    "force in time": (
        lambda: load(force=up(lambda t: 0.1 * t**2)),
        lambda: load(force=up(lambda t: 1000 * t**2)),
    ),
    "force in space and time": (
        lambda: load(force=lambda s, t: as_vector([0, 0, s * t])),
        lambda: load(force=lambda s, t: as_vector([0, 0, s + t])),
    ),
    "moment": (lambda: load(moment=up(sin)), lambda: load(moment=up(lambda t: -sin(t)))),
    "force of a Constant": (lambda: load(force=up(times(1.0))), lambda: load(force=up(times(2.0)))),
    "force of an expression": (
        lambda: load(force=as_vector([0, 0, Constant(1.0)])),
        lambda: load(force=as_vector([0, 0, Constant(3.0)])),
    ),
    "follower force": (
        lambda: load(force=(0, 1, 0), frame="body"),
        lambda: load(force=(0, 1, 0), frame="space"),
    ),
    "place of a force": (
        lambda: load(force=(0, 1, 0), at="right"),
        lambda: load(force=(0, 1, 0), at=0.5),
    ),
    "gravity": (
        lambda: of("loads", beam(loads=fg.Gravity(up(lambda t: t)))),
        lambda: of("loads", beam(loads=fg.Gravity(up(lambda t: 2 * t)))),
    ),
    "gravity on all": (
        lambda: gravity_on_all(up(lambda t: t)),
        lambda: gravity_on_all(up(lambda t: 3 * t)),
    ),
    "number in a load": (
        lambda: of("loads", beam(loads=Drag(0.1))),
        lambda: of("loads", beam(loads=Drag(0.2))),
    ),
    "Constant in a load": (
        lambda: of("loads", beam(loads=Drag(Constant(0.1)))),
        lambda: of("loads", beam(loads=Drag(Constant(0.2)))),
    ),
    "potential": (
        lambda: of("loads", beam(loads=Spring(1.0))),
        lambda: of("loads", beam(loads=Spring(2.0))),
    ),
    "velocity of an end": (
        lambda: of("left end", beam(left=moved(lambda t: 0 * t))),
        lambda: of("left end", beam(left=moved(lambda t: t))),
    ),
    "position": (
        lambda: of("right end", beam(right=fg.GivenPose(position=up(lambda t: t)))),
        lambda: of("right end", beam(right=fg.GivenPose(position=up(lambda t: 2 * t)))),
    ),
    "orientation": (
        lambda: of("left end", beam(left=fg.GivenPose(orientation=turned(sin)))),
        lambda: of("left end", beam(left=fg.GivenPose(orientation=turned(lambda t: t)))),
    ),
    "what is given": (
        lambda: of("left end", beam(left=fg.GivenPose(position=up(sin)))),
        lambda: of("left end", beam(left=fg.Sliding("x"))),
    ),
    "shape at rest in time": (
        lambda: of("shape at rest", beam(reference_strain=moved(lambda t: 0.1 * t))),
        lambda: of("shape at rest", beam(reference_strain=moved(lambda t: 0.2 * t))),
    ),
    "shape at rest": (
        lambda: of("shape at rest", beam(reference_strain=(0, 0, 0.1, 0, 0, 0))),
        lambda: of("shape at rest", beam(reference_strain=(0, 0, 0.2, 0, 0, 0))),
    ),
    "number in a law": (
        lambda: of("law", beam(law=Stiffening(1.0))),
        lambda: of("law", beam(law=Stiffening(2.0))),
    ),
    "power in a law": (
        lambda: of("law", beam(law=Stiffening(Constant(1.0)))),
        lambda: of("law", beam(law=Stiffening(Constant(1.0), 6))),
    ),
    "Constant in a law": (
        lambda: of("law", beam(law=Stiffening(Constant(1.0)))),
        lambda: of("law", beam(law=Stiffening(Constant(2.0)))),
    ),
    "damping": (
        lambda: of("damping", beam(damping=1e-3)),
        lambda: of("damping", beam(damping=2e-3)),
    ),
    "coefficient in time": (
        lambda: of("balance", oscillator(lambda t: 1 + t)),
        lambda: of("balance", oscillator(lambda t: 1 + 2 * t)),
    ),
    "damping of an oscillator": (
        lambda: of("balance", oscillator(damping=0.1)),
        lambda: of("balance", oscillator(damping=0.2)),
    ),
    "boundary value": (
        lambda: of("given value 0", oscillator(bcs=held(1, sin))),
        lambda: of("given value 0", oscillator(bcs=held(1, lambda t: 2 * sin(t)))),
    ),
    "place of a condition": (
        lambda: of("condition 0 of bcs", oscillator(bcs=held(1))),
        lambda: of("condition 0 of bcs", oscillator(bcs=held(2))),
    ),
    "constraint": (
        lambda: of("condition 0", pendulum(1.0)),
        lambda: of("condition 0", pendulum(2.0)),
    ),
    "pairing": (
        lambda: of("pairing", pendulum(measure=FINE)),
        lambda: of("pairing", pendulum(measure=COARSE)),
    ),
    "fixed components": (
        lambda: of("condition 0 of bcs", pendulum(bcs=True)),
        lambda: of("condition 0 of bcs", pendulum()),
    ),
    "group": (lambda: of("group", body(SO3)), lambda: of("group", body(SO3.by("cay")))),
    "torque": (
        lambda: of("balance", body(SO3, lambda q, v, t: -0.1 * v)),
        lambda: of("balance", body(SO3, lambda q, v, t: -0.1 * t * v)),
    ),
}


def fingerprint_of(system):
    return fingerprint(SimpleNamespace(system=system))


@pytest.mark.parametrize("name", OTHERS)
def test_another_function(name):
    """It is named; the same program made once more, with other objects, is the same."""
    one, other = OTHERS[name]
    system, what = one()
    made = fingerprint_of(system)
    # What is only made for output and numbers must not count.
    if system.energies():
        system.energy()
    assert fingerprint_of(system) == made
    assert differences(made, fingerprint_of(one()[0])) == ([], [])
    serious, _ = differences(made, fingerprint_of(other()[0]))
    assert serious, "the difference was not seen"
    assert any(f"{what} of the " in sentence for sentence in serious), serious


def test_time_and_state_are_no_part_of_it():
    """A shape at rest, a load and an end that follow the time, and a state, at another time."""
    made = beam(
        left=fg.GivenPose(position=up(sin), orientation=turned(sin)),
        loads=fg.Load(force=up(sin), at="right"),
        reference_strain=moved(lambda t: 0.1 * t),
    )
    before = fingerprint_of(made)
    made.model.set_time(0.7)
    made.consistency.prepare()
    for f in made.functions().values():
        f.dat.data[:] += 0.3
    assert fingerprint_of(made) == before
    assembly = fg.Assembly([beam(loads=fg.Load(force=up(sin), at="right"))], loads=Drag(0.1))
    before = fingerprint_of(assembly)
    assembly.model.set_time(0.7)
    for f in (*assembly.functions().values(), *assembly.consistency.followers().values()):
        f.dat.data[:] += 0.3
    assert fingerprint_of(assembly) == before


def test_sections_along_a_beam():
    """Expressions and stations, by what they are and not by their samples."""
    mesh = IntervalMesh(3, 1.0)
    (s,) = SpatialCoordinate(mesh)

    def tapered(slope):
        width = 0.1 - slope * s
        section = fg.Section.rectangle(
            width, 0.1, density=1.0, youngs_modulus=1e4, poisson_ratio=0.3
        )
        return fingerprint_of(fg.Beam(mesh, section))

    def stations(factor):
        thick = fg.Section(factor * SECTION.stiffness, SECTION.inertia)
        return fingerprint_of(fg.Beam(mesh, fg.Section.along([(0.0, SECTION), (1.0, thick)])))

    for made in (tapered, stations):
        assert made(0.05) == made(0.05)
        serious, _ = differences(made(0.05), made(0.04))
        assert serious[0].startswith("section stiffness of the system: ")


def test_two_programs_and_a_file(tmp_path):
    """The sentence of `resume`; the same program goes on."""

    def made(f):
        hold = fg.GivenPose(position=up(f))
        load = fg.Load(force=up(f), at="right")
        return fg.GeneralizedAlpha(beam(left=hold, loads=load), dt=1e-3)

    path = tmp_path / "a.h5"
    fg.save(made(lambda t: 0.1 * t**2), path)
    fg.resume(made(lambda t: 0.1 * t**2), path)
    with pytest.raises(ValueError, match=r"a.h5' cannot be resumed from: left end of the system: "):
        fg.resume(made(lambda t: 1000 * t**2), path)
