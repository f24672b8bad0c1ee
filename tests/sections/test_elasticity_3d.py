"""A cantilever as a body in three dimensions against its section: all 21 entries, and the stress.

The body is the section extruded, Q2 across and cubic along: the displacement of Saint-Venant's
solutions is then in its space, so that it differs from the beam by the layer at the clamp alone,
whose flexibility depends on the load at the root and not on the length.
"""

import numpy as np
import pytest
import ufl
from firedrake import (
    DirichletBC,
    ExtrudedMesh,
    FiniteElement,
    Function,
    FunctionSpace,
    LinearVariationalProblem,
    LinearVariationalSolver,
    SpatialCoordinate,
    TensorProductElement,
    TestFunction,
    TrialFunction,
    VectorElement,
    as_matrix,
    assemble,
    avg,
    dS_h,
    ds_t,
    dx,
    inner,
)
from sections.drawn import BECAS, flexibility, rectangle

import fdgeom as fg

ANGLE, ALONG, CELLS = 0.5, 0.4, (3, 2)
WIDTH, HEIGHT = 1.0, 0.75


def stiffness_tensor():
    """C (3, 3, 3, 3) in the axes x, y (across), z (along), from compliances, without the package."""
    (e1, e2, e3), (g12, g13, g23) = BECAS.youngs_moduli, BECAS.shear_moduli
    v12, v13, v23 = BECAS.poisson_ratios
    compliance = np.diag([1 / e1, 1 / e2, 1 / e3, 1 / g23, 1 / g13, 1 / g12])
    for i, j, value in ((0, 1, v12 / e1), (0, 2, v13 / e1), (1, 2, v23 / e2)):
        compliance[i, j] = compliance[j, i] = -value
    voigt = np.linalg.inv(compliance)
    index = {(0, 0): 0, (1, 1): 1, (2, 2): 2, (1, 2): 3, (0, 2): 4, (0, 1): 5}
    own = np.zeros((3,) * 4)
    for i, j, k, l in np.ndindex(own.shape):
        own[i, j, k, l] = voigt[index[tuple(sorted((i, j)))], index[tuple(sorted((k, l)))]]
    z, x, y = np.eye(3)[[2, 0, 1]]
    tangent = np.cos(ALONG) * x + np.sin(ALONG) * y
    fibre = np.cos(ANGLE) * z + np.sin(ANGLE) * tangent
    second = np.cos(ANGLE) * tangent - np.sin(ANGLE) * z
    R = np.array([fibre, second, np.cross(fibre, second)])
    return np.einsum("ia,jb,kc,ld,ijkl->abcd", R, R, R, R, own)


def body(section, length, cells):
    """Displacements of a clamped body under each of six tractions of the tip, and its tractions."""
    mesh = ExtrudedMesh(section.mesh, cells, layer_height=length / cells)
    across = FiniteElement("Q", section.mesh.ufl_cell(), 2)
    element = TensorProductElement(across, FiniteElement("CG", "interval", 3))
    V = FunctionSpace(mesh, VectorElement(element, dim=3))
    C = ufl.as_tensor(stiffness_tensor().tolist())
    i, j, k, l = ufl.indices(4)

    def stress(u):
        return as_matrix(C[i, j, k, l] * ufl.sym(ufl.grad(u))[k, l], (i, j))

    traction = Function(_constant_along(section, mesh, 3))
    w, h, u = TrialFunction(V), TestFunction(V), Function(V)
    problem = LinearVariationalProblem(
        inner(stress(w), ufl.sym(ufl.grad(h))) * dx(degree=6),
        inner(traction, h) * ds_t(degree=6),
        u,
        DirichletBC(V, 0, "bottom"),
        constant_jacobian=True,
    )
    solver = LinearVariationalSolver(
        problem,
        solver_parameters={
            "ksp_type": "preonly",
            "pc_type": "cholesky",
            "pc_factor_mat_solver_type": "mumps",
        },
    )
    displacements, tractions = [], []
    for load in np.eye(6):
        # Saint-Venant's own traction leaves no layer at the tip.
        traction.dat.data_wo[...] = section.recover(load).dat.data_ro[:, :, 2]
        tractions.append(traction.copy(deepcopy=True))
        solver.solve()
        displacements.append(u.copy(deepcopy=True))
    return displacements, tractions, stress


def _constant_along(section, mesh, size):
    """Vectors with the section's nodes, the same at all heights: the numbering is the section's."""
    cell = section.mesh.ufl_cell()
    element = TensorProductElement(
        FiniteElement("DQ", cell, 2, variant="equispaced"), FiniteElement("R", "interval", 0)
    )
    return FunctionSpace(mesh, VectorElement(element, dim=size))


@pytest.fixture(scope="module")
def section():
    return fg.Section.from_mesh(
        rectangle(WIDTH, HEIGHT, CELLS),
        fg.Ply(BECAS, ANGLE, ALONG),
        origin=(0.45, 0.35),
        axis=2,
    )


@pytest.fixture(scope="module")
def bodies(section):
    # Layers decay like exp(-z) here: exp(-14) is 1e-6.
    return {length: body(section, length, 2 * length) for length in (10, 14)}


def test_flexibility(section, bodies):
    """Body minus beam, carried to the root, is one constant: the clamp's."""
    clamps = []
    for length, (displacements, tractions, _) in bodies.items():
        found = np.array(
            [[assemble(inner(t, u) * ds_t(degree=6)) for u in displacements] for t in tractions]
        )
        difference = found - flexibility(section.compliance, 2, length)
        hat = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]])
        to_tip = np.eye(6)
        to_tip[:3, 3:] = -length * hat
        clamps.append(to_tip.T @ difference @ to_tip)
    first, second = clamps
    scale = np.sqrt(np.outer(np.diag(section.compliance), np.diag(section.compliance)))
    assert np.abs((first - second) / scale).max() < 1e-5
    # The clamp holds the warping back: that is seen.
    assert np.abs(second / scale).max() > 1e-2


def test_stress_at_midspan(section, bodies):
    """To the layers' decay, for a general load."""
    length = 14
    displacements, _, stress = bodies[length]
    loads = np.array([0.3, -0.5, 0.7, 1.1, -1.3, 1.7])
    u = Function(displacements[0].function_space())
    for load, d in zip(loads, displacements, strict=True):
        u.dat.data_wo[...] += load * d.dat.data_ro
    middle, force = length / 2, loads[3:]
    moment = loads[:3] + np.cross([0, 0, length - middle], force)
    mesh = u.function_space().mesh()
    columns = section.recover([*moment, *force]).dat.data_ro
    expected = Function(_constant_along(section, mesh, 9))
    expected.dat.data_wo[...] = columns.reshape(-1, 9)
    expected = as_matrix([[expected[3 * a + b] for b in range(3)] for a in range(3)])
    _, _, z = SpatialCoordinate(mesh)
    # On the one horizontal face between cells at midspan.
    there = ufl.conditional(ufl.lt(abs(z - middle), 1e-6), 1.0, 0.0)
    gap = avg(stress(u)) - avg(expected)
    error, size = (
        np.sqrt(assemble(avg(there) * inner(f, f) * dS_h(degree=6))) for f in (gap, avg(expected))
    )
    assert size > 1
    assert error < 1e-4 * size
