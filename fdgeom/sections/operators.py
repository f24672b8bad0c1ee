"""The forms of a section: work of the stress, weighted mass, and the solve for the warping.

With the warping g(y₁, y₂) and the slope u = g' + ε + κ×X along the beam, the displacement gradient
is (u | g,₁ | g,₂) in the axes of the section, and the strain its symmetric part: D(g) for u = 0,
S(u) for g = 0. All fields are arrays (nodes, 3) of the nodes that this rank owns.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import petsctools
import ufl
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    TestFunction,
    TrialFunction,
    VectorFunctionSpace,
    VectorSpaceBasis,
    assemble,
    dx,
    inner,
)
from firedrake.assemble import get_assembler
from firedrake.petsc import PETSc

from fdgeom.compat import options_read
from fdgeom.execution.options import SolveOptions, check_parameters, refuse_unknown

from .elasticity import to_mandel

#: The operator is singular (four rigid fields), so the factor is that of a slightly larger one.
DEFAULTS = {
    "ksp_type": "gmres",
    "ksp_rtol": 1e-12,
    "ksp_max_it": 500,
    "pc_type": "cholesky",
    "pc_factor_mat_solver_type": "mumps",
}
#: Shift of the operator before its factorisation, in units of EA over the polar moment.
SHIFT = 1e-8


def strain_vector(g, u) -> ufl.core.expr.Expr:
    """Mandel's vector of D(g) + S(u); None is zero."""
    gradient = [
        [0.0 if u is None else u[i], *((0.0, 0.0) if g is None else (g[i].dx(0), g[i].dx(1)))]
        for i in range(3)
    ]
    strain = [[(gradient[i][j] + gradient[j][i]) / 2 for j in range(3)] for i in range(3)]
    return ufl.as_vector(to_mandel(strain))


class Operators:
    """Work, mass and solves on the space of warpings, for one elasticity at a time."""

    def __init__(
        self,
        mesh,
        degree: int,
        elasticity: Function,
        quadrature: int,
        solver_parameters: dict | None = None,
        options_prefix: str | None = None,
    ) -> None:
        given = SolveOptions(*check_parameters(solver_parameters, options_prefix))
        self._options, self._prefix, self._given = given.over(DEFAULTS)
        self.mesh, self.comm = mesh, mesh.comm
        self.space = VectorFunctionSpace(mesh, "CG", degree, dim=3)
        self.elasticity = elasticity
        element = elasticity.function_space().ufl_element().sub_elements[0]
        self.weight = Function(FunctionSpace(mesh, element))
        self._fields = g, u = Function(self.space), Function(self.space)
        h, w = TestFunction(self.space), TrialFunction(self.space)
        self._measure = measure = dx(domain=mesh, degree=quadrature)
        stress = ufl.dot(elasticity, strain_vector(g, u))
        self._against_warping = get_assembler(inner(stress, strain_vector(h, None)) * measure)
        self._against_slope = get_assembler(inner(stress, strain_vector(None, h)) * measure)
        self._mass = get_assembler(self.weight * inner(u, h) * measure)
        # Area, centroid, and the six rigid fields about the centroid.
        y = SpatialCoordinate(mesh)
        place = Function(self.space).interpolate(ufl.as_vector([0.0, y[0], y[1]])).dat.data_ro
        self.rigid = rigid_fields(place)
        moments = self.moments(1.0)
        self.area = moments[3, 3]
        # First moments: M = c × F of a unit force along the beam is (0, c₂, -c₁).
        self.centroid = np.array([-moments[2, 3], moments[1, 3]]) / self.area
        self.rigid = rigid_fields(place - np.array([0.0, *self.centroid]))
        self.polar_moment = self.moments(1.0)[0, 0]
        shift, work = Constant(0.0), ufl.dot(elasticity, strain_vector(w, None))
        stiffness = inner(work, strain_vector(h, None)) + shift * inner(w, h)
        self._factorise(stiffness * measure, shift)

    def with_elasticity(self, elasticity: np.ndarray, action: Callable, *fields) -> np.ndarray:
        """The result of an action with another elasticity, values on this rank; the factor stays."""
        values = self.elasticity.dat.data_ro.copy()
        self.elasticity.dat.data_wo[...] = elasticity
        try:
            return action(*fields)
        finally:
            self.elasticity.dat.data_wo[...] = values

    # --- arrays and functions ------------------------------------------------------------------------
    def put(self, g, u, into: tuple[Function, Function] | None = None) -> tuple[Function, Function]:
        """Set two fields as functions; None is zero."""
        functions = into or self._fields
        for function, values in zip(functions, (g, u), strict=True):
            function.dat.data_wo[...] = 0.0 if values is None else values
        return functions

    def pair(self, dual: np.ndarray, fields: np.ndarray) -> np.ndarray:
        """Duality of functionals with fields: entry (i, j) of the i-th with the j-th."""
        n = self.space.dof_dset.size * 3
        return self.comm.allreduce(np.reshape(dual, (-1, n)) @ np.reshape(fields, (-1, n)).T)

    # --- forms -----------------------------------------------------------------------------------------
    def against_warping(self, g, u) -> np.ndarray:
        """h ↦ ∫ (D(g) + S(u)) : C : D(h)."""
        self.put(g, u)
        return self._against_warping.assemble().dat.data_ro.copy()

    def against_slope(self, g, u) -> np.ndarray:
        """h ↦ ∫ (D(g) + S(u)) : C : S(h)."""
        self.put(g, u)
        return self._against_slope.assemble().dat.data_ro.copy()

    @cached_property
    def _against_elasticity(self):
        # Compiled for gradients only.
        self._others = Function(self.space), Function(self.space)
        strain, other = strain_vector(*self._fields), strain_vector(*self._others)
        change = TestFunction(self.elasticity.function_space())
        return get_assembler(inner(ufl.outer(strain, other), change) * self._measure)

    def against_elasticity(self, first: tuple, second: tuple) -> np.ndarray:
        """dC ↦ ∫ (D(g) + S(u)) : dC : (D(h) + S(v)) of (g, u) and (h, v), (points, 6, 6)."""
        form = self._against_elasticity
        self.put(*first)
        self.put(*second, into=self._others)
        return form.assemble().dat.data_ro.copy()

    @cached_property
    def _against_density(self):
        change = TestFunction(self.weight.function_space())
        return get_assembler(inner(inner(*self._fields), change) * self._measure)

    def against_density(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """dρ ↦ ∫ dρ first·second, (points,)."""
        self.put(first, second)
        return self._against_density.assemble().dat.data_ro.copy()

    def moments(self, weight) -> np.ndarray:
        """∫ weight ρᵢ·ρⱼ of the six rigid fields; ``weight``: a number or values of the field."""
        self.weight.dat.data_wo[...] = weight
        dual = []
        for field in self.rigid:
            self.put(None, field)
            dual.append(self._mass.assemble().dat.data_ro.copy())
        return self.pair(np.array(dual), self.rigid)

    # --- the solve -----------------------------------------------------------------------------------
    def _factorise(self, stiffness: ufl.Form, shift: Constant) -> None:
        """Assemble the operator, and the factor of one that is slightly larger."""
        self._matrix = assemble(stiffness, mat_type="aij")
        axial_stiffness = self.moments(self.elasticity.dat.data_ro[..., 0, 0])[3, 3]
        shift.assign(SHIFT * axial_stiffness / self.polar_moment)
        self._larger = assemble(stiffness, mat_type="aij")
        basis = []
        for field in self.rigid[[0, 3, 4, 5]]:
            basis.append(Function(self.space))
            basis[-1].dat.data_wo[...] = field
        kernel = VectorSpaceBasis(basis, comm=self.comm)
        kernel.orthonormalize()
        self._kernel = kernel.nullspace()
        A, P = self._matrix.petscmat, self._larger.petscmat
        A.setNullSpace(self._kernel)
        P.setNearNullSpace(self._kernel)
        self.ksp = PETSc.KSP().create(comm=self.comm)
        self.ksp.setOperators(A, P)
        petsctools.set_from_options(
            self.ksp,
            parameters=dict(self._options),
            options_prefix=self._prefix or None,
            default_prefix="fdgeom_section",
        )
        self._load, self._solution = Function(self.space), Function(self.space)
        self._used = False

    def solve(self, dual: np.ndarray) -> np.ndarray:
        """The field w with ∫ D(w):C:D(h) = dual(h), orthogonal to the rigid fields; else RuntimeError."""
        self._load.dat.data_wo[...] = dual
        with self._load.dat.vec as b, self._solution.dat.vec_wo as x:
            self._kernel.remove(b)
            with petsctools.inserted_options(self.ksp):
                self.ksp.solve(b, x)
        reason = self.ksp.getConvergedReason()
        if reason < 0:
            raise RuntimeError(
                f"the solve for the warping of the section failed (KSP reason {reason}); look at "
                "the materials and at solver_parameters"
            )
        if not self._used and self._given:
            refuse_unknown(self._given, options_read(self.ksp), DEFAULTS)
        self._used = True
        return self._solution.dat.data_ro.copy()


def rigid_fields(place: np.ndarray) -> np.ndarray:
    """ε + κ×X for unit κ and ε along the beam and the transverse axes, (6, nodes, 3)."""
    units = np.eye(3)[:, None]
    return np.concatenate([np.cross(units, place), units + np.zeros_like(place)])
