"""The geometrically exact beam."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import ufl
from firedrake import Constant, TestFunction, dot, inner, split
from ufl.classes import Expr, Form
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom import citations
from fdgeom.beams.bracket import BeamSubsteps, BracketEnd
from fdgeom.beams.consistency import BeamConsistency
from fdgeom.beams.ends import GivenPose, Sliding
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.forces import BeamReactions, StressResultants
from fdgeom.beams.law import SectionLaw
from fdgeom.beams.network.joints import Place
from fdgeom.beams.rod.loads import BodyLoad
from fdgeom.beams.rod.output import BeamOutput, RodSystem, total_momenta
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.turns import Turns
from fdgeom.beams.rod_of_beam import BeamMotion, beam_parameters, check_places, rod_of, set_shape
from fdgeom.build_message import compiling
from fdgeom.lie import halves, join, quaternion, se3
from fdgeom.operations import Operation
from fdgeom.operations.dependent import present
from fdgeom.systems.poisson.poisson import PoissonModel, PoissonSystem
from fdgeom.systems.system import named_energies
from fdgeom.taping import not_taped, record
from fdgeom.validation import fix

if TYPE_CHECKING:
    from fdgeom.beams.section import Section


# What a beam makes once, of all that its constructor was given.
_MADE_OF_THEM = ("motion", "rod", "turns")


class BeamModel(PoissonModel):
    """The parameters of a beam, which determine its equations, and its time."""

    @property
    def clocks(self) -> tuple[Constant, ...]:
        return (self._system.time,)

    def equations(self):
        return {}

    def parameters(self):
        return beam_parameters(self._system)

    def all_forms(self):
        beam = self._system
        found: list[Form | Expr] = [*beam.forms.stated().values(), *self.given_motions()]
        if beam.degree == 1:  # else nothing moves it that has loads or damping
            pose, v = (beam.position, beam.orientation), beam.velocity
            test = TestFunction(v.function_space())
            found += [beam.rod.internal_work(pose, test, v), beam.rod.external_work(pose, test, v)]
        return tuple(found)

    def given_motions(self):
        return [e for end in self._system.ends for e in end.given_motion()]


class Beam(BeamFields, RodSystem, PoissonSystem):
    """Geometrically exact beam: bending, torsion, shear and extension, large rotations.

    Use any consistent set of units.

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
        of the mesh coordinate, which should be their arc length, Functions and Constants. The beam
        starts there.
    loads : Load, Gravity or a sequence of them
        Loads on the beam, of degree 1. Loads that depend on the time need the configuration form.
    damping : float, UFL scalar or (6, 6) array_like, optional
        Kelvin–Voigt damping in configuration form: the time τ in the viscosity τD₂, or that matrix.
    strain_measure : {"simo-reissner", "se3", "directors"}
        Strain of a cell from the poses of its nodes, in configuration form (`fdgeom.beams.rod`).

    Attributes
    ----------
    strain : Function, DG p-1, 6 components
        γ = g⁻¹g' - e, body frame: three rotations about the section's axes 0, 1, 2, then three
        translations along them. For ``axis=0``: torsion, bending about y, bending about z, stretch,
        shear along y, shear along z.
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
    (2025), equations (41) and (50). Moment and force vanish at a free end.

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

    For authors: ``consistency``, ``at_nodes``, ``compliance_of_inertia``, ``elastic_strain``,
    ``ends``, ``inertia``, ``rod``, ``sampled_law``, ``shaped``, ``stiffness``, ``tangent``, ``time``.
    """

    cites = ("ChenShi2025",)
    # Steps in configuration form never ask for them.
    _forms_are_known = _structure_is_known = True

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
        of_author = set(vars(self))  # what a subclass has set before
        BeamFields.__init__(
            self, mesh, section, law=law, degree=degree, end_weight=end_weight,
            reference_strain=reference_strain, loads=loads, damping=damping,
            strain_measure=strain_measure, shaped=reference_shape is not None,
        )  # fmt: skip
        self.ends = BracketEnd(self, "left", left), BracketEnd(self, "right", right)
        PoissonSystem.__init__(
            self,
            self.state,
            energy=self._beam_energy,  # type: ignore[arg-type]
            bracket=self._beam_bracket,
            pairing=self._beam_pairing,
            names=("strain", "momentum"),
        )
        citations.cite(type(self))
        check_places(self)
        # From here on they notice what is set by hand.
        consistency, _ = self.consistency, self._mesh_as_made
        if reference_shape is not None:
            set_shape(self, consistency.chain, reference_shape)
            consistency.perform([consistency.momentum_of_velocity])
            consistency.settle()
        fix(self, {*vars(self), *_MADE_OF_THEM} - of_author)
        fix(section, ["stiffness", "inertia", "axis", "radius"])
        for part in (self.law, *self.loads):
            fix(part)

    @cached_property
    def motion(self) -> BeamMotion:
        """The beam in configuration form, as a motion; ``ValueError`` as for :attr:`rod`."""
        return BeamMotion(self)

    def __repr__(self) -> str:
        if not hasattr(self, "_extent"):
            return "Beam(...)"
        cells, length = self._extent
        ends = " – ".join("moved" if callable(e.kind) else str(e.kind) for e in self.ends)
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
        """The node at the arc length ``s``; ``ValueError`` where it is used if there is none."""
        return Place(self, s)

    # --- the two descriptions ----------------------------------------------------------------------
    consistency = cached_property(BeamConsistency)

    def reconstruct(self, position=(0.0, 0.0, 0.0), orientation=(1.0, 0.0, 0.0, 0.0)) -> None:
        """Fill position, orientation and velocity from strain and momentum.

        Parameters
        ----------
        position, orientation : array_like of 3 and 4
            Pose of the left end in space: position, unit quaternion (scalar first);
            ``TypeError`` or ``ValueError`` for anything else.

        Notes
        -----
        For degree 1, g_{j+1} = g_j cay(Δs (γ+e)); for higher degrees a Magnus expansion of sixth
        order between the nodes.
        """
        self._change("Beam.reconstruct()", self.consistency.from_pose(position, orientation))
        self.consistency.stepped = False

    def project(self) -> None:
        """Fill strain and momentum from configuration and velocity: undo :meth:`reconstruct`.

        For any degree; above 1 ``NotImplementedError`` while pyadjoint records.

        Not needed after steps in configuration form or statics, which set the strain in their own
        strain measure; this one is that of :meth:`reconstruct`.
        """
        self._change("Beam.project()", self.consistency.projected())

    def _change(self, name: str, operations: Sequence[Operation]) -> None:
        """Perform operations that make all fields consistent."""

        def do() -> None:
            self.consistency.perform(operations)
            self.consistency.agree()

        record(name, do, lambda: operations, self)

    @cached_property
    def rod(self) -> Rod:
        """The configuration form; ``ValueError`` if the degree is not 1 or a load has no place."""
        return rod_of(self)

    @cached_property
    def turns(self) -> Turns:
        return Turns(self.orientation)

    # --- forms -------------------------------------------------------------------------------------
    def _beam_energy(self) -> Form:
        kinetic, potential = self._energies_of(*split(self.state))
        return kinetic + potential

    def _energies_of(self, strain: Expr, momentum: Expr) -> tuple[Form, Form]:
        """½⟨μ, D₁⁻¹μ⟩ and ∫ ψ of the law."""
        kinetic = self.at_nodes(0.5 * inner(momentum, dot(self.compliance_of_inertia, momentum)))
        density = self.sampled_law.energy(self.elastic_strain(strain), self.stiffness)
        return kinetic, density * self._inside

    def _beam_pairing(self, a, b) -> Form:
        (a_strain, a_momentum), (b_strain, b_momentum) = split(a), split(b)
        strains = inner(a_strain, b_strain) * self._inside
        return strains + self.at_nodes(inner(a_momentum, b_momentum))

    def _beam_bracket(self, a, b) -> Form:
        (a, alpha), (b, beta) = split(a), split(b)
        strain, momentum = split(self.state)
        frame = strain + self.tangent
        coupling = inner(a, beta.dx(0) + se3.bracket(frame, beta)) - inner(
            b, alpha.dx(0) + se3.bracket(frame, alpha)
        )
        return coupling * self._inside + self.at_nodes(inner(momentum, se3.bracket(beta, alpha)))

    # --- how the steppers see it -------------------------------------------------------------------
    def gradient(self, state, auxiliary=()):
        strain, momentum = state
        return self.stress(strain), dot(self.compliance_of_inertia, momentum)

    substeps = cached_property(BeamSubsteps)

    def check_start(self) -> None:
        """Raise ``ValueError`` if a field is not finite, the start contradicts a held end, or the
        beam has damping, loads in time or ends that need the configuration form.
        """
        self._check_state()
        self._refuse_damping_and_time()
        self.consistency.prepare()
        for load in self.loads:
            load.check_start(self)
        for end in self.ends:
            end.check_start(stepped=self.consistency.stepped)

    def _refuse_damping_and_time(self) -> None:
        """Raise ``ValueError`` for damping, or for a load that depends on time, which a step on
        strain and momentum would not evaluate at the right time.
        """
        if self.damping is not None:
            raise ValueError(
                "damping: steppers on strain and momentum do not support it (their bracket is "
                "antisymmetric); take a method in configuration form, such as GeneralizedAlpha"
            )
        pose, probe = (self.position, self.orientation), ufl.as_vector([1.0] * 6)
        for applied in self.rod.loads if self.loads else ():
            work = applied.density("work", pose, probe, self.time, probe)
            if any(part is self.time for part in unique_pre_traversal(work)):
                raise ValueError(
                    f"{applied.load!r} depends on the time, and steppers on strain and momentum "
                    "evaluate it at the end of a step only; change a Constant between steps, or "
                    "take GeneralizedAlpha"
                )

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
            In the body frame, on every rank, from :attr:`strain`. Polynomials through the nearest
            Gauss points, of order degree + 1 except near point loads.
        """
        return self._resultants.at(s)

    @cached_property
    def _resultants(self) -> StressResultants:
        return StressResultants(self)

    @not_taped
    def reactions(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Reactions at the held ends, from the present strain and momentum.

        Returns
        -------
        dict
            For "left" and "right", as far as held, the moment about the node and the force in
            space, two arrays of 3. The moment at an end with a given motion includes the torque
            that turns it.

        Notes
        -----
        These are the forces of the equations of motion in strain and momentum; in configuration
        form use ``stepper.system.reactions()``.
        """
        self.consistency.prepare()
        return self._reactions.values()

    @cached_property
    def _reactions(self) -> BeamReactions:
        return BeamReactions(self)

    def velocity_in_space(self) -> Expr:
        """(angular, linear) velocity of the nodes in space, a UFL vector of 6; `velocity` is ζ."""
        parts = halves(self.velocity, "velocity")
        return join(*(quaternion.rotate(self.orientation, part) for part in parts))

    def momenta(self) -> dict[str, tuple[Form, ...]]:
        """Linear momentum ∫ R n and angular momentum ∫ R m + x × R n, in space, by component."""
        parts = (quaternion.rotate(self.orientation, part) for part in halves(self.momentum))
        return total_momenta(self.at_nodes, self.position, *parts)

    def energies(self) -> dict[str, Form]:
        """½⟨μ, D₁⁻¹μ⟩, ½⟨D₂γ, γ⟩, the potential of the loads that have one, and the sum.

        The potential of the loads is a function of the configuration; without such loads it is left
        out.
        """
        load = self.rod.load_potential((self.position, self.orientation)) if self.loads else None
        return present(named_energies(*self._energies_of(self.strain, self.momentum), load), self)

    model = cached_property(BeamModel)

    output = cached_property(BeamOutput)
