"""Equilibria on pyadjoint's tape, against differences of equilibria without one."""

import numpy as np
import pytest
from derivable import directions, holding, objective
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_matrix,
    as_vector,
    assemble,
    cos,
    ds,
    sin,
    sqrt,
)
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    pause_annotation,
    stop_annotating,
    taylor_test,
    taylor_to_dict,
)
from verification.joined import straight

import fdgeom as fg
from fdgeom.errors import SolveFailed
from fdgeom.lie.arrays import quaternion


def cantilever():
    """Of a modulus, a tip load and a curvature at rest that are Functions; two loads beside."""
    mesh = IntervalMesh(4, 1.0)
    (s,) = SpatialCoordinate(mesh)
    modulus = Function(FunctionSpace(mesh, "CG", 1)).interpolate(100 + 30 * s)
    tip = Function(FunctionSpace(mesh, "R", 0)).assign(0.8)
    curvature = Function(FunctionSpace(mesh, "DG", 0)).assign(0.2)
    section = fg.Section.rectangle(0.5, 0.6, density=1.0, youngs_modulus=modulus, poisson_ratio=0.3)
    beam = fg.Beam(
        mesh,
        section,
        left="clamped",
        loads=[fg.Load(force=as_vector([0.5, 0, tip]), at="right"), fg.Gravity((0, 0, -0.3))],
        reference_strain=as_vector([curvature, 0, 0, 0, 0, 0]),
    )
    return beam, [beam], [modulus, tip, curvature]


def corner():
    """Two beams with a hinge between, both clamped, one of them loaded."""
    section = fg.Section(np.diag([1.0, 2.0, 1.5, 90.0, 80.0, 70.0]), np.eye(6))
    first = straight((0, 0, 0), (1.0, 0, 0), 2, section, left="clamped")
    load = fg.Load(force=(0.3, 0.2, -0.8), at=0.5)
    second = straight((1.0, 0, 0), (1.0, 0, 1.0), 2, section, right="clamped", loads=load)
    hinge = fg.Revolute(first.right, second.left, axis=(0, 1, 0))
    return fg.Assembly([first, second], [hinge]), [first, second], []


class Held:
    """An equilibrium by all that it is made of and by the poses that it begins with."""

    def __init__(self, make) -> None:
        system, beams, self.data = make()
        self.statics = fg.StaticEquilibrium(system)
        self.statics.solve(0.5)
        self.poses = [f for beam in beams for f in (beam.position, beam.orientation)]
        self.start = [np.array(f.dat.data_ro) for f in self.poses]
        self.objective = objective(self.poses)

    def again(self):
        """Stand at the start."""
        for f, values in zip(self.poses, self.start, strict=True):
            f.dat.data_wo[...] = values
        self.statics.solve(0.5)
        for f, values in zip(self.poses, self.start, strict=True):
            f.dat.data_wo[...] = values

    def value(self, poses, data):
        """The objective in the equilibrium at load 1."""
        self.again()
        for f, values in zip(self.poses + self.data, [*poses, *data], strict=True):
            f.dat.data_wo[...] = values
        self.statics.solve(1.0)
        return assemble(self.objective)


@pytest.mark.parametrize("make", [cantilever, corner])
def test_equilibrium(make, rng):
    held = Held(make)
    data = [np.array(f.dat.data_ro) for f in held.data]
    moved = directions(held.poses + held.data, rng)
    for k in range(1, len(held.poses), 2):
        # Turned, not stretched.
        q = held.start[k]
        moved[k] = 0.3 * quaternion.product(q, np.insert(moved[k][:, 1:], 0, 0.0, axis=1))

    def at(size):
        new = [x + size * d for x, d in zip([*held.start, *data], moved, strict=True)]
        poses, others = new[: len(held.poses)], new[len(held.poses) :]
        for k in range(1, len(poses), 2):
            poses[k] = quaternion.normalize(poses[k])
        return held.value(poses, others)

    h = 1e-3
    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    plain, elsewhere = held.value(held.start, data), at(0.01)
    held.again()
    for f, values in zip(held.data, data, strict=True):
        f.dat.data_wo[...] = values

    continue_annotation()
    given = [holding(f, f.dat.data_ro) for f in held.poses + held.data]
    for f, x in zip(held.poses + held.data, given, strict=True):
        f.assign(x)
    held.statics.solve(1.0)
    value = assemble(held.objective)
    pause_annotation()
    reduced = ReducedFunctional(value, [Control(x) for x in given])
    assert value == pytest.approx(plain, rel=1e-12)
    here = [np.array(f.dat.data_ro) for f in held.poses]
    there = [x + 0.01 * d for x, d in zip([*held.start, *data], moved, strict=True)]
    for k in range(1, len(held.poses), 2):
        there[k] = quaternion.normalize(there[k])
    replayed = reduced([holding(x, y) for x, y in zip(given, there, strict=True)])
    assert replayed == pytest.approx(elsewhere, rel=1e-12)
    # Of the same start, so to the last bit; what is there stays.
    assert reduced(given) == pytest.approx(value, rel=1e-15)
    for f, values in zip(held.poses, here, strict=True):
        assert np.array_equal(f.dat.data_ro, values)
    assert held.statics.load == 1.0

    gradient = reduced.derivative()
    terms = [g.dat.data_ro * d for g, d in zip(gradient, moved, strict=True)]
    along, scale = sum(t.sum() for t in terms), sum(abs(t).sum() for t in terms)
    assert along == pytest.approx(expected, abs=1e-8 * scale)
    # Of the start only what is held matters.
    free = np.abs(gradient[0].dat.data_ro).max(axis=1) > 0
    assert free.sum() == 1
    directed = [holding(x, d) for x, d in zip(given, moved, strict=True)]
    assert reduced.tlm(directed) == pytest.approx(along, abs=1e-12 * scale)
    if held.data:
        small = [holding(x, 0 * d) for x, d in zip(given, moved, strict=True)]
        for x, d in zip(small[len(held.poses) :], moved[len(held.poses) :], strict=True):
            x.dat.data_wo[...] = 0.1 * d
        assert taylor_test(reduced, given, small) > 1.95


@pytest.fixture(scope="module")
def arch():
    """Of 215°, clamped and hinged, with a modulus that is a Function; stiff against leaving its plane."""
    half = np.deg2rad(215) / 2
    mesh = IntervalMesh(6, 2 * half)
    (s,) = SpatialCoordinate(mesh)
    modulus = Function(FunctionSpace(mesh, "CG", 1)).interpolate(1 + 0.1 * s)
    a = s - half
    shape = as_vector([sin(a), 0, cos(a)]), as_vector([cos(a / 2), 0, sin(a / 2), 0])
    beam = fg.Beam(
        mesh,
        fg.Section(modulus * as_matrix(np.diag([50, 1, 50, 900, 800, 800]).tolist()), np.eye(6)),
        left="clamped",
        right="pinned",
        reference_shape=shape,
        loads=fg.Load(force=(0, 0, -1.0), at=half),
    )
    poses = [beam.position, beam.orientation]
    start = [np.array(f.dat.data_ro) for f in poses]

    def statics():
        for f, values in zip(poses, start, strict=True):
            f.dat.data_wo[...] = values
        return fg.StaticEquilibrium(beam)

    return beam, modulus, statics


def solved_again(statics, poses, found, aim):
    """The sum of an aim over loads, each solved for from where a path was at it."""
    total = 0.0
    for load, there in found:
        for f, values in zip(poses, there, strict=True):
            f.dat.data_wo[...] = values
        statics.solve(load)
        total += assemble(aim)
    return total


def test_points_of_a_path(arch, rng):
    """Two behind the limit of the load: each is the equilibrium at its load, on its own branch."""
    beam, modulus, make = arch
    statics = make()
    poses = [beam.position, beam.orientation]
    aim = objective([beam.position])
    while not statics.points:
        statics.follow(0.2)
    direction = rng.uniform(0.5, 1.0, modulus.dat.data_ro.shape)
    here = np.array(modulus.dat.data_ro)
    continue_annotation()
    modulus.assign(control := holding(modulus, here))
    value, found = 0.0, []
    for _ in range(2):
        load = statics.follow(0.05)
        value = value + assemble(aim)
        found.append((load, [np.array(f.dat.data_ro) for f in poses]))
    pause_annotation()
    assert found[1][0] < found[0][0] < statics.points[0].load
    assert len(statics.points) == 1
    reduced = ReducedFunctional(value, Control(control))

    def at(size):
        modulus.dat.data_wo[...] = here + size * direction
        return solved_again(statics, poses, found, aim)

    h = 1e-4
    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    elsewhere, plain = at(1e-3), at(0.0)
    assert value == pytest.approx(plain, rel=1e-10)
    directed = holding(control, direction)
    assert reduced(holding(control, here + 1e-3 * direction)) == pytest.approx(elsewhere, rel=1e-10)
    assert reduced(control) == pytest.approx(value, rel=1e-13)
    terms = reduced.derivative().dat.data_ro * direction
    assert terms.sum() == pytest.approx(expected, abs=1e-7 * abs(terms).sum())
    assert reduced.tlm(directed) == pytest.approx(terms.sum(), abs=1e-12 * abs(terms).sum())
    orders = taylor_to_dict(reduced, control, holding(control, 4e-2 * direction))
    assert min(orders["R1"]["Rate"]) > 1.95
    assert min(orders["R2"]["Rate"]) > 2.95


def test_a_branch_on_the_tape():
    """A column leaves the straight path, and goes on: its derivatives, the second ones too."""
    mesh = IntervalMesh(4, 1.0)
    stiffness = Function(FunctionSpace(mesh, "R", 0)).assign(1.0)
    rigid = as_matrix(np.diag([3.0, 0, 3, 1e3, 400, 400]).tolist())
    weak = as_matrix(np.diag([0.0, 1, 0, 0, 0, 0]).tolist())
    beam = fg.Beam(
        mesh,
        fg.Section(rigid + stiffness * weak, np.eye(6)),
        left="clamped",
        loads=fg.Load(force=lambda t: as_vector([-(1 + t), 0, 0]), at="right"),
    )
    statics, aim = fg.StaticEquilibrium(beam), objective([beam.position])
    statics.follow(0.05)
    assert [point.kind for point in statics.points] == ["bifurcation"]
    # The branch leaves at the time of its point.
    statics.solve(0.0, time=1.0)
    poses = [beam.position, beam.orientation]
    continue_annotation()
    stiffness.assign(control := holding(stiffness, [1.0]))
    value, found = 0.0, []
    for go_on, step in ((statics.switch, 0.1), (statics.follow, 0.2)):
        load = go_on(step)
        value = value + assemble(aim)
        found.append((load, [np.array(f.dat.data_ro) for f in poses]))
    pause_annotation()
    assert abs(beam.position.dat.data_ro[:, 2]).max() > 0.1

    def at(number):
        stiffness.assign(number)
        return solved_again(statics, poses, found, aim)

    # So small that it does not come back to the straight path, whose load is near.
    h = 2e-4
    slope = (8 * (at(1 + h) - at(1 - h)) - (at(1 + 2 * h) - at(1 - 2 * h))) / (12 * h)
    reduced = ReducedFunctional(value, Control(control))
    assert reduced.derivative().dat.data_ro[0] == pytest.approx(slope, rel=1e-6)
    orders = taylor_to_dict(reduced, control, holding(control, [0.2]))
    assert min(orders["R1"]["Rate"]) > 1.95
    assert min(orders["R2"]["Rate"]) > 2.95


def test_a_point_at_the_limit(arch):
    """There the equilibrium at a fixed load has no derivative."""
    beam, _, make = arch
    statics = make()
    step = 0.2
    while abs(step) > 1e-6:
        load = statics.load
        if statics.follow(step) < load:
            step = -step / 2
    load, before, points = statics.load, np.array(beam.position.dat.data_ro), statics.points
    continue_annotation()
    with pytest.raises(NotImplementedError, match="has reached a limit point of the load"):
        statics.follow(step)
    assert statics.load == load
    assert statics.points == points
    assert np.array_equal(beam.position.dat.data_ro, before)


def test_a_point_of_a_path_at_its_load():
    """One that was found off the tape goes onto it by `solve`."""
    _, (beam,), (_, tip, _) = found = cantilever()
    statics = fg.StaticEquilibrium(found[0])
    statics.solve(0.1)
    continue_annotation()
    with stop_annotating():
        load = statics.follow(0.1, steps=2)
    tip.assign(control := holding(tip, tip.dat.data_ro))
    before = np.array(beam.position.dat.data_ro)
    statics.solve(load)
    value = assemble(objective([beam.position]))
    pause_annotation()
    assert np.abs(beam.position.dat.data_ro - before).max() < 1e-12
    slope = ReducedFunctional(value, Control(control)).derivative().dat.data_ro[0]

    def at(force):
        tip.assign(force)
        statics.solve(load)
        return assemble(objective([beam.position]))

    expected = (8 * (at(0.81) - at(0.79)) - (at(0.82) - at(0.78))) / 0.12
    assert slope == pytest.approx(expected, rel=1e-7)


def pulled():
    """A bar of EA = 100 whose force grows with its factor and is not finite after t = 1.5."""
    mesh = IntervalMesh(4, 1.0)
    factor = Function(FunctionSpace(mesh, "R", 0)).assign(10.0)
    section = fg.Section(np.diag([1.0] * 3 + [100.0] * 3), np.diag([1e-3] * 3 + [1.0] * 3))
    load = fg.Load(force=lambda t: as_vector([factor * sqrt(1.5 - t), 0, 0]), at="right")
    return fg.Beam(mesh, section, left="clamped", loads=load), factor


@pytest.mark.parametrize(
    "go",
    [
        lambda statics: statics.solve(1.0, time=2.0, steps=2, halvings=0),
        lambda statics: statics.follow(0.01, steps=2),
    ],
    ids=["solve", "follow"],
)
def test_steps_before_one_that_fails_count_as_given(go, monkeypatch):
    beam, factor = pulled()
    statics = fg.StaticEquilibrium(beam)
    step = statics._path.step

    def once(*arguments):
        if statics.load:
            raise SolveFailed("again")
        beam.time.assign(1.0)
        step(*arguments)

    monkeypatch.setattr(statics._path, "step", once)
    control = Control(factor)
    continue_annotation()
    # A known variable, as of a system that the tape has moved before.
    statics.solve(0.0)
    sentence = "^position was changed where pyadjoint did not record"
    with pytest.warns(UserWarning, match=sentence), pytest.raises(fg.LoadStepFailed):
        go(statics)
    value = assemble(beam.position[0] * ds(2))
    pause_annotation()
    stretched = 1 + statics.load * 10 * np.sqrt(0.5) / 100
    assert stretched > 1.005
    assert value == pytest.approx(stretched, rel=1e-9)
    assert ReducedFunctional(value, control)(factor.copy(deepcopy=True)) == value


def test_given_poses_made_of_functions_are_refused():
    mesh = IntervalMesh(2, 1.0)
    where = Function(FunctionSpace(mesh, "CG", 1)).assign(1.0)
    beam = fg.Beam(
        mesh,
        fg.Section(np.eye(6), np.eye(6)),
        left="clamped",
        right=fg.GivenPose(position=lambda t: as_vector([0, 0, where])),
    )
    statics = fg.StaticEquilibrium(beam)
    continue_annotation()
    with pytest.raises(NotImplementedError, match="by a GivenPose that is made of Functions"):
        statics.solve()


@pytest.mark.parametrize(("time", "later"), [(0.7, None), (0.7, 1.5), (0.0, 1.5)])
def test_eigenvalue_at_a_time(time, later):
    """Where a load depends on time, the block remembers the time of its equilibrium."""
    mesh = IntervalMesh(4, 1.0)
    modulus = Function(FunctionSpace(mesh, "R", 0)).assign(100.0)
    section = fg.Section.rectangle(0.5, 0.6, density=1.0, youngs_modulus=modulus, poisson_ratio=0.3)
    load = fg.Load(force=lambda t: (0.5, 0.2, 0.8 * (1 + t)), at="right")
    beam = fg.Beam(mesh, section, left="clamped", loads=[load])
    statics = fg.StaticEquilibrium(beam)

    def at(value):
        modulus.assign(value)
        statics.solve(1.0, time=time)
        return fg.VibrationModes(beam, 3).eigenvalue(1)

    h = 0.5
    slope = (8 * (at(100 + h) - at(100 - h)) - (at(100 + 2 * h) - at(100 - 2 * h))) / (12 * h)
    elsewhere = at(102.0)
    given = Function(modulus.function_space()).assign(100.0)
    continue_annotation()
    modulus.assign(given)
    statics.solve(1.0, time=time)
    value = fg.VibrationModes(beam, 3).eigenvalue(1)
    pause_annotation()
    if later is not None:
        statics.solve(1.0, time=later)
    left = float(beam.time)
    reduced = ReducedFunctional(value, Control(given))
    # Five-point differences of equilibria, which are solved to 1e-10.
    assert reduced.derivative().dat.data_ro[0] == pytest.approx(slope, rel=1e-7)
    assert reduced(Function(given).assign(102.0)) == pytest.approx(elsewhere, rel=1e-9)
    assert float(beam.time) == left


def test_eigenvalue():
    """Of a loaded beam, through its equilibrium; the last one known is refused."""
    beam, _, (modulus, tip, _) = cantilever()
    statics = fg.StaticEquilibrium(beam)
    here = [np.array(f.dat.data_ro) for f in (modulus, tip)]

    def at(size):
        modulus.dat.data_wo[...] = here[0] * (1 + size)
        tip.dat.data_wo[...] = here[1] + size
        statics.solve(1.0)
        return fg.VibrationModes(beam, 3).eigenvalue(1)

    h = 1e-3
    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    plain, elsewhere = at(0.0), at(0.01)
    at(0.0)
    given = [holding(f, x) for f, x in zip((modulus, tip), here, strict=True)]
    continue_annotation()
    for f, x in zip((modulus, tip), given, strict=True):
        f.assign(x)
    statics.solve(1.0)
    modes = fg.VibrationModes(beam, 3)
    value = modes.eigenvalue(1)
    for name in ("eigenvalues", "frequencies", "shapes"):
        sentence = (
            rf"^VibrationModes.{name} is not recorded .* or take eigenvalue\(k\), which is rec"
        )
        with pytest.raises(NotImplementedError, match=sentence):
            getattr(modes, name)
    with pytest.raises(NotImplementedError, match="of the last mode"):
        modes.eigenvalue(2)
    assert modes.eigenvalue(1) == value
    pause_annotation()
    # Moved by hand it is another system than the one whose modes these are.
    beam.position.dat.data_wo[-1] += 1e-3
    continue_annotation()
    with pytest.raises(ValueError, match="^beam: its configuration or its data have changed since"):
        modes.eigenvalue(1)
    pause_annotation()
    beam.position.dat.data_wo[-1] -= 1e-3
    reduced = ReducedFunctional(value, [Control(x) for x in given])
    assert value == pytest.approx(plain, rel=1e-10)
    there = [holding(given[0], 1.01 * here[0]), holding(given[1], here[1] + 0.01)]
    assert reduced(there) == pytest.approx(elsewhere, rel=1e-10)
    assert reduced(given) == pytest.approx(value, rel=1e-10)
    by_modulus, by_tip = (g.dat.data_ro for g in reduced.derivative())
    along, size = (by_modulus * here[0]).sum() + by_tip.sum(), np.abs(by_modulus * here[0]).sum()
    assert along == pytest.approx(expected, abs=1e-6 * size)
    moved = [holding(given[0], here[0]), holding(given[1], 1.0)]
    assert reduced.tlm(moved) == pytest.approx(along, abs=1e-12 * size)
    with pytest.raises(NotImplementedError, match="^second derivatives of VibrationModes"):
        reduced.hessian(moved)


def test_multiple_eigenvalues_are_refused():
    section = fg.Section(np.diag([9.0, 2.0, 2.0, 90.0, 80.0, 80.0]), np.eye(6))
    modes = fg.VibrationModes(straight((0, 0, 0), (1.0, 0, 0), 3, section, left="clamped"), 4)
    continue_annotation()
    with pytest.raises(NotImplementedError, match="of a multiple eigenvalue"):
        modes.eigenvalue(0)


def test_eigenvalues_that_become_multiple_have_no_derivative():
    """A flat bar that a replay makes a square: its value is replayed, its derivatives are refused."""
    mesh = IntervalMesh(10, 1.0)
    number = FunctionSpace(mesh, "R", 0)
    width = Function(number).assign(0.03)
    section = fg.Section.rectangle(
        width, 0.02, density=7850, youngs_modulus=2.1e11, poisson_ratio=0.3
    )
    beam = fg.Beam(mesh, section, left="clamped")
    continue_annotation()
    control = Function(number).assign(0.03)
    width.assign(control)
    value = fg.VibrationModes(beam, 4).eigenvalue(0)
    pause_annotation()
    reduced = ReducedFunctional(value, Control(control))
    # A square is as stiff by its other side, but for rotary inertia and shear.
    assert reduced(Function(number).assign(0.02)) == pytest.approx(value, rel=1e-4)
    for derive in (reduced.derivative, lambda: reduced.tlm(Function(number).assign(1.0))):
        with pytest.raises(NotImplementedError, match="of a multiple eigenvalue"):
            derive()
    reduced(Function(number).assign(0.03))
    assert np.isfinite(reduced.derivative().dat.data_ro).all()


def test_neighbours_are_told_apart_by_their_own_size():
    """Bending stiffness 1 and 1.05: 5% are no multiple eigenvalue among modes a million times faster."""
    section = fg.Section(np.diag([1e3, 1.0, 1.05, 1e7, 1e7, 1e7]), np.diag([1e-5] * 3 + [1.0] * 3))
    beam = fg.Beam(IntervalMesh(60, 1.0), section, left="clamped")
    modes = fg.VibrationModes(beam, 24)
    continue_annotation()
    # Euler's cantilever: ω² = 1.875⁴ EI/(m L⁴).
    assert modes.eigenvalue(0) == pytest.approx(1.8751041**4, rel=1e-3)
    free = fg.VibrationModes(fg.Beam(IntervalMesh(60, 1.0), section), 8)
    with pytest.raises(NotImplementedError, match="of a multiple eigenvalue"):
        free.eigenvalue(2)  # a rigid motion


def test_replays_leave_what_a_given_pose_turns_from():
    """By 330 degrees at once, which is not by -30 degrees, also after a replay from another angle."""
    angle, mesh = Constant(0.0), IntervalMesh(4, 1.0)
    held = fg.GivenPose(
        position=lambda t: as_vector([0, 0, 0]),
        orientation=lambda t: as_vector([cos(angle / 2), 0, sin(angle / 2), 0]),
    )
    force = Function(FunctionSpace(mesh, "R", 0))
    load = fg.Load(force=as_vector([0, 0, force]), at="right")
    statics = fg.StaticEquilibrium(
        fg.Beam(mesh, fg.Section(np.eye(6), np.eye(6)), left=held, loads=load)
    )
    control = holding(force, 0.1)
    continue_annotation()
    force.assign(control)
    statics.solve()
    value = assemble(statics.beam.position[2] * ds(2))
    pause_annotation()
    angle.assign(1.0)
    statics.solve()
    assert ReducedFunctional(value, Control(control))(holding(force, 0.1)) == value
    angle.assign(1.0 + np.radians(330))
    with pytest.raises(
        fg.LoadStepFailed, match="turns by more than 90 degrees in half a load step"
    ):
        statics.solve()
