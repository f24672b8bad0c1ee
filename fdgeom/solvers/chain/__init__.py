"""Newton's method on chains: equations that couple the two nodes of each cell of an interval mesh.

The road of a solve, a file each:

- `graph`: expressions as a graph of scalar operations, each of them there once;
- `scalars`: UFL expressions put into that graph;
- `cells`: a residual form as the equations of one cell, in the values at its two nodes and inside it;
- `jacobian`: their derivatives, by eliminating the vertices of the graph (Griewank & Walther,
  Evaluating Derivatives, 2nd ed. 2008, chapters 9 and 10);
- `emission`: graphs as C++ for eight cells at once;
- `chain.hpp`: the chain cut into pieces, one in each lane of a vector; block elimination inside the
  pieces while a cell's matrix is in the cache, then of the nodes between them, with row exchanges;
- `layout`, `structs`, `unit`: the data and the compiled code;
- `chain_newton`, `chain_lu`: the same as types of PETSc's SNES and PC.

They know forms and unknowns, nothing of beams or steppers.
"""
