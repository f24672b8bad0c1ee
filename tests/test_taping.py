"""Under pyadjoint's annotation nothing of fdgeom changes a Function unseen: what is not recorded refuses.

What is recorded is tested in ``tests/adjoint``.
"""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, VectorFunctionSpace, assemble, dot, dx
from firedrake.adjoint import continue_annotation, pause_annotation, stop_annotating
from pyadjoint import AdjFloat, Tape, get_working_tape, set_working_tape
from verification.beams import SOFT, set_smooth, uneven_mesh

import fdgeom as fg


@pytest.fixture
def tape():
    """Annotation on, and off again."""
    set_working_tape(Tape())
    continue_annotation()
    yield get_working_tape()
    pause_annotation()
    set_working_tape(Tape())


def oscillator():
    space = FunctionSpace(fg.copies(2), "DG", 0)
    q, p = Function(space).assign(1.0), Function(space)
    return fg.HamiltonianSystem(q, p, energy=(p**2 / 2 + q**2 / 2) * dx)


def pendulum():
    mesh = fg.copies(1)
    vectors = VectorFunctionSpace(mesh, "DG", 0, dim=3)
    q, p, mult = Function(vectors), Function(vectors), Function(FunctionSpace(mesh, "DG", 0))
    q.dat.data_wo[...] = [1.0, 0.1, 0.0]
    return fg.ConstrainedSystem(
        q, p, kinetic=dot(p, p) / 2 * dx, potential=q[2] * dx,
        constraint=lambda lam: lam * (dot(q, q) - 1) * dx, multiplier=mult,
    )  # fmt: skip


def free_beam():
    with stop_annotating():
        return set_smooth(fg.Beam(uneven_mesh(4), SOFT))


def smooth_beam():
    with stop_annotating():
        return set_smooth(fg.Beam(uneven_mesh(4), SOFT, degree=2))


def bent():
    return fg.Beam(
        IntervalMesh(4, 1.0), fg.Section(np.eye(6), np.eye(6)), left="clamped",
        loads=fg.Load(force=(0, 0, 0.1), at="right"),
    )  # fmt: skip


def stepping(make, stepper, **options):
    def case():
        system = make()
        return system, stepper(system, 1e-2, **options).advance

    return case


def called(make, method):
    def case():
        system = make()
        return system, getattr(system, method)

    return case


CASES = {
    "motion": stepping(free_beam, fg.GeneralizedAlpha, halvings=1),
    "assembly": stepping(lambda: fg.Assembly([bent()]), fg.GeneralizedAlpha, halvings=1),
    "reconstruct": called(smooth_beam, "reconstruct"),
    "Beam.project": called(smooth_beam, "project"),
    "ConstrainedSystem.project": called(pendulum, "project"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_and_unchanged(name, tape):
    """Made under annotation, refused there, and taken where nothing is recorded."""
    system, action = CASES[name]()
    before = {k: np.array(f.dat.data_ro) for k, f in system.functions().items()}
    blocks = len(tape.get_blocks())
    with pytest.raises(NotImplementedError, match="stop_annotating"):
        action()
    for key, f in system.functions().items():
        assert np.array_equal(f.dat.data_ro, before[key]), key
    with stop_annotating():
        action()
    assert len(tape.get_blocks()) == blocks


class Relative(fg.ImplicitMidpoint):
    """A step in parts of the mean of a field; its constructor assembles."""

    def __init__(self, system, part, **options):
        self.part = part
        super().__init__(system, part * assemble(system.parts[0] * dx), **options)
        self.size = assemble(system.parts[0] ** 2 * dx)


def test_constructors_of_derived_classes(tape):
    """What they assemble is not recorded, and they refuse numbers that pyadjoint follows."""
    system = oscillator()
    blocks = len(tape.get_blocks())
    stepper = Relative(system, 0.05)
    assert stepper.dt == pytest.approx(0.1, rel=1e-14)  # two cells of length 1
    assert not isinstance(stepper.size, AdjFloat)
    assert len(tape.get_blocks()) == blocks
    with pytest.raises(NotImplementedError, match="part is a number that pyadjoint follows"):
        Relative(system, AdjFloat(0.05))
    with pytest.raises(AttributeError, match="parts does not exist"):
        stepper.parts = 0.1


def test_resume_is_refused(tape, tmp_path):
    system = oscillator()
    stepper = fg.StormerVerlet(system, 0.1)
    with stop_annotating():
        fg.save(stepper, tmp_path / "state.h5")
    with pytest.raises(NotImplementedError, match=r"fdgeom\.resume"):
        fg.resume(stepper, tmp_path / "state.h5")
    with stop_annotating():
        fg.resume(stepper, tmp_path / "state.h5")


def test_a_beam_made_of_functions_is_refused(tape):
    """Its sampled section would hide them from the tape."""
    mesh = IntervalMesh(2, 1.0)
    modulus = Function(FunctionSpace(mesh, "DG", 0)).assign(1.0)
    section = fg.Section.circle(0.1, density=1.0, youngs_modulus=modulus, poisson_ratio=0.3)
    with pytest.raises(NotImplementedError, match=r"section\.stiffness"):
        fg.Beam(mesh, section)
    with stop_annotating():
        fg.Beam(mesh, section)
