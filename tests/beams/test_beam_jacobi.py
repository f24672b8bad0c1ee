"""The Jacobi identity of the beam's bracket: it holds to second order in the cell's length.

The terms are those of fdgeom's forms, and beside them those of a NumPy program. Seen for smooth
functionals at a smooth state (relative to the largest of the three terms), 8, 16, 32 and 64 cells:
3.6e-3, 9.2e-4, 2.3e-4, 5.8e-5. Functionals of random values at the nodes see finite differences that
do not converge: 0.01 to 0.1 for degree 1, up to about 1 for higher ones.
"""

import numpy as np
import pytest
from firedrake import Function, TestFunction, TrialFunction, assemble, derivative, solve, split
from ufl import replace
from verification.beams import INERTIA, SOFT, STIFFNESS, along, arc, order, set_smooth, uneven_mesh
from verification.numpy_beam import NumpyBeam

import fdgeom as fg


def twin(beam):
    plain = NumpyBeam(arc(beam.momentum), STIFFNESS, INERTIA, 0, beam.end_weight)
    plain.strain, plain.momentum = along(beam.strain), along(beam.momentum)
    return plain


def smooth_functional(seed, beam):
    """δf/δz = A₁ cos s + A₂ sin s + A₃ s² for both parts, A random."""
    A = np.random.default_rng(seed).uniform(-1, 1, (2, 3, 6))
    return [
        np.cos(s)[:, None] * a[0] + np.sin(s)[:, None] * a[1] + (s**2)[:, None] * a[2]
        for s, a in zip((arc(beam.strain), arc(beam.momentum)), A, strict=True)
    ]


def relative(terms):
    return abs(sum(terms)) / max(map(abs, terms))


def jacobi(beam, functionals):
    """{{f, g}, k}, {{g, k}, f} and {{k, f}, g} by the beam's own forms.

    The functionals are linear, so {f, g} depends on the state through the bracket alone, and
    δ{f, g}/δz is what the pairing makes of its derivative.
    """
    space = beam.state.function_space()
    fields = []
    for functional in functionals:
        field = Function(space)
        for part, values in zip(field.subfunctions, functional, strict=True):
            part.dat.data_wo[order(part)] = values
        fields.append(field)
    w, u, inner = TestFunction(space), TrialFunction(space), Function(space)
    terms = []
    for k in range(3):
        f, g, third = (split(fields[(k + shift) % 3]) for shift in range(3))
        parts = dict(zip((beam.strain, beam.momentum), split(beam.state), strict=True))
        nested = derivative(replace(beam.bracket(f, g), parts), beam.state, w)
        solve(beam.pairing(split(w), split(u)) == nested, inner)
        terms.append(assemble(beam.bracket(split(inner), third)))
    return terms


@pytest.mark.parametrize("end_weight", [0.5, 1.0])
def test_second_order(end_weight):
    defects = []
    for cells in (8, 16, 32, 64):
        beam = set_smooth(fg.Beam(uneven_mesh(cells), SOFT, end_weight=end_weight))
        functionals = [smooth_functional(seed, beam) for seed in (5, 6, 7)]
        terms = jacobi(beam, functionals)
        # Two independent evaluations, to round-off.
        assert terms == pytest.approx(twin(beam).jacobi(functionals), rel=1e-11)
        defects.append(relative(terms))
    rates = np.log2(np.array(defects[:-1]) / np.array(defects[1:]))
    assert rates == pytest.approx([2, 2, 2], abs=0.05)
    assert defects[0] == pytest.approx(3.6e-3, rel=0.05)


def test_the_packages_check_gives_the_same_number():
    """jacobi_defect on the random functionals of its seed, and the same by NumPy."""
    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT))
    rng = np.random.default_rng(11)
    functionals = []
    for _ in range(3):
        parts = [rng.uniform(-1, 1, part.dat.data_ro.shape) for part in beam.parts]
        functionals.append([values[order(p)] for values, p in zip(parts, beam.parts, strict=True)])
    expected = relative(twin(beam).jacobi(functionals))
    # Two independent evaluations; what is left after the cancellation has some twelve digits.
    assert beam.jacobi_defect(samples=1, seed=11) == pytest.approx(expected, rel=1e-10)
    assert expected > 1e-3
