"""The beam's bracket, energies and momenta against sums written out in NumPy."""

import numpy as np
import pytest
from firedrake import Function, assemble
from scipy.interpolate import BarycentricInterpolator
from verification.beams import INERTIA, SOFT, STIFFNESS, along, arc, set_random, uneven_mesh
from verification.numpy_beam import NumpyBeam, ad, apply, rotation

import fdgeom as fg

CELLS = 3
CASES = [(1, 0.5), (1, 1.0), (2, 0.5), (3, 0.5), (4, 0.5)]
# Sums of some hundred products of order one.
ROUND_OFF = 1e-13


@pytest.fixture(scope="module", params=CASES, ids=lambda c: f"degree{c[0]}-weight{c[1]}")
def beam(request):
    degree, weight = request.param
    return set_random(fg.Beam(uneven_mesh(CELLS), SOFT, degree=degree, end_weight=weight))


def quadratures(beam):
    """Cell by cell: Gauss weights (n, p), node weights (nodes,), and the nodes of each cell."""
    p, nodes = beam.degree, arc(beam.momentum)
    h = np.diff(nodes[::p])
    inside = h[:, None] * np.polynomial.legendre.leggauss(p)[1] / 2
    # Gauss–Lobatto weights: 2 / (p (p+1) P_p(x)²) on [-1, 1].
    legendre = np.polynomial.legendre.Legendre.basis(p)
    reference = np.concatenate([[-1.0], np.sort(legendre.deriv().roots().real), [1.0]])
    lobatto = 2 / (p * (p + 1) * legendre(reference) ** 2)
    cell_nodes = p * np.arange(len(h))[:, None] + np.arange(p + 1)
    at_nodes = np.zeros(len(nodes))
    np.add.at(at_nodes, cell_nodes, h[:, None] * lobatto / 2)
    at_nodes[[0, -1]] += (beam.end_weight - 0.5) * h[[0, -1]]
    return inside, at_nodes, cell_nodes, reference, h


def at_gauss_points(beam, nodal):
    """Values and derivatives at the Gauss points (n, p, 6) of a function given at the nodes."""
    _, _, cell_nodes, reference, h = quadratures(beam)
    polynomial = BarycentricInterpolator(reference, nodal[cell_nodes].swapaxes(0, 1))
    points = np.polynomial.legendre.leggauss(beam.degree)[0]
    slope = polynomial.derivatives(points, der=2)[1] * 2 / h[:, None]
    return polynomial(points).swapaxes(0, 1), slope.swapaxes(0, 1)


def test_antisymmetry(beam):
    assert beam.antisymmetry_defect() < ROUND_OFF


def test_bracket_and_pairing(beam, rng):
    """{f, h} = ∫ a·(β' + [γ+e, β]) - b·(α' + [γ+e, α]) ds + ∫ μ·[β, α] ds, by NumPy."""
    f, g = Function(beam.space), Function(beam.space)
    for function in (f, g):
        for part in function.subfunctions:
            part.dat.data_wo[...] = rng.uniform(-1, 1, part.dat.data_ro.shape)
    p = beam.degree
    inside, at_nodes, _, _, _ = quadratures(beam)
    (a, alpha), (b, beta) = ([along(part) for part in x.subfunctions] for x in (f, g))
    a, b, strain = (x.reshape(CELLS, p, 6) for x in (a, b, along(beam.strain)))
    momentum = along(beam.momentum)
    frame = ad(strain + np.array([0, 0, 0, 1.0, 0, 0]))
    rates = []
    for nodal in (alpha, beta):
        value, slope = at_gauss_points(beam, nodal)
        rates.append(slope + apply(frame, value))
    expected = np.einsum("np,npi,npi", inside, a, rates[1])
    expected -= np.einsum("np,npi,npi", inside, b, rates[0])
    expected += np.einsum("n,ni,ni", at_nodes, momentum, apply(ad(beta), alpha))
    assert assemble(beam.bracket(f, g)) == pytest.approx(expected, rel=ROUND_OFF, abs=ROUND_OFF)

    paired = np.einsum("np,npi,npi", inside, a, b) + np.einsum("n,ni,ni", at_nodes, alpha, beta)
    assert assemble(beam.pairing(f, g)) == pytest.approx(paired, rel=ROUND_OFF, abs=ROUND_OFF)

    if p == 1:
        # The paper's finite differences, (50), by loops.
        paper = NumpyBeam(arc(beam.momentum), STIFFNESS, INERTIA, 0, beam.end_weight)
        paper.strain, paper.momentum = strain[:, 0], momentum
        by_hand = paper.bracket((a[:, 0], alpha), (b[:, 0], beta))
        assert by_hand == pytest.approx(expected, rel=ROUND_OFF)


def test_energies(beam):
    p = beam.degree
    inside, at_nodes, _, _, _ = quadratures(beam)
    strain, momentum = along(beam.strain).reshape(CELLS, p, 6), along(beam.momentum)
    kinetic = 0.5 * np.einsum("n,ni,ij,nj", at_nodes, momentum, np.linalg.inv(INERTIA), momentum)
    potential = 0.5 * np.einsum("np,npi,ij,npj", inside, strain, STIFFNESS, strain)
    assert beam.kinetic_energy() == pytest.approx(kinetic, rel=ROUND_OFF)
    assert beam.potential_energy() == pytest.approx(potential, rel=ROUND_OFF)
    assert beam.energy() == pytest.approx(kinetic + potential, rel=ROUND_OFF)

    velocity = np.linalg.solve(INERTIA, momentum.T).T
    assert along(beam.velocity) == pytest.approx(velocity, rel=ROUND_OFF, abs=ROUND_OFF)


@pytest.mark.parametrize(("degree", "weight"), [(1, 0.5), (1, 1.0), (3, 0.5)])
def test_momenta(degree, weight):
    beam = set_random(fg.Beam(uneven_mesh(CELLS), SOFT, degree=degree, end_weight=weight))
    _, at_nodes, _, _, _ = quadratures(beam)
    momentum = along(beam.momentum)
    R, x = rotation(along(beam.orientation)), along(beam.position)
    linear = apply(R, momentum[:, 3:])
    angular = apply(R, momentum[:, :3]) + np.cross(x, linear)
    assert beam.linear_momentum() == pytest.approx(at_nodes @ linear, rel=1e-12, abs=ROUND_OFF)
    assert beam.angular_momentum() == pytest.approx(at_nodes @ angular, rel=1e-12, abs=ROUND_OFF)
