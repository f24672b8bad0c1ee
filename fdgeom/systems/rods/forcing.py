"""The loads of a beam in the steppers on its strain and momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ufl
from ufl.classes import Form
from ufl.core.expr import Expr
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.lie import quaternion
from fdgeom.lie.operands import halves
from fdgeom.systems.rods.variation import body_translation

if TYPE_CHECKING:
    from fdgeom.systems.beam import Beam


def load_forcing(beam: Beam, test: Expr, velocity: Expr, dt: Expr) -> Form:
    """Work of the loads on a test of the momentum (body frame), halfway through a step.

    The orientation there is that between q⁰ and q⁰ cay(Δt ω), with the velocity of the middle: of
    second order, and the same seen from the end of the step.

    Parameters
    ----------
    test, velocity : UFL expressions of 6
        In the body frame.
    dt : UFL expression
        The step.
    """
    if not beam.loads:
        return Form([])
    spin, _ = halves(velocity, "velocity")
    half = 0.5 * dt * spin
    # The quaternion of cay(2 half) is (1, half) / n with n² = 1 + |half|²; its root follows from
    # 1 + cos: (n + 1, half) / sqrt(2 n (n + 1)).
    n = ufl.sqrt(1 + ufl.dot(half, half))
    root = ufl.as_vector([n + 1, *half]) / ufl.sqrt(2 * n * (n + 1))
    between = quaternion.product(beam.orientation, root)
    return beam.rod.external_work((beam.position, between), body_translation(between, test))


def check_forcing(beam: Beam) -> None:
    """Raise ``ValueError`` for a load that a step would not meet at the right time."""
    probe = ufl.as_vector([1.0] * 6)
    for load in beam.loads:
        work = load.work(beam.rod, (beam.position, beam.orientation), probe)
        if any(part is beam.time for part in unique_pre_traversal(work)):
            raise ValueError(
                f"{load!r} depends on the time, which the steppers on strain and momentum know at "
                "the end of a step only; change a Constant between steps, or take GeneralizedAlpha"
            )
