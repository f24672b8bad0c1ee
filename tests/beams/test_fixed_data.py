"""Data that the equations of beams and assemblies have been made of cannot be replaced without effect."""

import numpy as np
import pytest
from verification.beams import SOFT, uneven_mesh

import fdgeom as fg


@pytest.fixture(scope="module")
def things():
    """All parts of an assembly by name, after it is made."""
    ball = fg.Sphere((0.5, 0, -3), 0.2)
    section = fg.Section(SOFT.stiffness, SOFT.inertia)
    found = {
        "ball": ball,
        "section": section,
        "force": fg.Load(force=(0, 0, 1.0), at="right"),
        "contact": fg.Contact(ball, stiffness=10.0, radius=0.01),
        "gravity": fg.Gravity((0, 0, -1.0)),
    }
    loads = [found["force"], found["contact"]]
    beam = fg.Beam(uneven_mesh(2), section, loads=loads)
    found["hinge"] = fg.Revolute(fg.ground, beam.left, axis=(0, 1, 0), stiffness=1.0)
    found["body"] = fg.PointBody(beam.right, mass=0.1)
    found["assembly"] = fg.Assembly(
        [beam], [found["hinge"]], bodies=[found["body"]], loads=found["gravity"]
    )
    return found


REPLACED = {
    "hinge": {"stiffness": 2.0, "rest": 0.3, "damping": 1.0, "axis": (1, 0, 0)},
    "body": {"matrix": np.eye(6)},
    "force": {"force": (0, 0, 2.0), "at": "left", "frame": "body", "moment": (0, 1, 0)},
    "gravity": {"acceleration": (0, 0, -2.0)},
    "contact": {"stiffness": 20.0, "obstacles": ()},
    "ball": {"centre": (0, 0, -2.0), "inside": True},
    "section": {"stiffness": 2 * np.eye(6), "axis": 1},
    "assembly": {"beams": (), "bodies": (), "common_loads": ()},
}


@pytest.mark.parametrize(
    ("name", "attribute"), [(name, a) for name, found in REPLACED.items() for a in found]
)
def test_nothing_is_replaced_in_vain(things, name, attribute):
    value, before = REPLACED[name][attribute], getattr(things[name], attribute)
    kind = type(things[name]).__name__
    with pytest.raises(AttributeError, match=f"^{kind}.{attribute} cannot be replaced"):
        setattr(things[name], attribute, value)
    assert getattr(things[name], attribute) is before


def test_friction_without_a_coefficient_is_no_constant(things):
    with pytest.raises(AttributeError, match="make another Contact"):
        things["contact"].friction = 0.3


@pytest.mark.parametrize(("name", "attribute"), [("body", "matrix"), ("hinge", "axis")])
def test_arrays_are_read_only(things, name, attribute):
    with pytest.raises(ValueError, match="read-only"):
        getattr(things[name], attribute)[...] = 1.0


def test_data_are_free_before_they_are_used():
    """Also if a constructor has refused them."""
    load = fg.Load(force=(0, 0, 1.0), at=0.123)
    with pytest.raises(ValueError, match="^at: "):
        fg.Beam(uneven_mesh(2), SOFT, loads=load)
    load.at = "right"
    fg.Beam(uneven_mesh(2), SOFT, loads=load)
