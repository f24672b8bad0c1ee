"""Several beams, joined to one another and to the ground."""

import warnings
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np
from firedrake import Constant, TestFunction

from fdgeom.beams.beam import Beam
from fdgeom.beams.ends import Hold, held_components, held_ends
from fdgeom.beams.network.joint_set import JointSet
from fdgeom.beams.network.joints import Ground, Joint, Place, PointBody, Prismatic
from fdgeom.beams.network.network import Network
from fdgeom.beams.network.network_consistency import NetworkConsistency
from fdgeom.beams.network.network_rod import NetworkRod
from fdgeom.beams.rod.loads import AppliedLoad, BodyLoad, Gravity, Load, check_loads
from fdgeom.beams.rod.output import RodOutput
from fdgeom.beams.rod.rod_motion import RodModel, RodMotion
from fdgeom.beams.rod_of_beam import beam_parameters, parameters_of_loads, with_kind
from fdgeom.build_message import compiling
from fdgeom.clock import Time
from fdgeom.execution import perform
from fdgeom.lie import arrays
from fdgeom.taping import OffTape, not_taped
from fdgeom.validation import fix, instances

# Of the size of the assembly: what nodes that meet may be apart.
_TOGETHER = 1e-9


class AssemblyOutput(RodOutput):
    """What is drawn of an assembly."""

    def fields(self):
        """The fields of a beam, and ``beam``: the number of the beam that a cell belongs to."""
        network = self._system.network
        number = np.concatenate([network.owner, np.full(len(network.ends), -1)])
        return super().fields() | {"beam": network.field(number.astype(float), "beam", cells=True)}

    def cells(self) -> np.ndarray | None:
        """Cells of beams, not of joints."""
        inside = self._system.rod.cells.in_rods()
        return inside if isinstance(inside, np.ndarray) else None


class AssemblyModel(RodModel):
    """The parameters of beams, joints, bodies and common loads, and the times of all beams."""

    @property
    def clocks(self) -> tuple[Constant, ...]:
        return (self._system.time, *(beam.time for beam in self._system.beams))

    def parameters(self) -> dict[str, object]:
        """Its beams, joints, bodies and common loads."""
        assembly = self._system
        beams = list(assembly.beams)

        def where(place) -> str:
            return (
                "ground"
                if isinstance(place, Ground)
                else f"{place} of beam {beams.index(place.beam)}"
            )

        joints = () if assembly.joints is None else assembly.joints.joints
        found = {
            f"{name} of beam {k}": value
            for k, beam in enumerate(beams)
            for name, value in beam_parameters(beam).items()
        }
        found |= {
            f"joint {k}": with_kind(j) | {"first": where(j.first), "second": where(j.second)}
            for k, j in enumerate(joints)
        }
        # Where the sections stood when the joints were made is their zero.
        found |= {
            f"axes of joint {k} in the sections": np.round(assembly.joints.fixed_axes(k), 9)
            for k in range(len(joints))
        }
        found |= {
            f"body {k}": {"at": where(body.at), "inertia": np.array(body.matrix)}
            for k, body in enumerate(assembly.bodies)
        }
        # On the first beam, in terms of its own fields.
        common = [AppliedLoad(load, beams[0].rod.part) for load in assembly.common_loads]
        return found | {"gravity": parameters_of_loads(common)}


class Assembly(OffTape, RodMotion):
    """Beams with joints: trees, branches and closed loops, in configuration form.

    The beams keep their own sections, shapes at rest, loads, damping and held ends. Beams and
    joints form one network on one mesh, with the equations

        M v̇ - ad*_v(Mv) + Bᵀσ - f + B_Φᵀλ = 0,   Φ(g) = 0.

    After steps the position, orientation and velocity of each beam are those of the network.

    Parameters
    ----------
    beams : sequence of Beam
        The beams, of degree 1, at their initial places in space.
    joints : sequence of Joint, optional
        `Spherical`, `Revolute`, `Prismatic` and `Rigid` joints between them or with
        ``fdgeom.ground``.
    bodies : sequence of PointBody, optional
        Rigid bodies at nodes.
    loads : Gravity, BodyLoad or sequence of them, optional
        Loads on all beams and bodies: gravity, and your own loads without a place.

    Attributes
    ----------
    beams : tuple of Beam
        The beams.
    network : Network
        The mesh of beams and joints. ``assemble(form)`` counts the cells of joints; take
        ``fg.Functional(name, form)(assembly)``, which integrates over the beams alone.
    position, orientation, v : Function
        Poses and velocities of all nodes; set them, or the fields of the beams.
    multiplier : Function
        Multipliers of the joints.
    time : Constant
        Time. That of the beams follows it; set it here, or by ``time=`` of a solve.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, the nodes of a joint do not coincide, the
        constraints of joints and supports are redundant, or the beams have different strain measures.

    Examples
    --------
    A double pendulum:

    >>> pendulum = Assembly(
    ...     beams=[upper, lower],
    ...     joints=[Spherical(ground, upper.left), Spherical(upper.right, lower.left)],
    ...     loads=Gravity((0, 0, -9.81)))  # doctest: +SKIP
    """

    @compiling("Assembly")
    def __init__(
        self,
        beams: Sequence[Beam],
        joints: Sequence[Joint] = (),
        *,
        bodies: Sequence[PointBody] = (),
        loads: BodyLoad | Sequence[BodyLoad] = (),
    ) -> None:
        self.beams = _check_beams(beams)
        joints = instances("joints", joints, Joint, "a sequence of Joint")
        self.bodies = instances("bodies", bodies, PointBody, "a sequence of PointBody")
        common = check_loads(loads)
        if any(map(_is_gravity, common)):
            _warn_of_weight(self.beams)
        for load in common:
            if isinstance(load, Load):
                raise TypeError(
                    f"loads: {load!r} acts on one beam; give it to that beam. Loads of an "
                    "Assembly act on all beams, such as Gravity"
                )
        self.network = network = Network(self.beams, joints)
        for beam in self.beams:
            perform(beam.consistency.for_configuration(beam.rod, alone=False), {})
            beam.consistency.synchronised(strain_follows=True)
        position, orientation = self._start()
        self._check_meeting(joints, position)
        rod = NetworkRod(network, self.beams, self.bodies).rod(common, Time())
        ends, holds, fixed = self._holds()
        rotations = arrays.quaternion.matrix(orientation)
        super().__init__(
            rod,
            network.field(position, "position"),
            network.field(orientation, "orientation"),
            self.beams,
            ends,
            holds=holds,
            common_loads=common,
            condition=(lambda motion: JointSet(motion, network, joints, fixed, rotations))
            if joints
            else None,
        )
        # So that a load which has no meaning here is refused now.
        self.rod.external_work(self.configuration, TestFunction(self.space))
        self.consistency.read_beams()
        for part in (*joints, *self.bodies, *common):
            fix(part)
        fix(self, ["beams", "bodies", "common_loads", "network", "rod"])

    def __repr__(self) -> str:
        joints = () if self.joints is None else self.joints.joints
        counts = {"beam": self.beams, "joint": joints, "body": self.bodies}
        many = {"body": "bodies"}
        parts = [
            f"{len(found)} {name if len(found) == 1 else many.get(name, name + 's')}"
            for name, found in counts.items()
            if found
        ]
        return f"Assembly({', '.join(parts)})"

    # --- what it is made of --------------------------------------------------------------------------
    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and quaternions of all nodes; a node of the ground has those of its partner."""
        network = self.network
        total = max([network.starts[-1], *(network.ends.ravel() + 1)])
        position, orientation = np.zeros((total, 3)), np.tile([1.0, 0, 0, 0], (total, 1))
        for numbering, beam, start in zip(network.beams, self.beams, network.starts, strict=False):
            stop = start + len(numbering.coordinates)
            position[start:stop] = numbering.gather(beam.position)
            orientation[start:stop] = numbering.gather(beam.orientation)
        for a, b in np.sort(network.ends, axis=1):
            if b >= network.starts[-1]:
                position[b] = position[a]
        return position, orientation

    def _check_meeting(self, joints: Sequence[Joint], position: np.ndarray) -> None:
        size = np.ptp(position, axis=0).max()
        for joint, (a, b) in zip(joints, self.network.ends, strict=True):
            gap = position[b] - position[a]
            if isinstance(joint, Prismatic):
                gap = gap - joint.axis * (joint.axis @ gap)
                if not np.linalg.norm(gap) <= _TOGETHER * size:
                    raise ValueError(
                        f"joints: {joint!r}: the nodes are not on one line along its axis (off by "
                        f"{np.linalg.norm(gap):.3g}); move a beam, or turn the axis"
                    )
            elif not np.linalg.norm(gap) <= _TOGETHER * size:
                raise ValueError(
                    f"joints: {joint!r}: the nodes do not meet, they are {np.linalg.norm(gap):.3g} "
                    "apart; move a beam there first, such as by "
                    "beam.reconstruct(position=..., orientation=...)"
                )

    def _holds(self) -> tuple[list[dict[str, Hold]], list[Hold], set[int]]:
        """The held ends of each beam, these and the nodes of the ground, and the numbers of all."""
        network = self.network

        def local_end(beam: Beam, name: str) -> np.ndarray:
            return network.local(network.node(Place(beam, name)))

        ends = [held_ends(beam.ends, partial(local_end, beam), "a ") for beam in self.beams]
        grounds = network.ends[network.ends >= network.starts[-1]].tolist()
        clamped = held_components("ground", "clamped")
        holds = [hold for held in ends for hold in held.values()]
        holds += [Hold("the ground", network.local(n), "clamped", clamped) for n in grounds]
        both = zip(self.beams, ends, strict=True)
        fixed = {network.node(Place(beam, name)) for beam, held in both for name in held}
        return ends, holds, fixed.union(grounds)

    consistency = cached_property(NetworkConsistency)

    # --- what the recording reads ----------------------------------------------------------------
    model = cached_property(AssemblyModel)

    output = cached_property(AssemblyOutput)

    # --- numbers ---------------------------------------------------------------------------------------
    @not_taped
    def force(self, joint: Joint, side: str = "second") -> np.ndarray:
        """Force (3, in space) that a joint with its spring and damper exerts on one of its places.

        Parameters
        ----------
        joint : Joint
            One of this assembly.
        side : {"second", "first"}
            The place that the force acts on.

        Notes
        -----
        After a step these are the forces in the equations of that step: at its end with
        `GeneralizedAlpha`, the mean over it with `EnergyMomentum`. Before the first step, after you
        set a configuration or velocity, and after `VariationalIntegrator`, they are those of the
        equations of motion at the present state.
        """
        return self.forces().exerted(joint, side)[3:]

    @not_taped
    def moment(self, joint: Joint, side: str = "second") -> np.ndarray:
        """Moment (3, in space, about the node) of a joint on one of its places; see :meth:`force`."""
        return self.forces().exerted(joint, side)[:3]

    @not_taped
    def joint_forces(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Moment and force of each joint on its second place: :meth:`moment` and :meth:`force`."""
        if self.joints is None:
            return []
        return [(wrench[:3], wrench[3:]) for wrench in self.forces().joints()[:, 1]]

    def shapes(self) -> list[np.ndarray]:
        """Positions of each beam's nodes, (nodes, 3) in the order of the arc length, on all ranks."""
        parts = zip(self.beams, self.network.beams, strict=True)
        return [numbering.gather(beam.position) for beam, numbering in parts]

    def gap(self) -> float:
        """Largest gap (a length) or misalignment (an angle) in the joints."""
        return self.constraint_defect()


def _warn_of_weight(beams: Sequence[Beam]) -> None:
    """Warn where beams have a weight of their own beside that of the assembly."""
    twice = [f"beams[{k}]" for k, b in enumerate(beams) if any(map(_is_gravity, b.loads))]
    if twice:
        warnings.warn(
            f"loads: gravity acts twice on {', '.join(twice)}, as a load of the beam and as one of the "
            "Assembly, and both weights are added: give it to one of them",
            stacklevel=5,
        )


def _is_gravity(load: BodyLoad) -> bool:
    return isinstance(load, Gravity)


def _check_beams(beams) -> tuple[Beam, ...]:
    beams = instances("beams", beams, Beam, "a sequence of Beam")
    if not beams:
        raise ValueError("beams must not be empty")
    if len({id(beam) for beam in beams}) < len(beams):
        raise ValueError("beams must be different from one another")
    for beam in beams:
        if beam.degree != 1:
            raise ValueError("beams must be of degree 1, as the configuration form needs")
        if beam.strain_measure != beams[0].strain_measure:
            raise ValueError(
                f"beams must have one strain measure, not {beams[0].strain_measure!r} and "
                f"{beam.strain_measure!r}"
            )
    return beams
