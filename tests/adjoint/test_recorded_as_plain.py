"""What counts as set is decided by values, recorded or not: recorded runs and replays are plain runs."""

import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    VectorFunctionSpace,
    assemble,
    dot,
    dx,
    inner,
)
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from verification.beams import SOFT, set_smooth, uneven_mesh

import fdgeom as fg

DT = 0.1
METHODS = [fg.GeneralizedAlpha, fg.HermiteSimpson, fg.FourthOrderAlpha]


class Spring:
    """v̇ = f - k q, with the force and the stiffness as numbers, and an impulse that may be given."""

    def __init__(self, method=fg.GeneralizedAlpha, **options):
        mesh = fg.copies(1)
        self.space = VectorFunctionSpace(mesh, "DG", 0, dim=1)
        numbers = FunctionSpace(mesh, "R", 0)
        self.q, self.v, self.impulse = (Function(self.space) for _ in range(3))
        self.force, self.k = Function(numbers).assign(0.3), Constant(1.0)
        self.q.dat.data_wo[...] = 1.0
        self.stepper = method(
            fg.SecondOrderSystem(
                lambda q, v, a, t, w: (inner(a + self.k * q, w) - self.force * w[0]) * dx,
                self.q,
                self.v,
            ),
            DT,
            **options,
        )

    def objective(self):
        return assemble((dot(self.q, self.q) + self.v[0]) * dx)

    def number(self, value):
        return Function(self.force.function_space()).assign(value)

    def vector(self, value):
        made = Function(self.space)
        made.dat.data_wo[...] = value
        return made


def nothing_set(run, control):
    """The velocity is made a control where the steps have left it."""
    run.made = Control(run.v)
    run.stepper.advance(3)


def impulses(run, control):
    """One before each step."""
    for _ in range(3):
        run.v.assign(run.v + control)
        run.stepper.advance(1)


def another_force(run, control):
    """And the velocity, which is what it is."""
    run.force.assign(0.7)
    run.v.assign(run.v + control)
    run.stepper.advance(3)


def two_steppers(run, control):
    """One after the other, of one system."""
    other = fg.GeneralizedAlpha(run.stepper.system, DT / 2, t0=run.stepper.t)
    for _ in range(2):
        run.stepper.advance(2)
        other.advance(2)
    run.v.assign(run.v + control)
    run.stepper.advance(2)


PROGRAMS = [nothing_set, impulses, another_force, two_steppers]


def value_of(method, program, size, *, recorded=False):
    run = Spring(method)
    run.stepper.advance(4)
    control = run.vector(size)
    if recorded:
        continue_annotation()
    program(run, control)
    value = run.objective()
    pause_annotation()
    return run, control, value


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_number(method, program):
    """To the last bit, with an impulse that is zero and another one; in replays too."""
    for size in (0.0, 0.2):
        _, _, plain = value_of(method, program, size)
        run, control, value = value_of(method, program, size, recorded=True)
        assert value == plain
        if program is nothing_set:
            continue
        reduced = ReducedFunctional(value, Control(control))
        assert reduced(control) == plain
        for other in (0.05, 0.0):
            assert reduced(run.vector(other)) == value_of(method, program, other)[2]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("program", [impulses, another_force])
def test_derivative_of_that_number(method, program):
    """By differences of plain runs, of fourth order: their error is 1e-9 of the value or so."""

    def at(size):
        return value_of(method, program, size)[2]

    h, size = 1e-3, 0.2
    _, control, value = value_of(method, program, size, recorded=True)
    found = ReducedFunctional(value, Control(control)).derivative().dat.data_ro[0]
    expected = (8 * (at(size + h) - at(size - h)) - (at(size + 2 * h) - at(size - 2 * h))) / (
        12 * h
    )
    assert found == pytest.approx(expected, rel=1e-7)


def test_derivative_where_nothing_is_set():
    """What begins anew to the same state goes on; where it does not, the result jumps."""
    for program in (nothing_set, impulses):
        run, control, value = value_of(fg.GeneralizedAlpha, program, 0.0, recorded=True)
        made = run.made if program is nothing_set else Control(control)
        with pytest.raises(
            NotImplementedError, match="begins anew from any others; so the result jumps there"
        ):
            ReducedFunctional(value, made).derivative()

    def at(size):
        return value_of(fg.HermiteSimpson, impulses, size)[2]

    h = 1e-3
    _, control, value = value_of(fg.HermiteSimpson, impulses, 0.0, recorded=True)
    found = ReducedFunctional(value, Control(control)).derivative().dat.data_ro[0]
    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_gradients_without_a_tape_give_the_value_of_the_run(method):
    """After steps: by a force that is what it was, and by a velocity that nobody has set."""
    run, plain = Spring(method), Spring(method)
    form = (dot(run.q, run.q) + run.v[0]) * dx
    run.stepper.advance(4)
    value, (found,) = fg.gradient(run.stepper, 3, form, [run.force])
    plain.stepper.advance(7)
    assert value == pytest.approx(plain.objective(), rel=1e-15)

    def at(force):
        other = Spring(method)
        other.stepper.advance(4)
        other.force.assign(force)
        other.stepper.advance(3)
        return other.objective()

    h = 1e-3
    expected = (8 * (at(0.3 + h) - at(0.3 - h)) - (at(0.3 + 2 * h) - at(0.3 - 2 * h))) / (12 * h)
    assert found.dat.data_ro[0] == pytest.approx(expected, rel=1e-7)
    if method is fg.GeneralizedAlpha:
        with pytest.raises(NotImplementedError, match="the result jumps there"):
            fg.gradient(run.stepper, 3, form, [run.v])
    else:
        assert fg.gradient(run.stepper, 3, form, [run.v])[0] == value


def test_gradients_take_the_present_length_of_a_step():
    """Given as a Constant that has changed since the last step."""
    run, plain, step = Spring(), Spring(), Constant(0.1)
    form = (dot(run.q, run.q) + run.v[0]) * dx
    run.stepper.dt = step
    step.assign(0.03)
    plain.stepper.dt = 0.03
    value, _ = fg.gradient(run.stepper, 2, form, [run.force], running=form)
    expected = 0.0
    for _ in range(2):
        plain.stepper.advance()
        expected += 0.03 * plain.objective()
    assert value == pytest.approx(expected + plain.objective(), rel=1e-14)


def test_a_force_that_jumps_on_the_tape():
    """Values, replays and derivatives are those of the plain run, which finds other accelerations."""

    def value(first, second, *, recorded=False):
        run = Spring()
        numbers = run.number(first), run.number(second)
        if recorded:
            continue_annotation()
        run.force.assign(numbers[0])
        run.stepper.advance(3)
        run.force.assign(numbers[1])
        run.stepper.advance(3)
        found = run.objective()
        pause_annotation()
        return found, numbers

    plain, _ = value(0.3, 0.9)
    recorded, numbers = value(0.3, 0.9, recorded=True)
    assert recorded == plain
    reduced = ReducedFunctional(recorded, [Control(n) for n in numbers])
    run, h = Spring(), 1e-3
    assert reduced([run.number(0.5), run.number(0.2)]) == value(0.5, 0.2)[0]
    assert reduced([run.number(0.3), run.number(0.9)]) == plain
    found = [float(d.dat.data_ro[0]) for d in reduced.derivative()]

    def difference(move):
        def at(s):
            return value(0.3 + s * move[0], 0.9 + s * move[1])[0]

        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    assert found == pytest.approx([difference((1, 0)), difference((0, 1))], rel=1e-7)


def test_what_leaves_a_beam_as_it_is():
    """project() between steps sets nothing that they move."""

    def value(recorded):
        beam = set_smooth(fg.Beam(uneven_mesh(3), SOFT))
        beam.project()
        stepper = fg.GeneralizedAlpha(beam, 0.02)
        stepper.advance(2)
        if recorded:
            continue_annotation()
        beam.project()
        stepper.advance(2)
        found = assemble(dot(beam.position, beam.position) * dx)
        pause_annotation()
        return found

    assert value(True) == value(False)


def test_a_weight_of_shake_that_jumps_on_the_tape():
    """The multiplier is found anew in the recorded run, in replays and in derivatives."""

    def value(first, second, *, recorded=False):
        mesh = fg.copies(1)
        space, numbers = VectorFunctionSpace(mesh, "DG", 0, dim=2), FunctionSpace(mesh, "R", 0)
        q, p, weight = Function(space), Function(space), Function(numbers).assign(1.0)
        q.dat.data_wo[:] = [1, 0]
        system = fg.ConstrainedSystem(
            q, p, 0.5 * dot(p, p) * dx, weight * q[1] * dx,
            lambda m: m * (dot(q, q) - 1) / 2 * dx, Function(FunctionSpace(mesh, "DG", 0)),
        )  # fmt: skip
        stepper = fg.SHAKE(system, DT)
        given = [Function(numbers).assign(x) for x in (first, second)]
        if recorded:
            continue_annotation()
        for number in given:
            weight.assign(number)
            stepper.advance(2)
        # The momentum along the rod is what the multiplier changes.
        found = assemble((dot(p, q) + q[1] + p[0]) * dx)
        pause_annotation()
        return found, given

    recorded, given = value(0.7, 1.9, recorded=True)
    assert recorded == value(0.7, 1.9)[0]
    reduced, h = ReducedFunctional(recorded, [Control(number) for number in given]), 1e-3
    others = [
        Function(number.function_space()).assign(x)
        for number, x in zip(given, (0.4, 1.2), strict=True)
    ]
    assert reduced(others) == value(0.4, 1.2)[0]
    first, second = (float(d.dat.data_ro[0]) for d in reduced.derivative())

    def at(s):
        return value(0.4 + s, 1.2 - 2 * s)[0]

    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    assert first - 2 * second == pytest.approx(expected, rel=1e-7)
    # A weight that is assigned its own value leaves the multiplier, which any other value changes.
    same = [Function(number.function_space()).assign(0.7) for number in given]
    assert reduced(same) == value(0.7, 0.7)[0]
    with pytest.raises(NotImplementedError, match="so the result jumps there"):
        reduced.derivative()
