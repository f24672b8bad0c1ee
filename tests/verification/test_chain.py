"""An inextensible chain, held at one end: RATTLE where PETSc solves for motion and tension."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from verification import parallel_chain
from verification.constrained_systems import GRAVITY, chain

import fdgeom as fg


def along(system):
    """Positions in the order of the chain."""
    x = system.mesh.coordinates.dat.data_ro
    return system.q.dat.data_ro[np.argsort(x)]


def links(angles, lengths):
    """Positions of the joints of links at angles from the x axis."""
    steps = lengths[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])


def pendulum_of_links(cells, angle, end):
    """The same chain in the angles of its links: Σ_j M_ij(θ_i-θ_j) θ̈_j = ..., without constraints."""
    h = 1 / cells
    mass = np.full(cells, h)
    mass[-1] = h / 2
    # Mass beyond a pair of links.
    beyond = np.cumsum(mass[::-1])[::-1]
    both = beyond[np.maximum.outer(np.arange(cells), np.arange(cells))]

    def slope(t, z):
        angles, rates = np.split(z, 2)
        apart = angles[:, None] - angles[None, :]
        lhs = h**2 * both * np.cos(apart)
        rhs = -(h**2) * (both * np.sin(apart)) @ rates**2 - h * beyond * GRAVITY * np.cos(angles)
        return np.concatenate([rates, np.linalg.solve(lhs, rhs)])

    start = np.concatenate([np.full(cells, -angle), np.zeros(cells)])
    z = solve_ivp(slope, (0, end), start, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    return links(z[:cells], np.full(cells, h))


def test_converges_to_a_chain_of_links():
    """Lumped masses and straight cells are a multiple pendulum; RATTLE is of second order on it."""
    expected = pendulum_of_links(8, 0.3, 0.4)
    errors = []
    for steps in (50, 100, 200):
        system = chain(8)
        first = system.energy()
        fg.RATTLE(system, 0.4 / steps).advance(steps)
        errors.append(np.abs(along(system) - expected).max())
        assert system.constraint_defect() < 1e-13
        assert system.velocity_defect() < 1e-13
        assert abs(system.energy() - first) < 0.02 * (50 / steps) ** 2
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 1e-3
    assert slopes == pytest.approx(2, abs=0.2)


def test_energy_stays_in_its_band():
    """As far off in the last third of the run as in the first: it swings to and fro."""
    system = chain(10, angle=1.2)
    first = system.energy()
    stepper = fg.RATTLE(system, 5e-3)
    off = []
    for _ in range(600):
        stepper.advance()
        off.append(abs(system.energy() - first))
    thirds = [max(x) for x in np.split(np.array(off), 3)]
    assert thirds[0] < 5e-3 * abs(first)
    assert thirds[2] < 2 * thirds[0]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("cells", [10, 100, 1000, 10000])
def test_iterations_do_not_grow(cells, compiled):
    """The step is a fixed part of the time that a wave takes through a cell."""
    system = chain(cells)
    stepper = fg.RATTLE(system, 0.2 / cells, compiled=compiled)
    steps = 10 if cells < 10000 else 2
    stepper.advance(steps)
    stats = stepper.solver_stats()
    # Newton for the position (five at most from the second step on), one solve for the velocity.
    assert stats["newton_iterations"] <= 7 * steps
    assert stats["krylov_iterations"] == (0 if compiled else stats["newton_iterations"])
    # Differences of positions of size one, over the length of a cell.
    assert system.constraint_defect() < 1e-15 * cells + 1e-14
    # At rest a chain would tear at its upper end: it falls as a rod, with half a tension at most.
    tension = -system.multiplier.dat.data_ro
    assert tension.min() > 0
    assert tension.max() < GRAVITY


def test_options_of_the_saddle_point():
    """A Schur complement by iteration, and the plain LU, from the dict of the docstring."""
    results = []
    for parameters in (
        None,
        {
            "ksp_type": "gmres",
            "ksp_rtol": 1e-14,
            "pc_type": "fieldsplit",
            "pc_fieldsplit_type": "schur",
            "pc_fieldsplit_detect_saddle_point": None,
            "pc_fieldsplit_schur_precondition": "selfp",
        },
        {"pc_type": "lu", "pc_factor_mat_solver_type": "mumps"},
    ):
        system = chain(20)
        stepper = fg.RATTLE(system, 0.01, solver_parameters=parameters)
        assert stepper.is_compiled == (parameters is None)
        stepper.advance(10)
        results.append(along(system))
        assert system.constraint_defect() < 1e-13
    assert results[1] == pytest.approx(results[0], abs=1e-12)
    assert results[2] == pytest.approx(results[0], abs=1e-12)
    with pytest.raises(ValueError, match="PETSc does not know the option 'snes_rtoll'"):
        fg.RATTLE(chain(20), 0.01, solver_parameters={"snes_rtoll": 1e-8})


@pytest.mark.parallel
def test_several_ranks(on_ranks):
    serial = parallel_chain.everything()
    results = on_ranks(parallel_chain)
    assert set(results.files) == set(serial)
    for name, expected in serial.items():
        if name.endswith("round-off"):
            assert np.all(results[name] == 1)
            assert np.all(expected == 1)
            continue
        # Five steps of round-off; a tension is a force, of a momentum over half a step.
        off = 1e-8 if name.endswith("tension") else 1e-11
        assert results[name] == pytest.approx(expected, rel=1e-10, abs=off), name
