"""Generalized-α on Lie groups: published errors of the free body and the heavy top, orders, joints."""

import functools

import numpy as np
import pytest
from verification import numpy_bodies as reference
from verification import parallel_bodies
from verification.numpy_bodies import ARM, SPIN, exact_top
from verification.rigid_body_systems import STILL, free_body, heavy_top, matrices
from ways import check_way

import fdgeom as fg

GA = fg.GeneralizedAlpha
MODELS = {"SO3": reference.TopSO3, "R3xSO3": reference.TopR3xSO3, "SE3": reference.TopSE3}
#: Times of the reference, on [0, 1/2].
FINE = 2.5e-4
#: Of λ: a position's rounding makes m ε/βh² = 3e-7 at the finest step, and thousands of them add up. Two
#: machines differ by 6e-6.
ROUND_OFF = 1e-5


@functools.cache
def exact():
    """R, Ω, x, λ at multiples of FINE up to 1/2, and at 1."""
    return exact_top([*np.linspace(0, 0.5, 2001), 1.0])


@functools.cache
def top_stepper(kind, rho, start="default"):
    """A stepper that is used again, from the same start."""
    return GA(heavy_top(kind), 1e-3, fg.hamel_alpha(rho), start=start)


def restarted(kind, rho, dt, start="default"):
    """The heavy top at its start: the stepper finds its accelerations and multipliers anew."""
    stepper = top_stepper(kind, rho, start)
    top = stepper.system
    put_back(top)
    stepper.dt = dt
    return top, stepper


def put_back(top):
    """To the start of the heavy top."""
    drift = np.cross(SPIN, ARM)
    top.orientation.dat.data_wo[...] = STILL
    top.v.dat.data_wo[...] = SPIN if top.position is None else np.concatenate([SPIN, drift])
    if top.position is not None:
        top.position.dat.data_wo[...] = ARM


def errors_at_one(kind, rho, dt):
    """Errors of x = RX, R, Ω and λ at t = 1."""
    top, stepper = restarted(kind, rho, dt)
    stepper.advance(round(1 / dt))
    R, spin, x, force = (values[-1] for values in exact())
    found = matrices(top)[0]
    errors = [
        np.linalg.norm(found @ ARM - x),
        np.linalg.norm(found - R),
        np.linalg.norm(top.v.dat.data_ro[0, :3] - spin),
    ]
    if kind == "SO3":
        return np.array(errors)
    assert top.position.dat.data_ro[0] == pytest.approx(found @ ARM, abs=1e-14)
    sign = 1 if kind == "R3xSO3" else -1
    return np.array([*errors, np.linalg.norm(sign * top.multiplier.dat.data_ro[0] - force)])


def orders(errors):
    errors = np.array(errors)
    return np.log2(errors[:-1] / errors[1:])


# --- published errors ----------------------------------------------------------------------------
FREE_BODY = {
    0.8: {
        0.1: (7.876565e-3, 3.705834e-3),
        0.05: (1.970711e-3, 9.276457e-4),
        0.025: (4.926566e-4, 2.319822e-4),
        0.0125: (1.231479e-4, 5.799948e-5),
    },
    0.0: {
        0.1: (5.240356e-2, 2.695903e-2),
        0.05: (1.230384e-2, 6.697568e-3),
        0.025: (2.936694e-3, 1.660975e-3),
        0.0125: (7.145010e-4, 4.131778e-4),
    },
}


@pytest.mark.parametrize("rho", FREE_BODY)
def test_free_body(rho):
    end = (1.007980330983, -0.991955468935, 1.002667167716)
    R = free_rotation(5.0)
    found = []
    for dt, published in FREE_BODY[rho].items():
        body = free_body()
        GA(body, dt, fg.hamel_alpha(rho)).advance(round(5 / dt))
        spin = body.v.dat.data_ro[0]
        found.append([np.linalg.norm(matrices(body)[0] - R), np.linalg.norm(spin - end)])
        # Seven printed digits; the end is known to 12.
        assert found[-1] == pytest.approx(published, rel=5e-7, abs=1e-11)
    assert orders(found)[1:] == pytest.approx(2, abs=0.12 if rho == 0 else 0.01)


def free_rotation(until):
    """R(t) of the free body from R = I, by DOP853."""
    from scipy.integrate import solve_ivp

    J = np.array([1.0, 2.0, 3.0])

    def slope(t, y):
        R, w = y[:9].reshape(3, 3), y[9:]
        return np.concatenate([(R @ reference.hat(w)).ravel(), np.cross(J * w, w) / J])

    first = np.concatenate([np.eye(3).ravel(), np.ones(3)])
    run = solve_ivp(slope, (0, until), first, "DOP853", rtol=3e-14, atol=1e-14)
    return run.y[:9, -1].reshape(3, 3)


def test_reference_of_the_top():
    """The exact solution used here against the published one."""
    _, spin, x, force = exact()
    half, one = 2000, -1
    assert x[half] == pytest.approx([-0.702468297057, -0.021165184702, -0.711400257652], abs=1e-11)
    assert x[one] == pytest.approx([0.173343964098, 0.640088592071, -0.748490791133], abs=1e-11)
    assert spin[one] == pytest.approx([-0.8220781017, 150, -5.9232913481], abs=1e-9)
    assert force[half] == pytest.approx([523.28124351, 404.20617832, 357.33617645], abs=1e-7)
    assert force[one] == pytest.approx([-517.60073948, -396.84310149, 404.57492516], abs=1e-7)


UNCONSTRAINED = (3.495311e-1, 8.747003e-2, 2.182162e-2, 5.454191e-3, 1.363796e-3)
STEPS = (2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)
# |x|, |R|, |Ω|, |λ| errors for ρ∞ = 0.8, and |x|, |λ| errors for 0.5.
INDEX_THREE = {
    0.8: (
        (2.994603e-2, 6.145393e-2, 4.222718e-1, 3.605702e1),
        (7.424288e-3, 1.523569e-2, 1.039948e-1, 8.900818),
        (1.852758e-3, 3.800344e-3, 2.589941e-2, 2.219033),
        (4.630553e-4, 9.494824e-4, 6.468509e-3, 5.544880e-1),
        (1.157646e-4, 2.373245e-4, 1.616714e-3, 1.386197e-1),
    ),
    0.5: (
        (3.463846e-2, 4.094985e1),
        (8.814726e-3, 1.048079e1),
        (2.228820e-3, 2.659462),
        (5.607439e-4, 6.704195e-1),
        (1.406544e-4, 1.683432e-1),
    ),
}


def test_unconstrained_top():
    found = [errors_at_one("SO3", 0.8, dt) for dt in STEPS]
    # Seven printed digits, and what 8000 steps make of round-off.
    assert np.array(found)[:, 0] == pytest.approx(UNCONSTRAINED, rel=5e-7, abs=1e-10)
    assert orders(found)[1:] == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("rho", INDEX_THREE)
def test_top_with_a_joint(rho):
    found = np.array([errors_at_one("R3xSO3", rho, dt) for dt in STEPS])
    published = np.array(INDEX_THREE[rho])
    shown = found if rho == 0.8 else found[:, [0, 3]]
    assert shown[:, :-1] == pytest.approx(published[:, :-1], rel=5e-7, abs=1e-10)
    assert shown[:, -1] == pytest.approx(published[:, -1], rel=5e-7, abs=ROUND_OFF)
    assert orders(found) == pytest.approx(2, abs=0.1)


# Largest error of λ on (0, 1/2].
TRANSIENT = {
    "default": (1.208143e2, 5.822645e1, 2.854094e1, 1.424597e1),
    "acceleration": (1.219427e2, 5.879290e1, 2.882432e1, 1.435594e1),
    "consistent": (1.621497e1, 4.018790, 1.002839, 2.506326e-1),
}


@pytest.mark.parametrize("start", TRANSIENT)
def test_multiplier_from_the_first_step(start):
    """With the corrected start the multiplier is of second order at once; else of first order."""
    force, found = exact()[3], []
    for dt, published in zip(STEPS, TRANSIENT[start], strict=False):
        kind = "default" if start == "acceleration" else start
        top, stepper = restarted("R3xSO3", 0.8, dt, kind)
        if start == "acceleration":
            stepper = GA(heavy_top(), dt, fg.hamel_alpha(0.8))
            top = stepper.system
            stepper._perform(stepper._accelerations.jerk_operations())
            top.algorithmic.dat.data[...] += (
                stepper.scheme.shift * dt * stepper._accelerations.jerk.dat.data_ro
            )
        every, worst = round(dt / FINE), 0.0
        for n in range(1, round(0.5 / dt) + 1):
            stepper.advance()
            worst = max(worst, np.linalg.norm(top.multiplier.dat.data_ro[0] - force[every * n]))
            # Numbers of size one.
            assert top.constraint_defect() < 4e-15
        found.append(worst)
        assert worst == pytest.approx(published, rel=5e-7, abs=ROUND_OFF)
    assert orders(found)[1:] == pytest.approx(2.0 if start == "consistent" else 1.0, abs=0.1)


# --- a joint to the ground on SE(3) --------------------------------------------------------------
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_top_on_se3_is_the_unconstrained_one(rho):
    tops = {}
    for kind in ("SO3", "SE3"):
        top, stepper = restarted(kind, rho, 1e-3)
        stepper.advance(400)
        tops[kind] = top
    # What 400 steps make of round-off; 1e-14 was seen.
    assert matrices(tops["SE3"]) == pytest.approx(matrices(tops["SO3"]), abs=1e-12)
    spins = [top.v.dat.data_ro[0, :3] for top in tops.values()]
    assert spins[0] == pytest.approx(spins[1], abs=1e-11)


def test_multiplier_on_se3():
    """Of second order from the first step, by the default start; both constraints at round-off."""
    force, found = exact()[3], []
    for dt, published in ((1e-3, 5.963610e1), (5e-4, 1.499673e1), (2.5e-4, 3.754921)):
        top, stepper = restarted("SE3", 0.8, dt)
        every, worst = round(dt / FINE), 0.0
        for n in range(1, round(0.5 / dt) + 1):
            stepper.advance()
            worst = max(worst, np.linalg.norm(top.multiplier.dat.data_ro[0] + force[every * n]))
            assert top.constraint_defect() < 4e-15
        # Velocities of 150, over hundreds of steps.
        assert top.velocity_defect() < 1e-10
        found.append(worst)
        assert worst == pytest.approx(published, rel=5e-7, abs=ROUND_OFF)
    assert orders(found) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("kind", ["SO3", "R3xSO3", "SE3"])
def test_cayley_map(kind):
    """Another retraction: other numbers, the same order."""
    R, spin = exact()[0][2000], exact()[1][2000]
    top, found = heavy_top(kind, retraction="cay"), []
    stepper = GA(top, 5e-4)
    for dt in (5e-4, 2.5e-4, 1.25e-4):
        put_back(top)
        stepper.dt = dt
        stepper.advance(round(0.5 / dt))
        gap = [matrices(top)[0] - R, top.v.dat.data_ro[0, :3] - spin]
        found.append([np.linalg.norm(g) for g in gap])
        assert top.constraint_defect() < 4e-15
    assert orders(found) == pytest.approx(2, abs=0.1)


# --- step by step beside another program ---------------------------------------------------------
SCHEMES = {
    "hamel 0": (fg.hamel_alpha(0.0), reference.chung_hulbert(0.0)),
    "hamel 0.5": (fg.hamel_alpha(0.5), reference.chung_hulbert(0.5)),
    "hamel 0.8": (fg.hamel_alpha(0.8), reference.chung_hulbert(0.8)),
    "HHT": (fg.hht_alpha(-0.2), (0.0, 0.2, 1.2**2 / 4, 0.7)),
    "WBZ": (fg.wbz_alpha(-0.3), (-0.3, 0.0, 1.3**2 / 4, 0.8)),
    "general": (fg.general_alpha(0.1, 0.3, 0.4, 0.7), (0.1, 0.3, 0.4, 0.7)),
    "Newmark": (fg.newmark(0.3025, 0.6), (0.0, 0.0, 0.3025, 0.6)),
}


@pytest.mark.parametrize("kind", ["SO3", "R3xSO3", "SE3"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_agrees_with_another_program(kind, scheme):
    mine, theirs = SCHEMES[scheme]
    compare(kind, mine, theirs, "default")


@pytest.mark.parametrize("kind", ["SO3", "R3xSO3", "SE3"])
def test_consistent_start_agrees_with_another_program(kind):
    compare(kind, *SCHEMES["hamel 0.5"], "acceleration" if kind == "SO3" else "consistent")


def compare(kind, mine, theirs, start):
    steps, dt = 60, 2e-3
    states = reference.integrate(MODELS[kind](), dt, steps, theirs, start)
    top = heavy_top(kind)
    stepper = GA(top, dt, mine, start="default" if start == "default" else "consistent")
    turn = np.r_[0:3] if kind == "SO3" else np.r_[3:6, 0:3]
    for n, (g, v, rate, force) in enumerate(states):
        if n:
            stepper.advance()
        # Newton's tolerance over h and h².
        assert matrices(top)[0] == pytest.approx(g[1], abs=1e-12)
        assert top.v.dat.data_ro[0][turn] == pytest.approx(v, abs=1e-9)
        assert top.acceleration.dat.data_ro[0][turn] == pytest.approx(rate, abs=1e-5)
        if kind != "SO3":
            assert top.position.dat.data_ro[0] == pytest.approx(g[0], abs=1e-12)
            assert top.multiplier.dat.data_ro[0] == pytest.approx(force, abs=1e-5)


# --- many bodies, two ways -----------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["SO3", "R3xSO3", "SE3"])
def test_many_tops_compiled_and_by_snes(kind):
    """Nineteen tops of different spin: more than a vector register holds, and no multiple of it."""
    rng, n = np.random.default_rng(2), 19
    spins = SPIN * rng.uniform(0.2, 1.0, (n, 1)) + rng.normal(size=(n, 3))
    ends = []
    for compiled in (True, False):
        top = heavy_top(kind, n, spin=spins)
        stepper = GA(top, 1e-3, compiled=compiled)
        for steps in (3, 20):
            stepper.advance(steps)
        check_way(stepper, compiled)
        ends.append([np.array(f.dat.data_ro) for f in top.functions().values()])
        assert top.constraint_defect() < 4e-15
    names = list(top.functions())
    for name, one, other in zip(names, *ends, strict=True):
        # Round-off of the increment, over h and h².
        assert one == pytest.approx(other, abs={"velocity": 1e-9}.get(name, 1e-12 if name in (
            "orientation", "position") else 1e-5)), name  # fmt: skip
    for k in (0, 7, 18):
        model = MODELS[kind]() if kind == "SO3" else MODELS[kind](spin=spins[k])
        if kind == "SO3":
            model.start = model.start[0], spins[k]
        states = reference.integrate(model, 1e-3, 23, reference.chung_hulbert(0.8))
        assert matrices(top)[k] == pytest.approx(states[-1][0][1], abs=1e-12)


def test_runs_do_not_depend_on_their_pieces():
    ends = []
    for pieces in ((30,), (1, 9, 20)):
        top = heavy_top()
        stepper = GA(top, 1e-3)
        for steps in pieces:
            stepper.advance(steps)
        ends.append(np.concatenate([f.dat.data_ro[0] for f in top.functions().values()]))
    assert np.array_equal(*ends)


def test_resumed_run(tmp_path):
    """Saved after ten steps and taken up by a new stepper: the same to the last bit."""
    ends = []
    for resumed in (False, True):
        top = heavy_top()
        stepper = GA(top, 1e-3, start="consistent")
        stepper.advance(10)
        if resumed:
            fg.save(stepper, tmp_path / "top.h5")
            top = heavy_top()
            stepper = GA(top, 1e-3, start="consistent")
            fg.resume(stepper, tmp_path / "top.h5")
        stepper.advance(10)
        ends.append(np.concatenate([f.dat.data_ro[0] for f in top.functions().values()]))
        assert stepper.t == pytest.approx(0.02, abs=1e-15)
    assert np.array_equal(*ends)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("kind", ["SO3", "R3xSO3", "SE3"])
def test_step_size_may_change(kind, compiled):
    """Alternating steps h, 2h: still of second order in R and Ω."""
    R, spin, found = exact()[0][400], exact()[1][400], []
    top = heavy_top(kind)
    stepper = GA(top, 1e-3, compiled=compiled)
    for steps in (50, 100, 200):
        put_back(top)
        h = 0.1 / (1.5 * steps)
        begin = stepper.t
        for n in range(steps):
            stepper.dt = h if n % 2 == 0 else 2 * h
            stepper.advance()
        assert stepper.t - begin == pytest.approx(0.1)
        gap = [matrices(top)[0] - R, top.v.dat.data_ro[0, :3] - spin]
        found.append([np.linalg.norm(g) for g in gap])
    assert orders(found) == pytest.approx(2, abs=0.25)
    assert orders(found)[-1] == pytest.approx(2, abs=0.1)


# --- what is refused, and what fails -------------------------------------------------------------
@pytest.mark.parametrize("scheme", [fg.hamel_alpha(1.0), fg.newmark(0.25, 0.5), fg.hht_alpha(0.0)])
def test_undamped_schemes_take_no_constraint(scheme):
    with pytest.raises(ValueError, match="a multiplier then grows without bound"):
        GA(heavy_top(), 1e-3, scheme)
    # Without a constraint there is nothing against them.
    GA(heavy_top("SO3"), 1e-3, scheme).advance()


def test_why_undamped_schemes_are_refused():
    """With ρ∞ = 1 the other program's λ grows six times in fifty steps; with 0.95 all is well."""
    states = reference.integrate(reference.TopR3xSO3(), 2e-3, 150, reference.chung_hulbert(1.0))
    sizes = [np.linalg.norm(s[3]) for s in states]
    largest = [max(sizes[k : k + 50]) for k in (0, 50, 100)]
    # 2.6e3, 1.6e4, 1.0e5, where the exact one stays below 1e3.
    assert largest[1] > 5 * largest[0]
    assert largest[2] > 5 * largest[1]
    assert np.linalg.norm(exact()[3], axis=1).max() < 1e3
    found = np.array([errors_at_one("R3xSO3", 0.95, dt) for dt in (1e-3, 5e-4, 2.5e-4)])
    assert found[0, 3] < 20
    assert orders(found)[:, :3] == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("compiled", [True, False])
def test_step_too_large(compiled):
    """Newton does not converge: the state is as it was, and a smaller step goes on."""
    top = heavy_top()
    stepper = GA(top, 1e-3, compiled=compiled)
    stepper.advance(2)
    before = [np.array(f.dat.data_ro) for f in top.functions().values()]
    stepper.dt = 0.3
    with pytest.raises(fg.StepFailed, match="the motion"):
        stepper.advance(3)
    assert stepper.steps == 2
    for f, values in zip(top.functions().values(), before, strict=True):
        assert np.array_equal(f.dat.data_ro, values)
    stepper.dt = 1e-3
    stepper.advance()
    other = heavy_top()
    GA(other, 1e-3, compiled=compiled).advance(3)
    assert top.v.dat.data_ro == pytest.approx(other.v.dat.data_ro, abs=1e-10)


def test_after_a_singular_block():
    """Steps so large that a cell's matrix overflows: PETSc's memory of that ends with the step."""
    top = heavy_top("SE3")
    stepper = GA(top, 1e-3, compiled=False)
    stepper.advance(3)
    reasons = []
    # Where Newton's iteration goes there depends on the last digits: not every step overflows.
    for dt in (1e2, 3e2, 5e2, 1e3, 3e3, 1e4):
        stepper.dt = dt
        with pytest.raises(fg.StepFailed) as failure:
            stepper.advance()
        reasons.append(str(failure.value))
        stepper.dt = 1e-3
        stepper.advance()
        assert top.constraint_defect() < 4e-15
    assert any("DIVERGED_LINEAR_SOLVE" in reason for reason in reasons)


def test_forces_in_time():
    """Compiled, and the same through SNES; steps that may be cut in halves are not compiled."""
    ends = []
    for compiled in (None, False):
        pushed = free_body(force=lambda q, v, t: t * v)
        stepper = GA(pushed, 0.1, compiled=compiled)
        stepper.advance(10)
        check_way(stepper, compiled is None)
        ends.append([f.dat.data_ro.copy() for f in pushed.functions().values()])
    for one, other in zip(*ends, strict=True):
        # Both solve to round-off, of accelerations over the square of the step.
        assert one == pytest.approx(other, abs=1e-12)
    with pytest.raises(ValueError, match="compiled: .*cut in halves"):
        GA(pushed, 0.1, halvings=2, compiled=True)


# --- several ranks -------------------------------------------------------------------------------
@pytest.mark.parallel
def test_several_ranks(on_ranks):
    """One top, so that a rank holds nothing, and seven: as on one rank."""
    serial = parallel_bodies.everything()
    results = on_ranks(parallel_bodies)
    assert set(results.files) == set(serial)
    for name, expected in serial.items():
        # Round-off of the increment over h² in accelerations and forces of size 1e3.
        off = 1e-5 if name.endswith(("acceleration", "multiplier")) else 1e-10
        assert results[name] == pytest.approx(expected, rel=1e-10, abs=off), name
