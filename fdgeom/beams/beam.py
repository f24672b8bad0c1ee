"""The geometrically exact beam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
import ufl
from firedrake import (
    Constant,
    FiniteElement,
    Function,
    FunctionSpace,
    VectorFunctionSpace,
    dot,
    inner,
    split,
)
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.beams.agreement import Agreement
from fdgeom.beams.bracket_ends import BeamEnd, left_and_right
from fdgeom.beams.bracket_loads import load_forcing
from fdgeom.beams.chain import Chain
from fdgeom.beams.configuration import (
    check_for_bracket,
    check_places,
    rod_of,
    set_shape,
    viscosity_of,
)
from fdgeom.beams.ends import GivenPose, Sliding
from fdgeom.beams.identity import beam_parameters
from fdgeom.beams.network.places import Place
from fdgeom.beams.output import momentum_forms, output_fields
from fdgeom.beams.reactions import BeamReactions
from fdgeom.beams.resultants import Resultants
from fdgeom.beams.rod.loads import BodyLoad, check_loads
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.strains import check_measure
from fdgeom.beams.sampling import body_matrix, sample_shape
from fdgeom.beams.section import Section
from fdgeom.lie import quaternion, se3
from fdgeom.lie.operands import halves, join
from fdgeom.line import check_line
from fdgeom.measures import cell_length, ends, gauss, gauss_lobatto
from fdgeom.solvers.compiling import compiling
from fdgeom.solvers.data import Number
from fdgeom.solvers.derived import derived_in
from fdgeom.systems.energies import named_energies
from fdgeom.systems.poisson.poisson import PoissonSystem
from fdgeom.taping import not_taped
from fdgeom.words import shown

if TYPE_CHECKING:
    from fdgeom.beams.beam_motion import BeamMotion

DEGREES = (1, 2, 3, 4)


class Beam(PoissonSystem):
    """Geometrically exact beam: bending, torsion, shear and extension, large rotations.

    Parameters
    ----------
    mesh : firedrake.MeshGeometry
        Interval mesh; its coordinate is the arc length of the straight reference. One open line of
        cells, which may be of different lengths and numbered in any order.
    section : Section
        Stiffness D₂, inertia D₁ (6×6, rotation first, body frame) and the axis along the beam.
    degree : {1, 2, 3, 4}
        p: strain in DG p-1 with p Gauss points a cell, momentum in CG p with Gauss–Lobatto points.
        p = 1 is the scheme of the paper.
    end_weight : float, optional
        Weight of an end node in cells, for degree 1: 0.5 (default, consistent) or 1.0 (the paper).
    left, right : "free", "clamped", "pinned", Sliding, GivenPose or callable
        What holds the end at the smaller and the larger coordinate. "pinned": its position is held,
        its rotation free. A callable ``velocity(t)`` prescribes the motion: it takes the time (a
        UFL constant) and gives the body velocity (angular, linear) as a vector of 6.
    reference_strain : UFL expression, array_like or callable, optional
        Strain of the stress-free shape, a vector of 6 in the body frame: a beam curved or twisted
        at rest. An expression may contain the mesh coordinate, and Functions and Constants that
        change; a callable takes the time ``t``, or the arc length and the time ``s, t``.
    reference_shape : pair of UFL expressions, optional
        The stress-free shape instead: position (3) and unit quaternion (4) in space as expressions
        of the mesh coordinate, Functions and Constants. The beam starts there.
    loads : Load, Gravity or a sequence of them
        What acts on the beam; loads that depend on the time in configuration form only.
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
        The mixed function whose parts ``strain`` and ``momentum`` are.
    position, orientation : Function, CG p, 3 and 4 components
        The configuration g in space: position and unit quaternion (scalar first) of the body frame.
    velocity : Function, CG p, 6 components
        ζ = g⁻¹ġ, body frame.
    rod : Rod
        The configuration form: energies and virtual works of the poses of the nodes.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; if a section that varies is not positive definite.

    Notes
    -----
    {f, h} = ∫ a·(β' + [γ+e, β]) - b·(α' + [γ+e, α]) ds + ∫ μ·[β, α] ds with (a, α) = δf/δz and
    (b, β) = δh/δz, the terms with strain at the Gauss points, the last at the nodes: Chen & Shi
    (2025), equations (41) and (50). Free ends are natural.

    What the section, the loads, the damping and the stress-free shape are made of is read anew when
    it has changed, by every stepper, compiled or not, in an assembly too, by statics, energies and
    monitors: a natural strain that changes in time is actuation. ``beam.reference_strain`` is a
    Function; values that are assigned to it stay until something changes in the expression that it
    was given by. Of a function of time, methods on strain and momentum take the value in the middle
    of each (sub)step, those in configuration form the value at the time where they balance forces;
    all keep their order.

    The beam has two descriptions, strain and momentum, and the configuration with the velocity. Of
    strain and configuration, and of momentum and velocity, that is taken by the next steps which was
    set by hand since the last ones; the other follows (the configuration from the left end, or from
    the right one where that alone is held). If both were set and contradict one another, steps raise
    ``ValueError``, and :meth:`reconstruct` or :meth:`project` says which is meant; only steppers on
    strain and momentum take a strain and a configuration as they are, which they move side by side.
    """

    @compiling("Beam")
    def __init__(
        self,
        mesh,
        section: Section,
        *,
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
        check_line(mesh)
        if not isinstance(section, Section):
            raise TypeError(f"section must be a fdgeom.Section, not {type(section).__name__}")
        if not isinstance(degree, Integral) or degree not in DEGREES or isinstance(degree, bool):
            raise ValueError(f"degree must be one of {DEGREES}, not {shown(degree)}")
        if not (isinstance(end_weight, Real) and np.isfinite(end_weight) and end_weight > 0):
            raise ValueError(f"end_weight must be a positive number, not {shown(end_weight)}")
        if degree > 1 and end_weight != 0.5:
            raise ValueError("end_weight can be chosen for degree 1 only")
        self.mesh, self.section, self.degree = mesh, section, int(degree)
        self.end_weight = float(end_weight)

        strain_space = _spectral(mesh, "DG", degree - 1, 6)
        momentum_space = _spectral(mesh, "CG", degree, 6)
        state = Function(strain_space * momentum_space, name="state")
        self.strain, self.momentum = state.subfunctions
        self.strain.rename("strain")
        self.momentum.rename("momentum")
        self.velocity = Function(momentum_space, name="velocity")
        self.position = Function(_spectral(mesh, "CG", degree, 3), name="position")
        self.orientation = Function(_spectral(mesh, "CG", degree, 4), name="orientation")
        self.position.interpolate(
            ufl.as_vector(_along(section.axis, ufl.SpatialCoordinate(mesh)[0]))
        )
        self.orientation.interpolate(ufl.as_vector([1.0, 0.0, 0.0, 0.0]))

        #: Time, for prescribed motions; the steppers keep it.
        self.time = Constant(0.0, name="time")
        self.tangent = Constant(np.array([0.0] * 3 + _along(section.axis, 1.0)), name="e")
        scalar_strain, scalar_nodal = (
            FunctionSpace(mesh, V.ufl_element().sub_elements[0])
            for V in (strain_space, momentum_space)
        )
        self.stiffness = body_matrix("section.stiffness", section.stiffness, scalar_strain)
        self.inertia = body_matrix("section.inertia", section.inertia, scalar_nodal)
        self.compliance_of_inertia = body_matrix(
            "section.inertia", section.inertia, scalar_nodal, inverse=True
        )
        self.reference_strain = sample_shape(
            "reference_strain", reference_strain, strain_space, self.time
        )
        self.loads, self.damping = check_loads(loads), damping
        self.strain_measure = check_measure(strain_measure)
        if reference_shape is not None:
            if reference_strain is not None:
                raise ValueError("give reference_strain or reference_shape, not both")
            self.reference_strain = Function(strain_space, name="reference_strain")
        #: The same as the strain of a cell in the beam's measure, if ``reference_shape`` was given.
        self.shape_strain = None

        self.ends: tuple[BeamEnd, BeamEnd] = left_and_right(self, left, right)
        self._nodal, self._end = gauss_lobatto(mesh, degree + 1), ends(mesh)
        self._inside = gauss(mesh, degree)
        super().__init__(
            state,
            energy=self._kinetic(*split(state)) + self._potential(*split(state)),
            bracket=self._beam_bracket,
            pairing=self._beam_pairing,
            names=("strain", "momentum"),
        )
        check_places(self)
        viscosity_of(damping, self)
        self.chain = Chain(self)
        #: Which of the two descriptions was set last.
        self.agreement = Agreement(self)
        self._clock = Number(self.time)
        if reference_shape is not None:
            set_shape(self, reference_shape)
        self._derived = derived_in(self.stress(), self.compliance_of_inertia)
        self._mobility_seen = self._mobility_version()

    @cached_property
    def rod(self) -> Rod:
        """The configuration form; ``ValueError`` if the degree is not 1 or a load has no place."""
        return rod_of(self)

    @cached_property
    def motion(self) -> BeamMotion:
        """The beam as `GeneralizedAlpha` moves it; ``ValueError`` as for :attr:`rod`."""
        from fdgeom.beams.beam_motion import BeamMotion

        return BeamMotion(self)

    # --- places, for joints ------------------------------------------------------------------------
    @property
    def left(self) -> Place:
        """The end at the smaller coordinate."""
        return Place(self, "left")

    @property
    def right(self) -> Place:
        """The end at the larger coordinate."""
        return Place(self, "right")

    def at(self, s: float) -> Place:
        """The node at an arc length."""
        return Place(self, s)

    # --- forms -----------------------------------------------------------------------------------
    def at_nodes(self, integrand: Expr) -> Form:
        """∫ over the nodes: Gauss–Lobatto, plus what ``end_weight`` adds at the ends."""
        form = integrand * self._nodal
        extra = self.end_weight - 0.5
        if extra:
            form += extra * cell_length(self.mesh) * integrand * self._end
        return form

    def elastic_strain(self, strain: Expr | None = None) -> Expr:
        """γ minus the strain of the stress-free shape, body frame."""
        strain = self.strain if strain is None else strain
        return strain if self.reference_strain is None else strain - self.reference_strain

    def stress(self, strain: Expr | None = None) -> Expr:
        """Stress resultants D₂γ: moment and force of the section, body frame."""
        return dot(self.stiffness, self.elastic_strain(strain))

    def stress_at(self, s) -> np.ndarray:
        """Stress resultants (moment, force) at an arc length: for ``section.recover``.

        Parameters
        ----------
        s : float, or a sequence of n
            Arc length.

        Returns
        -------
        (6,) or (n, 6) ndarray
            In the body frame, on every rank, from :attr:`strain` (after `StaticEquilibrium`, take
            its ``stress_at``, or ``project()`` first). Polynomials through the nearest Gauss
            points: of order degree + 1 where no point load is near.
        """
        return self._resultants.at(s)

    @cached_property
    def _resultants(self) -> Resultants:
        return Resultants(self)

    def _kinetic(self, strain, momentum) -> Form:
        return self.at_nodes(0.5 * inner(momentum, dot(self.compliance_of_inertia, momentum)))

    def _potential(self, strain, momentum) -> Form:
        return 0.5 * inner(self.elastic_strain(strain), self.stress(strain)) * self._inside

    def _beam_pairing(self, a, b) -> Form:
        (a_strain, a_momentum), (b_strain, b_momentum) = split(a), split(b)
        return inner(a_strain, b_strain) * self._inside + self.at_nodes(
            inner(a_momentum, b_momentum)
        )

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

    def with_energy(self, energy):
        raise ValueError("system: the energy of a Beam cannot be exchanged; state a PoissonSystem")

    def chart(self, k: int, unknown: Expr):
        """The strain itself; for the momentum the body velocity, so that end conditions are nodal."""
        if k == 0:
            return unknown, self.stress(unknown)
        return dot(self.inertia, unknown), unknown

    def frozen_gradient(self, k: int):
        return self.stress(self.strain) if k == 0 else self.velocity

    def essential_values(self, active):
        if 1 not in active:
            return ()
        part = tuple(active).index(1)
        return tuple(e for end in self.ends for e in end.essential_values(part))

    def forcing(self, test, gradient, dt):
        return load_forcing(self, test[1], gradient[1], dt)

    def start_values(self, stage):
        return {
            piece: self.velocity if source is self.momentum else source
            for piece, source in super().start_values(stage).items()
        }

    def check_start(self) -> None:
        """Raise ``ValueError`` if a field is not finite or the start contradicts a held end.

        Also where the beam has damping, loads in time or ends that need the configuration form.
        """
        self.check_state()
        check_for_bracket(self)
        self.prepare()
        for end in self.ends:
            end.check_start()

    def prepare(self) -> None:
        """Let the description that was not set since the last step follow the one that was.

        Where the inertia has changed the momentum is what stays. ``ValueError`` if momentum and
        velocity were both set and contradict one another.
        """
        for derived in self._derived:
            derived.refresh()
        version = self._mobility_version()
        if not self.agreement.holds():
            self.agreement.restore_for_bracket()
        elif version != self._mobility_seen:
            self.agreement.to_velocity.apply()
            self.settle()
        self._mobility_seen = version

    def _mobility_version(self) -> int:
        field = self.compliance_of_inertia
        return field.dat.dat_version if isinstance(field, Function) else 0

    def settle(self) -> None:
        self.agreement.note()

    def set_time(self, t: float) -> None:
        self.time.assign(t)
        for end in self.ends:
            end.update()

    @property
    def clocks(self) -> tuple[Constant, ...]:
        return (self.time,)

    def set_clock(self, t: float) -> None:
        self._clock.set(t)

    def companions(self, active, new, *, dt: Expr, configuration: str = "mean"):
        """Momentum, velocity and configuration after a substep of the momentum.

        g¹ = g⁰ cay(Δt ζ) with ζ of the old, the new or the mean momentum, equation (55).
        """
        if 1 not in active:
            return {}
        velocity = dot(self.compliance_of_inertia, new[1])
        used = {
            "old": self.velocity,
            "new": velocity,
            "mean": 0.5 * (self.velocity + velocity),
        }[configuration]
        pose = se3.pose_compose((self.position, self.orientation), se3.pose_cay(dt * used))
        return {
            self.momentum: new[1],
            self.velocity: velocity,
            self.position: pose[0],
            self.orientation: quaternion.normalize(pose[1]),
        }

    # --- configuration -----------------------------------------------------------------------------
    @not_taped
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
        self.chain.reconstruct(position, orientation)
        self.agreement.to_velocity.apply()
        self.settle()

    @not_taped
    def project(self) -> None:
        """Fill strain and momentum from position, orientation and velocity: inverse of the above."""
        self.chain.project()
        self.agreement.to_momentum.apply()
        self.settle()

    # --- numbers -------------------------------------------------------------------------------------
    def linear_momentum(self) -> np.ndarray:
        """Total linear momentum ∫ R n in space, shape (3,)."""
        return self._vector("linear_momentum")

    def angular_momentum(self) -> np.ndarray:
        """Total angular momentum ∫ R m + x × R n about the origin, in space, shape (3,)."""
        return self._vector("angular_momentum")

    def _vector(self, name: str) -> np.ndarray:
        forms = self.momenta()[name]
        return np.array([self._value(f"{name}{k}", lambda k=k: forms[k]) for k in range(3)])

    def reactions(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """What holds each held end, by its strain and momentum now.

        Moment about the end's node, and force, in space, two arrays of 3 each; the moment at an end
        with a given motion is the torque that turns it. These are the forces of the equations of
        motion in strain and momentum; in configuration form ask what the stepper moves,
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

    def momenta(self) -> dict[str, tuple[Form, ...]]:
        if "momenta" not in self._held:
            self._held["momenta"] = momentum_forms(self)
        return self._held["momenta"]

    def energies(self) -> dict[str, Form]:
        """½⟨μ, D₁⁻¹μ⟩, ½⟨D₂γ, γ⟩, the potential of gravity and dead forces, and the sum.

        The last part is a function of the configuration, and there where there are such loads.
        """
        load = self.rod.load_potential((self.position, self.orientation)) if self.loads else None
        return named_energies(self._kinetic(*self.parts), self._potential(*self.parts), load)

    # --- what the recording reads ----------------------------------------------------------------------
    def parameters(self) -> dict[str, object]:
        return beam_parameters(self)

    def equations(self) -> dict[str, Form]:
        """None beside those of every beam."""
        return {}

    def functions(self) -> dict[str, Function]:
        return {
            "strain": self.strain,
            "momentum": self.momentum,
            "position": self.position,
            "orientation": self.orientation,
            "velocity": self.velocity,
        }

    def output_fields(self) -> dict[str, Expr]:
        return output_fields(self)

    def output_coordinates(self) -> Function:
        return self.position


def _spectral(mesh, family: str, degree: int, size: int):
    """Vector space whose nodes are the quadrature points it is collocated with."""
    element = FiniteElement(family, mesh.ufl_cell(), degree, variant="spectral")
    return VectorFunctionSpace(mesh, element, dim=size) if size else FunctionSpace(mesh, element)


def _along(axis: int, value) -> list:
    return [value if k == axis else 0.0 for k in range(3)]
