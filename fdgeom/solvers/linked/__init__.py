"""Local solves of nodes that joints (links) couple, one small group of nodes at a time.

Nodes of a group are solved together with the multipliers of its links, after a compiled solve of all
nodes by themselves if that is needed (`all_first`). `chain` generates the kernels of links.
"""

from fdgeom.solvers.linked.phase import Linked, add_linked

__all__ = ["Linked", "add_linked"]
