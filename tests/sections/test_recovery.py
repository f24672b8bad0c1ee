"""Stress in three dimensions: extremes of the closed forms, resultants, failure indices."""

import numpy as np
import pytest
from firedrake import (
    Function,
    FunctionSpace,
    SpatialCoordinate,
    as_vector,
    assemble,
    conditional,
    cross,
    dx,
    lt,
    sign,
)
from sections.drawn import BECAS, STEEL, rectangle

import fdgeom as fg

ORIGIN = (0.1, 0.2)


def test_extremes_at_the_corners():
    """Torsion of a square: 4.80 M/a³ in the middle of a side; bending: 6 M/a³ at the edge."""
    section = fg.Section.from_mesh(rectangle(1, 1, 8), STEEL, origin="tension")
    errors = []
    for n in (4, 8, 16):
        twisted = fg.Section.from_mesh(rectangle(1, 1, n), STEEL, origin="tension").recover(
            [1, 0, 0, 0, 0, 0]
        )
        twisted = twisted.dat.data_ro
        assert np.abs(twisted[:, 0, 0]).max() < 1e-9
        # The series of Saint-Venant: τ = .6753 G a·twist, J = .1406 a⁴.
        errors.append(np.abs(twisted).max() / 4.803876 - 1)
    # The derivative of a warping of degree 2: second order.
    assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > 1.7)
    assert 0 < errors[-1] < 3e-3
    bent = section.recover([0, 1, 0, 0, 0, 0]).dat.data_ro.copy()
    assert bent[:, 0, 0].max() == pytest.approx(6, rel=1e-10)
    bent[:, 0, 0] = 0
    assert np.abs(bent).max() < 1e-9
    strain = section.recover_strain([0, 0, 0, 2.6, 0, 0]).dat.data_ro
    assert strain == pytest.approx(
        np.broadcast_to(np.diag([1, -0.3, -0.3]), strain.shape), abs=1e-10
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_resultants(axis):
    """The stress of any resultants has these resultants, and the energy that the compliance says."""
    mesh = rectangle(1.0, 0.75, 4)
    section = fg.Section.from_mesh(mesh, fg.Ply(BECAS, 0.5, 0.4), origin=ORIGIN, axis=axis)
    resultants = np.array([0.3, -0.5, 0.7, 1.1, -1.3, 1.7])
    stress, strain = section.recover(resultants), section.recover_strain(resultants)
    y = SpatialCoordinate(mesh)
    transverse = iter((y[0] - ORIGIN[0], y[1] - ORIGIN[1]))
    place = as_vector([0.0 if k == axis else next(transverse) for k in range(3)])
    traction = as_vector([stress[k, axis] for k in range(3)])
    moment = cross(place, traction)
    found = [assemble(f[k] * dx) for f in (moment, traction) for k in range(3)]
    assert found == pytest.approx(resultants, abs=1e-10)
    energy = assemble(sum(stress[i, j] * strain[i, j] for i in range(3) for j in range(3)) * dx)
    assert energy == pytest.approx(resultants @ section.compliance @ resultants, rel=1e-10)


def test_failure():
    section = fg.Section.from_mesh(rectangle(1, 1, 4), STEEL, origin="tension")
    pull = [0, 0, 0, 3.0, 0, 0]
    index = section.failure_index(pull, fg.VonMises(2.0)).dat.data_ro
    assert index == pytest.approx(np.full(len(index), 1.5), rel=1e-9)
    twist = section.recover([1, 0, 0, 0, 0, 0]).dat.data_ro
    index = section.failure_index([1, 0, 0, 0, 0, 0], fg.VonMises(1.0)).dat.data_ro
    # Pure shear: √3 of the shear stress.
    shear = np.hypot(twist[:, 0, 1], twist[:, 0, 2])
    assert index == pytest.approx(np.sqrt(3) * shear, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("axis", [0, 1])
def test_failure_of_a_ply(axis):
    """Tsai and Wu's polynomial in the fibre's axes, here evaluated by hand; off-axis pull."""
    angle, along, load = 0.4, 0.7, 2.0
    strengths = {
        "tensile": (9.0, 2.0, 3.0),
        "compressive": (7.0, 4.0, 5.0),
        "shear": (1.5, 1.2, 0.9),
    }
    section = fg.Section.from_mesh(
        rectangle(1, 1, 4), fg.Ply(BECAS, angle, along), origin="tension", axis=axis
    )
    resultants = np.zeros(6)
    resultants[3 + axis] = load
    # A homogeneous section under axial force: stress along the beam only.
    c, s = np.cos(angle), np.sin(angle)
    s1, s2, s12 = load * c**2, load * s**2, -load * c * s
    (t1, t2, _), (c1, c2, _) = strengths["tensile"], strengths["compressive"]
    linear = (1 / t1 - 1 / c1) * s1 + (1 / t2 - 1 / c2) * s2
    f12 = -0.5 / np.sqrt(t1 * c1 * t2 * c2)
    square = s1**2 / t1 / c1 + s2**2 / t2 / c2 + s12**2 / 1.5**2 + 2 * f12 * s1 * s2
    criterion = fg.TsaiWu(**strengths)
    index = section.failure_index(resultants, criterion).dat.data_ro
    assert index == pytest.approx(np.full(len(index), linear + square), rel=1e-9)
    reserve = section.reserve_factor(resultants, criterion).dat.data_ro[0]
    assert linear * reserve + square * reserve**2 == pytest.approx(1, rel=1e-9)
    assert reserve > 0


@pytest.mark.parametrize("interface", ["condition", "sign", "level set"])
def test_materials_with_an_interface(interface):
    """Corners on an interface belong to their own cell: its modulus and fibre angle."""
    mesh = rectangle(1, 1, 4)
    x, _ = SpatialCoordinate(mesh)
    level = Function(FunctionSpace(mesh, "CG", 1)).interpolate(x - 0.5)
    right = {
        "condition": conditional(lt(x, 0.5), 0.0, 1.0),
        "sign": (1 + sign(x - 0.5)) / 2,
        "level set": conditional(lt(level, 0.0), 0.0, 1.0),
    }[interface]
    material = fg.Ply(fg.Isotropic(1.5 - right, 0.0, 1.0), np.pi / 2 * right)
    section = fg.Section.from_mesh(mesh, material, origin="tension")
    pull, sides = [0, 0, 0, 1.0, 0, 0], {True: 8, False: 8}
    strengths = (3.0, 0.5, 1.0)
    stress = section.recover(pull)
    index = section.failure_index(pull, fg.TsaiWu(strengths, strengths, (1.0, 1.0, 1.0)))
    for nodes in stress.function_space().cell_node_list:
        values = stress.dat.data_ro[nodes, 0, 0], index.dat.data_ro[nodes]
        soft = values[0][0] < 1
        assert values[0] == pytest.approx(np.full(len(nodes), 0.5 if soft else 1.5), rel=1e-9)
        assert values[1] == pytest.approx(np.full(len(nodes), 1.0 if soft else 0.25), rel=1e-9)
        sides[soft] -= 1
    assert set(sides.values()) == {0}
