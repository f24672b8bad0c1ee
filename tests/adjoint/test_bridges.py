"""What needs a reduced functional, or a number with its gradient: optimisers, ensembles, networks."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, dx, inner
from firedrake.adjoint import MinimizationProblem, TAOSolver, minimize
from scipy import optimize
from verification import ensemble_gradients, springs
from verification.beams import set_smooth

import fdgeom as fg

#: Where the search for the stiffness begins, and another place.
GUESS, OTHER = ensemble_gradients.GUESS, ensemble_gradients.OTHER
#: Steps of the beam.
STEPS = 8


def test_tao():
    problem = MinimizationProblem(springs.reduced_misfit(GUESS), bounds=(0.5, 3.0))
    options = {"tao_type": "blmvm", "tao_gatol": 1e-10, "tao_grtol": 0.0}
    found = TAOSolver(problem, options).solve()
    # The misfit's curvature is about 0.1: so much is the stiffness off.
    assert found.dat.data_ro == pytest.approx(springs.TRUE, abs=1e-8)


def test_scipy():
    found = minimize(springs.reduced_misfit(GUESS), tol=1e-15, options={"gtol": 1e-10})
    assert found.dat.data_ro == pytest.approx(springs.TRUE, abs=1e-8)


def test_scipy_without_a_tape():
    """The modulus of each cell of a beam, from the momenta and strains after some steps."""
    mesh = IntervalMesh(3, 1.0)
    modulus = Function(FunctionSpace(mesh, "DG", 0))
    section = fg.Section.rectangle(0.5, 0.6, density=3.0, youngs_modulus=modulus, poisson_ratio=0.3)
    modulus.assign(10.0)
    beam = set_smooth(fg.Beam(mesh, section), 1.0)
    stepper = fg.PoissonIntegrator(beam, 1e-2)
    start = [np.array(f.dat.data_ro) for f in (beam.strain, beam.momentum)]
    true = np.array([9.0, 11.0, 12.0])
    modulus.dat.data_wo[...] = true
    stepper.advance(STEPS)
    data = [f.copy(deepcopy=True) for f in (beam.strain, beam.momentum)]
    gaps = [f - g for f, g in zip((beam.strain, beam.momentum), data, strict=True)]
    misfit = sum(inner(gap, gap) * dx(degree=2) for gap in gaps)
    for f, values in zip((beam.strain, beam.momentum), start, strict=True):
        f.dat.data_wo[...] = values

    def with_slopes(values):
        modulus.dat.data_wo[...] = values
        value, (bar,) = fg.gradient(stepper, STEPS, misfit, [modulus])
        return value, np.array(bar.dat.data_ro)

    found = optimize.minimize(with_slopes, 10 * np.ones(3), jac=True, tol=1e-14)
    assert found.x == pytest.approx(true, rel=1e-5)


@pytest.mark.parallel
def test_an_ensemble(on_ranks):
    """Each rank has springs of its own, and all have one stiffness."""
    found = on_ranks(ensemble_gradients, len(ensemble_gradients.STARTS))
    starts = ensemble_gradients.STARTS
    value = sum(springs.misfit(OTHER, start) for start in starts)
    slopes = sum(springs.slopes(OTHER, start) for start in starts)
    assert found["value"] == pytest.approx(value, rel=1e-13)
    assert found["slopes"] == pytest.approx(slopes, rel=1e-12)


def test_a_network_of_jax():
    """Springs as a layer, before another one. JAX is in the extra ``ml``; CI installs it now and then."""
    jax = pytest.importorskip("jax")
    from firedrake.ml.jax import fem_operator

    jax.config.update("jax_enable_x64", True)
    layer = fem_operator(springs.reduced_misfit(GUESS))
    value = jax.numpy.exp(layer(jax.numpy.array(OTHER)))
    expected = np.exp(springs.misfit(OTHER))
    assert float(value) == pytest.approx(expected, rel=1e-13)
    slopes = jax.grad(lambda k: jax.numpy.exp(layer(k)))(jax.numpy.array(OTHER))
    assert np.array(slopes) == pytest.approx(expected * springs.slopes(OTHER), rel=1e-12)
