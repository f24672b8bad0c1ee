"""A rod in configuration form: energies and virtual works as UFL forms of the poses of its nodes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import ufl
from firedrake import Constant
from ufl.algorithms import replace
from ufl.classes import Expr, Form

from fdgeom.beams.law import LINEAR, SectionLaw
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import AppliedLoad, BodyLoad
from fdgeom.beams.rod.variation import Pose, displaced, rate
from fdgeom.clock import Time
from fdgeom.forms import simplify
from fdgeom.lie import halves, join, quaternion
from fdgeom.lie.rotation_coefficients import COTANGENT, POLE, polynomial

# atan(x)/x in x²: the quarter of the angle that a piece turns by. The first term left out is 6e-14
# for a sixteenth of a turn, 4e-8 for an eighth, 2e-6 for a quarter.
_ARCTANGENT = [(-1) ** k / (2 * k + 1) for k in range(6)]
# 1/12 + θ²/720 + θ⁴/30240 + ...
_COTANGENT = [1 / POLE ** (k + 1) * 2 + COTANGENT[k] for k in range(6)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rod:
    """The forms of a rod, or of a network of rods on one mesh, as functions of a configuration
    (position, orientation) of UFL expressions of nodal fields.
    """

    # A method evaluates them at the state, at a state moved by an unknown, or at a mean. Virtual
    # displacements and velocities are (rotation in the body frame, translation in the space frame),
    # vectors of 6. `stiffness`, the strain `reference` (minus e) of the stress-free shape and the
    # Kelvin–Voigt `viscosity` are constant in each cell. `tangent` is e, the strain measure of the
    # straight unstrained rod: 1 in the axis along it. `inertia` is that of bodies at the nodes too,
    # `section_inertia` without them.
    cells: Cells
    stiffness: Expr
    inertia: Inertia
    section_inertia: Inertia
    tangent: Expr
    law: SectionLaw = LINEAR
    measure: str = "simo-reissner"
    reference: Expr | None = None
    viscosity: Expr | None = None
    loads: tuple[AppliedLoad, ...] = ()
    #: The whole rod, as loads on a beam see it.
    part: Any = None
    time: Constant = field(default_factory=Time)

    # --- in a cell: expressions for the midpoint ---------------------------------------------------
    def strain(self, configuration: Pose) -> Expr:
        """ε (6), body frame: the measure minus e."""
        a, b = zip(*map(self.cells.ends, configuration), strict=True)
        return STRAINS[self.measure](a, b, self.cells.length) - self.tangent

    def elastic_strain(self, configuration: Pose) -> Expr:
        """ε minus the strain of the stress-free shape."""
        strain = self.strain(configuration)
        return strain if self.reference is None else strain - self.reference

    def strain_rate(self, configuration: Pose, velocity: Expr) -> Expr:
        """B w (6): derivative of the strain along a velocity or virtual displacement."""
        symbols, measured = measure_rate(self.measure)
        ends = map(self.cells.ends, (*configuration, velocity))
        values = [value for pair in ends for value in pair]
        return replace(measured, dict(zip(symbols, [*values, self.cells.length], strict=True)))

    def stress(self, configuration: Pose, velocity: Expr | None = None) -> Expr:
        """Moment and force of the section (6), body frame; with a velocity the viscous part too."""
        stress = self.law.stress(self.elastic_strain(configuration), self.stiffness)
        if self.viscosity is not None and velocity is not None:
            stress += ufl.dot(self.viscosity, self.strain_rate(configuration, velocity))
        return stress

    # --- energies ------------------------------------------------------------------------------------
    def potential(self, configuration: Pose) -> Form:
        """Elastic energy ∫ ψ(ε - ε₀) ds, without that of the loads."""
        return self.cells.sum(self.law.energy(self.elastic_strain(configuration), self.stiffness))

    def load_potential(self, configuration: Pose) -> Form:
        """Potential of the loads that have one; an empty form without such loads."""
        found = (load.density("potential", configuration, self.time) for load in self.loads)
        densities = (density for density in found if density is not None)
        return simplify(self.cells.at_nodes(sum(densities, ufl.as_ufl(0.0))))

    # --- virtual works: linear in ``virtual`` ------------------------------------------------------------
    def internal_work(
        self, configuration: Pose, virtual: Expr, velocity: Expr | None = None
    ) -> Form:
        """∫ σ·δε ds."""
        return self.stress_work(self.stress(configuration, velocity), configuration, virtual)

    def stress_work(self, stress: Expr, configuration: Pose, virtual: Expr) -> Form:
        """∫ σ·δε ds for any stress (6, constant in each cell)."""
        return self.cells.sum(ufl.dot(stress, self.strain_rate(configuration, virtual)))

    def external_work(
        self,
        configuration: Pose,
        virtual: Expr,
        velocity: Expr | None = None,
        time: Expr | None = None,
        *,
        factor: Expr | float = 1.0,
    ) -> Form:
        """Virtual work of the loads, by default at rest and at the rod's time; ``factor`` is that of
        loads which statics scale."""
        work = self._load_work(configuration, virtual, velocity, time, factor)
        return self.cells.at_nodes(work)

    def scaled_work(self, configuration: Pose, virtual: Expr) -> Form:
        """Derivative of the virtual work at rest by the factor."""
        work = rate(lambda factor: self._load_work(configuration, virtual, factor=factor))
        return self.cells.at_nodes(work)

    def _load_work(
        self,
        configuration: Pose,
        virtual: Expr,
        velocity: Expr | None = None,
        time: Expr | None = None,
        factor: Expr | float = 1.0,
    ) -> Expr:
        v = ufl.zero(6) if velocity is None else velocity
        t = self.time if time is None else time
        work = ufl.as_ufl(0.0)
        for load in self.loads:
            found = load.density("work", configuration, v, t, virtual)
            work += factor * found if load.load.scaled else found
        return work

    @property
    def frictional_loads(self) -> tuple[BodyLoad, ...]:
        """The loads that are dry friction."""
        return tuple(load.load for load in self.loads if load.load.has_friction)

    @property
    def loads_see_velocity(self) -> bool:
        """Whether the work of a load depends on the velocity."""
        return any(applied.load.sees_velocity(applied.part) for applied in self.loads)

    # --- their derivatives: linear in ``increment`` too -----------------------------------------------------
    def material_stiffness(
        self, configuration: Pose, increment: Expr, virtual: Expr, strain: Expr | None = None
    ) -> Form:
        """∫ δε·C B increment ds, with the tangent C of the law at the configuration's elastic
        strain, or at another one (6, constant in each cell)."""
        at = self.elastic_strain(configuration) if strain is None else strain
        tangent = self.law.tangent(at, self.stiffness)
        stress = ufl.dot(tangent, self.strain_rate(configuration, increment))
        return self.stress_work(stress, configuration, virtual)

    def geometric_stiffness(
        self, stress: Expr, configuration: Pose, increment: Expr, virtual: Expr
    ) -> Form:
        """∫ σ·(derivative of δε along the increment) ds, for any stress (6)."""

        # The virtual displacement turns with the body, so this is not symmetric out of equilibrium.
        def work(s: Expr) -> Expr:
            moved = displaced(configuration, s * increment)
            return ufl.dot(stress, self.strain_rate(moved, virtual))

        return self.cells.sum(rate(work))

    def load_stiffness(
        self, configuration: Pose, increment: Expr, virtual: Expr, factor: Expr | float = 1.0
    ) -> Form:
        """Derivative of the loads' work along the increment, with the factor of scaled loads."""

        def work(s: Expr) -> Expr:
            moved = displaced(configuration, s * increment)
            return self._load_work(moved, virtual, factor=factor)

        return self.cells.at_nodes(rate(work))

    def load_commutator(
        self, configuration: Pose, increment: Expr, virtual: Expr, factor: Expr | float = 1.0
    ) -> Form:
        """The loads' work on half the commutator of two displacements; zero but for moments."""
        # The work of the stress on the commutator is the unsymmetric part of the stiffness, and equals
        # this in equilibrium. The stiffness of the load itself is zero if its moment turns with the body.
        (a, _), (b, _) = halves(increment, "increment"), halves(virtual, "virtual")
        turn = join(0.5 * ufl.cross(a, b), ufl.zero(3))
        return self.cells.at_nodes(self._load_work(configuration, turn, factor=factor))


# --- strains of a cell from the poses of its two ends -------------------------------------------------
# Three measures, each of second order: functions of the poses (position, unit quaternion) of the two
# ends and the length of the piece, which return six numbers in the section's axes: curvature and
# twist, then the tangent (whose difference from the axis along the rod is shear and stretch). All are
# polynomials, square roots and quotients that are smooth as long as the piece turns by less than half
# a turn: they can be differentiated any number of times. The quaternions of the two ends must lie on
# one side, q_A·q_B > 0.
def simo_reissner(a: Pose, b: Pose, length: Expr) -> Expr:
    """κ = log(q̄_A q_B)/h, Γ = R_mᵀ (x_B - x_A)/h with q_m = (q_A + q_B)/|q_A + q_B|."""
    # Invariant under rigid motions, exact for constant curvature without stretch up to the length
    # of the chord.
    (x, p), (y, q) = a, b
    cosine, _ = _relative(p, q)
    middle = (p + q) / ufl.sqrt(2 * (1 + cosine))
    return join(_logarithm(p, q) / length, quaternion.rotate_inverse(middle, y - x) / length)


def se3_logarithm(a: Pose, b: Pose, length: Expr) -> Expr:
    """log(g_A⁻¹ g_B)/h on SE(3): a piece is a helix, exact for constant strain."""
    (x, p), (y, q) = a, b
    omega = _logarithm(p, q)
    offset = quaternion.rotate_inverse(p, y - x)
    turned = ufl.cross(omega, offset)
    cotangent = polynomial(_COTANGENT, ufl.dot(omega, omega))
    translation = offset - 0.5 * turned + cotangent * ufl.cross(omega, turned)
    return join(omega, translation) / length


def directors(a: Pose, b: Pose, length: Expr) -> Expr:
    """κ = vee(R_Aᵀ R_B - R_Bᵀ R_A)/(2h), Γ = ½(R_A + R_B)ᵀ (x_B - x_A)/h, quadratic in directors."""
    # For methods that conserve energy, which need invariants of second degree; the least accurate
    # of the three.
    (x, p), (y, q) = a, b
    cosine, vector = _relative(p, q)
    tangent = 0.5 * (quaternion.rotate_inverse(p, y - x) + quaternion.rotate_inverse(q, y - x))
    return join(2 * cosine * vector / length, tangent / length)


#: The measures by name.
STRAINS: dict[str, Callable[[Pose, Pose, Expr], Expr]] = {
    "simo-reissner": simo_reissner,
    "se3": se3_logarithm,
    "directors": directors,
}


@cache
def measure_rate(name: str) -> tuple[tuple[Constant, ...], Expr]:
    """The derivative of a measure along displacements of the two ends, and the symbols in it.

    The symbols are the two positions, orientations and displacements, and the length.
    """
    symbols = tuple(Constant(np.zeros(shape)) for shape in (3, 3, 4, 4, 6, 6))
    x, y, p, q, u, v = symbols
    length = Constant(1.0)

    def measured(s: Expr) -> Expr:
        return STRAINS[name](displaced((x, p), s * u), displaced((y, q), s * v), length)

    return (*symbols, length), rate(measured)


def _relative(p: Expr, q: Expr) -> tuple[Expr, Expr]:
    """Scalar and vector part of p̄ q."""
    relative = quaternion.product(quaternion.conjugate(p), q)
    return relative[0], ufl.as_vector([relative[1], relative[2], relative[3]])


def _logarithm(p: Expr, q: Expr) -> Expr:
    """Rotation vector (3) of p̄ q, without trigonometry or conditionals."""
    cosine, vector = _relative(p, q)
    tangent = vector / (1 + cosine)
    return 4 * polynomial(_ARCTANGENT, ufl.dot(tangent, tangent)) * tangent
