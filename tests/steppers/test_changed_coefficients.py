"""Coefficients that are changed between steps act from the next step on, however they are changed."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    as_matrix,
    as_vector,
    dx,
)
from verification.beams import INERTIA, STIFFNESS, along, set_smooth, uneven_mesh

import fdgeom as fg

ROUND_OFF = {"rtol": 1e-11, "atol": 1e-12}


def by_assign(k):
    return lambda value: k.assign(value)


def by_numpy_view(k):
    values = k.dat.data

    def put(value):
        values[...] = value

    return put


def by_petsc_view(k):
    with k.dat.vec as vec:
        return lambda value: vec.set(value)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("way", [by_assign, by_numpy_view, by_petsc_view])
def test_a_spring_constant(way, compiled):
    """Verlet's method in NumPy, with the constant of the time; so the energy."""
    space = FunctionSpace(fg.copies(3), "DG", 0)
    q, p, k = (Function(space) for _ in range(3))
    q.dat.data_wo[...] = start = np.array([1.0, -0.5, 2.0])
    k.assign(1.0)
    system = fg.HamiltonianSystem(q, p, energy=(p**2 / 2 + k * q**2 / 2) * dx)
    stepper, put = fg.StormerVerlet(system, 0.1, compiled=compiled), way(k)
    x, v = start, np.zeros(3)
    for constant in (1.0, 100.0, 4.0):
        put(constant)
        stepper.advance(2)
        for _ in range(2):
            v = v - 0.05 * constant * x
            x = x + 0.1 * v
            v = v - 0.05 * constant * x
        np.testing.assert_allclose(q.dat.data_ro, x, rtol=1e-14)
        exact = (v**2 / 2 + constant * x**2 / 2).sum()
        assert system.energy() == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("by", ["data", "view"])
def test_the_mesh(by):
    """An update of energies and weights after the mesh has moved: twice as large a cell."""
    mesh = fg.copies(4)
    view = mesh.coordinates.dat.data  # PyOP2 sees no writing to it
    space = FunctionSpace(mesh, "DG", 0)
    q, p = Function(space).assign(1.0), Function(space)
    (s,) = SpatialCoordinate(mesh)
    system = fg.HamiltonianSystem(q, p, energy=(p**2 / 2 + (1 + s) * q**2 / 2) * dx)
    stepper = fg.StormerVerlet(system, 0.1)
    stepper.advance()
    (view if by == "view" else mesh.coordinates.dat.data)[...] *= 2.0
    before = q.dat.data_ro.copy(), p.dat.data_ro.copy()
    stepper.advance()
    k = 1 + np.sort(2 * np.arange(4) + 1.0)  # 1 + s in the middle of the cells
    x, v = before
    v = v - 0.05 * k * x
    x = x + 0.1 * v
    np.testing.assert_allclose(q.dat.data_ro, x, rtol=1e-14)


class Beam:
    """A beam whose stiffness, inertia, load and shape at rest its owner changes."""

    def __init__(self, values=(1.0, 1.0, 0.0, 0.0), **options):
        self.mesh = uneven_mesh(4)
        density = Function(FunctionSpace(self.mesh, "CG", 1), name="density")
        (s,) = SpatialCoordinate(self.mesh)
        self.symbols = (
            Constant(values[0]),
            density.assign(values[1]),
            Constant(values[2]),
            Constant(values[3]),
        )
        modulus, density, force, curvature = self.symbols
        self.beam = fg.Beam(
            self.mesh,
            fg.Section(
                modulus * as_matrix(STIFFNESS.tolist()), density * as_matrix(INERTIA.tolist())
            ),
            loads=fg.Load(force=as_vector([force, 0, s * force])),
            reference_strain=as_vector([0, curvature, s * curvature, 0, 0, 0]),
            **options,
        )
        set_smooth(self.beam)

    def change(self, values):
        for symbol, value in zip(self.symbols, values, strict=True):
            symbol.assign(value)


NEW = (1.5, 0.8, 0.3, 0.4)
STEPPERS = {
    "splitting, compiled": lambda s: fg.SymmetricPoissonIntegrator(s, 4e-3, compiled=True),
    "splitting": lambda s: fg.SymmetricPoissonIntegrator(s, 4e-3, compiled=False),
    "variational, compiled": lambda s: fg.VariationalIntegrator(s, 4e-3, compiled=True),
    "energy and momentum": lambda s: fg.EnergyMomentum(s, 4e-3),
}


@pytest.mark.parametrize("name", STEPPERS)
def test_a_beam(name):
    """Steps after the change are those of a beam and a stepper that have known nothing else."""
    changed, new = Beam(strain_measure="directors"), Beam(NEW, strain_measure="directors")
    stepper = STEPPERS[name](changed.beam)
    stepper.advance(2)
    changed.change(NEW)
    # Where the inertia changes, the momentum stays in steps of the bracket, the velocity in the others.
    follows = "velocity" if "splitting" in name else "momentum"
    for key, f in changed.beam.functions().items():
        if key != follows:
            new.beam.functions()[key].dat.data_wo[...] = f.dat.data_ro
    stepper.advance(2)
    STEPPERS[name](new.beam).advance(2)
    for key in ("position", "velocity", "strain", "momentum"):
        mine, theirs = (along(getattr(b.beam, key)) for b in (changed, new))
        np.testing.assert_allclose(mine, theirs, **ROUND_OFF, err_msg=key)
    assert changed.beam.energy() == pytest.approx(new.beam.energy(), rel=1e-11)


def test_an_assembly():
    """The same motion as that of the beam by itself, though it lives on another mesh."""
    alone, joined = (Beam(strain_measure="directors") for _ in range(2))
    assembly = fg.Assembly([joined.beam])
    steppers = [fg.EnergyMomentum(system, 4e-3) for system in (alone.beam, assembly)]
    for values in ((1.0, 1.0, 0.0, 0.0), NEW):
        for beam, stepper in zip((alone, joined), steppers, strict=True):
            beam.change(values)
            stepper.advance(2)
        for key in ("position", "velocity", "strain"):
            mine, theirs = (along(getattr(b.beam, key)) for b in (joined, alone))
            np.testing.assert_allclose(mine, theirs, **ROUND_OFF, err_msg=key)
        energies = [stepper.system.potential_energy() for stepper in steppers]
        assert energies[1] == pytest.approx(energies[0], rel=1e-10)
