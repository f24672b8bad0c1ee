"""The forms of small vibrations about an equilibrium, made once for a beam or an assembly."""

from functools import cached_property

import numpy as np
import scipy.sparse as sparse
import ufl
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    TensorFunctionSpace,
    TestFunction,
    TrialFunction,
    VectorFunctionSpace,
    inner,
)
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.forms import simplify
from fdgeom.solvers import MatrixAssembly, Number, Snapshot, VectorAssembly
from fdgeom.solvers.derived import private, read_in
from fdgeom.statics.gathered import gathered, scattered, to_scipy

_KEPT = "_fdgeom_pencil_forms"


def forms_of(motion: RodMotion) -> "PencilForms":
    """The forms of a system, made at the first call, and again for other loads."""
    kept = getattr(motion, _KEPT, None)
    if kept is None or kept.loads is not motion.rod.loads:
        kept = PencilForms(motion)
        setattr(motion, _KEPT, kept)
    return kept


class PencilForms:
    """Vectors and whole matrices about a configuration with present coefficients, on every process."""

    def __init__(self, motion: RodMotion) -> None:
        self._motion, self._rod, self.loads = motion, motion.rod, motion.rod.loads
        self._test, self._trial = TestFunction(motion.space), TrialFunction(motion.space)
        strains = VectorFunctionSpace(motion.mesh, "DG", 0, dim=6)
        self._strain, self._stress = (private(Function(strains)) for _ in range(2))
        self._factor = private(Constant(0.0, name="load factor"))
        self._set_load = Number(self._factor)
        self.inside = gathered(motion.comm, _inside(motion))

    def _in_cells(self, value: Expr) -> Form:
        """The form whose assembled vector is a value in the cells: tested with 1 / their length."""
        mesh, shape = self._motion.mesh, value.ufl_shape
        space = (
            TensorFunctionSpace(mesh, "DG", 0, shape=shape)
            if len(shape) > 1
            else VectorFunctionSpace(mesh, "DG", 0, dim=shape[0])
            if shape
            else FunctionSpace(mesh, "DG", 0)
        )
        cells = self._rod.cells
        return cells.sum(inner(value, TestFunction(space)) / cells.length)

    # --- what is assembled, made when it is first needed -------------------------------------------
    @cached_property
    def _lengths(self) -> VectorAssembly:
        return VectorAssembly(self._in_cells(self._rod.cells.length))

    @cached_property
    def _elastic_strain(self) -> VectorAssembly:
        return VectorAssembly(self._in_cells(self._rod.elastic_strain(self._pose)))

    @cached_property
    def _stress_of_strain(self) -> VectorAssembly:
        return VectorAssembly(
            self._in_cells(self._rod.law.stress(self._strain, self._rod.stiffness))
        )

    @cached_property
    def _tangent(self) -> VectorAssembly:
        return VectorAssembly(
            self._in_cells(self._rod.law.tangent(self._strain, self._rod.stiffness))
        )

    @cached_property
    def _works(self) -> list[tuple[VectorAssembly, bool]]:
        """Works of stress, loads and springs, each with a flag if the load factor scales it."""
        rod, motion, pose, test = self._rod, self._motion, self._pose, self._test
        forms = [(rod.stress_work(self._stress, pose, test), False)]
        external = rod.external_work(pose, test, factor=self._factor)
        if not external.empty():
            forms.append((-external, all(load.load.scaled for load in self.loads)))
        if motion.joints is not None:
            forms.append((motion.spring_work(pose, ufl.zero(6), test), False))
        forms = [(simplify(form), scaled) for form, scaled in forms]
        return [(VectorAssembly(form), scaled) for form, scaled in forms if not form.empty()]

    @cached_property
    def _rate(self) -> MatrixAssembly:
        return MatrixAssembly(self._in_cells(self._rod.strain_rate(self._pose, self._trial)), "aij")

    @cached_property
    def _geometric(self) -> MatrixAssembly:
        form = self._rod.geometric_stiffness(self._stress, self._pose, self._trial, self._test)
        return MatrixAssembly(form, "aij")

    @cached_property
    def _of_loads(self) -> MatrixAssembly | None:
        found = self._rod.load_stiffness(self._pose, self._trial, self._test, self._factor)
        return _matrix(found)

    @cached_property
    def _slope(self) -> MatrixAssembly:
        joints = self._motion.joints
        form = joints.slope(TestFunction(joints.space), self._trial, self._pose)
        return MatrixAssembly(form, "aij")

    @cached_property
    def _multiplier(self) -> Function:
        return private(Function(self._motion.joints.space, name="multiplier"))

    @cached_property
    def _in_joints(self) -> MatrixAssembly | None:
        motion, multiplier, test = self._motion, self._multiplier, self._test

        def work(g) -> Form:
            springs = motion.spring_work(g, ufl.zero(6), test)
            return motion.joints.slope(multiplier, test, g) + springs

        # Spherical joints are linear: they add nothing.
        return _matrix(motion.rate(work, self._trial))

    @cached_property
    def _inertia(self) -> MatrixAssembly:
        return MatrixAssembly(self._motion.inertia(self._test, self._trial), "aij")

    @property
    def _pose(self):
        return self._motion.configuration

    @cached_property
    def read(self) -> tuple[Function | Constant, ...]:
        """The coefficients of stiffness and inertia that a user may change."""
        rod, motion, pose, test = self._rod, self._motion, self._pose, self._test
        forms = [rod.internal_work(pose, test), rod.external_work(pose, test)]
        forms.append(motion.inertia(test, self._trial))
        if motion.joints is not None:
            forms.append(motion.spring_work(pose, ufl.zero(6), test))
        return read_in(*(form for form in forms if not form.empty()))

    # --- values --------------------------------------------------------------------------------------
    def is_loaded(self, load: float) -> bool:
        """Whether loads act on the system at a load factor."""
        return any(load or not applied.load.scaled for applied in self.loads)

    def elastic_strain(self) -> np.ndarray:
        """The strain in the owned cells, minus that of the stress-free shape."""
        return self._elastic_strain.assemble().dat.data_ro.copy()

    def lengths(self) -> np.ndarray:
        """Lengths of the owned cells."""
        return self._lengths.assemble().dat.data_ro.copy()

    def set_strain(self, values: np.ndarray) -> None:
        """Set the strains in the owned cells, and their stress."""
        self._strain.dat.data_wo[...] = values
        self._stress.dat.data_wo[...] = self._stress_of_strain.assemble().dat.data_ro

    def stiffness(self) -> np.ndarray:
        """The tangent of the law in the owned cells."""
        return self._tangent.assemble().dat.data_ro.copy()

    def works(self, load: float) -> list[np.ndarray]:
        """Works of stress, loads at a factor, and springs, on all displacements."""
        self._set_load.set(load)
        comm = self._motion.comm
        return [
            gathered(comm, work.assemble().dat.data_ro.ravel())
            for work, scaled in self._works
            if load or not scaled
        ]

    def rate(self) -> sparse.csr_matrix:
        """Rates of strain in the cells."""
        return to_scipy(self._rate.assemble())

    def geometric(self) -> sparse.csr_matrix:
        """The stiffness of the stress."""
        return to_scipy(self._geometric.assemble())

    def of_loads(self) -> sparse.csr_matrix | None:
        """Part of the stiffness that loads at the factor of :meth:`works` subtract; None without."""
        return None if self._of_loads is None else to_scipy(self._of_loads.assemble())

    def slope(self) -> sparse.csr_matrix:
        """The conditions of the joints."""
        return to_scipy(self._slope.assemble())

    @cached_property
    def used(self) -> np.ndarray:
        """Mask of all multipliers that belong to a condition."""
        joints = self._motion.joints
        used = np.ones(self._multiplier.dat.data_ro.size, dtype=bool)
        used[joints.idle[joints.idle < used.size]] = False
        return gathered(self._motion.comm, used)

    def in_joints(self, force: np.ndarray) -> sparse.csr_matrix | None:
        """The stiffness of springs and of joints with these multipliers; None without any."""
        scattered(force, self._multiplier)
        return None if self._in_joints is None else to_scipy(self._in_joints.assemble())

    def inertia(self) -> sparse.csr_matrix:
        """The mass matrix."""
        return to_scipy(self._inertia.assemble())


class Standing:
    """A configuration of a system with the values of its coefficients, to detect changes."""

    def __init__(self, motion: RodMotion) -> None:
        read = forms_of(motion).read
        functions = [f for f in read if isinstance(f, Function)]
        self._snapshot = Snapshot([*motion.configuration, *functions])
        self._snapshot.take()
        self._constants = [f for f in read if not isinstance(f, Function)]
        self._numbers = self._values()

    def _values(self) -> list[bytes]:
        return [c.dat.data_ro.tobytes() for c in self._constants]

    def holds(self) -> bool:
        """Whether all values are unchanged, to the last bit and on all ranks."""
        return self._snapshot.holds() and self._values() == self._numbers


def _matrix(form: Form) -> MatrixAssembly | None:
    form = simplify(form)
    return None if form.empty() else MatrixAssembly(form, "aij")


def _inside(motion: RodMotion) -> np.ndarray:
    """Mask of the owned cells that are pieces of beams."""
    inside = motion.cells.inside
    if inside is None:
        return np.ones(Function(FunctionSpace(motion.mesh, "DG", 0)).dat.data_ro.size, dtype=bool)
    return inside.dat.data_ro > 0.5
