"""Newton's method on chains: equations that couple the two nodes of each cell of an interval mesh.

The road of a solve, a file each:

- `graph`: expressions as a graph of scalar operations, each of them there once;
- `scalars`: UFL expressions put into that graph;
- `parts`: functions by what stands at the nodes and in the cells; `cells`: a residual form as the
  equations of one cell, in the values at its two nodes and inside it; `kinds`: of links too;
- `jacobian`: their derivatives, by eliminating the vertices of the graph (Griewank & Walther,
  Evaluating Derivatives, 2nd ed. 2008, chapters 9 and 10);
- `emission`: graphs as C++ for eight cells at once; `source`, `steps`: the whole text;
  `kept_text`: that of cells on disk, for the next process;
- `topology`, `layout`: chains cut into pieces, one in each lane of a vector, and the links that join
  chains; `between`: the order of what is solved for between the pieces; `elimination`, `fronts`: the
  same where there are links;
- `chain.hpp` with `blocks.hpp`: block elimination inside the pieces while a cell's matrix is in the
  cache; `fronts.hpp`, `between.hpp`: that of the rest by fronts, or a banded LU with row exchanges;
  `newton.hpp`: the iteration, steps; `border.hpp`: an equation and a number more;
- `structs`, `net`, `library`, `unit`: the data and the compiled code;
- `back`, `pulled`, `back.hpp`: cotangents taken back through a step; `trail`: through many of them,
  with `rows` of what these have left;
- `linear`: one linear solve; `chain_newton`, `chain_lu`: the same as types of PETSc's SNES and PC.

They know forms and unknowns, nothing of beams or steppers.
"""

from fdgeom.solvers.chain.back import ChainBack
from fdgeom.solvers.chain.chain_lu import ChainLU
from fdgeom.solvers.chain.chain_newton import ChainNewton
from fdgeom.solvers.chain.linear import ChainLinear
from fdgeom.solvers.chain.parts import parts_of
from fdgeom.solvers.chain.steps import Step, TurnCheck
from fdgeom.solvers.chain.structs import Test
from fdgeom.solvers.chain.trail import ChainSweep, ChainTrail
from fdgeom.solvers.chain.unit import REASONS, SINGULAR, TOO_FAR, ChainUnit, check_chain
from fdgeom.solvers.chain.vectors import Vectors

__all__ = [
    "REASONS",
    "SINGULAR",
    "TOO_FAR",
    "ChainBack",
    "ChainLU",
    "ChainLinear",
    "ChainNewton",
    "ChainSweep",
    "ChainTrail",
    "ChainUnit",
    "Step",
    "Test",
    "TurnCheck",
    "Vectors",
    "check_chain",
    "parts_of",
]
