"""The exact inverse of the Jacobian of a chain of cells, as a PETSc PC type."""

from typing import Any

from petsc4py import PETSc

from fdgeom.solvers.chain.unit import ChainUnit
from fdgeom.solvers.chain.vectors import Vectors
from fdgeom.solvers.problem_of import problem_of


class ChainLU:
    """PC type: the LU of the Jacobian of a residual that couples the two nodes of each cell.

    Choose it by the options ``pc_type: python``, ``pc_python_type: fdgeom.ChainLU``, for the steppers of
    fdgeom or for any Firedrake problem on an interval mesh. SNES, its line search and KSP are yours to
    choose. Compiled code assembles the matrix from the form at the present value of the unknown, and
    eliminates it. The matrix of KSP need not be assembled (``mat_type: matfree``). See
    :class:`fdgeom.ChainNewton` for the residuals that are supported.

    Raises
    ------
    CannotCompile
        At set-up, if the residual is not supported or there are several ranks; the message says why.
    """

    def __init__(self) -> None:
        #: The ChainUnit, after `setUp`.
        self._unit: Any = None

    def setUp(self, pc: PETSc.PC) -> None:
        """Linearise at the present value of the unknown."""
        if self._unit is None:
            residual, unknown, essential = problem_of(pc, "ChainLU")
            self._unit = ChainUnit(residual, unknown, essential=essential, factors=True)
            self._vectors = Vectors(self._unit)
        self._unit.begin()
        self._unit.take_unknown()
        # PETSc's stubs make a reason an int and take a FailedReason.
        reasons: Any = PETSc.PC.FailedReason
        solvable = self._unit.linearise()
        pc.setFailedReason(reasons.NOERROR if solvable else reasons.FACTOR_NUMERIC_ZEROPIVOT)

    def apply(self, pc: PETSc.PC, b: PETSc.Vec, x: PETSc.Vec) -> None:
        """x := J⁻¹ b."""
        self._vectors.put_right_hand_side(b.getArray(readonly=True))
        self._unit.apply()
        b.copy(x)
        self._vectors.get_solution(x.getArray())

    def view(self, pc: PETSc.PC, viewer: PETSc.Viewer | None = None) -> None:
        """Describe the preconditioner."""
        text = "  fdgeom.ChainLU: block elimination along a chain of cells\n"
        if self._unit is not None:
            text += f"    blocks of {self._unit.size}, {self._unit.lanes} pieces at a time\n"
        (viewer or PETSc.Viewer.STDOUT(pc.comm)).printfASCII(text)
