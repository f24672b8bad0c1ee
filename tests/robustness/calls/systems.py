"""Systems: brackets, energies, Lagrangians, constraints, residuals."""

from functools import cache

import numpy as np
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    TestFunction,
    VectorFunctionSpace,
    as_vector,
    cross,
    dot,
    dS,
    ds,
    dx,
)
from robustness.calls import small

import fdgeom as fg


def _elsewhere():
    """A vector in the cells of another mesh."""
    return Function(VectorFunctionSpace(small.mesh(), "DG", 0, dim=3))


def _free(**changed):
    """The Poisson system of a free body with some arguments changed."""
    m = small.vector()
    given = {
        "bracket": lambda a, b: dot(m, cross(a, b)) * dx,
        "pairing": lambda a, b: dot(a, b) * dx,
    }
    return fg.PoissonSystem(m, dot(m, m) * dx, **given | changed)


@cache
def _pair():
    return small.vector(), small.vector()


def _of_live(residual):
    """A system whose residual is made with its own Functions q and v, and a coefficient x."""
    V = small.number().function_space()
    q, v, x = (Function(V, name=name) for name in ("place", "speed", "coefficient"))
    return fg.SecondOrderSystem(residual(q, v, x), q, v)


def _sphere(**changed):
    """The constrained system of a mass point on a sphere with some arguments changed."""
    q, p = small.vector(), small.vector()
    given = {
        "kinetic": 0.5 * dot(p, p) * dx,
        "potential": q[2] * dx,
        "constraint": small.unit_sphere(q),
        "multiplier": small.number(),
    }
    return fg.ConstrainedSystem(q, p, **given | changed)


@cache
def _line_space():
    return FunctionSpace(small.mesh(), "CG", 1)


def _line(bcs):
    """A field on a line with boundary conditions."""
    q, v = Function(_line_space()), Function(_line_space())
    return fg.SecondOrderSystem(lambda q, v, a, t, w: (a + q) * w * dx, q, v, bcs=bcs)


REFUSALS = [
    (
        "state",
        lambda: fg.PoissonSystem(3.0, None, None, None),
        TypeError,
        "state must be a firedrake Function, not 3.0",
    ),
    (
        "energy",
        lambda: fg.PoissonSystem(
            small.vector(), 3.0, lambda a, b: dot(a, b) * dx, lambda a, b: dot(a, b) * dx
        ),
        TypeError,
        "energy must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "energy",
        lambda: fg.PoissonSystem(
            small.vector(),
            dot(small.vector(), TestFunction(small.vector().function_space())) * dx,
            lambda a, b: dot(a, b) * dx,
            lambda a, b: dot(a, b) * dx,
        ),
        ValueError,
        "energy must have 0 arguments, this form has 1",
    ),
    (
        "bracket",
        lambda: fg.PoissonSystem(
            small.vector(), small.number() * dx, 3.0, lambda a, b: dot(a, b) * dx
        ),
        TypeError,
        (
            "bracket must be a callable giving a form, such as lambda a, b: (a[0]*b[1] - "
            "a[1]*b[0])*dx, not float"
        ),
    ),
    (
        "bracket",
        lambda: fg.PoissonSystem(
            small.vector(), small.number() * dx, lambda a, b: 3.0, lambda a, b: dot(a, b) * dx
        ),
        TypeError,
        (
            "bracket must give a UFL form, such as lambda a, b: (a[0]*b[1] - a[1]*b[0])*dx, "
            "not float"
        ),
    ),
    (
        "bracket",
        lambda: fg.PoissonSystem(
            small.vector(), small.number() * dx, lambda a, b: a[0] * dx, lambda a, b: dot(a, b) * dx
        ),
        ValueError,
        "bracket must be linear in a and in b, which do not both occur",
    ),
    (
        "bracket",
        lambda: fg.PoissonSystem(
            small.vector(),
            small.number() * dx,
            lambda a, b: dot(a, b[0]) * dx,
            lambda a, b: dot(a, b) * dx,
        ),
        ValueError,
        (
            "bracket: no valid form of (a, b): Dot product requires non-scalar arguments, got"
            " arguments with ranks 1 and 0"
        ),
    ),
    (
        "pairing",
        lambda: fg.PoissonSystem(
            small.vector(), small.number() * dx, lambda a, b: dot(a, b) * dx, None
        ),
        TypeError,
        (
            "pairing must be a callable giving a form, such as lambda a, b: inner(a, b)*dx, "
            "not NoneType"
        ),
    ),
    (
        "names",
        lambda: fg.PoissonSystem(
            small.vector(),
            small.number() * dx,
            lambda a, b: dot(a, b) * dx,
            lambda a, b: dot(a, b) * dx,
            names=("q", "p"),
        ),
        ValueError,
        "names must be 1 different names, one for each part of the state",
    ),
    (
        "names",
        lambda: fg.PoissonSystem(
            small.vector(),
            small.number() * dx,
            lambda a, b: dot(a, b) * dx,
            lambda a, b: dot(a, b) * dx,
            names=3,
        ),
        ValueError,
        "names must be 1 different names, one for each part of the state",
    ),
    (
        "casimirs",
        lambda: fg.PoissonSystem(
            small.vector(),
            small.number() * dx,
            lambda a, b: dot(a, b) * dx,
            lambda a, b: dot(a, b) * dx,
            casimirs={"norm": 1.0},
        ),
        TypeError,
        "casimirs['norm'] must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "gradient",
        lambda: fg.PoissonSystem(
            small.vector(),
            small.number() * dx,
            lambda a, b: dot(a, b) * dx,
            lambda a, b: dot(a, b) * dx,
            gradient=3.0,
        ),
        TypeError,
        "gradient must be a callable of the state giving δh/δz, not 3.0",
    ),
    (
        "state",
        lambda: fg.PoissonSystem(
            small.vector().assign(np.nan),
            small.number() * dx,
            lambda a, b: dot(a, b) * dx,
            lambda a, b: dot(a, b) * dx,
        ),
        ValueError,
        "state holds values that are not finite: set a finite start",
    ),
    (
        "q",
        lambda: fg.HamiltonianSystem(0.0, small.number(), None),
        TypeError,
        "q must be a firedrake Function, not 0.0",
    ),
    (
        "p",
        lambda: fg.HamiltonianSystem(small.number(), small.vector(), None),
        ValueError,
        "p must be in the function space of q",
    ),
    (
        "q",
        lambda: (lambda q: fg.HamiltonianSystem(q, q, q**2 * dx))(small.number()),
        ValueError,
        "q and p must be two functions",
    ),
    (
        "energy",
        lambda: fg.HamiltonianSystem(small.number(), small.number(), 0.5),
        TypeError,
        "energy must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "energy",
        lambda: fg.HamiltonianSystem(small.number(), small.number(), small.number() ** 2),
        TypeError,
        "energy must be a UFL functional such as 0.5*inner(u, u)*dx, not Power",
    ),
    (
        "energy",
        lambda: fg.HamiltonianSystem(small.number(), small.number()),
        TypeError,
        "HamiltonianSystem.__init__() missing 1 required positional argument: 'energy'",
    ),
    (
        "measure",
        lambda: fg.HamiltonianSystem(
            small.number(), small.number(), small.number() ** 2 * dx, measure="lumped"
        ),
        TypeError,
        "measure must be a UFL measure such as dx(degree=0), not 'lumped'",
    ),
    (
        "kinetic",
        lambda: fg.ConstrainedSystem(
            small.vector(),
            small.vector(),
            0.5,
            small.number() * dx,
            small.unit_sphere(small.vector()),
            small.number(),
        ),
        TypeError,
        "kinetic must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "kinetic",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(q, q) * dx, q[2] * dx, small.unit_sphere(q), small.number()
            )
        )(small.vector(), small.vector()),
        ValueError,
        (
            "kinetic depends on the position q. RATTLE and SHAKE are explicit in the forces "
            "only where it does not; use a LagrangianSystem with DiscreteLagrangian, which "
            "takes any mass"
        ),
    ),
    (
        "kinetic",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(q, q) * dot(p, p) * dx, q[2] * dx, small.unit_sphere(q), small.number()
            )
        )(small.vector(), small.vector()),
        ValueError,
        (
            "kinetic depends on the position q. RATTLE and SHAKE are explicit in the forces "
            "only where it does not; use a LagrangianSystem with DiscreteLagrangian, which "
            "takes any mass"
        ),
    ),
    (
        "potential",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, p[2] * dx, small.unit_sphere(q), small.number()
            )
        )(small.vector(), small.vector()),
        ValueError,
        "potential depends on the momentum p",
    ),
    (
        "potential",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, None, small.unit_sphere(q), small.number()
            )
        )(small.vector(), small.vector()),
        TypeError,
        "potential must be a UFL functional such as 0.5*inner(u, u)*dx, not NoneType",
    ),
    (
        "constraint",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, dot(q, q) * dx, small.number()
            )
        )(small.vector(), small.vector()),
        TypeError,
        (
            "constraint must be a callable giving a form, such as lambda mult: mult*(dot(q, "
            "q) - 1)*dx, not Form"
        ),
    ),
    (
        "constraint",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, lambda mult: mult * dot(q, q), small.number()
            )
        )(small.vector(), small.vector()),
        TypeError,
        (
            "constraint must give a UFL form, such as lambda mult: mult*(dot(q, q) - 1)*dx, "
            "not Product"
        ),
    ),
    (
        "constraint",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q,
                p,
                dot(p, p) * dx,
                q[2] * dx,
                lambda mult: mult**2 * dot(q, q) * dx,
                small.number(),
            )
        )(small.vector(), small.vector()),
        ValueError,
        "constraint must be linear in the multiplier, with no other term",
    ),
    (
        "constraint",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, lambda mult: dot(q, q) * dx, small.number()
            )
        )(small.vector(), small.vector()),
        ValueError,
        "constraint must be linear in the multiplier, which does not occur",
    ),
    (
        "constraint",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, lambda mult: mult * dot(q, p) * dx, small.number()
            )
        )(small.vector(), small.vector()),
        ValueError,
        "constraint depends on the momentum p, so it is not holonomic",
    ),
    (
        "constraint",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, lambda mult: mult * dx, small.number()
            )
        )(small.vector(), small.vector()),
        ValueError,
        "constraint does not depend on q: its gradient is zero",
    ),
    (
        "constraint",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q,
                p,
                dot(p, p) * dx,
                q[2] * dx,
                lambda mult: mult[1] * dot(q, q) * dx,
                small.number(),
            )
        )(small.vector(), small.vector()),
        ValueError,
        (
            "constraint: no valid form of a multiplier of shape (), and the multiplier must"
            " have one component for each constraint: tuple index out of range"
        ),
    ),
    (
        "multiplier",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, small.unit_sphere(q), 0.0
            )
        )(small.vector(), small.vector()),
        TypeError,
        "multiplier must be a firedrake Function, not 0.0",
    ),
    (
        "multiplier",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, small.unit_sphere(q), small.scalar()
            )
        )(small.vector(), small.vector()),
        ValueError,
        "multiplier must live on the mesh of q",
    ),
    (
        "multiplier",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, lambda mult: dot(mult, mult) * dx, q
            )
        )(small.vector(), small.vector()),
        ValueError,
        "multiplier must be a function of its own",
    ),
    (
        "bcs",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q, p, dot(p, p) * dx, q[2] * dx, small.unit_sphere(q), small.number(), bcs=[3]
            )
        )(small.vector(), small.vector()),
        TypeError,
        "bcs must be DirichletBC objects, not 3",
    ),
    (
        "coordinates",
        lambda: (
            lambda q, p: fg.ConstrainedSystem(
                q,
                p,
                dot(p, p) * dx,
                q[2] * dx,
                small.unit_sphere(q),
                small.number(),
                coordinates="q",
            )
        )(small.vector(), small.vector()),
        TypeError,
        "coordinates must be a firedrake Function, not 'q'",
    ),
    (
        "start",
        lambda: (
            lambda q, p: fg.RATTLE(
                fg.ConstrainedSystem(
                    q, p, dot(p, p) * dx, q[2] * dx, small.unit_sphere(q), small.number()
                ),
                0.1,
            )
        )(small.vector().assign(1.0), small.vector()),
        ValueError,
        (
            "the start does not fulfil g(q) = 0: it is off by 2. Set a consistent start, or"
            " call system.project() to go to the nearest one"
        ),
    ),
    (
        "start",
        lambda: (
            lambda q, p: fg.RATTLE(
                fg.ConstrainedSystem(
                    q, p, dot(p, p) * dx, q[2] * dx, small.unit_sphere(q), small.number()
                ),
                0.1,
            )
        )(small.vector().assign(Constant((1, 0, 0))), small.vector().assign(1.0)),
        ValueError,
        (
            "the start does not fulfil Dg(q) q̇ = 0: it is off by 4. Set a consistent "
            "start, or call system.project() to go to the nearest one"
        ),
    ),
    (
        "mass",
        lambda: (
            lambda q, p: fg.RATTLE(
                fg.ConstrainedSystem(
                    q, p, -dot(p, p) * dx, q[2] * dx, small.unit_sphere(q), small.number()
                ),
                0.1,
            )
        )(small.vector().assign(Constant((1, 0, 0))), small.vector()),
        ValueError,
        (
            "constraint: the mass is negative there (the entry -8 in row 0 of Dg M⁻¹ Dgᵀ at"
            " the start): the kinetic energy must grow with every velocity"
        ),
    ),
    (
        "gradient is zero",
        lambda: (
            lambda q, p: fg.RATTLE(
                fg.ConstrainedSystem(
                    q,
                    p,
                    dot(p, p) * dx,
                    q[2] * dx,
                    lambda mult: mult * q[0] ** 2 * dx,
                    small.number(),
                ),
                0.1,
            )
        )(small.vector(), small.vector()),
        ValueError,
        (
            "constraint: its gradient is zero at the start (in row 0 of Dg M⁻¹ Dgᵀ, of 2), "
            "so it constrains nothing there, or only what bcs fix; let bcs hold fewer components "
            "there, start elsewhere, or state "
            "the constraint so that its gradient does not vanish where it holds"
        ),
    ),
    (
        "constraint",
        lambda: (
            lambda q, p: fg.RATTLE(
                fg.ConstrainedSystem(
                    q,
                    p,
                    dot(p, p) * dx,
                    q[2] * dx,
                    lambda mult: (mult[0] + 2 * mult[1]) * q[0] * dx,
                    small.vector(2),
                ),
                0.1,
            )
        )(small.vector(), small.vector()),
        ValueError,
        (
            "constraint: redundant or contradictory constraints: Dg M⁻¹ Dgᵀ has rank 2 of 4"
            " at the start. Drop those that follow from the others, or take a multiplier in"
            " a smaller space"
        ),
    ),
    (
        "velocity",
        lambda: fg.LagrangianSystem(small.vector(), small.number(), None),
        ValueError,
        "velocity must be a function of its own, in the space of q",
    ),
    (
        "velocity",
        lambda: fg.LagrangianSystem(small.vector(), 3.0, None),
        TypeError,
        "velocity must be a firedrake Function, not 3.0",
    ),
    (
        "lagrangian",
        lambda: fg.LagrangianSystem(small.vector(), small.vector(), 3.0),
        TypeError,
        "lagrangian must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "lagrangian",
        lambda: (lambda q: fg.LagrangianSystem(q, small.vector(), dot(q, q) * dx))(small.vector()),
        ValueError,
        "lagrangian must depend on the velocity",
    ),
    (
        "constraint",
        lambda: (
            lambda v: fg.LagrangianSystem(
                small.vector(), v, dot(v, v) * dx, constraint=small.unit_sphere(small.vector())
            )
        )(small.vector()),
        ValueError,
        "give constraint and multiplier together, or neither",
    ),
    (
        "lagrangian",
        lambda: (
            lambda v: fg.DiscreteLagrangian(
                fg.LagrangianSystem(small.vector(), v, v[0] ** 2 * dx), 0.1
            )
        )(small.vector()),
        ValueError,
        "lagrangian: the mass matrix ∂²L/∂q̇² is singular at the start: its rank is 2 of 6",
    ),
    (
        "q",
        lambda: (lambda v: fg.NonholonomicSystem(3.0, v, dot(v, v) * dx, None, small.number()))(
            small.vector()
        ),
        TypeError,
        "q must be a firedrake Function, not 3.0",
    ),
    (
        "constraint",
        lambda: (
            lambda v: fg.NonholonomicSystem(small.vector(), v, dot(v, v) * dx, 3.0, small.number())
        )(small.vector()),
        TypeError,
        (
            "constraint must be a callable giving a form, such as lambda mult, v: mult*(v[2] "
            "- q[1]*v[0])*dx, not float"
        ),
    ),
    (
        "constraint",
        lambda: (
            lambda v: fg.NonholonomicSystem(
                small.vector(), v, dot(v, v) * dx, lambda mult, v: 3.0, small.number()
            )
        )(small.vector()),
        TypeError,
        (
            "constraint must give a UFL form, such as lambda mult, v: mult*(v[2] - "
            "q[1]*v[0])*dx, not float"
        ),
    ),
    (
        "constraint",
        lambda: (
            lambda v: fg.NonholonomicSystem(
                small.vector(),
                v,
                dot(v, v) * dx,
                lambda mult, v: mult * (v[0] - 1) * dx,
                small.number(),
            )
        )(small.vector()),
        ValueError,
        "constraint must be linear in the multiplier and in the velocity, with no other term",
    ),
    (
        "constraint",
        lambda: (
            lambda v: fg.NonholonomicSystem(
                small.vector(), v, dot(v, v) * dx, lambda mult: mult * dx, small.number()
            )
        )(small.vector()),
        ValueError,
        (
            "constraint: no valid form of a multiplier of shape () and a velocity of shape "
            "(3,): <lambda>() takes 1 positional argument but 2 were given"
        ),
    ),
    (
        "start",
        lambda: (
            lambda v: fg.NonholonomicMidpoint(
                fg.NonholonomicSystem(
                    small.vector(),
                    v,
                    dot(v, v) * dx,
                    lambda mult, v: mult * v[0] * dx,
                    small.number(),
                ),
                0.1,
            )
        )(small.vector().assign(1.0)),
        ValueError,
        (
            "the start does not fulfil A(q) q̇ = 0: it is off by 1. Set a consistent "
            "velocity, or call system.project() to go to the nearest one"
        ),
    ),
    (
        "residual",
        lambda: fg.SecondOrderSystem(3.0, small.number(), small.number()),
        TypeError,
        (
            "residual must be a callable giving a form, such as lambda q, v, a, t, test: "
            "dot(a + q, test)*dx, not float"
        ),
    ),
    (
        "residual",
        lambda: fg.SecondOrderSystem(lambda q, v, a, t, w: 3.0, small.number(), small.number()),
        TypeError,
        (
            "residual must give a UFL form, such as lambda q, v, a, t, test: dot(a + q, "
            "test)*dx, not float"
        ),
    ),
    (
        "residual",
        lambda: fg.SecondOrderSystem(lambda q, v, a, t, w: a * dx, small.number(), small.number()),
        ValueError,
        "residual must be linear in test, which does not occur",
    ),
    (
        "residual",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: q * w * dx, small.number(), small.number()
        ),
        ValueError,
        (
            "residual does not depend on the acceleration a: the mass is missing, or the "
            "system is of first order"
        ),
    ),
    (
        "residual",
        lambda: _of_live(lambda q, v, x: lambda at, rate, a, t, w: (a + q) * w * dx),
        ValueError,
        (
            "residual must be a function of its arguments alone, but it reads 'place' itself from"
            " outside: use the argument instead"
        ),
    ),
    (
        "residual",
        lambda: _of_live(lambda q, v, x: lambda at, rate, a, t, w: (a + x + v + at) * w * dx),
        ValueError,
        (
            "residual must be a function of its arguments alone, but it reads 'speed' itself from"
            " outside: use the argument instead"
        ),
    ),
    (
        "force",
        lambda: fg.RigidBodies(
            small.vector(4),
            (omega := small.vector(3)),
            inertia=[1, 1, 1],
            force=lambda q, v, t: -omega,
        ),
        ValueError,
        (
            "force must be a function of its arguments alone, but it reads …"
            " itself from outside: use the argument instead"
        ),
    ),
    (
        "residual",
        lambda: fg.SecondOrderSystem(lambda q, v: q * dx, small.number(), small.number()),
        ValueError,
        (
            "residual: no valid form of (q, v, a, t, test): <lambda>() takes 2 positional "
            "arguments but 5 were given"
        ),
    ),
    (
        "v",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: a * w * dx, small.number(), small.vector()
        ),
        ValueError,
        "v must be a function of the space of q",
    ),
    (
        "v",
        lambda: fg.SecondOrderSystem(lambda q, v, a, t, w: a * w * dx, small.number(), 0.0),
        TypeError,
        "v must be a firedrake Function, not 0.0",
    ),
    (
        "v",
        lambda: (lambda q: fg.SecondOrderSystem(lambda q, v, a, t, w: a * w * dx, q, q))(
            small.number()
        ),
        ValueError,
        "v must be a function of its own",
    ),
    (
        "q",
        lambda: fg.SecondOrderSystem(lambda q, v, a, t, w: a * w * dx, None, small.number()),
        TypeError,
        "q must be a firedrake Function, not None",
    ),
    (
        "bcs",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: a * w * dx, small.number(), small.number(), bcs=[1]
        ),
        TypeError,
        "bcs must be DirichletBC objects, not 1",
    ),
    (
        "bcs",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: a * w * dx, small.number(), small.number(), bcs=lambda t: 1
        ),
        TypeError,
        "bcs must be DirichletBC objects, not 1",
    ),
    (
        "bcs",
        lambda: (
            lambda q: fg.SecondOrderSystem(
                lambda q, v, a, t, w: a * w * dx,
                q,
                Function(q.function_space()),
                bcs=DirichletBC(FunctionSpace(small.mesh(), "CG", 1), 0, 1),
            )
        )(small.scalar(1)),
        ValueError,
        "bcs: a DirichletBC must be on the space of q, or on a part of it",
    ),
    (
        "energy",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: a * w * dx, small.number(), small.number(), energy=1.0
        ),
        TypeError,
        "energy must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "constraint",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: a * w * dx,
            small.number(),
            small.number(),
            constraint=lambda m: m * dx,
        ),
        ValueError,
        "give constraint and multiplier together, or neither",
    ),
    (
        "mass",
        lambda: fg.GeneralizedAlpha(
            fg.SecondOrderSystem(
                lambda q, v, a, t, w: a[0] * w[0] * dx, small.vector(), small.vector()
            ),
            0.1,
        ),
        ValueError,
        (
            "system: no acceleration belongs to this start: the acceleration: its matrix is"
            " singular. The residual must determine it: is the mass (the derivative of the "
            "residual by a) regular, and is the state finite?"
        ),
    ),
    (
        "orientation",
        lambda: fg.RigidBodies(None, small.vector(), inertia=[1, 1, 1]),
        TypeError,
        "orientation must be a firedrake Function, not None",
    ),
    (
        "orientation",
        lambda: fg.RigidBodies(small.vector(3), small.vector(), inertia=[1, 1, 1]),
        ValueError,
        "orientation must have 4 components, not the shape (3,)",
    ),
    (
        "orientation",
        lambda: fg.RigidBodies(
            Function(VectorFunctionSpace(small.mesh(), "CG", 1, dim=4)),
            small.vector(),
            inertia=[1, 1, 1],
        ),
        ValueError,
        ("orientation must be of a DG0 space: VectorFunctionSpace(fg.copies(n), 'DG', 0, dim=...)"),
    ),
    (
        "velocity",
        lambda: fg.RigidBodies(small.vector(4), small.vector(6), inertia=[1, 1, 1]),
        ValueError,
        "velocity must have 3 components, not the shape (6,)",
    ),
    (
        "position",
        lambda: fg.RigidBodies(
            small.vector(4), small.vector(6), small.vector(2), inertia=[1, 1, 1], mass=1
        ),
        ValueError,
        "position must have 3 components, not the shape (2,)",
    ),
    (
        "position",
        lambda: fg.RigidBodies(
            small.vector(4), small.vector(6), inertia=[1, 1, 1], group=fg.lie.groups.SE3
        ),
        ValueError,
        "position is needed on SE3: a DG0 function of three components",
    ),
    (
        "position",
        lambda: fg.RigidBodies(
            small.vector(4),
            small.vector(3),
            small.vector(),
            inertia=[1, 1, 1],
            group=fg.lie.groups.SO3,
        ),
        ValueError,
        "position: SO3 has none, leave it out",
    ),
    (
        "group",
        lambda: fg.RigidBodies(small.vector(4), small.vector(3), inertia=[1, 1, 1], group="SO3"),
        TypeError,
        "group must be fg.lie.groups.SO3, R3xSO3 or SE3 (or one of these .by('cay')), not 'SO3'",
    ),
    (
        "inertia",
        lambda: fg.RigidBodies(small.vector(4), small.vector(3)),
        TypeError,
        "RigidBodies.__init__() missing 1 required keyword-only argument: 'inertia'",
    ),
    (
        "inertia",
        lambda: fg.RigidBodies(small.vector(4), small.vector(3), inertia=[1, 1]),
        ValueError,
        "inertia must be a finite 3×3 matrix, its diagonal or a UFL expression, not [1, 1]",
    ),
    (
        "inertia",
        lambda: fg.RigidBodies(small.vector(4), small.vector(3), inertia=[1, 1, 5]),
        ValueError,
        "inertia: each principal moment must be at most the sum of the other two (the sum "
        "for a thin plate)",
    ),
    (
        "inertia",
        lambda: fg.RigidBodies(small.vector(4), small.vector(3), inertia=[1, 1, -1]),
        ValueError,
        (
            "inertia must be positive definite; it is singular or indefinite. A slender "
            "body needs a small moment of inertia about its axis too"
        ),
    ),
    (
        "inertia",
        lambda: fg.RigidBodies(small.vector(4), small.vector(3), inertia="sphere"),
        TypeError,
        "inertia must be a finite 3×3 matrix, its diagonal or a UFL expression, not 'sphere'",
    ),
    (
        "inertia",
        lambda: fg.RigidBodies(
            small.vector(4), small.vector(3), inertia=[[1, 1, 0], [0, 1, 0], [0, 0, 1]]
        ),
        ValueError,
        "inertia must be symmetric",
    ),
    (
        "mass",
        lambda: fg.RigidBodies(small.vector(4), small.vector(6), small.vector(), inertia=[1, 1, 1]),
        ValueError,
        "mass is needed for bodies that have a position",
    ),
    (
        "mass",
        lambda: fg.RigidBodies(
            small.vector(4), small.vector(6), small.vector(), inertia=[1, 1, 1], mass=-1
        ),
        ValueError,
        "mass must be a positive number, not -1",
    ),
    (
        "mass",
        lambda: fg.RigidBodies(small.vector(4), small.vector(3), inertia=[1, 1, 1], mass=1.0),
        ValueError,
        "mass: bodies about a fixed point have none; put it into the inertia",
    ),
    (
        "potential",
        lambda: fg.RigidBodies(small.vector(4), small.vector(3), inertia=[1, 1, 1], potential=3.0),
        TypeError,
        "potential must be a UFL functional such as 0.5*inner(u, u)*dx, not float",
    ),
    (
        "potential",
        lambda: fg.RigidBodies(
            small.vector(4), small.vector(3), inertia=[1, 1, 1], potential=small.number() * dx
        ),
        ValueError,
        "potential does not depend on position or orientation, so it gives no force",
    ),
    (
        "force",
        lambda: fg.RigidBodies(
            small.vector(4), small.vector(3), inertia=[1, 1, 1], force=(0, 0, 1)
        ),
        TypeError,
        (
            "force must be a callable of (q, v, t) giving a vector, such as lambda q, v, t:"
            " -0.1*v, not tuple"
        ),
    ),
    (
        "force",
        lambda: fg.RigidBodies(
            small.vector(4), small.vector(3), inertia=[1, 1, 1], force=lambda q, v, t: t
        ),
        ValueError,
        "force must give a vector of shape (3,), the moment first, not of shape ()",
    ),
    (
        "force",
        lambda: fg.RigidBodies(
            small.vector(4), small.vector(3), inertia=[1, 1, 1], force=lambda x, q, v, t: v
        ),
        ValueError,
        (
            "force: no valid expression of (q, v, t): <lambda>() missing 1 required "
            "positional argument: 't'"
        ),
    ),
    (
        "multiplier",
        lambda: fg.RigidBodies(
            small.vector(4),
            small.vector(3),
            inertia=[1, 1, 1],
            constraint=lambda m: m * dx,
            multiplier=3.0,
        ),
        TypeError,
        "multiplier must be a firedrake Function, not 3.0",
    ),
    (
        "orientation",
        lambda: fg.GeneralizedAlpha(
            fg.RigidBodies(small.vector(4), small.vector(3), inertia=[1, 1, 1]), 0.1
        ),
        ValueError,
        (
            "orientation must hold unit quaternions: |q|² is off by 1. Divide by the "
            "length: orientation.interpolate(fg.lie.quaternion.normalize(orientation))"
        ),
    ),
    (
        "coordinates",
        lambda: fg.ChaplyginSystem(small.LAGRANGIAN, small.x, {}),
        TypeError,
        "coordinates must be a list of functions of time, not x",
    ),
    (
        "coordinates",
        lambda: fg.ChaplyginSystem(small.LAGRANGIAN, [], {}),
        ValueError,
        "coordinates must not be empty",
    ),
    (
        "coordinates",
        lambda: fg.ChaplyginSystem(small.LAGRANGIAN, [small.x, small.x], {}),
        ValueError,
        "coordinates must have different names",
    ),
    (
        "coordinates",
        lambda: fg.ChaplyginSystem(small.LAGRANGIAN, [3], {}),
        TypeError,
        (
            "coordinates must be functions of time, such as "
            "sympy.physics.mechanics.dynamicsymbols gives, not 3"
        ),
    ),
    (
        "velocities",
        lambda: fg.ChaplyginSystem(small.LAGRANGIAN, [small.x], [small.y]),
        TypeError,
        "velocities must be a dict from dependent coordinates to their velocities, not list",
    ),
    (
        "velocities",
        lambda: fg.ChaplyginSystem(small.LAGRANGIAN, [small.x], {small.x: 1}),
        ValueError,
        "velocities: x(t) is an independent coordinate; leave it out",
    ),
    (
        "velocities",
        lambda: fg.ChaplyginSystem(
            small.LAGRANGIAN, [small.x], {small.y: small.x.diff(small.t, 2)}
        ),
        ValueError,
        "velocities[y(t)] must not contain accelerations",
    ),
    (
        "lagrangian",
        lambda: fg.ChaplyginSystem(
            small.y * small.LAGRANGIAN, [small.x], {small.y: small.x.diff(small.t)}
        ),
        ValueError,
        "lagrangian must not contain y(t)",
    ),
    (
        "lagrangian",
        lambda: fg.ChaplyginSystem("T - V", [small.x], {small.y: small.x.diff(small.t)}),
        TypeError,
        "lagrangian must be a SymPy expression, not the string 'T - V'",
    ),
    (
        "mass",
        lambda: small.rolling().hamiltonian_system(small.number(), small.number(), mass=1.0),
        ValueError,
        "mass is no parameter of this system; it has none",
    ),
    (
        "q",
        lambda: small.rolling().hamiltonian_system(small.vector(), small.vector()),
        ValueError,
        "q must be a vector of 1, not of shape (3,)",
    ),
    (
        "coordinate",
        lambda: small.rolling().equation(small.y),
        ValueError,
        "coordinate must be one of x(t), not y(t)",
    ),
    (
        "terms",
        lambda: small.rolling().adding(3),
        TypeError,
        "terms must be a dict by coordinate, not int",
    ),
    (
        "energy",
        lambda: small.body().substeps.with_energy(dot(_elsewhere(), _elsewhere()) * dx),
        ValueError,
        "energy is integrated over another mesh than that of the system: use Functions"
        " and measures of the system's mesh",
    ),
    (
        "energy",
        lambda: small.body().substeps.with_energy(
            dot(small.body().state, small.body().state) * dx(domain=small.mesh())
        ),
        ValueError,
        "energy is integrated over one mesh and holds Functions of another: use"
        " Functions of one mesh, and dx(domain=mesh) of that mesh",
    ),
    (
        "energy",
        lambda: small.body().substeps.with_energy(dot(small.vector(), small.vector()) * dx),
        ValueError,
        "energy does not depend on the state: write it with the Functions that the system is given",
    ),
    (
        "energy",
        lambda: small.oscillator().substeps.with_energy(small.number() ** 2 * dx),
        ValueError,
        "energy does not depend on the state: write it with the Functions that the system is given",
    ),
    (
        "energy",
        lambda: small.body().substeps.with_energy(Constant(0.0) * dx(domain=small.body().mesh)),
        ValueError,
        "energy does not depend on the state: write it with the Functions that the system is given",
    ),
    (
        "energy",
        lambda: small.body().substeps.with_energy(dot(small.body().state, small.body().state) * dS),
        ValueError,
        "energy: in integrals over dS, restrict discontinuous Functions to one side, as"
        " u('+') or u('-'), or use avg(u) or jump(u) (Discontinuous type Coefficient"
        " must be restricted.)",
    ),
    (
        "bracket",
        lambda: _free(bracket=lambda a, b: (dot(a, b) + dot(a, b) ** 2) * dx),
        ValueError,
        "bracket must be linear in a and in b, with no other term",
    ),
    (
        "pairing",
        lambda: _free(pairing=lambda a, b: (dot(a, b) + dot(a, b) * a[0]) * dx),
        ValueError,
        "pairing must be linear in a and in b, with no other term",
    ),
    (
        "bracket",
        lambda: _free(bracket=_elsewhere()),
        TypeError,
        (
            "bracket must be a callable giving a form, such as lambda a, b: (a[0]*b[1] - "
            "a[1]*b[0])*dx, not Function"
        ),
    ),
    (
        "gradient",
        lambda: _free(gradient=_elsewhere()),
        TypeError,
        "gradient must be a callable of the state giving δh/δz, not a Function",
    ),
    (
        "casimirs",
        lambda: _free(casimirs=[small.number() * dx]),
        TypeError,
        "casimirs must be a dict {name: functional}, not a list",
    ),
    (
        "casimirs",
        lambda: _free(casimirs={"norm": dot(_elsewhere(), _elsewhere()) * dx}),
        ValueError,
        "casimirs['norm'] is integrated over another mesh than that of the system: use"
        " Functions and measures of the system's mesh",
    ),
    (
        "auxiliary",
        lambda: _free(auxiliary=np.zeros(3)),
        TypeError,
        "auxiliary must be a dict {psi: form}, not array([0., 0., 0.])",
    ),
    (
        "parts",
        lambda: _free(parts=3),
        TypeError,
        "parts must be a tuple of Functions, one for each part of the state and of its"
        " shape, not 3",
    ),
    (
        "parts",
        lambda: _free(parts=(1,)),
        TypeError,
        "parts must be a tuple of Functions, one for each part of the state and of its"
        " shape, not (1,)",
    ),
    (
        "parts",
        lambda: _free(parts=small.vector()),
        TypeError,
        "parts must be a tuple of Functions, one for each part of the state and of its"
        " shape, not a Function",
    ),
    (
        "names",
        lambda: _free(names=[1]),
        ValueError,
        "names must be 1 different names, one for each part of the state",
    ),
    (
        "measure",
        lambda: fg.HamiltonianSystem(*_pair(), dot(*_pair()) * dx, measure=ds),
        ValueError,
        "measure must be over the cells of the mesh of q, such as dx(degree=0)",
    ),
    (
        "measure",
        lambda: fg.HamiltonianSystem(*_pair(), dot(*_pair()) * dx, measure=dx(domain=small.mesh())),
        ValueError,
        "measure must be over the cells of the mesh of q, such as dx(degree=0)",
    ),
    (
        "measure",
        lambda: _sphere(measure=ds),
        ValueError,
        "measure must be over the cells of the mesh of q, such as dx(degree=0)",
    ),
    (
        "potential",
        lambda: _sphere(potential=dot(small.vector(), small.vector()) * dx),
        ValueError,
        "potential does not depend on the state: write it with the Functions that the"
        " system is given",
    ),
    (
        "potential",
        lambda: _sphere(potential=dot(_elsewhere(), _elsewhere()) * dx),
        ValueError,
        "potential is integrated over another mesh than that of the system: use"
        " Functions and measures of the system's mesh",
    ),
    (
        "constraint",
        lambda: _sphere(constraint=small.number()),
        TypeError,
        (
            "constraint must be a callable giving a form, such as lambda mult: mult*(dot(q, "
            "q) - 1)*dx, not Function"
        ),
    ),
    (
        "bcs",
        lambda: _sphere(bcs=None),
        TypeError,
        "bcs must be DirichletBC objects, not None",
    ),
    (
        "bcs",
        lambda: _sphere(bcs=small.number()),
        TypeError,
        "bcs must be DirichletBC objects, not a Function",
    ),
    (
        "residual",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: (dot(a, w) + dot(a, w) ** 2) * dx, *_pair()
        ),
        ValueError,
        "residual must be linear in test, with no other term",
    ),
    (
        "energy",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: dot(a, w) * dx,
            *_pair(),
            energy=dot(_elsewhere(), _elsewhere()) * dx,
        ),
        ValueError,
        "energy is integrated over another mesh than that of the system: use Functions"
        " and measures of the system's mesh",
    ),
    (
        "energy",
        lambda: fg.SecondOrderSystem(
            lambda q, v, a, t, w: dot(a, w) * dx,
            *_pair(),
            energy=dot(small.vector(), small.vector()) * dx,
        ),
        ValueError,
        "energy does not depend on the state: write it with the Functions that the system is given",
    ),
    (
        "bcs",
        lambda: _line([DirichletBC(_line_space(), 0.0, 1), DirichletBC(_line_space(), 1.0, 1)]),
        ValueError,
        "bcs: DirichletBC number 1 has no effect, since later ones give other values"
        " wherever it holds: leave out one of them",
    ),
    (
        "bcs",
        lambda: _line(lambda t: as_vector([t, t])),
        TypeError,
        "bcs must be DirichletBC objects, not a UFL expression of shape (2,)",
    ),
    (
        "bcs",
        lambda: _line(dx),
        TypeError,
        "bcs must be DirichletBC objects, not Measure('dx', subdomain_id='everywhere')",
    ),
    (
        "bcs",
        lambda: _line(np.zeros(3)),
        TypeError,
        "bcs must be DirichletBC objects, not array([0., 0., 0.])",
    ),
]
