"""Local solves where links hold some nodes together: small groups of nodes, each solved for at once."""

from fdgeom.solvers.linked.phase import Linked, add_linked

__all__ = ["Linked", "add_linked"]
