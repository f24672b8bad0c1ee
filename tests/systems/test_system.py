"""What every system answers: its coefficients, found from the forms, and its energy in parts."""

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
    cos,
    dot,
    dx,
    sin,
)

import fdgeom as fg
from fdgeom.systems.system import System

LENGTH, WIDTH, DENSITY, SPEED = 2.0, 0.1, 1200.0, 0.7
MATERIAL = {"density": DENSITY, "youngs_modulus": 2e7, "poisson_ratio": 0.3}


def names(system):
    found = [c.name if isinstance(c, Constant) else c.name() for c in system.model.coefficients()]
    assert len(set(found)) == len(found)
    return set(found)


def test_coefficients_of_a_poisson_system():
    """Constants, fields and Real-space Functions of energy and bracket; state and tests are none."""
    mesh = IntervalMesh(3, 3.0)
    scalars, reals = FunctionSpace(mesh, "DG", 0), FunctionSpace(mesh, "R", 0)
    z = Function(VectorFunctionSpace(mesh, "DG", 0, dim=2), name="z").assign(1.0)
    k, field = Constant(2.0, name="k"), Function(scalars, name="field").assign(1.0)
    real = Function(reals, name="real").assign(3.0)
    rate = Constant(1.0, name="rate")
    system = fg.PoissonSystem(
        z,
        (0.5 * k * z[0] ** 2 + 0.5 * real * field * z[1] ** 2) * dx,
        bracket=lambda a, b: rate * (a[0] * b[1] - a[1] * b[0]) * dx,
        pairing=lambda a, b: dot(a, b) * dx,
    )
    assert names(system) == {"k", "field", "real", "rate"}
    assert any(c is real for c in system.model.coefficients())


def test_coefficients_of_constraints_and_boundary_values():
    """A length that only the constraint's value holds, and a given displacement, are found."""
    mesh = fg.copies(2)
    space = VectorFunctionSpace(mesh, "DG", 0, dim=2)
    q, p, v = (Function(space, name=name) for name in ("q", "p", "v"))
    q.interpolate(as_vector([1.0, 0.0]))
    multiplier = Function(FunctionSpace(mesh, "DG", 0), name="multiplier")
    length, gravity, mass = (
        Constant(x, name=name) for x, name in ((1.0, "length"), (9.8, "gravity"), (1.0, "mass"))
    )

    def constraint(mult):
        return mult * (dot(q, q) - length**2) * dx

    pendulum = fg.ConstrainedSystem(
        q, p, 0.5 / mass * dot(p, p) * dx, gravity * q[1] * dx, constraint, multiplier
    )
    assert names(pendulum) == {"length", "gravity", "mass"}
    second = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (mass * dot(a, w) + gravity * sin(t) * w[1]) * dx,
        q,
        v,
        constraint=constraint,
        multiplier=multiplier,
    )
    assert names(second) == {"length", "gravity", "mass"}

    line = IntervalMesh(4, 1.0)
    u, rate = (Function(FunctionSpace(line, "CG", 1), name=name) for name in ("u", "rate"))
    amplitude, stiffness = Constant(0.1, name="amplitude"), Constant(4.0, name="stiffness")
    string = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (a * w + stiffness * dot(q.dx(0), w.dx(0))) * dx,
        u,
        rate,
        bcs=lambda t: [DirichletBC(u.function_space(), amplitude * sin(t), 1)],
    )
    assert names(string) == {"amplitude", "stiffness"}


def test_coefficients_of_rigid_bodies():
    mesh = fg.copies(2)
    orientation = Function(VectorFunctionSpace(mesh, "DG", 0, dim=4), name="orientation")
    orientation.interpolate(as_vector([1.0, 0.0, 0.0, 0.0]))
    velocity = Function(VectorFunctionSpace(mesh, "DG", 0, dim=3), name="velocity")
    weight, drag = Constant(2.0, name="weight"), Constant(0.1, name="drag")
    bodies = fg.RigidBodies(
        orientation,
        velocity,
        inertia=(1.0, 2.0, 3.0),
        potential=weight * orientation[1] ** 2 * dx,
        force=lambda q, v, t: -drag * v,
    )
    assert {"weight", "drag"} <= names(bodies)


class Stiffening(fg.SectionLaw):
    def __init__(self, c):
        self.c = c

    def energy(self, strain, stiffness):
        return 0.5 * dot(strain, stiffness * strain) + 0.25 * self.c * strain[3] ** 4


class Drag(fg.BodyLoad):
    def __init__(self, c):
        self.c = c

    def work(self, rod, g, v, t, virtual):
        return -self.c * dot(v, virtual)


@pytest.fixture(scope="module")
def beams():
    """A beam of everything that can be given, and what it is made of."""
    mesh = IntervalMesh(4, LENGTH)
    given = {
        name: Constant(value, name=name)
        for name, value in (
            ("modulus", 2e7),
            ("bend", 0.05),
            ("tip", 3.0),
            ("tau", 1e-3),
            ("quartic", 1e5),
            ("drag", 0.1),
        )
    }
    density = Function(FunctionSpace(mesh, "DG", 0), name="density").assign(DENSITY)
    swing = Constant(0.0, name="swing")
    (s,) = SpatialCoordinate(mesh)
    section = fg.Section.rectangle(
        WIDTH,
        WIDTH,
        density=density,
        youngs_modulus=given["modulus"] * (1 + 0.1 * s),
        poisson_ratio=0.3,
    )
    viscosity = as_vector([given["tau"]] * 6)
    beam = fg.Beam(
        mesh,
        section,
        left=fg.GivenPose(
            position=lambda t: as_vector([0, 0, swing * sin(t)]),
            orientation=lambda t: as_vector([1.0, 0.0, 0.0, 0.0]),
        ),
        reference_strain=as_vector([0, given["bend"] * cos(s), 0, 0, 0, 0]),
        damping=_diagonal(viscosity),
        law=Stiffening(given["quartic"]),
        loads=[
            fg.Gravity((0, 0, -9.81)),
            fg.Load(force=as_vector([0, given["tip"], 0]), at="right"),
            Drag(given["drag"]),
        ],
    )
    return beam, {*given, "density", "swing"}


def _diagonal(vector):
    from ufl import as_matrix

    return as_matrix([[vector[i] if i == j else 0.0 for j in range(6)] for i in range(6)])


def test_coefficients_of_a_beam(beams):
    """Section, law, shape at rest, damping, loads and given ends, through the fields sampled of them;

    beside the field of the strain at rest, which may be set by hand, and gravity's own Constant.
    """
    beam, given = beams
    own = [c for c in beam.model.coefficients() if c is beam.loads[0].acceleration]
    assert len(own) == 1
    found = names(beam) - {own[0].name}
    assert found == given | {"reference_strain"}
    assert names(beam.motion) - {own[0].name} == given | {"reference_strain"}


@pytest.fixture(scope="module")
def at_rest():
    """A straight beam along x, turning about its left end, under gravity along x; its assembly."""
    made = []
    for _ in range(2):
        beam = fg.Beam(
            IntervalMesh(4, LENGTH),
            fg.Section.rectangle(WIDTH, WIDTH, **MATERIAL),
            loads=fg.Gravity((-3.0, 0.0, 0.0)),
        )
        beam.velocity.interpolate(
            as_vector([0, 0, SPEED, 0, SPEED * SpatialCoordinate(beam.mesh)[0], 0])
        )
        beam.project()
        beam.strain.interpolate(as_vector([0, 0, 0, 0.01, 0, 0]))
        beam.reconstruct()
        made.append(beam)
    return made


def test_energy_means_the_same_whatever_moves_the_beam(at_rest):
    """The beam, its motion in space and an assembly of it: by hand, part by part."""
    alone, joined = at_rest
    x = 1.01 * np.linspace(0, LENGTH, 5)
    lengths = np.array([0.25, 0.5, 0.5, 0.5, 0.25])
    arc = np.linspace(0, LENGTH, 5)
    area, moment = WIDTH**2, WIDTH**4 / 12
    expected = {
        "kinetic_energy": 0.5 * DENSITY * SPEED**2 * np.sum(lengths * (area * arc**2 + moment)),
        "potential_energy": 0.5 * MATERIAL["youngs_modulus"] * area * 0.01**2 * LENGTH,
        "load_potential": 3.0 * DENSITY * area * np.sum(lengths * x),
    }
    expected["energy"] = sum(expected.values())
    motion = alone.motion
    motion.consistency.prepare()
    for system in (alone, motion, fg.Assembly([joined])):
        assert list(system.energies()) == [*expected][:3] + ["energy"]
        found = {name: getattr(system, name)() for name in expected}
        # Sums of a few terms of one sign.
        assert found == pytest.approx(expected, rel=1e-12)


class Nothing(System):
    """A system that moves one function, and has nothing else."""

    def __init__(self):
        super().__init__(fg.copies(1))
        self.q = Function(FunctionSpace(self.mesh, "DG", 0))

    def functions(self):
        return {"q": self.q}

    def check_start(self):
        self._check_finite()


def test_defaults_are_those_of_a_system_that_has_nothing():
    system = Nothing()
    assert system.model.coefficients() == ()
    assert system.energies() == system.momenta() == system.casimirs() == {}
    assert system.model.parameters() == system.model.equations() == {}
    assert system.constraint is None
    assert system.constraint_defect() == system.velocity_defect() == 0.0
    assert system.output.fields() == system.functions()
    assert system.output.coordinates is None
    consistency = system.consistency
    for act in (
        consistency.prepare, consistency.settle, system.check_start, system.output.refresh,
    ):  # fmt: skip
        act()
    system.q.assign(np.nan)
    with pytest.raises(ValueError, match="q holds values that are not finite"):
        system.check_start()
    with pytest.raises(ValueError, match="this Nothing states no energy"):
        system.energy()


def test_a_system_without_its_own_members_cannot_be_made():
    class Unsaid(System):
        """Says nothing of itself."""

    with pytest.raises(TypeError, match="check_start.*functions"):
        Unsaid(fg.copies(1))


@pytest.mark.parametrize(
    ("hook", "owner"),
    [
        ("output_fields", "output"),
        ("publish", "consistency"),
        ("forcing", "substeps"),
        ("all_forms", "model"),
        ("can", "traits"),
    ],
)
def test_a_hook_that_moved_is_refused(hook, owner):
    """Nobody would read it, so that the system would move without it."""
    with pytest.raises(TypeError, match=rf"Own\.{hook} is never read: define it in .*Own\.{owner}"):
        type("Own", (fg.PoissonSystem,), {hook: lambda self: []})


def test_a_hook_that_moved_is_refused_on_an_instance():
    """Capabilities were attributes, which a constructor could set."""

    class Own(fg.HamiltonianSystem):
        def __init__(self, *args):
            super().__init__(*args)
            self.can = frozenset()

    space = FunctionSpace(fg.copies(1), "DG", 0)
    q, p = Function(space, name="q"), Function(space, name="p")
    system = Own(q, p, (q**2 + p**2) / 2 * dx)
    with pytest.raises(TypeError, match=r"Own\.can is never read: define it in .*Own\.traits"):
        fg.StormerVerlet(system, 0.1)


def test_coefficients_are_those_of_all_forms():
    """Also of a beam of degree 2, which has no configuration form."""
    mesh = IntervalMesh(3, 1.0)
    modulus = Function(FunctionSpace(mesh, "R", 0), name="E").assign(100.0)
    section = fg.Section.rectangle(0.5, 0.6, density=1.0, youngs_modulus=modulus, poisson_ratio=0.3)
    for degree in (1, 2):
        beam = fg.Beam(mesh, section, degree=degree)
        assert [c.name() for c in beam.model.coefficients()] == ["E"]


@pytest.mark.parametrize("name", ["q", "state", "velocity", "multiplier"])
def test_numbers_of_a_real_space_are_no_state(name):
    """Their matrices have no rows; DG0 on one copy has the same values."""
    mesh = fg.copies(1)
    space = FunctionSpace(mesh, "DG", 0)
    q, p = Function(space), Function(space)
    real, other = (Function(FunctionSpace(mesh, "R", 0)) for _ in range(2))
    make = {
        "q": lambda: fg.HamiltonianSystem(real, other, (real**2 + other**2) * dx),
        "state": lambda: fg.PoissonSystem(
            real, real**2 * dx, lambda a, b: 0 * a * b * dx, lambda a, b: a * b * dx
        ),
        "velocity": lambda: fg.LagrangianSystem(q, real, real**2 * dx),
        "multiplier": lambda: fg.ConstrainedSystem(
            q, p, p**2 * dx, q * dx, lambda k: k * q * dx, real
        ),
    }
    message = rf"^{name} must not be of a Real space: .* DG0 on fdgeom.copies\(1\)"
    with pytest.raises(ValueError, match=message):
        make[name]()
