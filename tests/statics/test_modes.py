"""Vibrations of beams about an equilibrium, against the formulas of slender beams."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    IntervalMesh,
    TestFunction,
    TrialFunction,
    as_vector,
    assemble,
    conditional,
    cos,
    lt,
    sin,
)
from numpy.polynomial import chebyshev
from scipy.linalg import eigh
from statics.rod_cases import cantilever, section
from verification.beams import SOFT, along, set_random, uneven_mesh

import fdgeom as fg
from fdgeom.statics.linear_algebra import nearest

LENGTH, SIDE = 2 * np.pi / 3, 0.1


def papers_beam(cells, **options):
    """The beam of Chen & Shi, with Timoshenko's shear factor and Saint-Venant's torsion."""
    square = fg.Section.from_properties(
        area=SIDE**2,
        second_moments=(SIDE**4 / 12,) * 2,
        torsion_constant=0.140577 * SIDE**4,
        density=1000.0,
        youngs_modulus=1e7,
        poisson_ratio=0.35,
        shear_factor=5 / 6,
        axis=1,
    )
    return fg.Beam(IntervalMesh(cells, LENGTH), square, **options)


def slender(cells, **options):
    """Length 1, EI = 1, mass 1 per length, hardly any shear, stretch and rotary inertia."""
    stiffness = section(1e7, 1e7, 1.0, 1.0, 2.0).stiffness
    return fg.Beam(
        IntervalMesh(cells, 1.0), fg.Section(stiffness, np.diag([1e-5] * 3 + [1.0] * 3)), **options
    )


def test_free_free(recorded):
    """Six rigid motions, bending twice, axial and torsion: within 0.5 % at 40 cells, second order."""
    exact = {"bending": (2.32382, 6.30807, 12.1026), "torsion": (13.3433,), "axial": (23.8732,)}
    where = {"bending": (6, 8, 10), "torsion": (12,), "axial": (15,)}
    errors = []
    for cells in (20, 40, 80):
        frequencies = fg.VibrationModes(papers_beam(cells), 16).frequencies
        assert not frequencies[:6].any()
        assert frequencies[6:12:2] == pytest.approx(frequencies[7:13:2], rel=1e-9)
        found = np.concatenate([frequencies[list(where[kind])] for kind in exact])
        errors.append(found / np.concatenate([exact[kind] for kind in exact]) - 1)
    assert np.abs(errors[1]).max() < 0.005
    for k, words in ((0, "first bending"), (3, "first torsion"), (4, "first stretching")):
        exact_one = np.concatenate([exact[kind] for kind in exact])[k]
        recorded.values(
            "Vibrations of a free beam", f"frequency of the {words} [Hz]", reference=exact_one,
            source="Timoshenko's beam, six digits", meshes=(20, 40, 80),
            values=[(1 + e[k]) * exact_one for e in errors],
        )  # fmt: skip
    # The references have six digits.
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.1)


def test_no_copy_of_a_multiple_eigenvalue_is_missed():
    """All eigenvalues of a thin strip, whose spectrum is wide, against a dense solver."""
    strip = fg.Section.rectangle(
        0.025,
        0.001,
        density=7850.0,
        youngs_modulus=2.1e11,
        poisson_ratio=0.3,
        torsion_constant=0.025 * 0.001 * (0.025**2 + 0.001**2) / 12,
        shear_factor=1.0,
    )
    beam = fg.Beam(IntervalMesh(20, 0.3), strip)
    pose, V = (beam.position, beam.orientation), beam.velocity.function_space()
    test, trial = TestFunction(V), TrialFunction(V)
    stiffness, mass = (
        assemble(form).M.values
        for form in (
            beam.rod.material_stiffness(pose, trial, test),
            beam.motion.inertia(test, trial),
        )
    )
    expected = eigh(stiffness, mass, eigvals_only=True)
    for number in (8, 12, 16, 24):
        found = fg.VibrationModes(beam, number).eigenvalues
        # Round-off of the highest, 1e14, in those of the dense solver.
        assert found == pytest.approx(expected[:number], rel=1e-7, abs=1.0)


@pytest.mark.parametrize(("seed", "copies"), [(13, 4), (9, 8)])
def test_no_copy_is_missed_without_symmetry(seed, copies):
    """The nearest eigenvalues of several equal unsymmetric matrices, side by side."""
    random = np.random.default_rng(seed)
    values = np.sort([*random.uniform(10, 1e3, 4), *10 ** random.uniform(3, 12, 16)])
    vectors = np.eye(20) + 0.3 * random.normal(size=(20, 20)) / np.sqrt(20)
    one = vectors @ np.diag(values) @ np.linalg.inv(vectors)
    whole, shift = np.kron(np.eye(copies), one), values[1]
    inverse = np.linalg.inv(whole + shift * np.eye(len(whole)))
    found, modes = nearest(inverse.dot, len(whole), 2 * copies, shift, symmetric=False)
    expected = np.repeat(values[:2], copies)
    assert np.sort(found.real) == pytest.approx(expected, rel=1e-6)
    assert np.linalg.matrix_rank(modes, tol=1e-6) == 2 * copies
    left = inverse @ modes - modes / (found + shift)
    assert np.abs(left).max() < 1e-9 / shift


def test_shapes():
    """Normalised in the mass, alone in their directions, and shaped as the formula says."""
    beam = slender(40, left="clamped")
    modes = fg.VibrationModes(beam, 4)
    # βL of a cantilever, twice as stiff about the third axis (motion along y) as about the second.
    beta = 1.8751040687
    expected = [beta**2, np.sqrt(2) * beta**2]
    assert 2 * np.pi * modes.frequencies[:2] == pytest.approx(expected, rel=2e-3)
    for k, a in enumerate(modes.shapes):
        for j, b in enumerate(modes.shapes):
            product = assemble(beam.motion.inertia(b, a))
            assert product == pytest.approx(float(j == k), abs=1e-9)
    first = along(modes.shapes[0])
    s = np.linspace(0, 1, 41)
    ratio = (np.cos(beta) + np.cosh(beta)) / (np.sin(beta) + np.sinh(beta))
    shape = np.cosh(beta * s) - np.cos(beta * s) - ratio * (np.sinh(beta * s) - np.sin(beta * s))
    assert np.abs(first[:, 5] / first[-1, 5] - shape / shape[-1]).max() < 2e-3
    assert not first[0].any()
    assert np.abs(first[:, [0, 2, 3, 4]]).max() < 1e-6 * np.abs(first).max()


def test_coefficients_are_read_anew():
    """A section and a load that change between two calls: ω² goes with the stiffness."""
    stiffness, pull = Constant(section(1e7, 1e7, 1.0, 1.0, 2.0).stiffness), Constant((0.0, 0, 0))
    beam = fg.Beam(
        IntervalMesh(8, 1.0),
        fg.Section(stiffness, np.diag([1e-5] * 3 + [1.0] * 3)),
        left="clamped",
        loads=fg.Load(force=pull, at="right"),
    )
    before = fg.VibrationModes(beam, 4).eigenvalues
    stiffness.assign(4 * stiffness.dat.data_ro.copy())
    assert fg.VibrationModes(beam, 4).eigenvalues == pytest.approx(4 * before, rel=1e-9)
    # What a pull adds to a beam does not depend on how it came to it.
    pull.assign((30.0, 0, 0))
    fg.StaticEquilibrium(beam).solve()
    again = fg.Beam(
        IntervalMesh(8, 1.0),
        fg.Section(stiffness, np.diag([1e-5] * 3 + [1.0] * 3)),
        left="clamped",
        loads=fg.Load(force=(30.0, 0, 0), at="right"),
    )
    fg.StaticEquilibrium(again).solve()
    found, fresh = (fg.VibrationModes(b, 4).eigenvalues for b in (beam, again))
    assert found == pytest.approx(fresh, rel=1e-9)
    assert found[0] > 1.2 * 4 * before[0]


def test_tension():
    """Hinged at both ends and pulled: ω² = (kπ)⁴ EI/m + (kπ)² T/m."""
    tension = 50.0
    beam = slender(
        40,
        left="pinned",
        right=fg.Sliding("x"),
        loads=fg.Load(force=(tension, 0, 0), at="right"),
    )
    beam.position.dat.data_wo[:, 0] *= 1 + tension / 1e7
    modes = fg.VibrationModes(beam, 5)
    wave = np.pi * np.array([1, 1, 2, 2])
    expected = wave**4 * [1, 2, 1, 2] + wave**2 * tension
    # A free turn about its axis, then bending; second order in the mesh, rotary inertia.
    assert modes.frequencies[0] == 0.0
    assert modes.eigenvalues[1:] == pytest.approx(np.sort(expected), rel=5e-3)
    with pytest.raises(
        ValueError, match=r"^beam: its configuration is not an equilibrium at that load"
    ):
        fg.VibrationModes(beam, 5, load=2.0)


def test_buckling():
    """The lowest ω² goes through zero at Euler's load."""
    values = {}
    euler = np.pi**2 / 4
    for factor in (0.5, 0.98, 1.02):
        beam = slender(40, left="clamped", loads=fg.Load(force=(-factor * euler, 0, 0), at="right"))
        statics = fg.StaticEquilibrium(beam)
        statics.solve()
        values[factor] = fg.VibrationModes(beam, 3)
    assert values[0.98].eigenvalues[0] > 0 > values[1.02].eigenvalues[0]
    # Nearly linear in the load: half of it takes about half of ω².
    assert values[0.5].eigenvalues[0] == pytest.approx(0.5 * 1.8751040687**4, rel=0.05)
    with pytest.raises(ValueError, match="not stable"):
        _ = values[1.02].frequencies


def test_becks_column():
    """A follower load: K is not symmetric, and the column flutters above 20.05 EI/L²."""
    for load, flutters in ((19.6, False), (20.4, True)):
        beam = slender(
            40, left="clamped", loads=fg.Load(force=(-load, 0, 0), at="right", frame="body")
        )
        fg.StaticEquilibrium(beam).solve()
        modes = fg.VibrationModes(beam, 4)
        imaginary = np.abs(modes.eigenvalues.imag).max()
        assert bool(imaginary > 1.0) == flutters
        if flutters:
            with pytest.raises(ValueError, match="not stable"):
                _ = modes.frequencies
        else:
            assert modes.frequencies[0] > 0


@pytest.mark.parametrize(
    ("contact", "rigid"), [(None, 6), ((0, 0, -1.0), 6), ((0, 0, 0), 4)], ids=str
)
def test_a_free_rod_with_loads(contact, rigid):
    """No round-off of places is a tension: loads of zero, a floor far below, and rest on a floor."""
    radius, stiffness, gravity = 0.01, 1e5, 9.81 if rigid == 4 else 0.0
    bar = fg.Section.circle(radius, density=1e3, youngs_modulus=1e9, poisson_ratio=0.3)
    loads = [fg.Gravity((0, 0, -gravity))]
    depth, slack = 1e3 * np.pi * radius**2 * gravity / stiffness, 0.05 * radius
    depth = depth + slack / 2 if depth > slack / 2 else np.sqrt(2 * slack * depth)
    if contact is not None:
        loads.append(fg.Contact(fg.Plane(contact, (0, 0, 1)), stiffness=stiffness))
    for cells in (3, 5, 8, 20):
        beam = fg.Beam(IntervalMesh(cells, 0.1), bar, loads=loads)
        beam.reconstruct(position=(0.3, 0.1, radius - depth))
        modes = fg.VibrationModes(beam, 8)
        assert modes.rigid == rigid
        assert modes.frequencies[rigid] > 1.0


def twisted(torque, number=30):
    """The ω² of EI w⁗ + iT w‴ = m ω² w, clamped at 0, w″ = w‴ = 0 at 1, by collocation.

    w = u + iv; the torque turns with the end (Ziegler 1968). EI = m = 1.
    """
    nodes = np.cos(np.pi * (np.arange(number + 1) + 0.5) / (number + 1))

    def derivative(x, order):
        found = chebyshev.chebval(x, chebyshev.chebder(np.eye(number + 1), order))
        return 2.0**order * np.atleast_2d(found.T)

    ends = np.vstack([derivative(x, k) for x, k in ((-1, 0), (-1, 1), (1, 2), (1, 3))])
    free = np.linalg.svd(ends)[2][4:].T
    left = (derivative(nodes, 4) + 1j * torque * derivative(nodes, 3))[2:-2] @ free
    values = np.linalg.eigvals(np.linalg.solve(derivative(nodes, 0)[2:-2] @ free, left))
    return values[np.abs(values).argsort()]


def test_torque_that_turns_with_the_end():
    """Constant in the body frame, and yet not conservative: the stiffness of this load is zero."""
    exact = twisted(2.0)[0]
    assert twisted(0.0)[0].real == pytest.approx(1.8751040687**4, rel=1e-6)
    beam = fg.Beam(
        IntervalMesh(40, 1.0),
        fg.Section(section(1e5, 1e5, 1.0, 1.0).stiffness, np.diag([1e-5] * 3 + [1.0] * 3)),
        left="clamped",
        loads=fg.Load(moment=(2.0, 0, 0), at="right", frame="body"),
    )
    fg.StaticEquilibrium(beam).solve()
    for system in (beam, fg.Assembly([beam], [])):
        modes = fg.VibrationModes(system, 4)
        found = modes.eigenvalues[np.abs(modes.eigenvalues).argsort()][:2]
        # Of second order in the cells; real at 7.9 if K is made symmetric.
        assert found.real == pytest.approx(exact.real, rel=0.01)
        assert np.sort(found.imag) == pytest.approx(abs(exact.imag) * np.array([-1, 1]), rel=0.01)
        with pytest.raises(ValueError, match="not stable"):
            _ = modes.frequencies


def test_flutter_beside_fast_modes():
    """The imaginary part of a slow pair is small beside the sixtieth eigenvalue."""
    load = fg.Load(force=(-20.1, 0, 0), at="right", frame="body")
    beam = slender(40, left="clamped", loads=load)
    fg.StaticEquilibrium(beam).solve()
    with pytest.raises(ValueError, match="not stable"):
        _ = fg.VibrationModes(beam, 60).frequencies


class Bed(fg.BodyLoad):
    """Springs across the first half of a beam."""

    scaled = False

    def __init__(self, stiffness):
        self.stiffness = Constant(stiffness)

    def potential(self, rod, g, t):
        (_, y, z) = g[0]
        return conditional(lt(rod.arc, 1.0), self.stiffness * (y**2 + z**2) / 2, 0.0)


def test_becks_column_beside_a_stiff_bed():
    """A bed that holds the first half, as a clamp does: the second flutters as a column of its own."""
    load = fg.Load(force=(-22.0, 0, 0), at="right", frame="body")
    found = []
    for length, loads in ((1.0, load), (2.0, [Bed(1e9), load])):
        column = slender(1, left="clamped").section
        beam = fg.Beam(IntervalMesh(int(40 * length), length), column, left="clamped", loads=loads)
        fg.StaticEquilibrium(beam).solve()
        values = fg.VibrationModes(beam, 4).eigenvalues
        found.append(values[values.imag > 0])
    assert found[1] == pytest.approx(found[0], rel=0.1)  # the clamp is half a cell off


def test_inertia_off_the_axis():
    """A full, coupled section turned over in space vibrates as before."""
    beam = fg.Beam(uneven_mesh(10), SOFT, left="clamped")
    before = fg.VibrationModes(beam, 4).eigenvalues
    turn = np.array([0.5, 0.5, -0.5, 0.5])
    beam.reconstruct(position=[1.0, 2, 3], orientation=turn)
    assert fg.VibrationModes(beam, 4).eigenvalues == pytest.approx(before, rel=1e-9)


STEEL = {"density": 7850.0, "youngs_modulus": 2.1e11, "poisson_ratio": 0.3}
# βL of the beam that is free at both ends and of the clamped one.
FREE, CLAMPED = (4.730040744863, 7.853204624096, 10.995607838), (1.875104068712, 4.694091132974)


def wire(radius, cells, **options):
    """Steel of length 1; and the root of EI by mass per length."""
    beam = fg.Beam(IntervalMesh(cells, 1.0), fg.Section.circle(radius, **STEEL), **options)
    return beam, np.sqrt(2.1e11 / 7850.0) * radius / 2


def strain_roots(radius, cells):
    """Frequencies of all modes of a straight wire, from the singular values of its rates of strain.

    By NumPy: neighbours' differences by the length of a cell, and the mean rotation across the
    axis; each row by the root of its stiffness, each column by the root of its inertia.
    """
    section, h = fg.Section.circle(radius, **STEEL), 1.0 / cells
    turn = np.zeros((6, 6))
    turn[4, 2], turn[5, 1] = -0.5, 0.5
    rate = np.zeros((cells, 6, cells + 1, 6))
    k = np.arange(cells)
    rate[k, :, k] = turn - np.eye(6) / h
    rate[k, :, k + 1] = turn + np.eye(6) / h
    lengths = np.full(cells + 1, h)
    lengths[[0, -1]] /= 2
    rate *= np.sqrt(h * np.diag(section.stiffness))[:, None, None]
    rate /= np.sqrt(lengths[:, None] * np.diag(section.inertia))
    return np.sort(np.linalg.svd(rate.reshape(6 * cells, -1), compute_uv=False))


@pytest.mark.parametrize("cells", [20, 1000])
@pytest.mark.parametrize("radius", [1e-6, 1e-5, 1e-4, 1e-3])
def test_slender_wires(radius, cells):
    """Six rigid motions, then bending in two planes, by the formula of slender beams."""
    free, root = wire(radius, cells)
    modes = fg.VibrationModes(free, 12)
    assert modes.rigid == 6
    frequencies = 2 * np.pi * modes.frequencies
    assert not frequencies[:6].any()
    assert frequencies[6:12:2] == pytest.approx(frequencies[7:12:2], rel=1e-9)
    # Cells: (βL h)² by a number near 1/4; the thickest wire's shear and rotary inertia.
    allowed = 0.3 * (max(FREE) / cells) ** 2 + 40 * radius**2
    assert frequencies[6::2] == pytest.approx(root * np.square(FREE), rel=allowed)
    held, root = wire(radius, cells, left="clamped")
    modes = fg.VibrationModes(held, 4)
    assert modes.rigid == 0
    assert 2 * np.pi * modes.frequencies[::2] == pytest.approx(
        root * np.square(CLAMPED), rel=allowed
    )


def test_slender_wires_are_of_second_order():
    errors = []
    for cells in (20, 40, 80):
        beam, root = wire(1e-6, cells)
        frequencies = 2 * np.pi * fg.VibrationModes(beam, 12).frequencies[6::2]
        errors.append(frequencies / (root * np.square(FREE)) - 1)
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.02)


@pytest.mark.parametrize(
    # The highest frequency's round-off in those of the SVD; a thick beam has no such span.
    ("radius", "allowed"),
    [(1e-6, 1e-4), (1e-3, 1e-9), (1.0, 1e-10)],
)
def test_all_modes_of_a_wire(radius, allowed):
    """Nearly the whole spectrum, over up to twenty orders of magnitude in ω²."""
    beam, _ = wire(radius, 20)
    modes = fg.VibrationModes(beam, 120)
    assert modes.rigid == 6
    expected = strain_roots(radius, 20)[:114]
    assert 2 * np.pi * modes.frequencies[6:] == pytest.approx(expected, rel=allowed)


def test_slow_modes_are_no_rigid_motions():
    """Where many are asked for, the first bending is slow beside the last and yet no rigid motion."""
    beam, root = wire(1e-3, 100)
    modes = fg.VibrationModes(beam, 120)
    assert modes.rigid == 6
    assert modes.eigenvalues[6] < 1e-6 * modes.eigenvalues[-1]
    assert 2 * np.pi * modes.frequencies[6] == pytest.approx(root * FREE[0] ** 2, rel=1e-3)


def test_wire_in_tension():
    """A wire of radius 1e-5, hinged and pulled by a few times Euler's load."""
    radius = 1e-5
    stiffness = np.diag(fg.Section.circle(radius, **STEEL).stiffness)
    tension = 40 * stiffness[1]
    beam, root = wire(
        radius,
        40,
        left="pinned",
        right=fg.Sliding("x"),
        loads=fg.Load(force=(tension, 0, 0), at="right"),
    )
    beam.position.dat.data_wo[:, 0] *= 1 + tension / stiffness[3]
    modes = fg.VibrationModes(beam, 5)
    assert modes.rigid == 1
    wave = np.pi * np.array([1, 1, 2, 2])
    # ω² = (kπ)⁴ EI/m + (kπ)² T/m; second order in the mesh.
    expected = root**2 * (wave**4 + 40 * wave**2)
    assert modes.eigenvalues[1:] == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fg.VibrationModes(Function), TypeError, "beam must be a fdgeom.Beam"),
        (
            lambda: fg.VibrationModes(slender(4), 0),
            ValueError,
            "number must be a whole number from",
        ),
        (
            lambda: fg.VibrationModes(slender(4), 29),
            ValueError,
            "number must be a whole number fro",
        ),
        (lambda: fg.VibrationModes(cantilever(4, 1)), ValueError, "beam: its configuration is no"),
        (
            lambda: fg.VibrationModes(set_random(slender(4))),
            ValueError,
            "beam: its configuration is not an equilibrium",
        ),
        (
            lambda: fg.VibrationModes(slender(4, left=lambda t: as_vector([0] * 5 + [t]))),
            ValueError,
            "left: methods in configuration form need the pose of this end",
        ),
    ],
)
def test_bad_calls_of_modes(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_a_turning_support_gives_a_warning():
    """Its centrifugal forces would stiffen the beam; in statics the time may be a parameter alone."""
    hub = fg.GivenPose(
        position=lambda t: as_vector([0 * t, 0, 0]),
        orientation=lambda t: as_vector([cos(50 * t), 0, 0, sin(50 * t)]),
    )
    beam = slender(20, left=hub)
    with pytest.warns(UserWarning, match="turns at t = 0: modes are those of a support at rest"):
        found = fg.VibrationModes(beam, 4)
    clamped = fg.VibrationModes(slender(20, left="clamped"), 4)
    assert found.eigenvalues == pytest.approx(clamped.eigenvalues, rel=1e-9)


def test_a_given_pose_that_does_not_turn_holds():
    """At a constant velocity it vibrates as at rest."""
    rests = fg.GivenPose(
        position=lambda t: as_vector([0, 0, 5 * t]),
        orientation=lambda t: as_vector([1, 0, 0, 0 * t]),
    )
    values = [fg.VibrationModes(slender(20, left=end), 4).eigenvalues for end in (rests, "clamped")]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_what_is_no_equilibrium_is_refused_in_any_unit(unit):
    """A cantilever of one metre, in metres and micrometres, whose end force nothing balances."""
    stiffness = np.diag([unit**2] * 3 + [1e4] * 3)
    inertia = np.diag([1e-3 * unit**2] * 3 + [1.0] * 3)
    load = fg.Load(force=(0, 0, 1.0), at="right")
    beam = fg.Beam(
        IntervalMesh(10, unit), fg.Section(stiffness, inertia), left="clamped", loads=load
    )
    with pytest.raises(ValueError, match="unbalanced by 1, forces up to"):
        fg.VibrationModes(beam, 4)


def test_a_strain_that_was_set_by_hand():
    """A string: f = √(EA ε/ρA)/2 for a thin wire that is stretched by ε between its ends."""
    wire = fg.Section.circle(1e-3, density=7850, youngs_modulus=2.1e11, poisson_ratio=0.3)
    beam = fg.Beam(IntervalMesh(40, 1.0), wire, left="clamped", right="clamped")
    beam.strain.interpolate(as_vector([0, 0, 0, 1e-3, 0, 0]))
    found = fg.VibrationModes(beam, 1).frequencies[0]
    string = 0.5 * np.sqrt(2.1e11 * 1e-3 / 7850)
    # Stiff strings, Morse, Vibration and Sound: 1 + 2 e + (4 + π²/2) e² with e = √(EI/T)/L, r²/4 = I/A.
    e = np.sqrt(1e-6 / 4 / 1e-3)
    # The grid adds less than 0.1 %.
    assert found == pytest.approx(string * (1 + 2 * e + (4 + np.pi**2 / 2) * e**2), rel=2e-3)
