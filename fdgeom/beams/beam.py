"""The geometrically exact beam."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import ufl
from ufl.algorithms import extract_coefficients
from ufl.classes import Expr, Form

from fdgeom import citations
from fdgeom.beams.beam_motion import BeamMotion
from fdgeom.beams.bracket import BeamBracket
from fdgeom.beams.chain import Chain, Reconstruct, projection
from fdgeom.beams.consistency import Consistency
from fdgeom.beams.contact.contact import contact_fields
from fdgeom.beams.ends import GivenPose, Sliding
from fdgeom.beams.fingerprint import beam_parameters
from fdgeom.beams.forces import BeamReactions, StressResultants
from fdgeom.beams.law import SectionLaw
from fdgeom.beams.network.joints import Place
from fdgeom.beams.rod.loads import BodyLoad
from fdgeom.beams.rod.output import shown
from fdgeom.beams.rod.variation import body_translation
from fdgeom.beams.rod_of_beam import check_places, set_shape
from fdgeom.build_message import compiling
from fdgeom.lie import halves, join, quaternion
from fdgeom.operations import Operation
from fdgeom.operations.dependent import Dependent, MadeOnce, dependents_in
from fdgeom.systems.system import named_energies
from fdgeom.taping import not_taped, record

if TYPE_CHECKING:
    from fdgeom.beams.section import Section


class Beam(BeamBracket):
    """Geometrically exact beam: bending, torsion, shear and extension, large rotations.

    Parameters
    ----------
    mesh : firedrake.MeshGeometry
        Interval mesh whose coordinate is the arc length of the straight reference: one open line of
        cells of any lengths and numbering.
    section : Section
        Stiffness D₂, inertia D₁ (6×6, rotation first, body frame) and the axis along the beam.
    law : SectionLaw, optional
        Elastic energy per length as a function of the elastic strain, ½ ε·D₂ε by default. With a
        law, energy and stress of the section below are those of the law.
    degree : {1, 2, 3, 4}
        p: strain in DG p-1 with p Gauss points a cell, momentum in CG p with Gauss–Lobatto points.
        p = 1 is the scheme of the paper.
    end_weight : float, optional
        Weight of an end node in cells, for degree 1: 0.5 (default, consistent) or 1.0 (the paper).
    left, right : "free", "clamped", "pinned", Sliding, GivenPose or callable
        Support of the end at the smaller and the larger coordinate. "pinned": the position is held,
        the rotation is free. A callable ``velocity(t)`` prescribes the motion: it takes the time (a
        UFL constant) and returns the body velocity (angular, linear) as a vector of 6.
    reference_strain : UFL expression, array_like or callable, optional
        Strain of the stress-free shape, a vector of 6 in the body frame: a beam curved or twisted
        at rest. An expression may contain the mesh coordinate, and Functions and Constants that
        change; a callable takes the time ``t``, the arc length ``s``, or both, ``s, t``.
    reference_shape : pair of UFL expressions, optional
        The stress-free shape instead: position (3) and unit quaternion (4) in space as expressions
        of the mesh coordinate, Functions and Constants. The beam starts there.
    loads : Load, Gravity or a sequence of them
        Loads on the beam. Loads that depend on the time need the configuration form.
    damping : float or (6, 6) array_like, optional
        Kelvin–Voigt damping in configuration form: the time τ in the viscosity τD₂, or that matrix.
    strain_measure : {"simo-reissner", "se3", "directors"}
        Strain of a cell from the poses of its nodes, in configuration form (`fdgeom.beams.rod`).

    Attributes
    ----------
    strain : Function, DG p-1, 6 components
        γ = g⁻¹g' - e, body frame: curvature and twist, then shear and stretch.
    momentum : Function, CG p, 6 components
        μ = D₁ζ, body frame.
    state : Function
        The mixed Function with the parts ``strain`` and ``momentum``.
    position, orientation : Function, CG p, 3 and 4 components
        The configuration g in space: position and unit quaternion (scalar first) of the body frame.
    velocity : Function, CG p, 6 components
        ζ = g⁻¹ġ, body frame.
    rod : Rod
        The configuration form: energies and virtual works of the poses of the nodes.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or a section that varies is not positive definite.

    Notes
    -----
    {f, h} = ∫ a·(β' + [γ+e, β]) - b·(α' + [γ+e, α]) ds + ∫ μ·[β, α] ds with (a, α) = δf/δz and
    (b, β) = δh/δz, the terms with strain at the Gauss points, the last at the nodes: Chen & Shi
    (2025), equations (41) and (50). Free ends are natural.

    Functions and Constants in the section, the loads, the damping and the stress-free shape may
    change at any time: every stepper, compiled or not, assemblies, statics, energies and monitors
    read their present values. So a natural strain that changes in time acts as actuation.
    ``beam.reference_strain`` is a Function; values assigned to it stay until something changes in
    its expression. Methods on strain and momentum evaluate a function of time in the middle of each
    (sub)step, methods in configuration form at the time at which they balance forces; all keep
    their order.

    The beam has two descriptions: strain and momentum, and the configuration with the velocity. Set
    either one. The next step uses the strain or configuration, and the momentum or velocity, that
    you changed last, and updates the other (the configuration from the left end, or from the right
    one if only that is held). If you set both and they contradict one another, steps raise
    ``ValueError``; call :meth:`reconstruct` or :meth:`project` to choose. Steppers on strain and
    momentum accept any strain and configuration and move them side by side.
    """

    cites = ("ChenShi2025",)

    @compiling("Beam")
    def __init__(
        self,
        mesh,
        section: "Section",
        *,
        law: SectionLaw | None = None,
        degree: int = 1,
        end_weight: float = 0.5,
        left: str | Sliding | GivenPose | Callable = "free",
        right: str | Sliding | GivenPose | Callable = "free",
        reference_strain: Expr | None = None,
        reference_shape: tuple[Expr, Expr] | None = None,
        loads: BodyLoad | Sequence[BodyLoad] = (),
        damping=None,
        strain_measure: str = "simo-reissner",
    ) -> None:
        super().__init__(
            mesh, section, law=law, degree=degree, end_weight=end_weight, left=left, right=right,
            reference_strain=reference_strain, loads=loads, damping=damping,
            strain_measure=strain_measure, shaped=reference_shape is not None,
        )  # fmt: skip
        citations.cite(type(self))
        check_places(self)
        self.chain = Chain(self)
        #: Keeps the two descriptions consistent.
        self.consistency = Consistency(self, self.chain)
        if reference_shape is not None:
            set_shape(self, self.chain, reference_shape)
            self._perform([self.consistency.momentum_of_velocity])
            self.settle()

    @cached_property
    def motion(self) -> BeamMotion:
        """The beam in configuration form, as a motion; ``ValueError`` as for :attr:`rod`."""
        return BeamMotion(self)

    def in_measure(self, measure: str) -> BeamMotion:
        """The beam's motion with strains, stresses and elastic energy in another strain measure."""
        return BeamMotion(self, measure)

    def __repr__(self) -> str:
        if not hasattr(self, "_extent"):
            return "Beam(...)"
        cells, length = self._extent
        ends = " – ".join(
            e.kind if isinstance(e.kind, str) else _support(e.kind) for e in self.ends
        )
        return (
            f"Beam({cells} cell{'s' if cells > 1 else ''}, length {length:.3g}, "
            f"{self.section.description}, {ends})"
        )

    # --- places, for joints ------------------------------------------------------------------------
    @property
    def left(self) -> Place:
        """The end at the smaller coordinate, as a place of joints and bodies."""
        return Place(self, "left")

    @property
    def right(self) -> Place:
        """The end at the larger coordinate, as a place of joints and bodies."""
        return Place(self, "right")

    def at(self, s: float) -> Place:
        """The node at an arc length."""
        return Place(self, s)

    # --- the two descriptions ----------------------------------------------------------------------
    def synchronise(self, modified=None):
        """The description that was not set since the last step, from the one that was.

        Where the inertia has changed the momentum is kept. ``ValueError`` if momentum and velocity
        were both set and contradict one another.
        """
        for dependent in self._dependents:
            dependent.refresh()
        return self.consistency.for_bracket(modified or ())

    def synchronised(self):
        self.consistency.synchronised()

    def agree(self):
        self.consistency.noted.take()

    def remembered(self):
        return (self.consistency.noted,)

    def underivable(self):
        moved = [e for end in self.bracket_ends for e in end.given_motion()]
        if any(extract_coefficients(e) for e in moved):
            return "the motion of an end is made of Functions"
        return None

    @cached_property
    def _dependents(self) -> tuple[Dependent | MadeOnce, ...]:
        """The dependent fields in its own forms."""
        return dependents_in(self.stress(), self.compliance_of_inertia)

    def reconstruct(self, position=(0.0, 0.0, 0.0), orientation=(1.0, 0.0, 0.0, 0.0)) -> None:
        """Fill position, orientation and velocity from strain and momentum.

        Parameters
        ----------
        position, orientation : array_like of 3 and 4
            Pose of the left end in space: position, unit quaternion (scalar first).

        Notes
        -----
        For degree 1, g_{j+1} = g_j cay(Δs (γ+e)); for higher degrees a Magnus expansion of sixth
        order between the nodes.
        """

        find = partial(self.chain.from_pose, position, orientation)
        shape = Reconstruct(self, self.chain, find, 0, moves=False)
        self._change("Beam.reconstruct()", shape, self.consistency.velocity_of_momentum)

    def project(self) -> None:
        """Fill strain and momentum from configuration and velocity: undo :meth:`reconstruct`."""
        strain = projection(self, self.chain)
        self._change("Beam.project()", strain, self.consistency.momentum_of_velocity)

    def _change(self, name: str, *operations: Operation) -> None:
        """Perform operations that make all fields consistent."""

        def do() -> None:
            self._perform(operations)
            self.agree()

        record(name, do, lambda: operations, self)

    # --- numbers -----------------------------------------------------------------------------------
    def stress_at(self, s) -> np.ndarray:
        """Stress resultants (moment, force) at an arc length: for ``section.recover``.

        Parameters
        ----------
        s : float, or a sequence of n
            Arc length.

        Returns
        -------
        (6,) or (n, 6) ndarray
            In the body frame, on every rank, from :attr:`strain` (after `StaticEquilibrium` use its
            ``stress_at``, or call ``project()`` first). Polynomials through the nearest Gauss
            points, of order degree + 1 except near point loads.
        """
        return self._resultants.at(s)

    @cached_property
    def _resultants(self) -> StressResultants:
        return StressResultants(self)

    @not_taped
    def reactions(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Reactions at the held ends, from the present strain and momentum.

        For each end the moment about its node and the force, in space, two arrays of 3; the moment
        at an end with a given motion includes the torque that turns it. These are the forces of the
        equations of motion in strain and momentum; in configuration form use
        ``stepper.system.reactions()``.
        """
        self.prepare()
        if "reactions" not in self._held:
            self._held["reactions"] = BeamReactions(self)
        return self._held["reactions"].values()

    def velocity_in_space(self) -> Expr:
        """(angular, linear) velocity of the nodes in space, a UFL vector of 6; `velocity` is ζ."""
        parts = halves(self.velocity, "velocity")
        return join(*(quaternion.rotate(self.orientation, part) for part in parts))

    def _momentum_forms(self) -> dict[str, tuple[Form, ...]]:
        """Linear momentum ∫ R n and angular momentum ∫ R m + x × R n, in space, by component."""
        parts = halves(self.momentum)
        spin, linear = (quaternion.rotate(self.orientation, part) for part in parts)
        angular = spin + ufl.cross(self.position, linear)
        return {
            "linear_momentum": tuple(self.at_nodes(linear[k]) for k in range(3)),
            "angular_momentum": tuple(self.at_nodes(angular[k]) for k in range(3)),
        }

    def energies(self) -> dict[str, Form]:
        """½⟨μ, D₁⁻¹μ⟩, ½⟨D₂γ, γ⟩, the potential of the loads that have one, and the sum.

        The potential of the loads is a function of the configuration; without such loads it is left
        out.
        """
        load = self.rod.load_potential((self.position, self.orientation)) if self.loads else None
        return named_energies(self.kinetic(self.momentum), self.potential(self.strain), load)

    # --- what the recording reads ------------------------------------------------------------------
    def parameters(self) -> dict[str, object]:
        return beam_parameters(self)

    def output_fields(self) -> dict[str, Expr]:
        pose = self.position, self.orientation
        fields = shown(pose, self.strain, self.stress(), self.momentum, self.velocity)
        if not self.loads:
            return fields
        v = body_translation(self.orientation, self.velocity)
        return fields | contact_fields(self.rod, pose, v)

    def strain_energy_density(self) -> Expr:
        """Elastic energy per length."""
        return self.sampled_law.energy(self.elastic_strain(), self.stiffness)

    def drawn_beams(self) -> "tuple[Beam, ...]":
        return (self,)


def _support(kind) -> str:
    """The support of an end in a few words."""
    return "moved" if callable(kind) else repr(kind)
