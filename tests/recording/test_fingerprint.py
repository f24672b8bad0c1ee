"""A checkpoint of something else is not taken up: what is another is named."""

import warnings

import numpy as np
import pytest
from firedrake import Constant, dx
from verification.beams import INERTIA, SOFT, STIFFNESS, set_smooth, uneven_mesh
from verification.small_systems import canonical, pairing, rigid_body, states
from verification.spring_systems import oscillator

import fdgeom as fg
from fdgeom.recording.stepper_fingerprint import encoded


def beam(stiffness=STIFFNESS, inertia=INERTIA, **options):
    made = fg.Beam(uneven_mesh(8), fg.Section(stiffness, inertia), **options)
    for f in (made.strain, made.momentum):
        f.assign(0.0)
    made.reconstruct()
    return made


PUSH, PULL = (fg.Load(force=force, at="right") for force in ((0, 0, 1.0), (0, 0, -1.0)))
POISSON = fg.PoissonIntegrator


@pytest.mark.parametrize(
    ("stepper", "other", "difference"),
    [
        (
            lambda: POISSON(beam(), 0.01),
            lambda: fg.SymmetricPoissonIntegrator(beam(), 0.01),
            "class of the method: 'PoissonIntegrator' in the file, 'SymmetricPoissonIntegrator' here",
        ),
        (
            lambda: POISSON(beam(), 0.01),
            lambda: POISSON(beam(), 0.01, configuration="new"),
            "configuration of the method: 'old' in the file, 'new' here",
        ),
        (
            lambda: POISSON(beam(), 0.01),
            lambda: POISSON(beam(stiffness=2 * STIFFNESS), 0.01),
            "section stiffness of the system: ",
        ),
        (
            lambda: POISSON(beam(), 0.01),
            lambda: POISSON(beam(inertia=2 * INERTIA), 0.01),
            "section inertia of the system: ",
        ),
        (
            lambda: POISSON(beam(left="clamped"), 0.01),
            lambda: POISSON(beam(left="pinned"), 0.01),
            "left end of the system: 'clamped' in the file, 'pinned' here",
        ),
        (
            lambda: POISSON(beam(loads=PUSH), 0.01),
            lambda: POISSON(beam(loads=PULL), 0.01),
            "loads of the system: ",
        ),
        (
            lambda: fg.ImplicitMidpoint(states_system(), 0.1),
            lambda: fg.ImplicitMidpoint(states_system(power=4), 0.1),
            "energy of the equations: ",
        ),
        (
            lambda: split_body((0, 1, 2)),
            lambda: split_body((2, 1, 0)),
            "energies of the method: ",
        ),
    ],
)
def test_another_method_or_system(tmp_path, stepper, other, difference):
    path = tmp_path / "a.h5"
    fg.save(stepper(), path)
    again = stepper()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.resume(again, path)
    wrong = other()
    before = [np.array(f.dat.data_ro) for f in wrong.system.functions().values()]
    with pytest.raises(ValueError, match=r"path = '.*a.h5' cannot be resumed from: ") as caught:
        fg.resume(wrong, path)
    assert difference in str(caught.value)
    after = [f.dat.data_ro for f in wrong.system.functions().values()]
    assert all(map(np.array_equal, before, after))
    with pytest.warns(UserWarning, match="was made by something else"):
        fg.resume(wrong, path, strict=False)


def states_system(power=2, constant=1.0):
    z = states((2.0, 0.0))
    k = Constant(constant, name="k")
    return fg.PoissonSystem(z, (0.5 * z[1] ** 2 + k * z[0] ** power) * dx, canonical, pairing)


def split_body(order):
    system, pieces = rigid_body()
    return fg.Splitting(system, 0.1, energies=[pieces[k] for k in order])


def test_numbers_of_ones_own_may_change(tmp_path):
    """They may be loads that change in time: it is said, and taken."""
    path = tmp_path / "a.h5"
    fg.save(fg.ImplicitMidpoint(states_system(), 0.1), path)
    with pytest.warns(UserWarning, match=r"\(k\): 1.0 in the file, 100.0 here"):
        fg.resume(fg.ImplicitMidpoint(states_system(constant=100.0), 0.1), path)


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"scheme": fg.hamel_alpha(0.5)}, "scheme of the method: 'hamel_alpha"),
        ({"scheme": fg.newmark()}, "scheme of the method: 'hamel_alpha"),
        ({"start": "consistent"}, "start of the method: 'default' in the file, 'consistent' here"),
    ],
)
def test_another_member_of_the_family(tmp_path, options, difference):
    fg.save(fg.GeneralizedAlpha(oscillator(), 0.1), tmp_path / "a.h5")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        fg.resume(fg.GeneralizedAlpha(oscillator(), 0.1, **options), tmp_path / "a.h5")
    assert difference in str(caught.value)


def joined(stiffness=1.0, mass=0.5):
    arms = [fg.Beam(uneven_mesh(4), SOFT) for _ in range(2)]
    arms[1].reconstruct(position=(1.5, 0, 0))
    hinge = fg.Revolute(arms[0].right, arms[1].left, axis=(0, 0, 1), stiffness=stiffness)
    body = fg.PointBody(arms[1].right, mass=mass)
    return fg.Assembly(arms, [hinge], bodies=[body])


def test_another_joint():
    """What an assembly is made of, in words."""
    made = joined().model.parameters()
    others = (
        joined(stiffness=2.0).model.parameters(),
        joined(mass=0.7).model.parameters(),
    )
    known = encoded(made)
    changed = [{k for k in known if encoded(other)[k] != known[k]} for other in others]
    assert changed == [{"joint 0"}, {"body 0"}]
    assert known["joint 0"]["first"] == "the right end of beam 0"


JOINTS = {
    "hinge": (False, lambda *places: fg.Revolute(*places, axis=(0, 0, 1))),
    "sprung hinge": (True, lambda *places: fg.Revolute(*places, axis=(0, 0, 1), stiffness=1.0)),
    "weld": (True, fg.Rigid),
    "ball": (False, fg.Spherical),
    "sprung ball": (True, lambda *places: fg.Spherical(*places, stiffness=1.0)),
}


@pytest.mark.parametrize("kind", JOINTS)
def test_joints_made_at_another_angle(kind):
    """Where the beams stood when joints were made is the zero of springs and welds; others have none."""
    has_zero, make = JOINTS[kind]

    def parameters(angle):
        arms = [fg.Beam(uneven_mesh(4), SOFT) for _ in range(2)]
        turn = np.cos(angle / 2), 0, 0, np.sin(angle / 2)
        arms[1].reconstruct(position=(1.5, 0, 0), orientation=turn)
        assembly = fg.Assembly(arms, [make(arms[0].right, arms[1].left)])
        return encoded(assembly.model.parameters())

    known, again, other = map(parameters, (1.5, 1.5, 0.7))
    assert known == again
    changed = {name for name in known if other[name] != known[name]}
    assert changed == ({"axes of joint 0 in the sections"} if has_zero else set())


def test_the_state_is_no_part_of_it(tmp_path):
    fg.save(POISSON(set_smooth(beam()), 0.01), tmp_path / "a.h5")
    again = POISSON(beam(), 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.resume(again, tmp_path / "a.h5")


def test_another_obstacle(tmp_path):
    """Contact with a ball at another place, of another radius or stiffness is another load."""

    def stepper(centre=(0.0, 0.0, -1.0), radius=0.5, stiffness=1e4):
        contact = fg.Contact(fg.Sphere(centre, radius), stiffness=stiffness, radius=0.05)
        return fg.EnergyMomentum(beam(loads=contact), 0.01)

    fg.save(stepper(), tmp_path / "a.h5")
    fg.resume(stepper(), tmp_path / "a.h5")
    for change in ({"centre": (0.1, 0.0, -1.0)}, {"radius": 0.6}, {"stiffness": 2e4}):
        with pytest.raises(ValueError, match="cannot be resumed from: loads of the system: "):
            fg.resume(stepper(**change), tmp_path / "a.h5")
