"""The unknown of solves for rods and joints: all values of a node in one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import ufl
from firedrake import Function, TestFunction, VectorFunctionSpace
from ufl.core.expr import Expr

from fdgeom.solvers.data import Field
from fdgeom.solvers.essential import GivenValues

if TYPE_CHECKING:
    from fdgeom.beams.rod.rod_motion import RodMotion


class RodUnknown:
    """A vector of 6 and the multiplier of the joints at each node, as one CG1 function.

    So a factorisation in the order of the nodes has a narrow band. What is held, and the multiplier
    at nodes without a joint, are given.

    Parameters
    ----------
    motion : RodMotion
        What moves.

    Attributes
    ----------
    function : Function
        What a solver solves for.
    vector, test : UFL expressions
        The vector of 6 and its test function.
    multiplier, nu : UFL expressions or None
        The multiplier and its test function, if there are joints.
    vectors, multipliers : numpy.ndarray
        Their values at the nodes, ghosts included: views of the function's.
    held : GivenValues
        The held degrees of freedom of the vector: set ``held.now``.
    """

    def __init__(self, motion: RodMotion) -> None:
        #: Components of the multiplier.
        self.size = size = 0 if motion.joints is None else motion.joints.size
        element = motion.space.ufl_element().sub_elements[0]
        space = VectorFunctionSpace(motion.mesh, element, dim=6 + size)
        self.function = Function(space, name="increment")
        self.vector, self.multiplier = halved(self.function, size)
        self.test, self.nu = halved(TestFunction(space), size)
        self.field = Field(self.function)
        values = self.field.array
        self.vectors, self.multipliers = values[:, :6], values[:, 6:]
        dofs = np.array([], dtype=int) if motion.given is None else motion.given.dofs[0]
        self.held = GivenValues(0, (6 + size) * (dofs // 6) + dofs % 6)
        self.essential = [self.held] if motion.given is not None else []
        if size:
            idle = motion.joints.idle
            idle = (6 + size) * (idle // size) + 6 + idle % size
            self.essential.append(GivenValues(0, idle))

    def joined(self, vector: Expr, multiplier: Expr | None) -> Expr:
        """Both as one vector, like the unknown."""
        if not self.size:
            return vector
        parts = [vector[k] for k in range(6)] + [multiplier[k] for k in range(self.size)]
        return ufl.as_vector(parts)


def halved(whole: Expr, size: int) -> tuple[Expr, Expr | None]:
    """The vector of 6 and the multiplier of ``size`` in a vector of both; None for no multiplier."""
    if not size:
        return whole, None
    return (
        ufl.as_vector([whole[k] for k in range(6)]),
        ufl.as_vector([whole[6 + k] for k in range(size)]),
    )
