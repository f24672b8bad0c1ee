"""Elastic bodies with manufactured motions that their finite elements represent exactly."""

from __future__ import annotations

from firedrake import (
    Constant,
    DirichletBC,
    FacetNormal,
    Function,
    Identity,
    SpatialCoordinate,
    UnitSquareMesh,
    VectorFunctionSpace,
    as_vector,
    cos,
    div,
    dot,
    ds,
    dx,
    grad,
    inner,
    sin,
    sym,
    tr,
)
from petsc4py import PETSc

import fdgeom as fg


def first_piola(u, mu, lam):
    """Stress of a Saint Venant–Kirchhoff material: (I + ∇u)(2μE + λ tr E)."""
    F = Identity(2) + grad(u)
    E = (F.T * F - Identity(2)) / 2
    return F * (2 * mu * E + lam * tr(E) * Identity(2))


class Swaying:
    """A nonlinear, damped body with a given motion on two sides and tractions on the other two.

    Its motion is quadratic in space and the stress a polynomial, so that quadratic elements with
    exact quadrature have no error but that in time.
    """

    def __init__(self, cells: int = 2) -> None:
        mesh = UnitSquareMesh(cells, cells)
        self.space = VectorFunctionSpace(mesh, "CG", 2)
        self.x = SpatialCoordinate(mesh)
        self.normal = FacetNormal(mesh)
        mu, lam, self.drag = Constant(0.4), Constant(0.6), Constant(0.3)
        self.stress = lambda u: first_piola(u, mu, lam)
        self.q, self.v = Function(self.space, name="q"), Function(self.space, name="v")
        self.q.interpolate(self.exact(0.0))
        self.v.interpolate(self.exact_velocity(0.0))

    def _shapes(self):
        x, y = self.x
        return 0.1 * as_vector([x * y + y**2, x - y**2]), 0.08 * as_vector([1 - x**2, x * y + 1])

    def exact(self, t):
        one, two = self._shapes()
        return sin(1.5 * t) * one + cos(2 * t) * two

    def exact_velocity(self, t):
        one, two = self._shapes()
        return 1.5 * cos(1.5 * t) * one - 2 * sin(2 * t) * two

    def exact_acceleration(self, t):
        return -2.25 * sin(1.5 * t) * self._shapes()[0] - 4 * cos(2 * t) * self._shapes()[1]

    def residual(self, u, v, a, t, w):
        exact, measure = self.exact(t), dx(degree=5)
        load = self.exact_acceleration(t) + self.drag * self.exact_velocity(t)
        load -= div(self.stress(exact))
        inside = dot(a + self.drag * v - load, w) + inner(self.stress(u), grad(w))
        return inside * measure - dot(dot(self.stress(exact), self.normal), w) * ds(
            (2, 4), degree=5
        )

    def system(self):
        bcs = lambda t: [DirichletBC(self.space, self.exact(t), (1, 3))]  # noqa: E731
        return fg.SecondOrderSystem(self.residual, self.q, self.v, bcs=bcs)

    def errors(self, system, t: float) -> list[float]:
        """Largest errors of the nodal values of q, v and the acceleration."""
        pairs = (
            (system.q, self.exact(t)),
            (system.v, self.exact_velocity(t)),
            (system.acceleration, self.exact_acceleration(t)),
        )
        gaps = (Function(self.space).interpolate(exact) - found for found, exact in pairs)
        found = [Function(self.space).assign(gap) for gap in gaps]
        return [_largest(f) for f in found]


def _largest(f: Function) -> float:
    with f.dat.vec_ro as values:
        return values.norm(PETSc.NormType.INFINITY)


def linear_body(mesh, space, *, density=1.0, mu=1.0, lam=1.5, drag=0.1):
    """A clamped linear body (its face 1) under a load on face 2 that oscillates; any dimension.

    Without drag the load is linear in time.
    """
    d = mesh.geometric_dimension
    q, v = Function(space, name="q"), Function(space, name="v")
    rho, mu, lam = map(Constant, (density, mu, lam))
    damping = None if drag is None else Constant(drag)
    direction = Constant([0.2] * (d - 1) + [1.0])

    def energy(u):
        return (mu * inner(sym(grad(u)), sym(grad(u))) + lam / 2 * div(u) ** 2) * dx

    def residual(u, v, a, t, w):
        stress = 2 * mu * sym(grad(u)) + lam * div(u) * Identity(d)
        force = rho * a if damping is None else rho * (a + damping * v)
        load = t if damping is None else sin(3 * t)
        inside = (dot(force, w) + inner(stress, grad(w))) * dx
        return inside - load * dot(direction, w) * ds(2)

    total = energy(q) + rho / 2 * dot(v, v) * dx
    return fg.SecondOrderSystem(residual, q, v, bcs=[DirichletBC(space, 0, 1)], energy=total)
