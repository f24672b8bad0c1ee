"""Geometrically exact beams, alone and joined to one another.

Sections and their laws, ends, loads and joints; the beam as strain and momentum with their bracket,
and as poses of its nodes with their balance of forces. Time integration is in
:mod:`fdgeom.steppers`, sections from drawings are in :mod:`fdgeom.sections`.

- `beam`: the class `Beam`; `section`, `law`, `sampling`: what it is made of; `fields`: its fields;
- `ends`: clamped, pinned, sliding and moved ends;
- `bracket`: strain and momentum as a Poisson system, with its ends; `rod_of_beam`: the
  configuration form, and what a checkpoint stores of a beam; `consistency`: which of the two the
  user has set; `chain`: poses from strains and back;
- `forces`: reactions, forces of joints, stress; `obstacles`: bodies by the distance from their
  surface; `contact`: the load that they exert on a rod;
- `rod`: forms of poses, and loads; `network`: joints and assemblies.
"""

from fdgeom.beams.beam import Beam
from fdgeom.beams.contact import Contact
from fdgeom.beams.ends import GivenPose, Sliding
from fdgeom.beams.law import SectionLaw
from fdgeom.beams.network.assembly import Assembly
from fdgeom.beams.network.joints import (
    Joint,
    PointBody,
    Prismatic,
    Revolute,
    Rigid,
    Spherical,
    ground,
)
from fdgeom.beams.obstacles import Cylinder, LevelSet, Plane, Ring, Sphere
from fdgeom.beams.rod.loads import BodyLoad, Gravity, Load
from fdgeom.beams.section import Section

__all__ = [
    "Assembly",
    "Beam",
    "BodyLoad",
    "Contact",
    "Cylinder",
    "GivenPose",
    "Gravity",
    "Joint",
    "LevelSet",
    "Load",
    "Plane",
    "PointBody",
    "Prismatic",
    "Revolute",
    "Rigid",
    "Ring",
    "Section",
    "SectionLaw",
    "Sliding",
    "Sphere",
    "Spherical",
    "ground",
]
