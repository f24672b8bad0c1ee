"""Numbering of the functions, constants and node sets of a compiled unit."""

from firedrake import Constant, Function

from fdgeom.errors import CannotCompile


class Tables:
    """Numbers functions, constants and node sets of one mesh in the order of their first use."""

    def __init__(self, mesh) -> None:
        self.mesh = mesh
        self.coordinates: Function = mesh.coordinates
        self.functions: list[Function] = []
        self.constants: list[Constant] = []
        #: One function of each node set.
        self.representatives: list[Function] = []

    def field(self, function: Function) -> int:
        """The number of a function."""
        if function not in self.functions:
            if len(function.function_space()) > 1:
                raise CannotCompile(f"{function.name()} is of a mixed space")
            if function.function_space().mesh().topology is not self.mesh.topology:
                raise CannotCompile(f"{function.name()} is on another mesh")
            self.functions.append(function)
            self.space(function)
        return self.functions.index(function)

    def constant(self, constant: Constant) -> int:
        """The number of a constant."""
        for k, known in enumerate(self.constants):
            if known is constant:
                return k
        self.constants.append(constant)
        return len(self.constants) - 1

    def space(self, function: Function) -> int:
        """The number of a function's node set."""
        nodes = function.function_space().node_set, nodes_of(function)
        for k, known in enumerate(self.representatives):
            if (known.function_space().node_set, nodes_of(known)) == nodes:
                return k
        self.representatives.append(function)
        return len(self.representatives) - 1

    @staticmethod
    def arity(function: Function) -> int:
        """The number of nodes in a cell."""
        seen = nodes_of(function)
        return function.function_space().cell_node_map().arity if seen is None else len(seen)


def nodes_of(function: Function) -> tuple[int, ...] | None:
    """The nodes of a cell that a `Seen` function has, numbered along the cell; None for all nodes."""
    return getattr(function, "seen", None)
