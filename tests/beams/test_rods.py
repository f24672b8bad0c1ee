"""The configuration form of a beam: strains, their derivatives, inertia, loads, against NumPy."""

import numpy as np
import pytest
import ufl
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    TestFunction,
    TrialFunction,
    as_vector,
    assemble,
    cos,
    derivative,
    dot,
    sin,
)
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation
from verification.beams import INERTIA, SOFT, STIFFNESS, along, set_random, uneven_mesh
from verification.numpy_beam import hat

import fdgeom as fg
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.rod import STRAINS, Rod
from fdgeom.beams.rod.variation import body_translation, check_poses
from fdgeom.beams.rod_of_beam import point_density
from fdgeom.forms import MATRIX_COMPILER
from fdgeom.lie.arrays import quaternion as arrays
from fdgeom.lie.groups import R3xSO3
from fdgeom.operations.dependent import refresh

CELLS = 4
MEASURES = tuple(STRAINS)


def bent(measure="simo-reissner", seed=5, **options):
    """A beam in a random configuration; neighbours turn by a quarter of a radian or so."""
    beam = fg.Beam(uneven_mesh(CELLS), SOFT, strain_measure=measure, **options)
    return set_random(beam, seed=seed, size=0.6)


def pose(beam):
    return beam.position, beam.orientation


def per_cell(beam, expression):
    """Values of an expression for the midpoints, in the order of the arc length."""
    space = beam.strain.function_space()
    form = beam.rod.cells.sum(dot(expression, TestFunction(space)) / beam.rod.cells.length)
    values = Function(space)
    values.dat.data_wo[...] = assemble(form).dat.data_ro
    return along(values)


def rotations(q):
    return Rotation.from_quat(np.roll(q, -1, axis=-1)).as_matrix()


def numpy_strain(measure, x, q, lengths):
    """The three measures by logarithms of matrices."""
    found = []
    for k, h in enumerate(lengths):
        a, b, offset = rotations(q[k]), rotations(q[k + 1]), x[k + 1] - x[k]
        relative = a.T @ b
        if measure == "simo-reissner":
            turn = Rotation.from_matrix(relative).as_rotvec()
            middle = a @ Rotation.from_rotvec(turn / 2).as_matrix()
            found.append([*turn / h, *middle.T @ offset / h])
        elif measure == "se3":
            motion = np.eye(4)
            motion[:3, :3], motion[:3, 3] = relative, a.T @ offset
            log = logm(motion).real
            found.append([log[2, 1] / h, log[0, 2] / h, log[1, 0] / h, *log[:3, 3] / h])
        else:
            skew = (relative - relative.T) / (2 * h)
            turn = [skew[2, 1], skew[0, 2], skew[1, 0]]
            found.append([*turn, *((a + b) / 2).T @ offset / h])
    return np.array(found) - np.eye(6)[3]


@pytest.mark.parametrize("measure", MEASURES)
def test_strain_against_numpy(measure):
    beam = bent(measure)
    lengths = np.diff(np.sort(beam.mesh.coordinates.dat.data_ro))
    expected = numpy_strain(measure, along(beam.position), along(beam.orientation), lengths)
    # The series of the logarithm ends with 6e-14 at the angles here (0.3); strains of order one.
    assert per_cell(beam, beam.rod.strain(pose(beam))) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("measure", MEASURES)
def test_rigid_motions_do_not_strain(measure):
    beam = bent(measure)
    before = per_cell(beam, beam.rod.strain(pose(beam)))
    turn = Rotation.random(random_state=3)
    q = np.roll(turn.as_quat(), 1)
    beam.orientation.dat.data_wo[...] = arrays.product(q, beam.orientation.dat.data_ro)
    beam.position.dat.data_wo[...] = beam.position.dat.data_ro @ turn.as_matrix().T + [3.0, -2, 1]
    # Round-off of positions of size four over cells of a third.
    assert per_cell(beam, beam.rod.strain(pose(beam))) == pytest.approx(before, abs=1e-13)


def test_logarithm_of_a_helix_is_exact():
    """The SE(3) measure gives back a constant strain from g(s) = exp(s (γ+e)), however long the cells."""
    beam = fg.Beam(uneven_mesh(3), SOFT, strain_measure="se3")
    strain = np.array([0.5, -0.4, 0.6, 0.1, 0.2, -0.3])
    g = np.array([expm(s * hat(strain + np.eye(6)[3])) for s in beam.mesh.coordinates.dat.data_ro])
    beam.position.dat.data_wo[...] = g[:, :3, 3]
    beam.orientation.dat.data_wo[...] = arrays.from_matrix(g[:, :3, :3])
    # A cell turns by 0.5: the series ends with 1e-12 there.
    expected = np.tile(strain, (3, 1))
    assert per_cell(beam, beam.rod.strain(pose(beam))) == pytest.approx(expected, abs=1e-11)


def loaded(measure):
    return bent(
        measure,
        reference_strain=as_vector([0.3, 0.1, 0.0, 0.0, 0.1, 0.0]),
        damping=0.1,
        loads=[
            fg.Load(force=(1.0, 2.0, 3.0), at="left"),
            fg.Load(moment=(1.0, -2.0, 0.3), at="right"),
            fg.Load(force=lambda s, t: [s, 1 + t, 2], moment=(0.1, 0.2, 0.4), frame="body"),
            fg.Gravity(lambda t: as_vector([0, 0, -9.81 * cos(t)])),
        ],
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_works_and_tangents_are_derivatives(measure):
    """Energy to internal work, works to stiffnesses, along rotations in the body frame."""
    beam = loaded(measure)
    rod, g, V = beam.rod, pose(beam), beam.velocity.function_space()
    test, trial = TestFunction(V), TrialFunction(V)
    work = rod.internal_work(g, test) - rod.external_work(g, test)
    tangent = (
        rod.material_stiffness(g, trial, test)
        + rod.geometric_stiffness(rod.stress(g), g, trial, test)
        - rod.load_stiffness(g, trial, test)
    )
    matrix = assemble(tangent, form_compiler_parameters=MATRIX_COMPILER).M.values
    internal = assemble(rod.internal_work(g, test)).dat.data_ro.ravel()
    x, q = (f.dat.data_ro.copy() for f in g)

    def at(displacement):
        d = displacement.reshape(-1, 6)
        beam.position.dat.data_wo[...] = x + d[:, 3:]
        beam.orientation.dat.data_wo[...] = arrays.product(q, arrays.exp(d[:, :3]))
        return assemble(work).dat.data_ro.ravel().copy(), assemble(rod.potential(g))

    size, step = len(internal), 1e-5
    slope, energy_slope = np.zeros((size, size)), np.zeros(size)
    for k, direction in enumerate(np.eye(size)):
        (ahead, high), (behind, low) = at(step * direction), at(-step * direction)
        slope[:, k], energy_slope[k] = (ahead - behind) / (2 * step), (high - low) / (2 * step)
    # Central differences: 1e-10 of truncation and round-off over the step.
    assert matrix == pytest.approx(slope, abs=1e-9 * np.abs(matrix).max())
    assert internal == pytest.approx(energy_slope, abs=1e-9 * np.abs(internal).max())


@pytest.mark.parametrize("measure", MEASURES)
def test_three_derivatives_are_finite_at_rest(measure):
    """No root or quotient of automatic differentiation is 0/0 in the straight beam."""
    beam = fg.Beam(uneven_mesh(2), SOFT, strain_measure=measure)
    V = beam.velocity.function_space()
    D = Function(V)
    one, two = Function(V), Function(V)
    for f in (one, two):
        f.dat.data_wo[...] = np.random.default_rng(1).normal(size=f.dat.data_ro.shape)
    moved = R3xSO3.by("cay").retract(pose(beam), D)
    form = beam.rod.potential(moved)
    for direction in (TestFunction(V), one, two):
        form = derivative(form, D, direction)
    values = assemble(form).dat.data_ro
    assert np.all(np.isfinite(values))
    assert np.abs(values).max() > 0.1


def test_damping_is_the_rate_of_strain():
    """Viscous stress = viscosity · dε/dt, by differences along the motion."""
    viscosity = STIFFNESS @ np.diag([1, 2, 3, 1, 2, 3.0]) @ STIFFNESS
    beam = bent(damping=viscosity)
    g, v = pose(beam), beam.velocity
    v.dat.data_wo[...] = np.random.default_rng(2).normal(size=v.dat.data_ro.shape)
    rod = beam.rod
    viscous = per_cell(beam, rod.stress(g, v) - rod.stress(g))
    x, q, w = (f.dat.data_ro.copy() for f in (*g, v))

    def strain(t):
        beam.position.dat.data_wo[...] = x + t * w[:, 3:]
        beam.orientation.dat.data_wo[...] = arrays.product(q, arrays.exp(t * w[:, :3]))
        return per_cell(beam, rod.strain(g))

    rate = (strain(1e-5) - strain(-1e-5)) / 2e-5
    # Central differences, rates of order ten times stiffness squared.
    assert viscous == pytest.approx(rate @ viscosity, rel=1e-7, abs=1e-6)


def test_a_damping_time_that_may_change():
    """τ as a Constant: the viscosity is τ times the stiffness."""
    tau = Constant(0.1)
    beam = fg.Beam(uneven_mesh(CELLS), SOFT, damping=tau)
    for value in (0.1, 0.3):
        tau.assign(value)
        refresh(beam.viscosity)
        found = beam.viscosity.dat.data_ro
        assert found == pytest.approx(np.broadcast_to(value * STIFFNESS, found.shape), rel=1e-14)
    tau.assign(-0.1)
    with pytest.raises(ValueError, match="damping must be symmetric and positive"):
        refresh(beam.viscosity)


def test_damping_of_a_thin_wire():
    """Bending is small beside stretch by the square of the radius, and is looked at, too."""
    wire = fg.Section.circle(1e-6, density=1e3, youngs_modulus=1e9, poisson_ratio=0.3)
    stiffness = np.array(wire.stiffness)
    skew = 0.01 * stiffness
    skew[0, 1] = 0.05 * stiffness[1, 1]
    for damping in (0.01 * stiffness @ np.diag([-1, -1, -1, 1, 1, 1]), skew):
        with pytest.raises(ValueError, match="damping must be symmetric and positive"):
            _ = fg.Beam(uneven_mesh(CELLS), wire, damping=damping).rod
    # Of some strains alone, also if round-off stands in place of zeros.
    bending = stiffness @ np.diag([0, 1, 1, 0, 0, 0])
    for noise in (0.0, -1e-14 * bending[1, 1]):
        damping = bending + np.diag([noise, 0, 0, 0, 0, 0])
        assert fg.Beam(uneven_mesh(CELLS), wire, damping=damping).rod.viscosity is not None


def test_damping_that_varies_in_the_rod_and_in_time():
    """An expression of the place and of a Constant, as the matrix of numbers in each cell."""
    mesh, factor = uneven_mesh(CELLS), Constant(1.0)
    matrix = np.diag([1, 2, 3, 1, 2, 3.0])
    (s,) = SpatialCoordinate(mesh)
    beams = [
        fg.Beam(mesh, SOFT, damping=damping)
        for damping in (matrix, factor * (1 + s) * ufl.as_matrix(matrix.tolist()))
    ]

    def viscous(beam):
        v = beam.velocity.interpolate(as_vector([s, 0, s**2, 0, s, s]))
        rod, g = beam.rod, pose(beam)
        return per_cell(beam, rod.stress(g, v) - rod.stress(g))

    x = np.sort(mesh.coordinates.dat.data_ro)
    there = 1 + (x[1:] + x[:-1])[:, None] / 2
    for value in (1.0, 2.5):
        factor.assign(value)
        refresh(beams[1].viscosity)
        assert viscous(beams[1]) == pytest.approx(value * there * viscous(beams[0]), rel=1e-12)


def node_weights(beam):
    lengths = np.diff(np.sort(beam.mesh.coordinates.dat.data_ro))
    return 0.5 * (np.append(lengths, 0) + np.append(0, lengths))


@pytest.mark.parametrize("end_weight", [0.5, 1.0])
def test_inertia_against_numpy(end_weight):
    """Kinetic energy and M V̇ - ad*_V(M V), with an inertia that couples all components."""
    beam = bent(end_weight=end_weight)
    rng = np.random.default_rng(4)
    v, a, w = (Function(beam.velocity.function_space()) for _ in range(3))
    for f in (v, a, w):
        f.dat.data_wo[...] = rng.normal(size=f.dat.data_ro.shape)
    R = rotations(along(beam.orientation))
    weights = node_weights(beam)
    if end_weight == 1.0:
        weights[[0, -1]] *= 2
    energy = work = 0.0
    for k, weight in enumerate(weights):
        (spin, linear), (spin_rate, linear_rate), (turn, shift) = (
            np.split(along(f)[k], 2) for f in (v, a, w)
        )
        body = np.concatenate([spin, R[k].T @ linear])
        rate = np.concatenate([spin_rate, R[k].T @ linear_rate - np.cross(spin, body[3:])])
        m, n = np.split(INERTIA @ body, 2)
        turned = np.concatenate([np.cross(m, spin) + np.cross(n, body[3:]), np.cross(n, spin)])
        energy += weight * 0.5 * body @ INERTIA @ body
        work += weight * (INERTIA @ rate - turned) @ np.concatenate([turn, R[k].T @ shift])
    g = pose(beam)
    # Sums of five nodes.
    rod = beam.rod
    kinetic = rod.cells.at_nodes(rod.inertia.kinetic(g[1], v))
    inertial = rod.cells.at_nodes(rod.inertia.work(g[1], v, a, w))
    assert assemble(kinetic) == pytest.approx(energy, rel=1e-13)
    assert assemble(inertial) == pytest.approx(work, rel=1e-12)
    assert assemble(beam.motion.inertia(v, v)) == pytest.approx(2 * energy, rel=1e-13)


def test_separate_inertia_is_the_general_one():
    """diag(J, m I) leaves the rotations of translations out, and nothing else."""
    numbers = np.diag([0.3, 0.2, 0.4, 1.7, 1.7, 1.7])
    numbers[0, 1] = numbers[1, 0] = 0.05
    assert Inertia.is_separate(numbers)
    assert not Inertia.is_separate(INERTIA)
    beam = fg.Beam(uneven_mesh(CELLS), fg.Section(STIFFNESS, numbers))
    set_random(beam)
    assert beam.rod.inertia.separate
    rng = np.random.default_rng(4)
    q, (v, a, w) = beam.orientation, (Function(beam.velocity.function_space()) for _ in range(3))
    for f in (v, a, w):
        f.dat.data_wo[...] = rng.normal(size=f.dat.data_ro.shape)
    plain = Inertia(ufl.as_matrix(numbers.tolist()))
    at_nodes = beam.rod.cells.at_nodes
    for name, arguments in (("kinetic", (v,)), ("work", (v, a, w)), ("mass_product", (v, w))):
        values = [
            assemble(at_nodes(getattr(i, name)(q, *arguments))) for i in (plain, beam.rod.inertia)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-13)


def rigid(beam, turn, shift):
    """The virtual displacement of a rigid motion: space rotation ``turn`` about the origin."""
    x, q = pose(beam)
    w = Function(beam.velocity.function_space())
    body = arrays.rotate_inverse(q.dat.data_ro, np.broadcast_to(turn, (CELLS + 1, 3)))
    w.dat.data_wo[:, :3] = body
    w.dat.data_wo[:, 3:] = shift + np.cross(turn, x.dat.data_ro)
    return w


def work_of(load, turn, shift, **options):
    beam = bent(loads=load, **options)
    return assemble(beam.rod.external_work(pose(beam), rigid(beam, turn, shift))), beam


def test_loads_do_the_work_of_their_resultants():
    """In a rigid motion; dead and follower, at ends, inside and along the beam, and weight."""
    turn, shift = np.array([0.3, -0.2, 0.5]), np.array([1.0, 0.4, -0.7])
    force, moment = np.array([1.0, -2.0, 0.5]), np.array([0.2, 0.7, -0.3])

    def expected(beam, weights, frame, force, moment):
        x, q = along(beam.position), along(beam.orientation)
        total = 0.0
        for k, weight in enumerate(weights):
            f, m = ((rotations(q[k]) @ y if frame == "body" else y) for y in (force(k), moment(k)))
            total += weight * (f @ (shift + np.cross(turn, x[k])) + m @ turn)
        return total

    middle = np.sort(uneven_mesh(CELLS).coordinates.dat.data_ro)[2]
    for frame in ("space", "body"):
        for at, node in (("left", 0), ("right", -1), (float(middle), 2), (None, None)):
            load = fg.Load(force=force, moment=moment, at=at, frame=frame)
            work, beam = work_of(load, turn, shift)
            weights = node_weights(beam)
            if at is not None:
                weights = np.zeros(CELLS + 1)
                weights[node] = 1.0
            wanted = expected(beam, weights, frame, lambda k: force, lambda k: moment)
            # Round-off of a sum of five.
            assert work == pytest.approx(wanted, rel=1e-12, abs=1e-13), (frame, at)

    # Along the beam and in time: at t = 2.
    load = fg.Load(force=lambda s, t: as_vector([s * t, sin(s), 1]))
    work, beam = work_of(load, turn, shift)
    beam.time.assign(2.0)
    work = assemble(beam.rod.external_work(pose(beam), rigid(beam, turn, shift)))
    s = np.sort(beam.mesh.coordinates.dat.data_ro)
    wanted = expected(
        beam,
        node_weights(beam),
        "space",
        lambda k: np.array([2 * s[k], np.sin(s[k]), 1]),
        lambda k: np.zeros(3),
    )
    assert work == pytest.approx(wanted, rel=1e-12)

    # Weight of sections whose centre of mass is beside the axis: force and moment of the inertia.
    field = np.array([0.5, -1.0, -9.81])
    work, beam = work_of(fg.Gravity(field), turn, shift)
    wanted = 0.0
    for k, weight in enumerate(node_weights(beam)):
        R = rotations(along(beam.orientation)[k])
        moment, force = np.split(INERTIA @ np.concatenate([np.zeros(3), R.T @ field]), 2)
        arm = shift + np.cross(turn, along(beam.position)[k])
        wanted += weight * ((R @ force) @ arm + (R @ moment) @ turn)
    assert work == pytest.approx(wanted, rel=1e-12)


def test_axis_and_varying_section():
    """The axis along the beam is stretched by a pull; the stiffness is the one at the midpoint."""
    mesh = uneven_mesh(CELLS)
    (s,) = SpatialCoordinate(mesh)
    section = fg.Section((1 + s) * Constant(STIFFNESS), INERTIA, axis=2)
    beam = fg.Beam(mesh, section)
    beam.position.dat.data_wo[...] *= 1.1
    strain = np.tile([0, 0, 0, 0, 0, 0.1], (CELLS, 1))
    assert per_cell(beam, beam.rod.strain(pose(beam))) == pytest.approx(strain, abs=1e-14)
    x = np.sort(mesh.coordinates.dat.data_ro)
    expected = (1 + (x[1:] + x[:-1])[:, None] / 2) * (strain @ STIFFNESS)
    assert per_cell(beam, beam.rod.stress(pose(beam))) == pytest.approx(expected, rel=1e-13)


def test_cells_of_a_network():
    """A cell in the middle that is no rod: two beams on one mesh."""
    mesh = uneven_mesh(3)
    order = np.argsort(mesh.coordinates.dat.data_ro)
    constant = FunctionSpace(mesh, "DG", 0)
    inside = Function(constant)
    place = np.argsort(Function(constant).interpolate(SpatialCoordinate(mesh)[0]).dat.data_ro)
    inside.dat.data_wo[place] = [1, 0, 1]
    cells = Cells(mesh, inside=inside)
    inertia = Inertia(ufl.as_matrix(INERTIA.tolist()))
    rod = Rod(
        cells=cells,
        stiffness=ufl.as_matrix(STIFFNESS.tolist()),
        inertia=inertia,
        section_inertia=inertia,
        tangent=as_vector([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
    )
    beam = set_random(fg.Beam(mesh, SOFT))
    x, q = along(beam.position), along(beam.orientation)
    # The joint's cell is torn open: half a turn, far apart.
    x[2:] += 5.0
    q[2:] = arrays.product(np.array([0.0, 1.0, 0.0, 0.0]), q[2:])
    beam.position.dat.data_wo[order], beam.orientation.dat.data_wo[order] = x, q
    energy = 0.0
    lengths = np.diff(np.sort(mesh.coordinates.dat.data_ro))
    for first, h in ((0, lengths[0]), (2, lengths[2])):
        (e,) = numpy_strain("simo-reissner", x[first : first + 2], q[first : first + 2], [h])
        energy += 0.5 * h * e @ STIFFNESS @ e
    g, V = pose(beam), beam.velocity.function_space()
    assert assemble(rod.potential(g)) == pytest.approx(energy, rel=1e-12)
    test, trial = TestFunction(V), TrialFunction(V)
    matrix = assemble(rod.material_stiffness(g, trial, test)).M.values
    assert np.all(np.isfinite(matrix))
    # Nodes on the two sides of the joint do not see each other.
    a, b = order[1], order[2]
    assert not matrix[6 * a : 6 * a + 6, 6 * b : 6 * b + 6].any()
    scalar = FunctionSpace(mesh, "CG", 1)
    weights = assemble(cells.at_nodes(TestFunction(scalar))).dat.data_ro[order]
    assert weights == pytest.approx(np.repeat(lengths[[0, 2]], 2) / 2, rel=1e-14)
    point = point_density(cells, np.array([order[2]]))
    assert assemble(cells.at_nodes(point * beam.position[1])) == pytest.approx(x[2, 1], rel=1e-14)


def test_body_translation():
    beam = bent()
    w, turned = (Function(beam.velocity.function_space()) for _ in range(2))
    w.dat.data_wo[...] = np.random.default_rng(1).normal(size=w.dat.data_ro.shape)
    turned.interpolate(body_translation(beam.orientation, w))
    R = rotations(beam.orientation.dat.data_ro)
    expected = np.einsum("nij,nj->ni", R, w.dat.data_ro[:, 3:])
    assert turned.dat.data_ro[:, 3:] == pytest.approx(expected, abs=1e-14)


def test_reference_shape_is_free_of_stress():
    """In both descriptions of the beam, and the start of both."""
    mesh = uneven_mesh(CELLS)
    (s,) = SpatialCoordinate(mesh)
    shape = as_vector([sin(s), 1 - cos(s), 0.2 * s]), as_vector([cos(s / 2), 0, 0, sin(s / 2)])
    for measure in MEASURES:
        beam = fg.Beam(mesh, SOFT, strain_measure=measure, reference_shape=shape)
        # Round-off of strains of order one.
        assert np.abs(per_cell(beam, beam.rod.stress(pose(beam)))).max() < 1e-12
        assert beam.energy() == 0.0
        position = along(beam.position)
        beam.reconstruct(position[0], along(beam.orientation)[0])
        assert along(beam.position) == pytest.approx(position, abs=1e-14)
    with pytest.raises(ValueError, match="not both"):
        fg.Beam(mesh, SOFT, reference_shape=shape, reference_strain=[0.0] * 6)


def test_poses_are_checked():
    beam = bent()
    beam.orientation.dat.data_wo[1] *= -1
    with pytest.raises(ValueError, match=r"^orientation: neighbouring nodes differ by half a turn"):
        check_poses(beam.position, beam.orientation)
    beam.orientation.dat.data_wo[1] *= 2
    with pytest.raises(ValueError, match="unit quaternions"):
        check_poses(beam.position, beam.orientation)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fg.Load(), ValueError, "Load: give force, moment, or both"),
        (lambda: fg.Load(force=(1, 2)), ValueError, "force must be a vector of 3 finite numbers"),
        (lambda: fg.Load(force=(1, 2, np.nan)), ValueError, "force must be a vector of 3 finite"),
        (lambda: fg.Load(moment="up"), TypeError, "moment must be a vector of 3 finite"),
        (lambda: fg.Load(moment=Constant([1.0, 2])), ValueError, "moment must be a vector of 3"),
        (lambda: fg.Load(force=lambda: 0), ValueError, "force: the function must take (t), (s"),
        (lambda: fg.Load(force=(1, 0, 0), frame="world"), ValueError, "frame must be 'space' (a"),
        (lambda: fg.Gravity(9.81), ValueError, "acceleration must be a vector of 3"),
        (
            lambda: bent(loads=fg.Load(force=(1, 0, 0), at="top")).rod,
            ValueError,
            "at must be 'left",
        ),
        (
            lambda: bent(loads=fg.Load(force=(1, 0, 0), at=0.1)).rod,
            ValueError,
            "at: the mesh of the beam has",
        ),
        (
            lambda: bent(loads=fg.Load(force=lambda t: t)).rod,
            ValueError,
            "force: the function must",
        ),
        (
            lambda: bent(loads=fg.Load(force=lambda t: [t])).rod,
            ValueError,
            "force: the function mu",
        ),
        (lambda: bent(loads=["weight"]), TypeError, "loads must be fdgeom.Load or fdgeom.Gravity"),
        (
            lambda: bent(damping=-1.0).rod,
            ValueError,
            "damping must be a number that is not negative",
        ),
        (lambda: bent(damping=np.eye(3)).rod, ValueError, "damping must be a time or a 6×6 matrix"),
        (
            lambda: bent(damping=-np.eye(6)).rod,
            ValueError,
            "damping must be symmetric and positive",
        ),
        (lambda: bent("green"), ValueError, "strain_measure must be one of 'simo-reissner', 'se3'"),
        (lambda: bent(degree=2).rod, ValueError, "degree: the configuration form has beams of deg"),
        (lambda: bent(reference_shape=3), TypeError, "reference_shape must be a pair"),
        (
            lambda: bent(reference_shape=([0, 0], [1, 0, 0, 0])),
            ValueError,
            "reference_shape: the position must be a vector of 3",
        ),
        (lambda: fg.Sliding("up"), ValueError, "along must be 'x', 'y' or 'z'"),
        (lambda: fg.Sliding("x", turning=1), TypeError, "turning must be True or False"),
        (lambda: fg.GivenPose(), ValueError, "GivenPose: give position, orientation, or both"),
        (lambda: fg.GivenPose(position=(0, 0, 0)), TypeError, "position must be a function of the"),
        (
            lambda: bent(
                left=fg.GivenPose(position=lambda t: [t], orientation=lambda t: [1, 0, 0, t])
            ),
            ValueError,
            "left: velocity(t) must give a UFL vector of 6: position: the function must give a vector",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_given_pose_moves_a_bracket_stepper():
    """Its body velocity comes from the pose by differentiation."""

    def position(t, sin=sin):
        return [0.1 * sin(t), 0.2 * t, -0.1 * t**2]

    def orientation(t, sin=sin, cos=cos):
        return [2 * cos(t), 0.0, 2 * sin(t), 0.0]

    gaps = []
    for steps, dt in ((50, 2e-3), (100, 1e-3)):
        beam = fg.Beam(
            uneven_mesh(4), SOFT, left=fg.GivenPose(position=position, orientation=orientation)
        )
        beam.velocity.dat.data_wo[0] = [0, 2, 0, 0.1, 0.2, 0]
        beam.momentum.dat.data_wo[...] = beam.velocity.dat.data_ro @ INERTIA
        stepper = fg.SymmetricPoissonIntegrator(beam, dt)
        stepper.advance(steps)
        x, q = along(beam.position)[0], along(beam.orientation)[0]
        target = np.array(orientation(0.1, np.sin, np.cos)) / 2
        gaps.append(max(np.abs(x - position(0.1, np.sin)).max(), np.abs(q - target).max()))
    # The configuration follows the given velocity at second order.
    assert gaps[0] < 1e-5
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.1)
