"""Loads of a beam in the steppers on its strain and momentum."""

import ufl
from ufl.classes import Expr, Form
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.body_load import NodalStep
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.mean_directors import mean_cayley
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.variation import Pose
from fdgeom.lie import halves, join, quaternion


def load_forcing(beam: BeamFields, rod: Rod, test: Expr, velocity: Expr, dt: Expr) -> Form:
    """Work of the loads on a test of the momentum (body frame), over a step g⁰ → g⁰ cay(Δt ζ)."""
    # A potential acts on the mean R̄ = ½(R⁰ + R¹) of the directors: since x¹ - x⁰ = Δt R̄ v, the
    # work on ζ is its exact change. Loads that turn with the section act at the orientation
    # halfway. Both are symmetric in time, so of second order.
    step = _step((beam.position, beam.orientation), beam.time, test, velocity, dt)
    density = sum((load.mean_work(rod.part, step) for load in rod.loads), ufl.as_ufl(0.0))
    return rod.cells.at_nodes(density)


def _step(start: Pose, time: Expr, test: Expr, velocity: Expr, dt: Expr) -> NodalStep:
    """A step of the nodes with a velocity in the body frame."""
    spin, linear = halves(velocity, "velocity")
    rotation, translation = halves(test, "test")
    (position, orientation), turn = start, dt * spin
    half = 0.5 * turn
    # The quaternion of cay(2 half) is (1, half) / n with n² = 1 + |half|²; its root follows from
    # 1 + cos: (n + 1, half) / sqrt(2 n (n + 1)).
    n = ufl.sqrt(1 + ufl.dot(half, half))
    root = ufl.as_vector([n + 1, *half]) / ufl.sqrt(2 * n * (n + 1))
    between = quaternion.product(orientation, root)
    directors = ufl.dot(quaternion.matrix(orientation), mean_cayley(turn))
    drift = ufl.dot(directors, linear)

    def weight(inertia: Inertia, field: Expr) -> Expr:
        pull = join(ufl.zero(3), ufl.dot(field, directors))
        return ufl.dot(test, ufl.dot(inertia.matrix, pull))

    return NodalStep(
        old=start,
        new=(position + dt * drift, quaternion.product(orientation, quaternion.cay(turn))),
        middle=(position + 0.5 * dt * drift, between),
        velocity=join(spin, drift),
        time=time,
        virtual=join(rotation, ufl.dot(directors, translation)),
        following=join(rotation, quaternion.rotate(between, translation)),
        weight=weight,
    )


def check_for_bracket(beam: BeamFields, rod: Rod | None) -> None:
    """Raise ``ValueError`` if a beam has damping, or a load that depends on time, which a step on
    strain and momentum would not evaluate at the right time.
    """
    if beam.damping is not None:
        raise ValueError(
            "damping: the steppers on strain and momentum move a beam without it (their bracket is "
            "antisymmetric); take a method in configuration form, such as GeneralizedAlpha"
        )
    pose, probe = (beam.position, beam.orientation), ufl.as_vector([1.0] * 6)
    for load in beam.loads:
        work = load.work(rod.part, pose, probe, beam.time, probe)
        if any(part is beam.time for part in unique_pre_traversal(work)):
            raise ValueError(
                f"{load!r} depends on the time, which the steppers on strain and momentum know at "
                "the end of a step only; change a Constant between steps, or take GeneralizedAlpha"
            )
