"""Beams: meshes, sections, supports, places."""

import numpy as np
from firedrake import (
    Identity,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    TestFunction,
    as_matrix,
    as_vector,
    dot,
    dx,
    sqrt,
)
from robustness.calls import small

import fdgeom as fg


def lawful(energy, **more):
    """A beam of a law of the user's own."""
    methods = {"energy": lambda self, strain, stiffness: energy(strain, stiffness), **more}
    law = type("Law", (fg.SectionLaw,), methods)()
    return fg.Beam(small.mesh(), small.SECTION, law=law)


def quadratic(strain, stiffness):
    return dot(strain, stiffness * strain) / 2


REFUSALS = [
    (
        "law",
        lambda: fg.Beam(small.mesh(), small.SECTION, law=3.0),
        TypeError,
        (
            "law must be an instance of a subclass of fdgeom.SectionLaw with "
            "energy(self, strain, stiffness), not 3.0"
        ),
    ),
    (
        "law",
        lambda: fg.Beam(small.mesh(), small.SECTION, law=quadratic),
        TypeError,
        (
            "law must be an instance of a subclass of fdgeom.SectionLaw with "
            "energy(self, strain, stiffness), not …"
        ),
    ),
    (
        "law",
        lambda: lawful(lambda e, K: K * e),
        ValueError,
        "law: the energy must be of shape (), not (6,)",
    ),
    (
        "law",
        lambda: lawful(lambda e, K: None),
        ValueError,
        "law: energy(strain, stiffness) gives no UFL expression: …",
    ),
    (
        "law",
        lambda: lawful(lambda e, K: K[0, 0]),
        ValueError,
        "law: its energy must depend on the strain",
    ),
    (
        "law",
        lambda: lawful(lambda e, K: quadratic(e, K) + e[3]),
        ValueError,
        "law: the stress at zero strain must be zero; give the shape at rest by reference_strain",
    ),
    (
        "law",
        lambda: lawful(lambda e, K: -quadratic(e, K)),
        ValueError,
        "law: the energy must be least at zero strain",
    ),
    (
        "law",
        lambda: lawful(lambda e, K: quadratic(e, K) + sqrt(dot(e, e))),
        ValueError,
        (
            "law: stress and tangent at zero strain are not finite; look for a root or a "
            "quotient whose derivative is not defined there"
        ),
    ),
    (
        "law",
        lambda: lawful(quadratic, stress=lambda self, e, K: 2 * K * e),
        ValueError,
        "law: its stress is not the derivative of its energy; leave it out",
    ),
    (
        "law",
        lambda: lawful(lambda e, K: quadratic(e, K) * (1 + small.number())),
        ValueError,
        "law: its Functions and coordinates must be on the mesh of the beam",
    ),
    (
        "mesh",
        lambda: fg.Beam(3, small.SECTION),
        TypeError,
        "mesh must be a Firedrake mesh, not 3",
    ),
    (
        "mesh",
        lambda: fg.Beam(small.square(), small.SECTION),
        ValueError,
        (
            "mesh must be an interval mesh in one dimension, such as IntervalMesh(n, "
            "length); this one has triangle cells in 2 dimensions"
        ),
    ),
    (
        "section",
        lambda: fg.Beam(small.mesh(), 3.0),
        TypeError,
        "section must be a fdgeom.Section, not 3.0",
    ),
    (
        "section",
        lambda: fg.Beam(small.mesh()),
        TypeError,
        "Beam.__init__() missing 1 required positional argument: 'section'",
    ),
    (
        "section",
        lambda: fg.Beam(small.mesh(), fg.Section),
        TypeError,
        "section must be a fdgeom.Section, not the class Section",
    ),
    (
        "degree",
        lambda: fg.Beam(small.mesh(), small.SECTION, degree=0),
        ValueError,
        "degree must be one of 1, 2, 3, 4, not 0",
    ),
    (
        "degree",
        lambda: fg.Beam(small.mesh(), small.SECTION, degree=5),
        ValueError,
        "degree must be one of 1, 2, 3, 4, not 5",
    ),
    (
        "degree",
        lambda: fg.Beam(small.mesh(), small.SECTION, degree=1.0),
        ValueError,
        "degree must be one of 1, 2, 3, 4, not 1.0",
    ),
    (
        "degree",
        lambda: fg.Beam(small.mesh(), small.SECTION, degree="2"),
        ValueError,
        "degree must be one of 1, 2, 3, 4, not '2'",
    ),
    (
        "degree",
        lambda: fg.Beam(small.mesh(), small.SECTION, degree=True),
        ValueError,
        "degree must be one of 1, 2, 3, 4, not True",
    ),
    (
        "end_weight",
        lambda: fg.Beam(small.mesh(), small.SECTION, end_weight=0.0),
        ValueError,
        "end_weight must be a positive number, not 0.0",
    ),
    (
        "end_weight",
        lambda: fg.Beam(small.mesh(), small.SECTION, end_weight="half"),
        TypeError,
        "end_weight must be a number, not 'half'",
    ),
    (
        "end_weight",
        lambda: fg.Beam(small.mesh(), small.SECTION, end_weight=np.nan),
        ValueError,
        "end_weight must be a positive number, not nan",
    ),
    (
        "end_weight",
        lambda: fg.Beam(small.mesh(), small.SECTION, degree=2, end_weight=1.0),
        ValueError,
        "end_weight needs degree=1; leave it out",
    ),
    (
        "loads",
        lambda: fg.Beam(small.mesh(), small.SECTION, degree=2, loads=fg.Gravity((0, 0, -9.81))),
        ValueError,
        "loads: beams of degree 2 to 4 take none; use degree=1",
    ),
    (
        "damping",
        lambda: fg.Beam(small.mesh(), small.SECTION, degree=2, damping=0.1),
        ValueError,
        "damping: beams of degree 2 to 4 take none; use degree=1",
    ),
    (
        "left",
        lambda: fg.Beam(small.mesh(), small.SECTION, left="fixed"),
        ValueError,
        (
            "left must be one of 'free', 'clamped', 'pinned', fdgeom.Sliding, "
            "fdgeom.GivenPose or a callable velocity(t), not 'fixed'"
        ),
    ),
    (
        "right",
        lambda: fg.Beam(small.mesh(), small.SECTION, right=3),
        ValueError,
        (
            "right must be one of 'free', 'clamped', 'pinned', fdgeom.Sliding, "
            "fdgeom.GivenPose or a callable velocity(t), not 3"
        ),
    ),
    (
        "right",
        lambda: fg.Beam(small.mesh(), small.SECTION, right=None),
        ValueError,
        (
            "right must be one of 'free', 'clamped', 'pinned', fdgeom.Sliding, "
            "fdgeom.GivenPose or a callable velocity(t), not None"
        ),
    ),
    (
        "left",
        lambda: fg.Beam(small.mesh(), small.SECTION, left=fg.Sliding),
        ValueError,
        (
            "left must be one of 'free', 'clamped', 'pinned', fdgeom.Sliding, "
            "fdgeom.GivenPose or a callable velocity(t), not the class Sliding"
        ),
    ),
    (
        "left",
        lambda: fg.Beam(small.mesh(), small.SECTION, left=["clamped"]),
        ValueError,
        (
            "left must be one of 'free', 'clamped', 'pinned', fdgeom.Sliding, "
            "fdgeom.GivenPose or a callable velocity(t), not ['clamped']"
        ),
    ),
    (
        "left",
        lambda: fg.Beam(small.mesh(), small.SECTION, left=lambda t: as_vector([0, 0, t])),
        ValueError,
        "left: velocity(t) must give a vector of 6, not (3,)",
    ),
    (
        "left",
        lambda: fg.Beam(small.mesh(), small.SECTION, left=lambda t: "fast"),
        ValueError,
        (
            "left: velocity(t) must give a UFL vector of 6: Invalid type conversion: fast "
            "can not be converted to any UFL type"
        ),
    ),
    (
        "left",
        lambda: fg.Beam(small.mesh(), small.SECTION, left=lambda: 0),
        ValueError,
        (
            "left: velocity(t) must give a UFL vector of 6: <lambda>() takes 0 positional "
            "arguments but 1 was given"
        ),
    ),
    (
        "mesh",
        lambda: fg.Beam(PeriodicIntervalMesh(4, 1.0), small.SECTION, left="clamped"),
        ValueError,
        (
            "mesh: a closed mesh has no first node to build a beam from; take an open one, such as "
            "IntervalMesh(n, length), and join the ends of the beam by fdgeom.Assembly([beam], "
            "[fdgeom.Rigid(beam.right, beam.left)])"
        ),
    ),
    (
        "reference_strain",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_strain=(0, 1, 0)),
        ValueError,
        "reference_strain must be a vector of 6, not of shape (3,)",
    ),
    (
        "reference_strain",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_strain=1.0),
        ValueError,
        "reference_strain must be a vector of 6, not 1.0",
    ),
    (
        "reference_strain",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_strain="arc"),
        ValueError,
        "reference_strain must be a vector of 6, not 'arc'",
    ),
    (
        "reference_strain",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_strain=[np.nan] + [0] * 5),
        ValueError,
        "reference_strain must be finite everywhere along the beam",
    ),
    (
        "reference_shape",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_shape=3),
        TypeError,
        "reference_shape must be a pair (position, orientation) of UFL expressions",
    ),
    (
        "reference_shape",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_shape=((0, 0), (1, 0, 0, 0))),
        ValueError,
        "reference_shape: the position must be a vector of 3, not (2,)",
    ),
    (
        "reference_shape",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_shape=((0, 0, 0), (0, 0, 0, 0))),
        ValueError,
        (
            "reference_shape: the orientation is zero; it must be a quaternion, scalar "
            "first: (1, 0, 0, 0)"
        ),
    ),
    (
        "reference_shape",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_shape=("x", "q")),
        TypeError,
        "reference_shape: the position must be a UFL vector of 3, not 'x'",
    ),
    (
        "reference_shape",
        lambda: fg.Beam(
            small.mesh(),
            small.SECTION,
            reference_strain=[0] * 6,
            reference_shape=((0, 0, 0), (1, 0, 0, 0)),
        ),
        ValueError,
        "give reference_strain or reference_shape, not both",
    ),
    (
        "strain_measure",
        lambda: fg.Beam(small.mesh(), small.SECTION, strain_measure="green"),
        ValueError,
        "strain_measure must be one of 'simo-reissner', 'se3', 'directors', not 'green'",
    ),
    (
        "strain_measure",
        lambda: fg.Beam(small.mesh(), small.SECTION, strain_measure=None),
        ValueError,
        "strain_measure must be one of 'simo-reissner', 'se3', 'directors', not None",
    ),
    (
        "lefft",
        lambda: fg.Beam(small.mesh(), small.SECTION, lefft="clamped"),
        TypeError,
        "Beam.__init__() got an unexpected keyword argument 'lefft'",
    ),
    (
        "stiffness",
        lambda: fg.Section(np.eye(5), np.eye(6)),
        ValueError,
        (
            "stiffness must be a 6×6 array of finite numbers or a UFL expression, not an "
            "array of shape (5, 5)"
        ),
    ),
    (
        "stiffness",
        lambda: fg.Section("steel", np.eye(6)),
        TypeError,
        "stiffness must be a 6×6 array of finite numbers or a UFL expression, not 'steel'",
    ),
    (
        "stiffness",
        lambda: fg.Section(-np.eye(6), np.eye(6)),
        ValueError,
        (
            "stiffness must be positive definite: its least eigenvalue is -1 (a negative or"
            " zero density, modulus or dimension?)"
        ),
    ),
    (
        "stiffness",
        lambda: fg.Section(np.triu(np.ones((6, 6))), np.eye(6)),
        ValueError,
        "stiffness must be symmetric",
    ),
    (
        "stiffness",
        lambda: fg.Section(np.full((6, 6), np.nan), np.eye(6)),
        ValueError,
        (
            "stiffness must be a 6×6 array of finite numbers or a UFL expression, not an "
            "array of shape (6, 6) of which some are not finite"
        ),
    ),
    (
        "inertia",
        lambda: fg.Section(np.eye(6), np.diag([2.0, 2, 2, 0.2, 0.1, 0.1])),
        ValueError,
        "inertia: its first three rows are those of a mass, the last three those of moments "
        "of inertia; give rotation first, while tables of other programs often begin with "
        "translation",
    ),
    (
        "inertia",
        lambda: fg.Section.from_table(
            np.eye(6), np.diag([2.0, 2, 2, 0.2, 0.08, 0.12]), convention="beamdyn"
        ),
        ValueError,
        "inertia: the moment of inertia about axis 0 is the sum of the other two, as of a "
        "cross-section about the beam's axis, which is here axis 2: choose another convention, or "
        "turn the rows and columns",
    ),
    (
        "inertia",
        lambda: fg.Section(np.eye(6), np.zeros((6, 6))),
        ValueError,
        (
            "inertia must be positive definite: its least eigenvalue is 0 (a negative or "
            "zero density, modulus or dimension?)"
        ),
    ),
    (
        "inertia",
        lambda: fg.Section(np.eye(6), as_matrix([[1, 0], [0, 1]])),
        ValueError,
        "inertia must have shape (6, 6), not (2, 2)",
    ),
    (
        "inertia",
        lambda: fg.Section(np.eye(6)),
        TypeError,
        "Section.__init__() missing 1 required positional argument: 'inertia'",
    ),
    (
        "section.stiffness",
        lambda: fg.Beam(
            small.mesh(),
            fg.Section((SpatialCoordinate(small.mesh())[0] - 0.5) * Identity(6), np.eye(6)),
        ),
        ValueError,
        (
            "section.stiffness must be positive definite: its least eigenvalue is -0.375 (a"
            " negative or zero density, modulus or dimension?)"
        ),
    ),
    (
        "axis",
        lambda: fg.Section(np.eye(6), np.eye(6), axis=3),
        ValueError,
        "axis (the material axis along the beam) must be one of 0, 1, 2, not 3",
    ),
    (
        "axis",
        lambda: fg.Section(np.eye(6), np.eye(6), axis="x"),
        ValueError,
        "axis (the material axis along the beam) must be one of 0, 1, 2, not 'x'",
    ),
    (
        "axis",
        lambda: fg.Section.circle(0.1, axis=1.0, **small.MATERIAL),
        ValueError,
        "axis (the material axis along the beam) must be one of 0, 1, 2, not 1.0",
    ),
    (
        "radius",
        lambda: fg.Section.circle(-0.1, **small.MATERIAL),
        ValueError,
        "radius must be a positive number, not -0.1",
    ),
    (
        "radius",
        lambda: fg.Section.circle("thin", **small.MATERIAL),
        TypeError,
        "radius must be a number or a UFL expression, not 'thin'",
    ),
    (
        "radius",
        lambda: fg.Section.circle(np.inf, **small.MATERIAL),
        ValueError,
        "radius must be a positive number, not inf",
    ),
    (
        "width",
        lambda: fg.Section.rectangle(0.0, 0.1, **small.MATERIAL),
        ValueError,
        "width must be a positive number, not 0.0",
    ),
    (
        "height",
        lambda: fg.Section.rectangle(0.1, None, **small.MATERIAL),
        TypeError,
        "height must be a number or a UFL expression, not None",
    ),
    (
        "inner_radius",
        lambda: fg.Section.tube(0.1, 0.2, **small.MATERIAL),
        ValueError,
        "inner_radius must be smaller than outer_radius",
    ),
    (
        "density",
        lambda: fg.Section.circle(0.1, **small.MATERIAL | {"density": -1.0}),
        ValueError,
        "density must be a positive number, not -1.0",
    ),
    (
        "youngs_modulus",
        lambda: fg.Section.circle(0.1, **small.MATERIAL | {"youngs_modulus": 0}),
        ValueError,
        "youngs_modulus must be a positive number, not 0",
    ),
    (
        "poisson_ratio",
        lambda: fg.Section.circle(0.1, **small.MATERIAL | {"poisson_ratio": 0.7}),
        ValueError,
        "poisson_ratio must lie in (-1, 0.5], not 0.7",
    ),
    (
        "poisson_ratio",
        lambda: fg.Section.circle(0.1, **small.MATERIAL | {"poisson_ratio": "0.3"}),
        TypeError,
        "poisson_ratio must be a number or a UFL expression, not '0.3'",
    ),
    (
        "shear_factor",
        lambda: fg.Section.circle(0.1, shear_factor=(1, 1, 1), **small.MATERIAL),
        ValueError,
        "shear_factor must be one number or two, one for each transverse axis",
    ),
    (
        "shear_factor",
        lambda: fg.Section.circle(0.1, shear_factor=0.0, **small.MATERIAL),
        ValueError,
        "shear_factor must be a positive number, not 0.0",
    ),
    (
        "second_moments",
        lambda: fg.Section.from_properties(area=1.0, second_moments=1.0, **small.MATERIAL),
        ValueError,
        "second_moments must be two, one for each transverse axis",
    ),
    (
        "second_moments",
        lambda: fg.Section.from_properties(area=1.0, second_moments=(1.0, -1.0), **small.MATERIAL),
        ValueError,
        "second_moments must be a positive number, not -1.0",
    ),
    (
        "torsion_constant",
        lambda: fg.Section.from_properties(
            area=1.0, second_moments=(1.0, 1.0), torsion_constant=0, **small.MATERIAL
        ),
        ValueError,
        "torsion_constant must be a positive number, not 0",
    ),
    (
        "along",
        lambda: fg.Sliding("up"),
        ValueError,
        "along must be 'x', 'y' or 'z' (or 0, 1, 2), not 'up'",
    ),
    (
        "along",
        lambda: fg.Sliding(3),
        ValueError,
        "along must be 'x', 'y' or 'z' (or 0, 1, 2), not 3",
    ),
    (
        "along",
        lambda: fg.Sliding(along=[1, 0, 0]),
        ValueError,
        "along must be 'x', 'y' or 'z' (or 0, 1, 2), not [1, 0, 0]",
    ),
    (
        "turning",
        lambda: fg.Sliding("x", turning="no"),
        TypeError,
        "turning must be True or False, not 'no'",
    ),
    (
        "position",
        lambda: fg.GivenPose(),
        ValueError,
        "GivenPose: give position, orientation, or both",
    ),
    (
        "position",
        lambda: fg.GivenPose(position=(0, 0, 0)),
        TypeError,
        "position must be a function of the time t giving a UFL vector",
    ),
    (
        "orientation",
        lambda: fg.GivenPose(orientation=as_vector([1, 0, 0, 0])),
        TypeError,
        "orientation must be a function of the time t giving a UFL vector",
    ),
    (
        "position",
        lambda: (
            fg.Beam(
                small.mesh(), small.SECTION, left=fg.GivenPose(position=lambda t: as_vector([t, 0]))
            ).motion
        ),
        ValueError,
        "position: the function must give a vector of 3, not (2,)",
    ),
    (
        "orientation",
        lambda: (
            fg.Beam(
                small.mesh(),
                small.SECTION,
                left=fg.GivenPose(orientation=lambda t: as_vector([0, 0, 0, 0])),
            ).motion
        ),
        ValueError,
        "orientation is zero; it must be a quaternion, scalar first: (1, 0, 0, 0)",
    ),
    (
        "position",
        lambda: small.beam().reconstruct(position=(0, 0)),
        ValueError,
        "position must be a vector of 3 finite numbers, not (0, 0)",
    ),
    (
        "position",
        lambda: small.beam().reconstruct(position=(0, 0, np.nan)),
        ValueError,
        "position must be a vector of 3 finite numbers, not (0, 0, nan)",
    ),
    (
        "position",
        lambda: small.beam().reconstruct(position="origin"),
        TypeError,
        "position must be a vector of 3 finite numbers, not 'origin'",
    ),
    (
        "orientation",
        lambda: small.beam().reconstruct(orientation=(1, 1, 0, 0)),
        ValueError,
        "orientation must be a unit quaternion (scalar first), not (1, 1, 0, 0)",
    ),
    (
        "orientation",
        lambda: small.beam().reconstruct(orientation=(0, 0, 0, 0)),
        ValueError,
        "orientation must be a unit quaternion (scalar first), not (0, 0, 0, 0)",
    ),
    (
        "orientation",
        lambda: small.beam().reconstruct(orientation=(1, 0, 0)),
        ValueError,
        "orientation must be a unit quaternion (scalar first), not (1, 0, 0)",
    ),
    (
        "closed",
        lambda: fg.Beam(PeriodicIntervalMesh(4, 1.0), small.SECTION).reconstruct(),
        ValueError,
        (
            "mesh: a closed mesh has no first node to build a beam from; take an open one, such as "
            "IntervalMesh(n, length), and join the ends of the beam by fdgeom.Assembly([beam], "
            "[fdgeom.Rigid(beam.right, beam.left)])"
        ),
    ),
    (
        "at",
        lambda: small.beam().at("middle"),
        ValueError,
        "at must be 'left', 'right' or the arc length of a node, not 'middle'",
    ),
    (
        "at",
        lambda: small.beam().at(np.nan),
        ValueError,
        "at must be 'left', 'right' or the arc length of a node, not nan",
    ),
    (
        "at",
        lambda: small.beam().at(None),
        ValueError,
        "at must be 'left', 'right' or the arc length of a node, not None",
    ),
    (
        "degree",
        lambda: small.fine().rod,
        ValueError,
        "degree: the configuration form has beams of degree 1 only",
    ),
    (
        "left",
        lambda: (
            fg.Beam(small.mesh(), small.SECTION, left=lambda t: as_vector([0] * 5 + [t])).motion
        ),
        ValueError,
        (
            "left: methods in configuration form need the pose of this end, not its "
            "velocity: use fdgeom.GivenPose(position=..., orientation=...)"
        ),
    ),
    (
        "energy",
        lambda: small.beam().substeps.with_energy(small.beam().energy_form()),
        ValueError,
        "system: the energy of a Beam cannot be replaced; state a PoissonSystem",
    ),
    ("n", lambda: fg.copies(0), ValueError, "n must be a positive whole number, not 0"),
    ("n", lambda: fg.copies(2.5), ValueError, "n must be a positive whole number, not 2.5"),
    ("n", lambda: fg.copies(True), ValueError, "n must be a positive whole number, not True"),
    (
        "points",
        lambda: fg.measures.gauss(small.mesh(), 0),
        ValueError,
        "points must be a positive whole number, not 0",
    ),
    (
        "points",
        lambda: fg.measures.gauss_lobatto(small.mesh(), 1),
        ValueError,
        "points must be a whole number of at least 2, not 1",
    ),
    (
        "mesh",
        lambda: fg.measures.vertex(small.square()),
        ValueError,
        (
            "mesh must be an interval mesh in one dimension, such as IntervalMesh(n, "
            "length); this one has triangle cells in 2 dimensions"
        ),
    ),
    (
        "reference_strain",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_strain=()),
        ValueError,
        "reference_strain must be a vector of 6, not ()",
    ),
    (
        "position",
        lambda: fg.GivenPose(position=small.number() * dx),
        TypeError,
        "position must be a function of the time t giving a UFL vector",
    ),
    (
        "mesh",
        lambda: fg.Beam(small.number() * dx, small.SECTION),
        TypeError,
        "mesh must be a Firedrake mesh, not a UFL form",
    ),
    (
        "strain_measure",
        lambda: fg.Beam(small.mesh(), small.SECTION, strain_measure=[1]),
        ValueError,
        "strain_measure must be one of 'simo-reissner', 'se3', 'directors', not [1]",
    ),
    (
        "strain_measure",
        lambda: fg.Beam(small.mesh(), small.SECTION, strain_measure=np.eye(3)),
        ValueError,
        (
            "strain_measure must be one of 'simo-reissner', 'se3', 'directors', not an array "
            "of shape (3, 3)"
        ),
    ),
    (
        "strain_measure",
        lambda: fg.Beam(small.mesh(), small.SECTION, strain_measure=small.number() * dx),
        ValueError,
        "strain_measure must be one of 'simo-reissner', 'se3', 'directors', not a UFL form",
    ),
    (
        "reference_strain",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_strain=int),
        ValueError,
        "reference_strain must be a vector of 6, not the class int",
    ),
    (
        "reference_strain",
        lambda: fg.Beam(small.mesh(), small.SECTION, reference_strain=small.mesh()),
        ValueError,
        "reference_strain must be a vector of 6, not a MeshGeometry",
    ),
    (
        "width",
        lambda: fg.Section.rectangle(
            TestFunction(small.vector().function_space()), 1.0, **small.MATERIAL
        ),
        ValueError,
        "width must be a scalar without test functions, not a UFL expression of shape (3,)",
    ),
    (
        "height",
        lambda: fg.Section.rectangle(1.0, small.mesh(), **small.MATERIAL),
        TypeError,
        "height must be a number or a UFL expression, not a MeshGeometry",
    ),
    (
        "poisson_ratio",
        lambda: fg.Section.rectangle(
            1.0,
            1.0,
            **small.MATERIAL | {"poisson_ratio": TestFunction(small.vector().function_space())},
        ),
        ValueError,
        "poisson_ratio must be a scalar without test functions, not a UFL expression of shape (3,)",
    ),
    (
        "position",
        lambda: fg.GivenPose(position=int),
        TypeError,
        "position must be a function of the time t giving a UFL vector",
    ),
]
