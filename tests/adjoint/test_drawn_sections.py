"""Sections drawn of materials that are Functions, on pyadjoint's tape, against differences without one."""

import numpy as np
import pytest
from derivable import holding, objective
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    RectangleMesh,
    SpatialCoordinate,
    assemble,
)
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    pause_annotation,
    stop_annotating,
    taylor_to_dict,
)
from verification.beams import set_smooth

import fdgeom as fg


def bar():
    """A modulus that is a field times a number, and a density that is a field; about no centre."""
    mesh = RectangleMesh(2, 2, 0.6, 0.5)
    y, z = SpatialCoordinate(mesh)
    field = Function(FunctionSpace(mesh, "CG", 1)).interpolate(20 + 20 * y + 6 * z)
    number = Function(FunctionSpace(mesh, "R", 0)).assign(1.5)
    density = Function(FunctionSpace(mesh, "DG", 0)).interpolate(2 + y)
    return mesh, fg.Isotropic(field * number, 0.3, density), [field, number, density], (0.3, 0.2)


def laminate():
    """Plies with an angle and a modulus that are Functions; about the centre of tension."""
    mesh = RectangleMesh(2, 2, 0.6, 0.5)
    y, _ = SpatialCoordinate(mesh)
    angle = Function(FunctionSpace(mesh, "DG", 0)).interpolate(0.3 + y)
    stiff = Function(FunctionSpace(mesh, "R", 0)).assign(90.0)
    layer = fg.Orthotropic((stiff, 30.0, 30.0), (10.0, 12.0, 11.0), (0.3, 0.25, 0.2), 1.0)
    return mesh, fg.Ply(layer, angle=angle), [angle, stiff], "tension"


def bent(section):
    """Where a loaded beam of two cells stands."""
    load = fg.Load(force=(0.01, 0.03, -0.05), at="right")
    beam = fg.Beam(IntervalMesh(2, 1.0), section, left="clamped", loads=load)
    fg.StaticEquilibrium(beam).solve()
    return assemble(objective([beam.position, beam.orientation]))


def moved(section):
    """Where a beam of two cells is after some steps."""
    with stop_annotating():
        beam = set_smooth(fg.Beam(IntervalMesh(2, 1.0), section))
    fg.PoissonIntegrator(beam, 1e-2).advance(3)
    return assemble(objective([beam.position, beam.momentum]))


@pytest.mark.parametrize(
    ("make", "value"), [(laminate, bent), (bar, bent), (bar, moved)], ids=lambda f: f.__name__
)
def test_by_materials(make, value, rng):
    mesh, material, data, origin = make()
    here = [np.array(f.dat.data_ro) for f in data]
    directions = [x * rng.uniform(0.5, 1.0, x.shape) for x in here]

    def drawn():
        return fg.Section.from_mesh(mesh, material, origin=origin)

    def at(size):
        for f, x, d in zip(data, here, directions, strict=True):
            f.dat.data_wo[...] = x + size * d
        return value(drawn())

    h = 4e-3
    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    elsewhere, plain = at(0.1), at(0.0)

    continue_annotation()
    given = [holding(f, x) for f, x in zip(data, here, strict=True)]
    for f, x in zip(data, given, strict=True):
        f.assign(x)
    section = drawn()
    found = value(section)
    pause_annotation()
    assert found == pytest.approx(plain, rel=1e-12)
    reduced = ReducedFunctional(found, [Control(x) for x in given])
    there = [holding(x, y + 0.1 * d) for x, y, d in zip(given, here, directions, strict=True)]
    stiffness = np.array(section.stiffness)
    assert reduced(there) == pytest.approx(elsewhere, rel=1e-12)
    assert reduced(given) == pytest.approx(found, rel=1e-13)
    # The section that the user has is the one that was made.
    assert np.array_equal(section.stiffness, stiffness)

    gradient = reduced.derivative()
    terms = [g.dat.data_ro * d for g, d in zip(gradient, directions, strict=True)]
    along, scale = sum(t.sum() for t in terms), sum(abs(t).sum() for t in terms)
    # Equilibria without gravity do not depend on the density.
    assert all(np.abs(t).max() > 1e-6 * scale for t in (terms if value is moved else terms[:2]))
    assert along == pytest.approx(expected, abs=1e-7 * scale)
    directed = [holding(x, d) for x, d in zip(given, directions, strict=True)]
    assert reduced.tlm(directed) == pytest.approx(along, abs=1e-12 * scale)
    small = [holding(x, 0.5 * d) for x, d in zip(given, directions, strict=True)]
    orders = taylor_to_dict(reduced, given, small)
    assert min(orders["R1"]["Rate"]) > 1.95
    assert min(orders["R2"]["Rate"]) > 2.95
    # Second derivatives do not depend on the order.
    reduced(given)
    reduced.derivative()
    turned = [x * rng.uniform(-1, 1, x.shape) for x in here]
    others = [holding(x, d) for x, d in zip(given, turned, strict=True)]
    pairs = [(directed, turned), (others, directions)]
    products = [
        [(g.dat.data_ro * d).sum() for g, d in zip(reduced.hessian(a), b, strict=True)]
        for a, b in pairs
    ]
    first, second = map(sum, products)
    assert first == pytest.approx(second, abs=1e-12 * np.abs(products).sum())


def test_stations_are_refused():
    mesh, material, _, _ = bar()
    continue_annotation()
    plain = fg.Section.from_mesh(mesh, fg.Isotropic(1.0, 0.3, 1.0))
    assert plain.on_tape is None
    section = fg.Section.from_mesh(mesh, material)
    with pytest.raises(NotImplementedError, match="materials of sections between stations"):
        fg.Section.along([(0.0, plain), (1.0, section)])


def test_coordinates_are_refused():
    mesh, material, _, _ = bar()
    continue_annotation()
    value = bent(fg.Section.from_mesh(mesh, material))
    pause_annotation()
    reduced = ReducedFunctional(value, Control(mesh.coordinates))
    with pytest.raises(NotImplementedError, match="by the coordinates of a mesh"):
        reduced.derivative()
