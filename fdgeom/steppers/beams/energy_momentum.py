"""Beams in large steps that keep the energy and both momenta."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import ufl
from firedrake import Constant, Function
from mpi4py import MPI
from petsc4py import PETSc

from fdgeom.beams.beam import Beam
from fdgeom.beams.rod.mean_directors import MeanStep
from fdgeom.beams.rod.nodal_unknown import RodUnknown
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.forms import tidy
from fdgeom.solvers.data import Field, Number, Snapshot
from fdgeom.solvers.pointwise import PointwiseUpdate
from fdgeom.solvers.saddle import RoundOff, SaddleSNES
from fdgeom.steppers.beams.mean_forces import MeanForces
from fdgeom.steppers.beams.rod_newton import RodNewton
from fdgeom.steppers.beams.rod_unknown import rod_options
from fdgeom.steppers.refusal import wrong_system
from fdgeom.steppers.stepper import Stepper
from fdgeom.steppers.substep import options_for


class EnergyMomentum(Stepper):
    """Energy–momentum method for beams: energy, linear and angular momentum kept to round-off.

    With directors R = (d₁, d₂, d₃), strains that are quadratic in them and the positions,

        Γ = ½(R_A + R_B)ᵀ (x_B - x_A)/h,    K = vee(R_Aᵀ R_B - R_Bᵀ R_A)/(2h),

    and the mean ū = ½(u⁰ + u¹) of the two ends of a step,

        (x¹ - x⁰)/Δt = v̄,     R¹ = R⁰ cay(Δt Ω̄),
        m (v¹ - v⁰)·δx + (R¹JΩ¹ - R⁰JΩ⁰)·η + Δt ∫ C ε̄·δε ds = Δt (work of the loads)

    for all δx and η, where δε is the derivative of the strain along (δx, η × R̄) at the mean
    position and the mean directors R̄. For δx = Δx and η the rotation's Cayley vector in space that
    is the balance of energy, for rigid δx and η that of the momenta. After Simo, Tarnow & Doblaré,
    Int. J. Numer. Methods Eng. 38 (1995), with directors as Betsch & Steinmann, ibid. 54 (2002).

    Second order, symmetric, no bound on the step from the fastest wave; nothing is damped but by
    the beam's own damping. One coupled solve a step.

    Parameters
    ----------
    system : Beam or Assembly
        What is moved, in configuration form: position, orientation and velocity. The strains of a
        beam are measured by "directors" here, whatever its ``strain_measure`` is: the energy of that
        measure is kept, and the beam's strain, momentum and energies are made those of it. It is of
        second order in the length of the cells, with a larger error than the other measures. The
        beams of an assembly must have this measure; its joints, whose conditions Φ are of second
        degree in positions and directors too, push with λ·DΦ at the mean, and Φ(g¹) = 0.
    dt : float
        Time step.
    solver_parameters, options_prefix, compiled
        As for every stepper. The default is a banded LU (MUMPS on several ranks).

    Raises
    ------
    TypeError, ValueError
        If the system is no beam of degree 1, or a start contradicts how it is held.

    Notes
    -----
    Held ends and ends with a given pose do what they should; the total energy is then that without
    the work of given motions, and momenta change by the reactions. Gravity and dead forces that are
    constant have a potential, which belongs to the energy; moments, follower loads and loads that
    change in time act with their values in the middle of the step. A section whose inertia couples
    rotation and translation moves by g¹ = g⁰ cay(Δt ζ̄) on SE(3), with the velocity ζ in the body
    frame, and keeps the same: all but energy in a field of gravity need no more than a symmetric
    inertia.
    """

    order = 2
    symmetric = True
    conserves = ("energy", "linear momentum", "angular momentum", "constraint")

    def __init__(self, system, dt, **options) -> None:
        if isinstance(system, Beam):
            system = system.in_measure("directors")
        super().__init__(system, dt, **options)

    def _setup(self) -> None:
        if not isinstance(self.system, RodMotion):
            raise wrong_system("EnergyMomentum", "a fdgeom.Beam or Assembly", self.system)
        _check_system(self.system)
        self.system.check_start()
        self.system.settle()
        self._solve = EnergyMomentumSolve(self)
        self._known = Snapshot([*self.system.configuration, self.system.v])
        self._forces = MeanForces(
            self.system,
            self._solve.increment,
            self._solve.dt,
            lambda: self.steps > 0 and self._known.holds(),
        )

    def functions(self):
        return {"increment": self._solve.increment}

    def _leave(self) -> None:
        self._solve.set_dt(self.clock.last_dt)
        self._known.take()
        self.system.step_forces = self._forces

    def _taken_up(self) -> None:
        self._leave()

    def _step(self, t: float, dt: float) -> None:
        self._solve.take(t, dt)

    def _solvers(self):
        return [self._solve.solver] if "solver" in self._solve.__dict__ else []


def _check_system(system: RodMotion) -> None:
    """Raise ``ValueError`` for strains and springs whose energy the method does not keep."""
    beams = getattr(system, "beams", ())
    if beams and beams[0].strain_measure != "directors":
        raise ValueError(
            "system: EnergyMomentum needs strains that are quadratic in the directors: make the "
            'beams of an assembly with strain_measure="directors"'
        )
    for joint in () if system.joints is None else system.joints.joints:
        if joint.stiffness or joint.damping:
            raise ValueError(
                f"system: EnergyMomentum does not treat the spring or damper of {joint!r}; take "
                "GeneralizedAlpha"
            )


class Settled(RoundOff):
    """Convergence also where an update no longer changes a configuration: also that of a rod at rest."""

    def __init__(self, system: RodMotion) -> None:
        values = system.position.dat.data_ro
        size = system.comm.allreduce(np.abs(values).max(initial=0.0), op=MPI.MAX)
        self._least = np.finfo(float).eps * min(1.0, size) * system.space.dim() ** 0.5

    def __call__(self, snes, iteration: int, norms) -> int:
        reason = super().__call__(snes, iteration, norms)
        if reason == PETSc.SNES.ConvergedReason.ITERATING and iteration and norms[1] <= self._least:
            return PETSc.SNES.ConvergedReason.CONVERGED_SNORM_RELATIVE
        return reason


class EnergyMomentumSolve:
    """The solve of a step for the increment D, and where it goes."""

    def __init__(self, stepper: EnergyMomentum) -> None:
        self.name, self.dt = "the motion", Constant(1.0, name="dt")
        self._system, self._dt = stepper.system, Number(self.dt)
        self._options = options_for(stepper, "", ())
        system, self._unknown = self._system, RodUnknown(self._system)
        # Where steps do not resolve the stiff directions their velocities alternate.
        self._newton = RodNewton(self._unknown)
        self._velocity = Field(system.v)
        #: The mean one of the last step.
        self._acceleration = Field(system.acceleration)
        separate = all(i.separate for i in system.inertias)
        self._late = system.given is not None and system.given.moves
        #: The increment, with the node numbers of the state (the unknown has the multiplier too).
        self.increment = Function(system.space, name="increment")
        self._D = Field(self.increment)
        self._multiplier = None if system.joints is None else Field(system.multiplier)
        given = (system.given.moved, system.given.v) if self._late and not separate else None
        self._step, step = (
            MeanStep(system.configuration, system.v, D, self.dt, separate, given)
            for D in (self._unknown.vector, self.increment)
        )
        x, q = step.configuration
        self._update = PointwiseUpdate(
            {system.position: x, system.orientation: q, system.v: step.velocity}
        )
        if self._options.told:
            _ = self.solver  # so that an unknown option is refused now

    def _residual(self):
        system, step, test = self._system, self._step, self._unknown.test
        nodal = sum((step.inertial(i, test) for i in system.inertias), ufl.as_ufl(0.0))
        nodal -= step.external(system.rod, test)
        form = system.cells.at_nodes(nodal) + step.internal(system.rod, test)
        if system.joints is not None:
            form += step.joint_work(system.joints, self._unknown.multiplier, test)
            form += step.joint_value(system.joints, self._unknown.nu)
        return tidy(form)

    @cached_property
    def solver(self) -> SaddleSNES:
        """The SNES, made when it is first needed."""
        options, prefix, given = self._options(rod_options(self._system.comm))
        solver = SaddleSNES(
            self._residual(),
            self._unknown.function,
            essential=self._unknown.essential,
            options=options,
            prefix=prefix,
            given=given,
            name=self.name,
        )
        if solver.snes.getType() not in ("ksponly", "python"):
            solver.snes.setConvergenceTest(Settled(self._system))
        return solver

    def set_dt(self, dt: float) -> None:
        """Say how long the step of the increment is."""
        self._dt.set(dt)

    def take(self, t: float, dt: float) -> None:
        """Move from ``t`` by ``dt``."""
        solver, system, unknown, v = self.solver, self._system, self._unknown, self._velocity
        self._dt.set(dt)
        for field in (v, self._acceleration):
            field.update_ghosts()
        if self._late:
            system.set_time(t + dt)
            system.given.update()
            (dofs,) = system.given.dofs
            unknown.held.now = system.given.displacement.dat.data_ro_with_halos.reshape(-1)[dofs]
        system.set_time(t + 0.5 * dt)
        before = np.array(v.array)
        if self._multiplier is not None:
            self._multiplier.update_ghosts()
            unknown.multipliers[...] = dt * self._multiplier.array
        going_on = dt * v.array + dt**2 / 2 * self._acceleration.array
        self._newton.solve(solver, (going_on, 0.0))
        unknown.field.update_ghosts()
        self._D.array[...] = unknown.vectors
        self._D.written(ghosts_too=True)
        if self._multiplier is not None:
            self._multiplier.array[...] = unknown.multipliers / dt
            self._multiplier.written(ghosts_too=True)
        self._update.apply()
        if self._late:
            given = system.given.v.dat.data_ro_with_halos.reshape(-1)
            v.array.reshape(-1)[dofs] = given[dofs]
            v.written(ghosts_too=True)
        self._acceleration.array[...] = (v.array - before) / dt
        self._acceleration.written(ghosts_too=True)
        system.set_time(t + dt)
