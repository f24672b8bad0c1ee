"""Data of a beam that may vary along it, sampled at the quadrature points."""

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Real

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
    inner,
)
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import extract_coefficients, extract_type
from ufl.classes import Conditional, Form, Variable
from ufl.core.expr import Expr
from ufl.corealg.map_dag import map_expr_dag
from ufl.corealg.multifunction import MultiFunction
from ufl.corealg.traversal import unique_pre_traversal
from ufl.domain import extract_domains

from fdgeom.clock import Time
from fdgeom.execution import VectorAssembly
from fdgeom.forms import jumps, scalar_space
from fdgeom.line import bounds
from fdgeom.measures import gauss_lobatto
from fdgeom.messages import format_value, is_function
from fdgeom.operations import Assemble
from fdgeom.operations.dependent import (
    Dependent,
    dependent_of,
    is_private,
    private,
)
from fdgeom.operations.interpolate import ConditionsInside, sampled
from fdgeom.sections.matrices import check_positive_definite
from fdgeom.taping import refuse_recorded
from fdgeom.validation import evaluated, number, place_and_time, real_array


def mean_at_nodes(name: str, value, mesh, element):
    """A 6×6 matrix for :func:`body_matrix`, with the mean of the values in the adjacent cells where
    it has several values at a node.
    """
    if not isinstance(value, Expr):
        return value
    by_cell = ConditionsInside().of(value)
    if not jumps(by_cell):
        return value
    value = by_cell
    in_cells = TensorFunctionSpace(mesh, BrokenElement(element), shape=(6, 6))
    check = partial(check_positive_definite, name)
    values = sampled(name, value, in_cells, check=check, private=True)
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
    lengths = nodal_lengths(at_nodes, weight.function_space())
    weight.dat.data_wo_with_halos[lengths > 0] = 1 / lengths[lengths > 0]
    test = TestFunction(space)
    mean = at_nodes(weight * inner(values, test))
    assembly = VectorAssembly(mean)

    def make() -> None:
        field.dat.data_wo_with_halos[...] = rest + assembly.assemble().dat.data_ro_with_halos

    made = Dependent([field], [values], make, private=True)
    made.operations = [Assemble(work=mean, by={test: field})]
    return field


def nodal_lengths(at_nodes: Callable[[Expr], Form], space) -> np.ndarray:
    """The length that belongs to each node of a space of scalars, ghosts included."""
    lengths = VectorAssembly(at_nodes(TestFunction(space))).assemble()
    return np.array(lengths.dat.data_ro_with_halos)


class ConditionsByNode(ConditionsInside):
    """As the base class, but a condition on the place alone becomes the share of each node for which it
    holds; ``at_nodes`` integrates a density by the nodes.
    """

    def __init__(self, at_nodes: Callable[[Expr], Form] | None) -> None:
        super().__init__()
        self._at_nodes = at_nodes
        self._shares: dict[Expr, Function] = {}

    def of(self, value: Expr) -> Expr:
        asked = (e for e in unique_pre_traversal(value) if isinstance(e, Conditional))
        conditions = {e.ufl_operands[0] for e in asked}
        # Several would not be independent of one another at their nodes.
        alone = self._at_nodes is not None and len(conditions) == 1 and not jumps(value)
        if not alone or not _is_of_place(*conditions):
            return super().of(value)
        # Without cells at the middle of which it is evaluated, nodes stay independent.
        (condition,) = conditions
        share = self._share(condition)
        yes, no = (map_expr_dag(_Case(condition, share, holds), value) for holds in (True, False))
        return share * yes + (1 - share) * no

    def _share(self, condition: Expr) -> Function:
        if condition not in self._shares:
            (mesh,) = extract_domains(condition)
            share = Function(FunctionSpace(mesh, "CG", 1), name="share")
            inside = super().of(ufl.conditional(condition, 1.0, 0.0))
            self._shares[condition] = nodal_mean(inside, share, self._at_nodes)
            dependent_of(share).expression = inside
        return self._shares[condition]


class _Case(MultiFunction):
    """An expression where a condition holds, or where it does not, given the share of each node."""

    expr = MultiFunction.reuse_if_untouched

    def __init__(self, condition: Expr, share: Expr, holds: bool) -> None:
        super().__init__()
        self._condition, self._share, self._holds = condition, share, holds

    def conditional(self, o, condition, one, other):
        if o.ufl_operands[0] != self._condition:
            return self.reuse_if_untouched(o, condition, one, other)
        # A case need not be a number at nodes without a share of it, which is 0 or 1 to round-off.
        if self._holds:
            return ufl.conditional(ufl.gt(self._share, 0), one, other)
        return ufl.conditional(ufl.lt(self._share, 1 - 1e-9), other, one)


def _is_of_place(condition: Expr) -> bool:
    """Whether a condition depends on the place and Constants alone."""
    constants = extract_firedrake_constants(condition)
    fixed = not any(isinstance(c, Time) or is_private(c) for c in constants)
    return (
        fixed
        and bool(extract_type(condition, SpatialCoordinate))
        and not (extract_coefficients(condition) or extract_type(condition, Variable))
    )


def viscosity_of(damping, stiffness: Expr, mesh) -> Expr | None:
    """Kelvin–Voigt viscosity (6×6) from the damping of a beam: None, a time, or a matrix."""
    if damping is None:
        return None
    if not isinstance(damping, Expr):
        refuse_recorded("damping", damping)
    if isinstance(damping, Real) and not isinstance(damping, bool):
        return Constant(number("damping", damping, least=0)) * stiffness
    if not isinstance(damping, Expr):
        damping = real_array("damping", damping, "a time or a 6×6 matrix of numbers")
    shape = damping.ufl_shape if isinstance(damping, Expr) else damping.shape
    if isinstance(damping, Expr) and not shape:
        damping, shape = damping * stiffness, (6, 6)
    if shape != (6, 6):
        raise ValueError(f"damping must be a time or a 6×6 matrix, not of shape {shape}")
    if not isinstance(damping, Expr):
        _check_damping(damping)
        return private(Constant(damping))
    space = TensorFunctionSpace(mesh, "DG", 0, shape=(6, 6))
    return sampled("damping", damping, space, check=_check_damping, private=True)


def _check_damping(values: np.ndarray) -> None:
    good = bool(np.all(np.isfinite(values)))
    if good:
        # Curvatures and strains have different units: in those in which the largest damping of each is 1.
        units = np.sqrt(np.abs(np.diagonal(values, axis1=-2, axis2=-1)))
        kinds = units.reshape(*units.shape[:-1], 2, 3)
        kinds[...] = kinds.max(axis=-1, keepdims=True)
        units[units == 0.0] = units[units > 0.0].min(initial=1.0)
        scaled = values / (units[..., :, None] * units[..., None, :])
        skew = np.abs(scaled - np.swapaxes(scaled, -1, -2)).max(initial=0.0)
        # A damping of some strains only is semidefinite, to the round-off of its eigenvalues.
        good = skew <= 1e-10 and np.linalg.eigvalsh(scaled).min(initial=0.0) >= -1e-12
    if not good:
        raise ValueError("damping must be symmetric and positive semidefinite everywhere")


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
