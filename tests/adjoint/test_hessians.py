"""Second derivatives on pyadjoint's tape, against differences of gradients of runs without one."""

import numpy as np
import pytest
from derivable import CASES, Run, directions, holding
from firedrake import assemble
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    pause_annotation,
    taylor_to_dict,
)

import fdgeom as fg
from fdgeom.operations.dependent import MadeOnce

#: Local and coupled solves, with a mean derivative, with accelerations, of several parts, with
#: constraints, with joints, and a strain that the configuration follows.
NAMES = (
    "PoissonIntegrator, clamped",
    "SymmetricPoissonIntegrator",
    "HamelFieldIntegrator",
    "ImplicitMidpoint",
    "ImplicitMidpoint, waves",
    "DiscreteGradient, waves",
    "Splitting",
    "GaussLegendre",
    "RungeKutta4",
    "GeneratingFunction4",
    "SymplecticEuler",
    "StormerVerlet",
    "StormerVerlet, composed",
    "RATTLE",
    "RATTLE, chain",
    "SHAKE",
    "DiscreteLagrangian",
    "NonholonomicMidpoint",
    "GeneralizedAlpha",
    "GeneralizedAlpha, top",
    "GeneralizedAlpha, joined",
    "HermiteSimpson",
    "FourthOrderAlpha",
    "EnergyMomentum",
    "EnergyMomentum, joined",
    "VariationalIntegrator",
)
#: Of linear equations: the objective is of second degree in what the run begins from.
QUADRATIC = ("FourthOrderAlpha",)
PIECES = (2, 1)


@pytest.mark.parametrize("name", NAMES)
def test_hessian(name, rng):
    dt, make, names = CASES[name]
    run = Run(make(dt), names)
    starts = [np.array(f.dat.data_ro) for f in run.controls]
    moved, others = directions(run.controls, rng), directions(run.controls, rng)

    def gradient(size):
        """Its product with other directions, some way along."""
        run.again()
        for f, x, d in zip(run.controls, starts, moved, strict=True):
            f.dat.data_wo[...] = x + size * d
        # Off constraints, as in `Run.value`.
        with MadeOnce.replayed():
            _, found = fg.gradient(run.stepper, sum(PIECES), run.objective, run.controls)
        return sum((g.dat.data_ro * d).sum() for g, d in zip(found, others, strict=True))

    h = 1e-3
    expected = (8 * (gradient(h) - gradient(-h)) - (gradient(2 * h) - gradient(-2 * h))) / (12 * h)
    run.again()
    given = [holding(f, x) for f, x in zip(run.controls, starts, strict=True)]
    continue_annotation()
    for f, x in zip(run.controls, given, strict=True):
        f.assign(x)
    for steps in PIECES:
        run.stepper.advance(steps)
    value = assemble(run.objective)
    pause_annotation()
    reduced = ReducedFunctional(value, [Control(x) for x in given])
    reduced.derivative()
    along = [holding(x, d) for x, d in zip(given, moved, strict=True)]
    reduced.tlm(along)
    terms = [g.dat.data_ro * d for g, d in zip(reduced.hessian(along), others, strict=True)]
    size = sum(abs(t).sum() for t in terms)
    assert sum(t.sum() for t in terms) == pytest.approx(expected, abs=1e-7 * size)
    small = [holding(x, 0.3 * d) for x, d in zip(given, moved, strict=True)]
    rates = taylor_to_dict(reduced, given, small)
    assert min(rates["R1"]["Rate"]) > 1.95
    if name in QUADRATIC:
        # Nothing but rounding is left.
        assert max(rates["R2"]["Residual"]) <= 1e-13 * abs(value)
    else:
        assert min(rates["R2"]["Rate"]) > 2.95
