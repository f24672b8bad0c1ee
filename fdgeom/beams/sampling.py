"""Data of a beam that may vary along it, sampled at the quadrature points."""

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import ufl
from firedrake import (
    BrokenElement,
    Constant,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    TensorFunctionSpace,
    TestFunction,
    VectorFunctionSpace,
    inner,
)
from ufl.algorithms import extract_coefficients, extract_type, replace
from ufl.classes import Derivative, Form, GeometricQuantity
from ufl.core.expr import Expr
from ufl.corealg.map_dag import map_expr_dag
from ufl.corealg.multifunction import MultiFunction
from ufl.corealg.traversal import unique_pre_traversal
from ufl.domain import extract_domains
from ufl.sobolevspace import H1

from fdgeom.execution import VectorAssembly
from fdgeom.forms import is_real, scalar_space
from fdgeom.line import bounds, coordinates_of
from fdgeom.measures import gauss_lobatto
from fdgeom.messages import format_value, is_function
from fdgeom.operations import Assemble, Broadcast
from fdgeom.operations.dependent import Dependent, MadeOnce, made_once, private, set_by
from fdgeom.operations.interpolate import sampled
from fdgeom.sections.matrices import MatrixAlong, check_positive_definite
from fdgeom.validation import evaluated, place_and_time, real_array


def body_matrix(name: str, value, mesh, element, of: Sequence[MadeOnce], *, inverse: bool = False):
    """A 6×6 matrix (or its inverse) for use in forms: a Constant, or a field that follows the
    Functions and Constants in an expression.
    """
    # The nodes of `element`, of scalars, are the quadrature points that the matrix is needed at:
    # ValueError, which calls it `name`, if it is not symmetric positive definite at each. Changes
    # of the objects in `of`, from which the value was made, are refused.
    if isinstance(value, np.ndarray):
        make = _constant_matrix.__wrapped__ if of else _constant_matrix
        return made_once(make(np.asarray(value, dtype=float).tobytes(), inverse), of)
    space = TensorFunctionSpace(mesh, element, shape=(6, 6))
    if isinstance(value, MatrixAlong):
        value = _at_nodes(value, space)
    elif isinstance(value, Function) and is_real(value):
        # Of a drawn section: a number of another mesh.
        value = set_by(Broadcast(value, Function(space, name=value.name())))
    return made_once(_positive_definite(name, value, space, inverse=inverse), of)


def _positive_definite(name: str, value: Expr, space, *, inverse: bool = False) -> Function:
    """A field of matrices that follows an expression; ``ValueError`` where it is not positive definite."""
    return sampled(
        name,
        value,
        space,
        check=lambda values: check_positive_definite(name, values),
        inverse=inverse,
        private=True,
    )


def mean_at_nodes(name: str, value, mesh, element):
    """A matrix as of :func:`body_matrix`, with the mean of the values in the adjacent cells where
    it has several values at a node.
    """
    if not isinstance(value, Expr):
        return value
    by_cell = ConditionsInside().of(value)
    if not _jumps(by_cell):
        return value
    value = by_cell
    in_cells = TensorFunctionSpace(mesh, BrokenElement(element), shape=(6, 6))
    values = _positive_definite(name, value, in_cells)
    field = Function(TensorFunctionSpace(mesh, element, shape=(6, 6)), name=name)
    nodal = gauss_lobatto(mesh, element.degree() + 1)
    # Each cell counts by its length that belongs to the node, so that the total mass is unchanged.
    return nodal_mean(values, field, lambda density: density * nodal)


def nodal_mean(
    values: Expr, field: Function, at_nodes: Callable[[Expr], Form], rest: np.ndarray | float = 0.0
) -> Function:
    """Make a field follow the mean of values in the cells at each node, plus ``rest``."""
    # `at_nodes` integrates a density by the nodes; nodes that it gives no length have the rest alone.
    space = field.function_space()
    weight = private(Function(scalar_space(space)))
    test = TestFunction(space)
    length = VectorAssembly(at_nodes(TestFunction(weight.function_space())))
    mean = at_nodes(weight * inner(values, test))
    assembly = VectorAssembly(mean)

    def make() -> None:
        there = length.assemble().dat.data_ro_with_halos
        weight.dat.data_wo_with_halos[...] = np.where(
            there > 0, 1 / np.where(there > 0, there, 1), 0
        )
        field.dat.data_wo_with_halos[...] = rest + assembly.assemble().dat.data_ro_with_halos

    made = Dependent([field], [values], make, private=True)
    made.operations = [Assemble(work=mean, by={test: field})]
    return field


# Of the way to the middle of a cell.
_INSIDE = 1e-6


class ConditionsInside(MultiFunction):
    """Evaluates conditions on the place a little inside of the cell: at its ends either side may hold.

    Those of equality stay, which hold at single places.
    """

    expr = eq = ne = MultiFunction.reuse_if_untouched
    and_condition = or_condition = not_condition = MultiFunction.reuse_if_untouched

    def __init__(self) -> None:
        super().__init__()
        self._middles: dict[SpatialCoordinate, Function] = {}

    def of(self, value: Expr) -> Expr:
        """An expression with such conditions."""
        return map_expr_dag(self, value)

    def _middle(self, x: SpatialCoordinate) -> Function:
        if x not in self._middles:
            (mesh,) = extract_domains(x)
            space = VectorFunctionSpace(mesh, "DG", 0, dim=mesh.geometric_dimension)
            self._middles[x] = sampled("middle", x, space, private=True)
        return self._middles[x]

    def condition(self, o, *operands):
        places = extract_type(o, SpatialCoordinate)
        return replace(o, {x: x + _INSIDE * (self._middle(x) - x) for x in places})


def _jumps(value: Expr) -> bool:
    """Whether an expression may have several values at a node between two cells."""
    functions = [*extract_coefficients(value), *(d.coordinates for d in extract_domains(value))]
    if any(f.function_space().ufl_element() not in H1 for f in functions if not is_real(f)):
        return True
    return any(
        isinstance(e, Derivative | GeometricQuantity) and not isinstance(e, SpatialCoordinate)
        for e in unique_pre_traversal(value)
    )


@lru_cache(maxsize=64)
def _constant_matrix(values: bytes, inverse: bool) -> Expr:
    """A constant matrix, shared by all beams that have it."""
    numbers = np.frombuffer(values).reshape(6, 6)
    numbers = np.linalg.inv(numbers) if inverse else numbers
    constant = private(Constant(numbers))
    # Zeros are left out of the forms: most sections are diagonal.
    return ufl.as_matrix(
        [[constant[i, j] if numbers[i, j] else 0.0 for j in range(6)] for i in range(6)]
    )


def _at_nodes(matrix: MatrixAlong, space) -> Function:
    """The values of a matrix that changes along the beam."""
    scalars = FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0])
    field = private(Function(space))
    field.dat.data_wo_with_halos[...] = matrix(coordinates_of(scalars))
    return field


def warn_beyond_stations(stations: np.ndarray, mesh) -> None:
    """Warn if the stations of a section end inside a beam, as fractions of its length do."""
    first, last = bounds(mesh)
    slack = 1e-9 * (last - first)
    if stations[0] > first + slack or stations[-1] < last - slack:
        warnings.warn(
            f"section: the stations reach from s = {stations[0]:g} to {stations[-1]:g}, the beam from "
            f"{first:g} to {last:g}: beyond the stations the section is that of the nearest one. Give "
            "stations at arc lengths of the mesh, the first and the last at the beam's ends",
            stacklevel=5,
        )


def sample_shape(name: str, value, space, time: Constant) -> Function | None:
    """A field of ``space`` that follows an expression, a function of time or of arc length and
    time, or six numbers; None for None.
    """
    if value is None:
        return None
    if is_function(value):
        arguments = place_and_time(name, value, SpatialCoordinate(space.mesh())[0], time)
        expression = evaluated(name, value, arguments, 6)
    elif isinstance(value, Expr):
        expression = value
    elif isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1 and len(value):
        if not any(isinstance(v, ufl.core.expr.Expr) for v in value):
            value = real_array(name, value, "real numbers")
        expression = ufl.as_vector(list(value))
    else:
        raise ValueError(f"{name} must be a vector of 6, not {format_value(value)}")
    if expression.ufl_shape != (6,):
        raise ValueError(f"{name} must be a vector of 6, not of shape {expression.ufl_shape}")

    def check(values: np.ndarray) -> None:
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name} must be finite everywhere along the beam")

    return sampled(name, expression, space, check=check)
