"""The ``repr`` of every public object says in one line what it is."""

import inspect

import numpy as np
import pytest
from firedrake import IntervalMesh, SpatialCoordinate
from robustness.calls import small

import fdgeom as fg

STEEL = {"density": 7800.0, "youngs_modulus": 2.1e11, "poisson_ratio": 0.3}
BAR = fg.Section.rectangle(0.1, 0.2, axis=1, **STEEL)


def beam(**options):
    return fg.Beam(IntervalMesh(100, 2 * np.pi / 3), BAR, **options)


class Stiffening(fg.SectionLaw):
    def energy(self, strain, stiffness):
        return 0.5 * strain[0] ** 2


#: Objects and how they describe themselves.
DESCRIBED = [
    (beam, "Beam(100 cells, length 2.09, rectangle 0.1 × 0.2, free – free)"),
    (lambda: beam(left="clamped", right=fg.Sliding("x")),
     "Beam(100 cells, length 2.09, rectangle 0.1 × 0.2, clamped – Sliding('x', turning=True))"),
    (small.assembly, "Assembly(2 beams, 1 joint)"),
    (lambda: BAR, "Section(rectangle 0.1 × 0.2, axis 1)"),
    (lambda: fg.Section.circle(0.5, **STEEL), "Section(circle of radius 0.5, axis 0)"),
    (lambda: fg.Section.tube(0.5, 0.25, **STEEL), "Section(tube of radii 0.5 × 0.25, axis 0)"),
    (lambda: fg.Section.circle(SpatialCoordinate(small.mesh())[0] + 1, **STEEL),
     "Section(circle of varying size, axis 0)"),
    (lambda: small.SECTION, "Section(constant section, axis 0)"),
    (small.hinge, "<Spherical joint of the right end and the left end>"),
    (lambda: fg.ground, "ground"),
    (lambda: fg.PointBody(small.beam().left, mass=2.0), "<body of mass 2 at the left end>"),
    (lambda: fg.Load(force=(0, 0, 1), at="right"), "<dead force at 'right'>"),
    (lambda: fg.Gravity((0, 0, -9.81)), "<gravity>"),
    (lambda: fg.GivenPose(position=lambda t: (t, 0, 0)), "<given position>"),
    (Stiffening, "Stiffening()"),
    (small.stepper, "ImplicitMidpoint(PoissonSystem, order 2, t = 0, dt = 0.1)"),
    (lambda: fg.hamel_alpha(0.8), "AlphaScheme(hamel_alpha(0.8))"),
    (small.body, "PoissonSystem(state)"),
    (small.oscillator, "HamiltonianSystem(q, p)"),
    (small.pendulum, "ConstrainedSystem(q, p, multiplier)"),
    (small.link, "LagrangianSystem(q, velocity, multiplier)"),
    (small.skate, "NonholonomicSystem(q, velocity, multiplier)"),
    (small.spring, "SecondOrderSystem(q, velocity, "),
    (small.top, "RigidBodies(orientation, velocity, "),
    (small.rolling, "ChaplyginSystem(x)"),
    (lambda: fg.StaticEquilibrium(small.clamped()), "StaticEquilibrium(Beam, load = 0)"),
    (lambda: fg.VibrationModes(small.beam(), 3), "VibrationModes(Beam, 3 modes)"),
    (lambda: fg.Isotropic(**STEEL), "Isotropic("),
    (lambda: fg.Isotropic(small.scalar(), 0.3, 1.0), "Isotropic(youngs_modulus=a Function, "),
    (lambda: fg.VonMises(2e8), "VonMises("),
    (fg.Energy, "Energy()"),
    (fg.Momentum, "Momentum()"),
    (fg.LocalNewton, "LocalNewton()"),
    (fg.ChainNewton, "ChainNewton()"),
    (fg.ChainLU, "ChainLU()"),
    (lambda: fg.Casimir("norm"), "Casimir(name='norm')"),
    (fg.ConstraintDefect, "ConstraintDefect()"),
    (fg.Reactions, "Reactions()"),
    (lambda: fg.Functional("half", small.oscillator().q * small.dx), "Functional(name='half')"),
    (lambda: fg.Probe("tip", small.oscillator().q, 0.5), "Probe(name='tip', point="),
    (lambda: fg.Checkpoint("run.h5", every=10), "Checkpoint(path=run.h5, every=10)"),
    (lambda: fg.CSVFile("run.csv"), "CSVFile(path=run.csv)"),
    (lambda: fg.VTKOutput("run.pvd", every=5), "VTKOutput(path=run.pvd, every=5)"),
    (lambda: fg.Snapshots(every=4), "Snapshots(every=4)"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), DESCRIBED, ids=[text for _, text in DESCRIBED])
def test_description(make, text):
    found = repr(make())
    assert found == text or (text.endswith(("(", " ", "=")) and found.startswith(text))
    assert "\n" not in found
    assert " at 0x" not in found
    assert len(found) < 130


def test_every_class_describes_its_objects():
    """No public class has Python's own ``repr``, and all steppers have that of their base class."""
    made_by_petsc = {"ChainLU", "ChainNewton", "LocalNewton"}
    bases = {"Condition"}
    for name in set(fg.__all__) - made_by_petsc - bases:
        cls = getattr(fg, name)
        if inspect.isclass(cls):
            assert cls.__repr__ is not object.__repr__, name
            assert not issubclass(cls, fg.Stepper) or cls.__repr__ is fg.Stepper.__repr__, name


def test_systems_that_are_being_made():
    """Errors in a constructor may name the object."""
    assert repr(fg.Beam.__new__(fg.Beam)) == "Beam(...)"
    assert repr(fg.HamiltonianSystem.__new__(fg.HamiltonianSystem)) == "HamiltonianSystem(...)"


def test_a_section_has_its_description_as_an_attribute():
    section = fg.Section.circle(0.1, density=1.0, youngs_modulus=1.0, poisson_ratio=0.3)
    assert section.description == "circle of radius 0.1"
    assert section.description in repr(section)
