"""Derivatives of equilibria and of the eigenvalues of vibrations, for replays and pyadjoint's tape."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from firedrake import Constant, Function, FunctionSpace, assemble, dx
from pyadjoint import AdjFloat
from pyadjoint.tape import stop_annotating
from ufl.algorithms import extract_coefficients
from ufl.classes import Form

from fdgeom.adjoint import Coefficients, Kept, Origin, Replay, keys, parts
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.beams.rod.variation import displaced, spin
from fdgeom.execution import VectorAssembly
from fdgeom.forms import is_real, simplify, slope_by
from fdgeom.lie import arrays, join
from fdgeom.operations import ArrayOperation, Map, Operation, Prescribed, Solve
from fdgeom.statics.pencil import data_of
from fdgeom.statics.problem import EquilibriumProblem, LoadProgram
from fdgeom.systems.motion.nodal_unknown import NodalUnknown
from fdgeom.systems.system import Consistency, Model
from fdgeom.taping import record

# Of the larger of two eigenvalues: nearer ones are one that is multiple.
_APART = 1e-6
#: An eigenvalue, its shape, and a check that raises where it has no derivative.
EigenvalueData = tuple[float, np.ndarray, Callable[[], None]]


class TapedPoint:
    """A point that `StaticEquilibrium.follow` has reached, from which solves stay on its branch."""

    # If the path begins with another configuration, the point moves with it, node by node.
    def __init__(
        self,
        poses: Sequence[Function],
        moved: Sequence[Function],
        carried: Sequence[Function],
    ) -> None:
        self._poses, self._others = poses, [*moved, *carried]
        self._begun, self._moved = Kept(poses), Kept(moved)

    def reach(self) -> None:
        """Save the present configuration, and restore that at the start of the path."""
        self._reached = Kept([*self._poses, *self._others])
        self._begun.restore()
        self._moved.restore()

    def stand(self) -> None:
        """Go from a configuration at the start of the path to the point."""
        product, conjugate = arrays.quaternion.product, arrays.quaternion.conjugate
        changes = [(np.array(now), was) for now, was in self._begun.pairs()]
        self._reached.restore()
        for k, (now, was) in enumerate(changes):
            if np.array_equal(now, was):
                continue
            values = self._poses[k].dat.data_with_halos
            if k % 2:
                turned = product(product(now, conjugate(was)), values)
                values[...] = arrays.quaternion.normalize(turned)
            else:
                values += now - was


class EquilibriumReplay(Replay):
    """The equilibrium g of F(g, c) = 0 at a load factor, as a function of c, with its derivative at
    a small displacement w from it, F(g ∘ w, c) = 0 at w = 0:

        ∂F/∂w δw = -∂F/∂c δc,     δg = g δw,

    where δw at held nodes is that of the initial configuration.
    """

    # `go(program)` solves for an equilibrium. NotImplementedError if a given pose contains
    # Functions.
    name = "StaticEquilibrium"

    def __init__(self, problem: EquilibriumProblem, go: Callable[[LoadProgram], None]) -> None:
        self._problem, self._go = problem, go
        motion = self._motion = problem.motion
        _refuse_moved(motion)
        self._unknown = unknown = NodalUnknown(motion, "variation")
        self._multipliers = () if problem.multiplier is None else (problem.multiplier,)
        poses = [f for beam in motion.members for f in (beam.position, beam.orientation)]
        strains = [beam.strain for beam in motion.members]
        fields = [f for beam in motion.members for f in beam.functions().values()]
        fields = list(dict.fromkeys([*fields, *motion.configuration]))
        self.saves = keys([*poses, *strains])
        #: The poses of the beams, and what else a path moves.
        self._fields = poses, [*strains, *motion.configuration]
        # A copy of the equilibrium, which counts as given in its equations.
        self._there = tuple(Function(f.function_space()) for f in motion.configuration)
        self._residual = simplify(self._form())
        own = [*self._there, *self._multipliers, unknown.function]
        symbols = [*motion.model.clocks, problem.factor]
        super().__init__(
            fields,
            Coefficients(
                [], keys([*fields, *own]), symbols, [self._residual, *problem.given_poses()]
            ),
            [*self._multipliers, problem.given, *symbols],
        )
        self._operations = self._made_operations()

    def _form(self) -> Form:
        """F at a small displacement from the equilibrium, with the conditions of joints."""
        problem, unknown = self._problem, self._unknown
        g = displaced(self._there, unknown.vector)
        if problem.multiplier is None:
            return problem.balance(unknown.test, g)
        form = problem.balance(unknown.test, g, problem.multiplier + unknown.multiplier)
        return form + self._motion.joints.value(unknown.nu, g)

    def _made_operations(self) -> list[Operation]:
        """From the poses of the beams at the start to those at the equilibrium, for derivatives."""
        motion, unknown = self._motion, self._unknown
        given, prescribed = self._given_values()
        (x, q), (x0, q0) = motion.configuration, self._there
        relative = join(spin(q0, q), x - x0)
        (group,) = unknown.assignments(given, [relative], unknown.no_multiplier)
        # The unknown is zero at the equilibrium, and so is what the poses there give.
        solve = Solve(
            work=self._residual,
            unknown=unknown.function,
            prescribed=prescribed,
            find=lambda: None,
        )
        moved = dict(zip(motion.configuration, displaced(self._there, unknown.vector), strict=True))
        read, write = motion.consistency.pose_copies
        return [*read, Map(values=group), solve, Map(values=moved), *write]

    def _given_values(self) -> tuple[Function, list[Prescribed]]:
        """The increments of held nodes: zero, except for given poses."""
        motion, unknown = self._motion, self._unknown
        given = Function(unknown.function.function_space(), name="given")
        if motion.held is None:
            return given, unknown.prescribed
        (held,) = motion.held.dofs
        ours, *others = unknown.prescribed
        moves = motion.held.moved.dat.data_ro_with_halos.reshape(-1)[held] > 0.5
        still = Prescribed(ours.dofs[~moves], parts(given)[0])
        return given, [still, Prescribed(ours.dofs[moves]), *others]

    def title(self, program: LoadProgram) -> str:
        """Description of the solve."""
        return f"the equilibrium of StaticEquilibrium at load {program.load:g}"

    def point(self) -> TapedPoint:
        """The present configuration as the beginning of a path."""
        return TapedPoint(*self._fields, self._multipliers)

    # --- the run ---------------------------------------------------------------------------------
    def snapshots(self):
        return tuple(beam.consistency.noted for beam in self._motion.members)

    def others(self):
        found, own = self._problem.found.snapshot, self._motion.consistency.own
        return [own] if found is None else [own, found]

    def _set_snapshots(self, origin, left):
        # A replay moves no beam to its strain: the run on the tape has refused that.
        for snapshot in self.snapshots():
            snapshot.take()
        self._motion.consistency.note_poses()

    def run(self, program: LoadProgram) -> None:
        """Go to an equilibrium from the present inputs."""
        self._go(program)
        self._coefficients.dependents.refresh()
        self._standing.found = Kept(self._problem.functions)

    def _operations_of(self, origin, steps, reached):
        self._go_back(origin, steps)
        return self._list(self._operations, reached)

    def _go_back(self, origin: Origin, program: LoadProgram) -> None:
        """Restore the equilibrium that was found."""
        if origin.found is None:
            self.run(program)
        origin.found.restore()
        self._problem.load = program.load
        self._motion.model.set_time(program.time)
        for copy, f in zip(self._there, self._motion.configuration, strict=True):
            copy.assign(f)


def _refuse_moved(motion) -> None:
    held = () if motion.held is None else motion.held.expressions()
    if any(extract_coefficients(e) for e in held):
        raise NotImplementedError(
            "gradients through StaticEquilibrium.solve() by a GivenPose that is made of Functions are "
            "not available: clamp the end, and set its position and orientation before solve(), which "
            "keeps them; or call it inside 'with firedrake.adjoint.stop_annotating():' (its result "
            "then counts as given data)"
        )


# --- eigenvalues of vibrations --------------------------------------------------------------------
class Eigenvalue(ArrayOperation):
    """A simple eigenvalue of vibrations as an operation on the configuration and the data of a beam,
    λ' = φ·(K' - λM')φ with φ·Mφ = 1.
    """

    # It is also the system of its block on the tape. `find()` gives λ, φ and the check at the present
    # data, `found` is that at the data of the call.
    def __init__(
        self,
        motion: RodMotion,
        load: float,
        found: EigenvalueData,
        find: Callable[[], EigenvalueData],
    ) -> None:
        self._motion, self._find, self._data = motion, find, data_of(motion)
        self._shape, self._found = Function(motion.space, name="mode"), Constant(0.0)
        self._value = Function(FunctionSpace(motion.mesh, "R", 0), name="eigenvalue")
        g, rod, phi = motion.configuration, motion.rod, self._shape

        def balance(g) -> Form:
            return rod.internal_work(g, phi) - rod.external_work(g, phi, factor=load)

        inertia = simplify(motion.inertia(phi, phi))
        total = motion.rate(balance, phi) - self._found * inertia
        # All that makes the equilibrium, so that it is one when the eigenvalue is found again.
        forms = [inertia, rod.internal_work(g, phi), rod.external_work(g, phi)]
        read = Coefficients([], keys([phi]), motion.model.clocks, forms)
        super().__init__([*read.functions, *read.fields], [self._value])
        slopes = [slope_by(total, f) for f in self.reads]
        self._slopes = [None if slope is None else VectorAssembly(slope) for slope in slopes]
        self._set(*found)

    def _set(self, value: float, shape: np.ndarray, check: Callable[[], None]) -> None:
        self._check = check
        self._found.assign(value)
        self._shape.dat.data_wo[...] = shape

    def on_tape(self) -> AdjFloat:
        """The eigenvalue, recorded on the working tape."""
        record("an eigenvalue of VibrationModes", self.run, lambda: [self], self)
        mesh = self._value.function_space().mesh()
        with stop_annotating():
            length = assemble(Constant(1.0) * dx(domain=mesh))
        return assemble(self._value / length * dx(domain=mesh))

    # --- as an operation -------------------------------------------------------------------------
    def run(self) -> None:
        if self._data.changed():
            self._set(*self._find())
            self._data.take()
        self._value.assign(float(self._found))

    def tangents(self, dots):
        self._check()
        comm, total = self._value.function_space().comm, 0.0
        for f, slope, dot in zip(self.reads, self._slopes, dots, strict=True):
            if slope is not None and dot is not None:
                pairs = zip(slope.values(), parts(dot), strict=True)
                found = float(sum((v * part.dat.data_ro).sum() for v, part in pairs))
                # Every rank has the numbers of a Real space.
                total += found / comm.size if is_real(f) else found
        return [np.array([comm.allreduce(total)])]

    def cotangents(self, bars):
        self._check()
        weight = float(bars[0][0])
        return [
            None if slope is None else [weight * v for v in slope.values()]
            for slope in self._slopes
        ]

    def cotangent_rates(self, bars, dots):
        raise NotImplementedError(
            "second derivatives of VibrationModes.eigenvalue() are not available: take differences of "
            "its gradients"
        )

    # --- as the system of its block --------------------------------------------------------------
    @property
    def model(self) -> Model:
        return self._motion.model

    def functions(self) -> dict[str, Function]:
        """The eigenvalue."""
        return {"eigenvalue": self._value}

    #: Nobody sets the eigenvalue.
    consistency = cached_property(Consistency)


def refuse_unless_simple(
    values: np.ndarray, round_off: np.ndarray, k: int, symmetric: bool, alone: bool
) -> None:
    """Raise ``NotImplementedError`` where an eigenvalue has no derivative of the kind."""
    why, size = None, np.abs(values)
    near = np.maximum(_APART * np.maximum(size, size[k]), round_off + round_off[k])
    if not alone:
        why = "of assemblies"
    elif not symmetric:
        why = "where loads are not conservative"
    elif k == len(values) - 1:
        why = "of the last mode, whose neighbour is not known: take number one larger"
    elif np.sum(np.abs(values - values[k]) <= near) > 1:
        why = (
            "of a multiple eigenvalue, which has no derivative: make the section differ a little, or "
            "take the sum of those that fall together by finite differences"
        )
    if why is not None:
        raise NotImplementedError(
            f"gradients of VibrationModes.eigenvalue({k}) are not available {why}"
        )
