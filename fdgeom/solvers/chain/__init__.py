"""Newton's method on chains: equations that couple the two nodes of each cell of an interval mesh.

The modules, in the order in which a solve uses them:

- `graph`: expressions as a graph of scalar operations without repetitions;
- `scalars`: conversion of UFL expressions into that graph;
- `parts`: functions split into values at nodes and in cells; `cells`: a residual form as the
  equations of one cell, in the values at its two nodes and inside it; `kinds`: those of links too;
- `jacobian`: their derivatives, by elimination of vertices of the graph (Griewank & Walther,
  Evaluating Derivatives, 2nd ed. 2008, chapters 9 and 10);
- `emission`: graphs as C++ for a vector of cells; `source`, `steps`: the whole text;
  `kept_text`: a cache of the text of cells on disk;
- `topology`, `layout`: chains cut into pieces, one in each SIMD lane, and the links that join chains;
  `between`: the order of the unknowns between the pieces; `elimination`, `fronts`: the same with links;
- `chain.hpp` with `blocks.hpp`: block elimination inside the pieces while the matrix of a cell is in
  the cache; `fronts.hpp`, `between.hpp`: elimination of the other unknowns by fronts, or by a banded
  LU with row exchanges; `newton.hpp`: Newton's iteration and steps; `border.hpp`: one more equation
  and unknown;
- `structs`, `net`, `library`, `unit`: data and compiled code;
- `back`, `pulled`, `back.hpp`: cotangents before a step from those after it; `trail`: the same for
  many steps, with `rows` of their values.

They know forms and unknowns, but no beams or steppers.
"""

from fdgeom.solvers.chain.back import ChainBack
from fdgeom.solvers.chain.parts import parts_of
from fdgeom.solvers.chain.steps import Step, TurnCheck
from fdgeom.solvers.chain.structs import Test
from fdgeom.solvers.chain.trail import ChainSweep, ChainTrail
from fdgeom.solvers.chain.unit import REASONS, SINGULAR, TOO_FAR, ChainUnit, check_chain

__all__ = [
    "REASONS",
    "SINGULAR",
    "TOO_FAR",
    "ChainBack",
    "ChainSweep",
    "ChainTrail",
    "ChainUnit",
    "Step",
    "Test",
    "TurnCheck",
    "check_chain",
    "parts_of",
]
