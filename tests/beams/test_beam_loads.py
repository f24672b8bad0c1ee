"""Loads in the steppers on strain and momentum: their work, their order, what is refused."""

import re

import numpy as np
import pytest
from firedrake import (
    And,
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    as_vector,
    conditional,
    gt,
    le,
    lt,
    sqrt,
)
from verification.beams import INERTIA, SOFT, STIFFNESS, along, arc, order, set_smooth, uneven_mesh

import fdgeom as fg
from fdgeom.lie.arrays import quaternion

FORCE, MOMENT, GRAVITY = (np.array(v) for v in ([0.5, -0.3, 0.8], [0.1, 0.2, -0.1], [0.2, 0, -0.5]))
STEPPERS = {
    "symmetric": fg.SymmetricPoissonIntegrator,
    "midpoint": fg.ImplicitMidpoint,
    "discrete gradient": fg.DiscreteGradient,
}


def loaded():
    loads = [
        fg.Load(force=FORCE, at="right"),
        fg.Load(moment=MOMENT, at="left", frame="body"),
        fg.Gravity(GRAVITY),
    ]
    return set_smooth(fg.Beam(uneven_mesh(8), SOFT, loads=loads))


class Power:
    """Of the three loads, in NumPy."""

    def __init__(self, beam):
        self.beam, self.order = beam, order(beam.velocity)
        lengths = np.diff(arc(beam.momentum))
        self.weights = 0.5 * (np.append(lengths, 0) + np.append(0, lengths))

    def __call__(self):
        v, q = (f.dat.data_ro[self.order] for f in (self.beam.velocity, self.beam.orientation))
        field = np.zeros((len(q), 6))
        field[:, 3:] = quaternion.rotate_inverse(q, np.broadcast_to(GRAVITY, (len(q), 3)))
        weight = self.weights @ np.einsum("ni,ij,nj->n", v, INERTIA, field)
        return FORCE @ quaternion.rotate(q[-1], v[-1, 3:]) + MOMENT @ v[0, :3] + weight


@pytest.mark.parametrize("name", STEPPERS)
def test_energy_changes_by_the_work_of_the_loads(name):
    defects = []
    for dt in (8e-3, 4e-3, 2e-3):
        beam = loaded()
        stepper = STEPPERS[name](beam, dt)
        power = Power(beam)
        energy, before, work = _internal_energy(beam), power(), 0.0
        for _ in range(round(0.4 / dt)):
            stepper.advance()
            after = power()
            work += dt * (before + after) / 2
            before = after
        # The loads do a good deal.
        assert abs(work) > 0.05
        defects.append(abs(_internal_energy(beam) - energy - work))
    # Method and trapezoidal rule are of second order.
    rates = np.log2(np.array(defects[:-1]) / np.array(defects[1:]))
    assert rates == pytest.approx(2, abs=0.3)
    assert defects[-1] < 1e-3


def _internal_energy(beam):
    return beam.kinetic_energy() + beam.potential_energy()


# Of masses: mass 1.5, its centre off the node; gravity has a potential for such an inertia only.
MASS, ARM = 1.5, np.array([0.05, -0.1, 0.08])
SKEW = MASS * np.cross(np.eye(3), ARM)
OFFSET = fg.Section(
    STIFFNESS, np.block([[np.diag([0.5, 0.3, 0.4]), SKEW], [SKEW.T, MASS * np.eye(3)]])
)
DEAD = [
    fg.Load(force=FORCE, at="right"),
    fg.Load(force=lambda s, t: as_vector([0.1, s, 0])),
    fg.Gravity(GRAVITY),
]


def test_one_energy_in_both_descriptions():
    """Strain–momentum and configuration form; against sums over the nodes in NumPy."""
    others = [fg.Load(moment=MOMENT, at="left", frame="body"), fg.Load(moment=MOMENT)]
    beam = fg.Beam(uneven_mesh(8), OFFSET, loads=DEAD + others, strain_measure="se3")
    set_smooth(beam)
    beam.motion.consistency.prepare()
    for name in ("kinetic_energy", "potential_energy", "load_potential", "energy"):
        one, other = (getattr(system, name)() for system in (beam, beam.motion))
        assert abs(one) > 0.01
        # The strain of a cell is another function of its two poses: to the square of its rotation.
        same = name in ("kinetic_energy", "load_potential")
        assert one == pytest.approx(other, rel=1e-12 if same else 2e-3)
    x, q, s = along(beam.position), along(beam.orientation), arc(beam.position)
    lengths = np.diff(s)
    weights = 0.5 * (np.append(lengths, 0) + np.append(0, lengths))
    moments = MASS * (x + quaternion.rotate(q, np.broadcast_to(ARM, x.shape)))
    forces = np.stack([0.1 + 0 * s, s, 0 * s], axis=1)
    expected = -FORCE @ x[-1] - weights @ (np.sum(forces * x, axis=1) + moments @ GRAVITY)
    assert beam.load_potential() == pytest.approx(expected, rel=1e-12)
    parts = beam.kinetic_energy() + beam.potential_energy() + beam.load_potential()
    assert beam.energy() == pytest.approx(parts, rel=1e-14)


@pytest.mark.parametrize("name", ["midpoint", "discrete gradient"])
def test_total_energy_with_dead_loads(name):
    """Kinetic, elastic and load energies change; their sum stays to the round-off of 100 steps."""
    beam = set_smooth(fg.Beam(uneven_mesh(8), OFFSET, loads=DEAD))
    stepper = STEPPERS[name](beam, 0.02)
    energy, load = beam.energy(), beam.load_potential()
    worst = 0.0
    for _ in range(100):
        stepper.advance()
        worst = max(worst, abs(beam.energy() - energy))
    assert abs(beam.load_potential() - load) > 0.3
    assert worst < 1e-12 * abs(energy)


def test_no_claim_for_another_configuration():
    beam = set_smooth(fg.Beam(uneven_mesh(8), OFFSET, loads=DEAD))
    with pytest.raises(ValueError, match="^configuration: with gravity or dead forces"):
        fg.DiscreteGradient(beam, 0.02, configuration="old")


def test_first_order_methods_and_compositions():
    """Errors in position fall by 2 (PoissonIntegrator, HamelFieldIntegrator) or 16."""
    reference = loaded()
    fg.Composition(fg.SymmetricPoissonIntegrator)(reference, 5e-4).advance(400)
    target = along(reference.position)
    cases = {
        fg.PoissonIntegrator: (4e-3, 2, 0.1),
        fg.HamelFieldIntegrator: (4e-3, 2, 0.1),
        fg.Composition(fg.SymmetricPoissonIntegrator): (2e-2, 16, 0.4),
    }
    for cls, (dt, factor, tolerance) in cases.items():
        errors = []
        for step in (dt, dt / 2):
            beam = loaded()
            stepper = cls(beam, step)
            assert stepper.is_compiled
            stepper.advance(round(0.2 / step))
            errors.append(np.abs(along(beam.position) - target).max())
        assert errors[0] / errors[1] == pytest.approx(factor, rel=tolerance)


@pytest.mark.parametrize("compiled", [True, False])
def test_both_paths(compiled):
    beam, other = loaded(), loaded()
    fg.SymmetricPoissonIntegrator(beam, 2e-3, compiled=compiled).advance(20)
    fg.SymmetricPoissonIntegrator(other, 2e-3, compiled=not compiled).advance(20)
    # Both solve to round-off.
    assert along(beam.momentum) == pytest.approx(along(other.momentum), abs=1e-12)


@pytest.mark.parametrize("name", STEPPERS)
@pytest.mark.parametrize("end_weight", [0.5, 1.0])
def test_free_fall_is_exact(name, end_weight):
    """A straight beam, its mass on the axis, falls by ½gt² and strains nowhere."""
    inertia = np.diag([0.5, 0.3, 0.4, 2.0, 2.0, 2.0])
    field = Constant([0.0, 0.0, -9.81])
    beam = fg.Beam(
        uneven_mesh(6),
        fg.Section(STIFFNESS, inertia),
        loads=fg.Gravity(field),
        end_weight=end_weight,
    )
    start = along(beam.position)
    stepper = STEPPERS[name](beam, 0.01)
    stepper.advance(50)
    fallen = along(beam.position) - start
    assert fallen == pytest.approx(np.tile([0, 0, -9.81 / 8], (7, 1)), abs=1e-11)
    assert np.abs(along(beam.strain)).max() < 1e-11
    # A Constant may be changed between steps.
    field.assign([0.0, 0.0, 0.0])
    stepper.advance(50)
    fallen = along(beam.position) - start
    assert fallen == pytest.approx(np.tile([0, 0, -9.81 * 3 / 8], (7, 1)), abs=1e-11)


def test_static_equilibrium_stays():
    """The strain–momentum form has the equilibria of the configuration form, to the mesh's order."""
    load = fg.Load(force=(0.1, 0.1, -0.15), at="right")
    gaps = []
    for cells in (6, 12):
        beam = fg.Beam(uneven_mesh(cells), SOFT, left="clamped", loads=load, strain_measure="se3")
        fg.StaticEquilibrium(beam).solve()
        target = along(beam.position)
        beam.project()
        start = along(beam.position)
        stepper = fg.SymmetricPoissonIntegrator(beam, 2e-3)
        mean = np.zeros_like(target)
        for _ in range(100):
            stepper.advance(10)
            mean += along(beam.position) / 100
        assert np.array_equal(start, target)
        # It hardly moves from there.
        gaps.append(np.abs(mean - target).max())
    assert gaps[0] < 5e-3
    assert gaps[0] / gaps[1] > 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 0.1}, "damping: steppers on strain and momentum do not support it"),
        (
            {"loads": fg.Load(force=lambda t: as_vector([t, 0, 0]), at="left")},
            "<dead force at 'left'> depends on the time, and steppers on strain and momentum",
        ),
        (
            {"loads": fg.Gravity(lambda s, t: as_vector([0, 0, t + s]))},
            "<gravity> depends on the time",
        ),
        ({"left": fg.Sliding("x")}, "left: Sliding('x', turning=True) is a condition in space"),
        (
            {"right": fg.GivenPose(position=lambda t: [0, 0, t])},
            "right: <given position> is a condition in space",
        ),
    ],
)
def test_bracket_steppers_refuse(options, message):
    beam = fg.Beam(uneven_mesh(3), SOFT, **options)
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        fg.SymmetricPoissonIntegrator(beam, 1e-3)


@pytest.mark.parametrize("name", ["loads", "section", "law", "damping", "velocity", "time"])
def test_what_the_equations_are_made_of_cannot_be_replaced(name):
    """A stepper or an equilibrium, made before or after, would go on with the former loads."""
    beam = fg.Beam(uneven_mesh(3), SOFT, left="clamped")
    value = (fg.Load(force=FORCE, at="right"),)
    with pytest.raises(
        AttributeError, match=f"^Beam.{name} cannot be replaced, since the equations"
    ):
        setattr(beam, name, value)
    with pytest.raises(AttributeError, match=r"set its values, such as by beam.time.assign\(...\)"):
        beam.time = 0.5


def test_other_attributes_are_free():
    """Those of a script, and those of a class derived from Beam, from before and after it is made."""

    class Counted(fg.Beam):
        def __init__(self, *args, **options):
            self.label = "a"
            super().__init__(*args, **options)
            self.count = 0

        def more(self):
            self.count += 1
            self.label = "b"

    beam = Counted(uneven_mesh(3), SOFT)
    beam.more()
    beam.colour = "red"
    beam.colour = "blue"
    assert (beam.label, beam.count, beam.colour) == ("b", 1, "blue")
    beam.rod  # noqa: B018
    for name in ("loads", "position", "ends", "rod"):
        with pytest.raises(AttributeError, match=f"^Counted.{name} cannot be replaced"):
            setattr(beam, name, None)


ROUND = fg.Section(np.diag([5.0, 3, 3, 100, 60, 60]), np.diag([0.5, 0.3, 0.3, 1, 1, 1]))
HALF_LOADED = [
    (fg.PoissonIntegrator, 1, lt, True),
    (fg.PoissonIntegrator, 1, le, False),
    (fg.SymmetricPoissonIntegrator, 1, lt, False),
    (fg.EnergyMomentum, 1, le, True),
    (fg.EnergyMomentum, 2, lt, False),
    (fg.GeneralizedAlpha, 2, le, True),
]


@pytest.mark.parametrize(("method", "parts", "compare", "compiled"), HALF_LOADED)
def test_a_load_that_jumps_at_a_node(method, parts, compare, compiled):
    """A force of 2 per length on half of a free beam of length 1: its momentum is Δt after a step."""
    dt = 1e-2
    load = fg.Load(force=lambda s: as_vector([0, 0, conditional(compare(s, 0.5), 2.0, 0.0)]))
    measure = {"strain_measure": "directors"} if method is fg.EnergyMomentum else {}
    beams = [fg.Beam(IntervalMesh(4, 1.0), ROUND, loads=load, **measure) for _ in range(parts)]
    system = beams[0] if parts == 1 else fg.Assembly(beams, joints=[])
    stepper = method(system, dt, compiled=compiled)
    stepper.advance(1)
    found = fg.Momentum()(stepper.system)["linear_momentum"]
    # The bracket form keeps momentum up to its order; a lost half of a node would be a quarter.
    assert found == pytest.approx([0, 0, parts * dt], abs=1e-6)


def test_a_place_that_changes():
    """Of a condition with a Constant; twice the same condition is no other share of the node."""
    dt, end = 1e-2, Constant(0.25)
    load = fg.Load(
        force=lambda s: as_vector(
            [0, conditional(lt(s, end), 1.0, 0.0) * conditional(lt(s, end), 2.0, 0.0), 0]
        )
    )
    beam = fg.Beam(IntervalMesh(4, 1.0), ROUND, loads=load)
    stepper = fg.PoissonIntegrator(beam, dt)
    stepper.advance(1)
    end.assign(0.5)
    stepper.advance(1)
    found = fg.Momentum()(stepper.system)["linear_momentum"]
    assert found == pytest.approx([0, 2 * dt * 0.25 + 2 * dt * 0.5, 0], abs=1e-6)


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("method", [fg.PoissonIntegrator, fg.GeneralizedAlpha])
def test_a_case_that_is_no_number_elsewhere(method, holds):
    """A load √(3 (1/3 - s)) on the first of three cells, by the trapezoidal rule."""
    dt, end = 1e-3, 1 / 3

    def force(s):
        root = sqrt(3 * (end - s))
        here = conditional(lt(s, end), root, 0.0) if holds else conditional(gt(s, end), 0.0, root)
        return as_vector([0, here, 0])

    # Three cells of a third: shares are 1 to round-off only.
    beam = fg.Beam(IntervalMesh(3, 1.0), ROUND, loads=fg.Load(force=force))
    stepper = method(beam, dt, compiled=True)
    stepper.advance(1)
    found = fg.Momentum()(stepper.system)["linear_momentum"]
    assert found == pytest.approx([0, dt * end / 2, 0], abs=1e-9)


def test_a_condition_on_data_by_cell():
    """Of the cell before the end of the load, not the mean of both cells at its node."""
    dt, mesh = 1e-2, IntervalMesh(4, 1.0)
    data = Function(FunctionSpace(mesh, "DG", 0))
    data.dat.data_wo[...] = [1.0, 2.0, 5.0, 7.0]
    load = fg.Load(force=lambda s: as_vector([0, conditional(lt(s, 0.5), data, 0.0), 0]))
    stepper = fg.PoissonIntegrator(fg.Beam(mesh, ROUND, loads=load), dt)
    stepper.advance(1)
    found = fg.Momentum()(stepper.system)["linear_momentum"]
    assert found == pytest.approx([0, dt * 0.25 * (1.0 + 2.0), 0], abs=1e-6)


@pytest.mark.parametrize("method", [fg.PoissonIntegrator, fg.EnergyMomentum])
def test_two_conditions(method):
    """A band between two nodes, by two conditions in each other."""
    dt = 1e-2
    load = fg.Load(
        force=lambda s: as_vector(
            [0, conditional(gt(s, 0.25), conditional(lt(s, 0.75), 2.0, 0.0), 0.0), 0]
        )
    )
    measure = {"strain_measure": "directors"} if method is fg.EnergyMomentum else {}
    beam = fg.Beam(IntervalMesh(4, 1.0), ROUND, loads=load, **measure)
    stepper = method(beam, dt)
    stepper.advance(1)
    found = fg.Momentum()(stepper.system)["linear_momentum"]
    assert found == pytest.approx([0, dt, 0], abs=1e-6)


def test_a_load_that_moves_over_nodes():
    """A band of length 1/2, which begins and ends at nodes in the middle of each step: its force is 1/2."""
    dt, steps = 0.02, 10

    def band(s, t):
        inside = And(gt(s, t + dt / 2), lt(s, t + dt / 2 + 0.5))
        return as_vector([0, conditional(inside, 1.0, 0.0), 0])

    mesh = IntervalMesh(50, 1.0)
    beam = fg.Beam(mesh, SOFT, loads=fg.Load(force=band))
    stepper = fg.EnergyMomentum(beam, dt)
    stepper.advance(steps)
    # Newton's tolerance; a node at either end would count wholly or not at all, for 0.02.
    found = fg.Momentum()(stepper.system)["linear_momentum"][1]
    assert found == pytest.approx(0.5 * steps * dt, abs=1e-9)


def test_a_load_that_reads_the_beam_itself_is_refused():
    """Its tangent would be missing, and its value that of the last step."""
    made = []
    load = fg.Load(force=lambda t: as_vector([0, 0, -20 * made[0].position[2]]))
    made.append(fg.Beam(IntervalMesh(2, 1.0), ROUND, loads=load))
    with pytest.raises(ValueError, match="it reads 'position' itself from outside"):
        fg.GeneralizedAlpha(made[0], 0.01)
