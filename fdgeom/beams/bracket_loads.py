"""The loads of a beam in the steppers on its strain and momentum."""

from __future__ import annotations

import ufl
from ufl.classes import Form
from ufl.core.expr import Expr
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.loads import BodyLoad, Gravity, vector
from fdgeom.beams.rod.mean_directors import mean_cayley
from fdgeom.beams.rod.rod import Rod
from fdgeom.lie import quaternion
from fdgeom.lie.operands import halves, join


def load_forcing(beam: BeamFields, rod: Rod, test: Expr, velocity: Expr, dt: Expr) -> Form:
    """Work of the loads on a test of the momentum (body frame), over a step g⁰ → g⁰ cay(Δt ζ).

    Gravity and dead forces push on the mean R̄ = ½(R⁰ + R¹) of the directors: since
    x¹ - x⁰ = Δt R̄ v, their work on ζ is the exact change of their potential. All others act at the
    orientation halfway. Both are of second order, and the same seen from the end of the step.

    Parameters
    ----------
    test, velocity : UFL expressions of 6
        In the body frame; the velocity ζ is that of the step.
    dt : UFL expression
        The step.
    """
    spin, _ = halves(velocity, "velocity")
    middle = _Middle(beam, rod, dt * spin)
    density = sum((middle.work(load, test) for load in beam.loads), ufl.as_ufl(0.0))
    return rod.cells.at_nodes(density)


class _Middle:
    """A step of a beam's orientation, seen from its middle.

    Parameters
    ----------
    beam : BeamFields
        At the start of the step.
    rod : Rod
        Its configuration form.
    turn : UFL expression of 3
        Cayley vector of the step's rotation, body frame.
    """

    def __init__(self, beam: BeamFields, rod: Rod, turn: Expr) -> None:
        self._rod, self._position = rod, beam.position
        half = 0.5 * turn
        # The quaternion of cay(2 half) is (1, half) / n with n² = 1 + |half|²; its root follows from
        # 1 + cos: (n + 1, half) / sqrt(2 n (n + 1)).
        n = ufl.sqrt(1 + ufl.dot(half, half))
        root = ufl.as_vector([n + 1, *half]) / ufl.sqrt(2 * n * (n + 1))
        self._between = quaternion.product(beam.orientation, root)
        self._directors = ufl.dot(quaternion.matrix(beam.orientation), mean_cayley(turn))

    def work(self, load: BodyLoad, test: Expr) -> Expr:
        """Work on a test (6, body frame) per length at a node."""
        if isinstance(load, Gravity):
            field = vector("acceleration", load.acceleration, self._rod)
            pull = join(ufl.zero(3), ufl.dot(field, self._directors))
            return ufl.dot(test, ufl.dot(self._rod.inertia.matrix, pull))
        rotation, translation = halves(test, "test")
        if load.frame == "space":
            shift = ufl.dot(self._directors, translation)
        else:
            shift = quaternion.rotate(self._between, translation)
        return load.work(self._rod, (self._position, self._between), join(rotation, shift))


def check_for_bracket(beam: BeamFields, rod: Rod | None) -> None:
    """Raise ``ValueError`` where a beam has what the steppers on strain and momentum do not move.

    That is damping, or a load that a step would not meet at the right time.
    """
    if beam.damping is not None:
        raise ValueError(
            "damping: the steppers on strain and momentum move a beam without it (their bracket is "
            "antisymmetric); take a method in configuration form, such as GeneralizedAlpha"
        )
    probe = ufl.as_vector([1.0] * 6)
    for load in beam.loads:
        work = load.work(rod, (beam.position, beam.orientation), probe)
        if any(part is beam.time for part in unique_pre_traversal(work)):
            raise ValueError(
                f"{load!r} depends on the time, which the steppers on strain and momentum know at "
                "the end of a step only; change a Constant between steps, or take GeneralizedAlpha"
            )
