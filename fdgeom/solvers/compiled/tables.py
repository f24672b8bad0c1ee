"""The data that a compiled unit works on: functions, constants, node sets."""

from firedrake import Constant, Function

from fdgeom.solvers.compiled.refused import CannotCompile


class Tables:
    """Numbers for functions, constants and node sets, in the order of their first use.

    Parameters
    ----------
    mesh : firedrake.MeshGeometry
        What all functions live on.

    Attributes
    ----------
    coordinates : Function
        The mesh's coordinates.
    functions, constants : list
        What the numbers stand for.
    representatives : list of Function
        One function of each node set.
    """

    def __init__(self, mesh) -> None:
        self.mesh = mesh
        self.coordinates: Function = mesh.coordinates
        self.functions: list[Function] = []
        self.constants: list[Constant] = []
        self.representatives: list[Function] = []

    def field(self, function: Function) -> int:
        """Number of a function."""
        if function not in self.functions:
            if len(function.function_space()) > 1:
                raise CannotCompile(f"{function.name()} is of a mixed space")
            if function.function_space().mesh().topology is not self.mesh.topology:
                raise CannotCompile(f"{function.name()} lives on another mesh")
            self.functions.append(function)
            self.space(function)
        return self.functions.index(function)

    def constant(self, constant: Constant) -> int:
        """Number of a constant."""
        for k, known in enumerate(self.constants):
            if known is constant:
                return k
        self.constants.append(constant)
        return len(self.constants) - 1

    def space(self, function: Function) -> int:
        """Number of a function's node set."""
        nodes = function.function_space().node_set, nodes_of(function)
        for k, known in enumerate(self.representatives):
            if (known.function_space().node_set, nodes_of(known)) == nodes:
                return k
        self.representatives.append(function)
        return len(self.representatives) - 1

    @staticmethod
    def arity(function: Function) -> int:
        """Nodes a cell."""
        seen = nodes_of(function)
        return function.function_space().cell_node_map().arity if seen is None else len(seen)


def nodes_of(function: Function) -> tuple[int, ...] | None:
    """Which nodes of a cell are seen, of those in the order of their places; None: all."""
    return getattr(function, "seen", None)
