"""Local solves where links hold some nodes together: small groups of nodes, each solved for at once.

Nodes take their own compiled solve; those that links join are solved for again, group by group, with
the multipliers of the links. The kernels of links are made of the scalar operations of chains.
"""

from fdgeom.solvers.linked.phase import Linked, add_linked

__all__ = ["Linked", "add_linked"]
