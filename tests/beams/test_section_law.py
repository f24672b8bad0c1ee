"""A section's own law: closed forms at rest, a chain of nonlinear springs in motion, its energy kept."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    conditional,
    cosh,
    dot,
    lt,
    pi,
    sin,
)
from scipy.integrate import solve_ivp
from verification.beams import STIFFNESS, along, arc, set_smooth, uneven_mesh
from verification.rod_cases import SEPARATE

import fdgeom as fg

# Axial and bending stiffness, and what stiffens them.
EA, EI, HARD_AXIAL, HARD_BENDING = 2.0, 1.5, 30.0, 4.0
K = np.diag([1.0, 1.0, EI, EA, 50.0, 50.0])
MASS = 1.3
SECTION = fg.Section(K, np.diag([0.5, 0.3, 0.4, MASS, MASS, MASS]))
CELLS = 4


class Stiffening(fg.SectionLaw):
    """½ ε·Kε + ¼ c ε₃⁴ + ¼ b ε₂⁴: stretch along the axis 0, curvature about the axis 2."""

    def __init__(self, axial=HARD_AXIAL, bending=HARD_BENDING):
        self.axial, self.bending = axial, Constant(bending)
        if not hasattr(axial, "ufl_shape"):
            self.axial = Constant(axial)

    def energy(self, strain, stiffness):
        quartic = self.axial * strain[3] ** 4 + self.bending * strain[2] ** 4
        return 0.5 * dot(strain, stiffness * strain) + 0.25 * quartic


class Hardening(fg.SectionLaw):
    """All strains together, and no polynomial: K ε·ε/2 + (cosh(3|κ|²) - 1)/10 + c (ε·ε)²/4."""

    def __init__(self, hard=2.0):
        self.hard = Constant(hard)

    def energy(self, strain, stiffness):
        bent = sum(strain[k] ** 2 for k in range(3))
        quartic = 0.25 * self.hard * dot(strain, strain) ** 2
        return 0.5 * dot(strain, stiffness * strain) + 0.1 * (cosh(3 * bent) - 1) + quartic


def hardening(strains):
    """The same in NumPy, of strains (n, 6)."""
    linear = 0.5 * np.einsum("ni,ij,nj->n", strains, STIFFNESS, strains)
    bent, total = (strains[:, :3] ** 2).sum(axis=1), (strains**2).sum(axis=1)
    return linear + 0.1 * (np.cosh(3 * bent) - 1) + 0.5 * total**2


def root(linear, cubic, value):
    """x with linear x + cubic x³ = value."""
    found = np.roots([cubic, 0, linear, -value])
    return float(found[np.abs(found.imag) < 1e-9].real[0])


# --- at rest ---------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def pulled():
    """A clamped beam, and the force and moment at its end."""
    force, moment = Constant(np.zeros(3)), Constant(np.zeros(3))
    load = fg.Load(force=1 * force, moment=1 * moment, at="right")
    law = Stiffening()
    beam = fg.Beam(IntervalMesh(CELLS, 1.0), SECTION, law=law, left="clamped", loads=load)
    return beam, fg.StaticEquilibrium(beam), force, moment


def test_pull_and_bend_at_rest(pulled):
    """Uniform strains of which the force and the moment are cubic functions."""
    beam, statics, force, moment = pulled
    force.assign([0.9, 0, 0])
    statics.solve()
    stretch = root(EA, HARD_AXIAL, 0.9)
    assert along(beam.position)[:, 0] == pytest.approx(
        (1 + stretch) * arc(beam.position), rel=1e-11
    )
    assert statics.stress_at(0.3) == pytest.approx([0, 0, 0, 0.9, 0, 0], abs=1e-10)
    assert statics.reactions()["left"][1] == pytest.approx([-0.9, 0, 0], abs=1e-10)
    # Energy of the law, and the work that brought it in.
    beam.project()
    energy = 0.5 * EA * stretch**2 + 0.25 * HARD_AXIAL * stretch**4
    assert beam.potential_energy() == pytest.approx(energy, rel=1e-10)
    assert beam.stress_at(0.7)[3] == pytest.approx(0.9, rel=1e-10)

    force.assign(np.zeros(3))
    moment.assign([0, 0, 1.2])
    statics.solve()
    curvature = root(EI, HARD_BENDING, 1.2)
    half = curvature * arc(beam.position) / 2
    turned = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=1)
    assert along(beam.orientation) == pytest.approx(turned, abs=1e-10)
    moment.assign(np.zeros(3))
    statics.solve()


def test_modes_have_the_tangent_of_the_law(pulled):
    """Axial modes of a stretched bar: a chain of springs EA + 3cε² and lumped masses."""
    beam, statics, force, _ = pulled
    force.assign([0.9, 0, 0])
    statics.solve()
    tangent = EA + 3 * HARD_AXIAL * root(EA, HARD_AXIAL, 0.9) ** 2
    found = fg.VibrationModes(beam, 22).frequencies * 2 * np.pi
    k = np.arange(1, CELLS + 1)
    # Fixed at one end, half a mass at the other.
    expected = 2 * CELLS * np.sqrt(tangent / MASS) * np.sin((2 * k - 1) * np.pi / (4 * CELLS))
    for omega in expected:
        assert np.abs(found - omega).min() < 1e-8 * omega
    force.assign(np.zeros(3))
    statics.solve()


# --- in motion: a chain of springs -------------------------------------------------------------------
TIME = 0.8


def start(**options):
    """A bar pushed along its axis, and no other way."""
    options = {"law": Stiffening()} | options
    beam = fg.Beam(IntervalMesh(CELLS, 1.0), SECTION, left="clamped", **options)
    (s,) = SpatialCoordinate(beam.mesh)
    beam.momentum.interpolate(as_vector([0, 0, 0, MASS * 0.9 * s, 0, 0]))
    beam.reconstruct()
    return beam


def chain(hard=HARD_AXIAL):
    """Positions and velocities of the nodes at the end, by SciPy."""
    h = 1 / CELLS
    masses = MASS * h * np.append(np.ones(CELLS - 1), 0.5)

    def right(t, y):
        x, v = np.split(y, 2)
        strain = np.diff(x, prepend=0.0) / h - 1
        force = EA * strain + hard * strain**3
        return np.append(v, (np.append(force[1:], 0.0) - force) / masses)

    s = h * np.arange(1, CELLS + 1)
    start = np.append(s, 0.9 * s)
    found = solve_ivp(right, (0, TIME), start, method="DOP853", rtol=1e-12, atol=1e-13)
    return np.append(0.0, found.y[:CELLS, -1]), np.append(0.0, found.y[CELLS:, -1])


STEPPERS = {
    fg.GeneralizedAlpha: lambda beam, dt: fg.GeneralizedAlpha(beam, dt, fg.chung_hulbert(0.9)),
    fg.EnergyMomentum: fg.EnergyMomentum,
    fg.VariationalIntegrator: fg.VariationalIntegrator,
    fg.SymmetricPoissonIntegrator: fg.SymmetricPoissonIntegrator,
    fg.DiscreteGradient: fg.DiscreteGradient,
}


@pytest.mark.parametrize("method", STEPPERS, ids=lambda m: m.__name__)
def test_chain_of_nonlinear_springs(method):
    positions, velocities = chain()
    errors = []
    for steps in (20, 40, 80):
        beam = start()
        STEPPERS[method](beam, TIME / steps).advance(steps)
        x, v = along(beam.position)[:, 0], along(beam.velocity)[:, 3]
        errors.append(max(np.abs(x - positions).max(), np.abs(v - velocities).max()))
    # Of second order; the springs are well beyond the linear part.
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(2, abs=0.25)
    assert errors[-1] < 2e-3
    assert np.abs(positions - chain(0.0)[0]).max() > 0.05


def test_a_coefficient_that_changes_and_one_that_varies():
    """The law is read anew at each step; along the beam by a Function or the mesh coordinate."""
    law = Stiffening()
    beam, other = start(law=law), start()
    one, two = fg.VariationalIntegrator(beam, 0.01), fg.VariationalIntegrator(other, 0.01)
    two.advance(5)
    law.axial.assign(5 * HARD_AXIAL)
    one.advance(5)
    assert np.abs(along(beam.position) - along(other.position)).max() > 1e-6
    fresh = start(law=Stiffening(5 * HARD_AXIAL))
    fg.VariationalIntegrator(fresh, 0.01).advance(5)
    assert along(beam.position) == pytest.approx(along(fresh.position), rel=1e-14)

    mesh = beam.mesh
    (s,) = SpatialCoordinate(mesh)
    field = Function(FunctionSpace(mesh, "CG", 1)).interpolate(1 + s)
    energies = []
    for axial in (field, 1 + s):
        varying = fg.Beam(mesh, SECTION, law=Stiffening(axial))
        varying.strain.assign(0.0)
        varying.strain.interpolate(as_vector([0, 0, 0, 0.2, 0, 0]))
        energies.append(varying.potential_energy())
    # Linear along the beam: one point a cell is exact.
    exact = 0.5 * EA * 0.2**2 + 0.25 * 1.5 * 0.2**4
    assert energies == pytest.approx([exact, exact], rel=1e-13)
    field.assign(2.0)


# --- in motion: energy and momenta -----------------------------------------------------------------
@pytest.fixture(scope="module")
def smooth():
    """A free beam in all six strains, of a law that is no polynomial."""

    def make():
        section = fg.Section(STIFFNESS, SEPARATE)
        beam = fg.Beam(uneven_mesh(5), section, law=Hardening(), strain_measure="directors")
        return set_smooth(beam, size=0.5)

    return make


def test_energy_of_the_law(smooth):
    beam = smooth()
    lengths = np.diff(arc(beam.momentum))
    expected = lengths @ hardening(along(beam.strain))
    assert beam.potential_energy() == pytest.approx(expected, rel=1e-13)
    # Far from a linear one.
    linear = fg.Beam(beam.mesh, beam.section)
    linear.strain.assign(beam.strain)
    assert expected > 1.2 * linear.potential_energy()


@pytest.mark.parametrize(
    "method", [fg.EnergyMomentum, fg.DiscreteGradient], ids=lambda m: m.__name__
)
def test_energy_is_kept_in_large_steps(smooth, method):
    beam = smooth()
    stepper = method(beam, 0.1)
    beam.motion.consistency.prepare()
    stepper.advance()
    energy, linear, angular = beam.energy(), beam.linear_momentum(), beam.angular_momentum()
    parts = []
    for _ in range(60):
        stepper.advance()
        # The solves' tolerance, of 60 steps.
        assert beam.energy() == pytest.approx(energy, rel=1e-11)
        parts.append(beam.kinetic_energy())
    assert np.ptp(parts) > 0.2 * energy
    if "angular momentum" in method.conserves:
        assert beam.linear_momentum() == pytest.approx(linear, abs=1e-11)
        assert beam.angular_momentum() == pytest.approx(angular, abs=1e-11)


def test_an_energy_of_two_branches_is_kept(smooth):
    """A section that resists pressure less than tension: a kink that no Gauss rule sees through."""

    class Limp(fg.SectionLaw):
        def energy(self, strain, stiffness):
            softer = 1 - 0.8 * conditional(lt(strain[3], 0), 1.0, 0.0)
            bent = 0.5 * dot(strain, stiffness * strain)
            return bent + 10.0 * softer * strain[3] ** 2

    beam = fg.Beam(uneven_mesh(5), fg.Section(STIFFNESS, SEPARATE), law=Limp(),
                   strain_measure="directors")  # fmt: skip
    set_smooth(beam, size=0.5)
    stepper = fg.EnergyMomentum(beam, 0.05)
    stepper.advance()
    energy = beam.energy()
    stepper.advance(40)
    assert beam.energy() == pytest.approx(energy, rel=1e-10)


# --- several beams ----------------------------------------------------------------------------------
@pytest.mark.parametrize("divides", [False, True])
def test_each_beam_of_an_assembly_has_its_law(divides):
    """Two halves of a bar, of a law that varies and of the linear one, are that bar."""
    whole_mesh = IntervalMesh(CELLS, 1.0)
    (s,) = SpatialCoordinate(whole_mesh)
    hard = conditional(lt(s, 0.5), HARD_AXIAL * (1 + s), 0.0)
    options = {"strain_measure": "directors", "left": "clamped"}
    whole = fg.Beam(whole_mesh, SECTION, law=Stiffening(hard, bending=0.0), **options)
    mesh = IntervalMesh(CELLS // 2, 0.5)
    (s,) = SpatialCoordinate(mesh)
    hard = HARD_AXIAL * (1 + s)
    if divides:  # a law that is not defined where its data are zero
        hard = 1 / Function(FunctionSpace(mesh, "DG", 0)).interpolate(1 / hard)
    first = fg.Beam(mesh, SECTION, law=Stiffening(hard, bending=0.0), **options)
    second = fg.Beam(IntervalMesh(CELLS // 2, 0.5), SECTION, strain_measure="directors")
    second.reconstruct(position=(0.5, 0, 0))
    for beam, offset in ((whole, 0.0), (first, 0.0), (second, 0.5)):
        (s,) = SpatialCoordinate(beam.mesh)
        push = as_vector([0, 0, 0, 0.9 * (s + offset), 0, 0.3 * sin(pi * (s + offset))])
        beam.velocity.interpolate(push)
    joined = fg.Assembly([first, second], [fg.Rigid(first.right, second.left)])
    fg.GeneralizedAlpha(whole, 0.02).advance(5)
    fg.GeneralizedAlpha(joined, 0.02).advance(5)
    found = np.vstack([along(first.position), along(second.position)[1:]])
    # The joint is held to the solver's tolerance.
    assert found == pytest.approx(along(whole.position), abs=1e-9)
    assert joined.potential_energy() == pytest.approx(whole.motion.potential_energy(), rel=1e-8)
