"""The recipes of "Inside fdgeom": one of each kind of one's own, in a module that is not in the package."""

import importlib.util

import numpy as np
import pytest
from firedrake import Function, IntervalMesh, VectorFunctionSpace, as_vector
from scipy.integrate import solve_ivp

import fdgeom as fg

MODULE = '''
import numpy as np
from firedrake import Constant, as_vector, dot, dx, ln

import fdgeom as fg
from fdgeom.operations import Copy


class LotkaVolterra(fg.PoissonSystem):
    """Hares and lynxes, ẋ = x(1 - y), ẏ = y(x - 1)."""

    def __init__(self, numbers):
        def bracket(a, b):
            return numbers[0] * numbers[1] * (a[1] * b[0] - a[0] * b[1]) * dx

        energy = (numbers[0] + numbers[1] - ln(numbers[0]) - ln(numbers[1])) * dx
        super().__init__(numbers, energy, bracket, pairing=lambda a, b: dot(a, b) * dx)


class Trapezoidal(fg.Stepper):
    """⟨w, z¹ - z⁰⟩ = Δt ({w, h}(z⁰) + {w, h}(z¹))/2."""

    moves = fg.PoissonSystem
    order = 2
    symmetric = True

    def flows(self):
        system, dt = self.system, Constant(0.0, name="dt")
        stage = system.substeps.stage(range(len(system.parts)))
        old, new, w = system.parts, stage.state, stage.test
        change = tuple(b - a for a, b in zip(old, new))
        flow = system.bracket(w, system.gradient(old), at=old)
        flow += system.bracket(w, stage.gradient, at=new)
        residual = fg.simplify(system.pairing(w, change) - 0.5 * dt * flow)
        guess, moved = system.substeps.start_values(stage), dict(zip(old, new))
        options = self.solve_options()
        solve = fg.Solve(work=residual, unknown=stage.unknown, dt=dt, options=options)
        first = [Copy(source=source, target=part) for part, source in guess.items()]
        return [fg.Flow([*first, solve, fg.Map(values=moved, dt=dt)])]


class Universal(fg.Joint):
    """Two nodes at one point; an axis of the first side stays square to one of the second."""

    size = 4

    @staticmethod
    def constraints(a, b):
        square = sum(a[1][k, 0] * b[1][k, 1] for k in range(3))
        return [*(b[0][k] - a[0][k] for k in range(3)), square]


class Pull(fg.BodyLoad):
    """A constant force along x at the right end."""

    def __init__(self, force):
        self.force = Constant(force)

    def potential(self, rod, g, t):
        return -rod.place("right") * self.force * g[0][0]


class Stiffening(fg.SectionLaw):
    """½ ε·Kε + ¼ c ε⁴ in the stretch."""

    def __init__(self, c):
        self.c = Constant(c)

    def energy(self, strain, stiffness):
        return 0.5 * dot(strain, stiffness * strain) + 0.25 * self.c * strain[3] ** 4


class Tip:
    """Where the right end of a beam is."""

    def bind(self, system):
        self.position = system.beams[0].position

    def sample(self):
        return {"tip": np.array(self.position.dat.data_ro[-1])}
'''


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """The module."""
    file = tmp_path_factory.mktemp("recipes") / "mine.py"
    file.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("mine", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


START, TIME = (2.0, 0.7), 1.0


def numbers():
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=2)
    return Function(space, name="numbers").interpolate(as_vector(START))


def test_system_by_a_stepper_that_is_there(mine):
    system = mine.LotkaVolterra(numbers())
    assert system.antisymmetry_defect() < 1e-14
    energy = system.energy()
    fg.DiscreteGradient(system, 0.1).advance(50)
    assert system.energy() == pytest.approx(energy, rel=1e-12)


def test_stepper_has_its_order(mine):
    def right(t, z):
        x, y = z
        return [x * (1 - y), y * (x - 1)]

    exact = solve_ivp(right, (0, TIME), START, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    errors = []
    for steps in (10, 20, 40):
        state = numbers()
        stepper = mine.Trapezoidal(mine.LotkaVolterra(state), TIME / steps)
        stepper.advance(steps)
        assert stepper.is_compiled
        errors.append(np.abs(state.dat.data_ro[0] - exact).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(2, abs=0.1)


SECTION = fg.Section(np.diag([1.0, 1.0, 1.0, 2.0, 9.0, 9.0]), np.diag([0.1, 0.1, 0.1, 1, 1, 1]))


def test_law_and_load(mine):
    """At rest EA ε + c ε³ is the force."""
    beam = fg.Beam(
        IntervalMesh(2, 1.0), SECTION, law=mine.Stiffening(30.0), left="clamped",
        loads=mine.Pull(0.9),
    )  # fmt: skip
    fg.StaticEquilibrium(beam).solve()
    stretch = np.roots([30.0, 0, 2.0, -0.9])
    stretch = stretch[np.abs(stretch.imag) < 1e-9].real[0]
    assert beam.position.dat.data_ro[:, 0].max() == pytest.approx(1 + stretch, rel=1e-10)


@pytest.mark.parametrize("first", ["beam", "ground"])
def test_joint_and_monitor(mine, first):
    """A beam that swings on a joint of two axes, one in each side, but does not turn about the third."""
    beam = fg.Beam(IntervalMesh(2, 1.0), SECTION, loads=fg.Gravity((0, 0.3, -1.0)))
    places = (beam.left, fg.ground) if first == "beam" else (fg.ground, beam.left)
    swing = fg.Assembly([beam], [mine.Universal(*places)])
    stepper = fg.GeneralizedAlpha(swing, 0.02)
    history = stepper.run(steps=10, monitors=[mine.Tip()])
    assert history["tip"].shape == (11, 3)
    assert history["tip"][-1] == pytest.approx(beam.position.dat.data_ro[-1], rel=1e-15)
    assert np.abs(history["tip"][-1] - [1, 0, 0]).max() > 1e-3
    # Place and axes, held to the round-off of the solves.
    (left,) = beam.position.function_space().boundary_nodes(1)
    assert np.abs(beam.position.dat.data_ro[left]).max() < 1e-12
    turned = fg.lie.arrays.quaternion.matrix(beam.orientation.dat.data_ro[left])
    # Axis 0 of the first place and axis 1 of the second.
    kept, free = (turned[1, 0], turned[0, 1]) if first == "beam" else (turned[0, 1], turned[1, 0])
    assert abs(kept) < 1e-12 < 1e-9 < abs(free)
    assert swing.gap() < 1e-12
