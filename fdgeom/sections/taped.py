"""Drawn sections on pyadjoint's tape: their matrices by the Functions in their materials."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import ufl
from firedrake import Cofunction, Function, FunctionSpace, TensorFunctionSpace
from pyadjoint.tape import annotate_tape, get_working_tape, stop_annotating
from ufl.algorithms import extract_coefficients

from fdgeom.solvers.rules import Interpolated
from fdgeom.taping import PreparedBlock

from .drawn_section import DrawnSection
from .elasticity import in_ufl

#: Owned values of a Function, part by part.
Values = tuple[np.ndarray, ...]


class Composition:
    """C and ρ at the points of a section as functions of the ``functions`` in its materials."""

    def __init__(self, section: DrawnSection) -> None:
        matrices = section.elasticity.function_space()
        numbers = FunctionSpace(section.mesh, matrices.ufl_element().sub_elements[0])
        self._fields = Function(matrices), Function(numbers)
        self._rules = []
        functions: dict[Function, None] = {}
        for _, material, cells in section.regions:
            here = np.zeros(numbers.dof_dset.total_size, dtype=bool)
            here[numbers.cell_node_list[cells]] = True
            own = here[: numbers.dof_dset.size]
            for k, e in enumerate((in_ufl(material), ufl.as_ufl(material.density))):
                read = extract_coefficients(e)
                functions.update(dict.fromkeys(read))
                self._rules.append((k, Interpolated(e), set(read), own))
        self.functions = list(functions)

    def push(self, f: Function, change: Function) -> list[np.ndarray]:
        """Changes of C and ρ along a change of a Function."""
        found = [np.zeros(field.dat.data_ro.shape) for field in self._fields]
        for k, rule, read, own in self._rules:
            if f in read:
                found[k][own] += rule.along(self._fields[k], f, change)[own]
        return found

    def pull(self, f: Function, bars: Sequence[np.ndarray]) -> Cofunction:
        """The cotangent of a Function from those of C and ρ."""
        found = Cofunction(f.function_space().dual())
        for k, rule, read, own in self._rules:
            if f in read:
                self._add(found, k, rule, f, bars[k], own)
        return found

    def pull_bent(self, f: Function, bars: Sequence[np.ndarray], changes: dict) -> Cofunction:
        """Derivative of :meth:`pull` along changes of Functions, for constant cotangents."""
        found = Cofunction(f.function_space().dual())
        for k, rule, read, own in self._rules:
            for g in changes:
                if f in read and g in read:
                    self._add(found, k, rule.bent(g, changes[g]), f, bars[k], own)
        return found

    def _add(self, found: Cofunction, k: int, rule, f: Function, bars: np.ndarray, own) -> None:
        bar = np.zeros(bars.shape)
        bar[own] = bars[own]
        add(found, rule.across(self._fields[k], f, bar))


def add(found: Cofunction, more: Cofunction | None) -> Cofunction:
    """Add a cotangent, or None, to another one, and return it."""
    if more is not None:
        for part, values in zip(found.subfunctions, more.subfunctions, strict=True):
            part.dat.data_wo[...] = part.dat.data_ro + values.dat.data_ro
    return found


class SectionBlock(PreparedBlock):
    """Block of stiffness and inertia of a drawn section, by the Functions in its materials."""

    # Its replay makes a new section; the user's section is not changed.
    def __init__(
        self, section: DrawnSection, composition: Composition, make: Callable[[], DrawnSection]
    ) -> None:
        super().__init__()
        self._section, self._composition, self._make = section, composition, make
        self._functions = composition.functions
        self._comm, self._coordinates = section.mesh.comm, section.mesh.coordinates
        for f in (*self._functions, self._coordinates):
            self.add_dependency(f, no_duplicates=True)
        self._values = [_values(f) for f in self._functions]
        self._place = _values(self._coordinates)
        self._space = TensorFunctionSpace(section.mesh, "R", 0, shape=(6, 6))

    def __str__(self) -> str:
        return "Section.from_mesh"

    def take(self) -> None:
        """Put the section on the tape, for beams that read its Functions."""
        with stop_annotating():
            found = self._matrices("section stiffness", "section inertia")
        get_working_tape().add_block(self)
        for f in found:
            self.add_output(f.create_block_variable())
        self._section.on_tape = tuple(found)

    def _matrices(self, *names: str) -> list[Function]:
        values = self._section.stiffness, self._section.inertia
        return [self._real(m, name) for m, name in zip(values, names, strict=True)]

    def _real(self, values: np.ndarray, name: str | None = None) -> Function:
        found = Function(self._space, name=name)
        found.dat.data_wo[...] = values.reshape(found.dat.data_ro.shape)
        return found

    @contextmanager
    def _at(self, inputs: Sequence[Function]) -> Iterator[None]:
        """Context in which the Functions have these values, with a section made from them."""
        *inputs, coordinates = inputs
        if self._differ([_values(coordinates)], [self._place]):
            raise _no_coordinates()
        before = [_values(f) for f in self._functions]
        given = [_values(value) for value in inputs]
        with stop_annotating():
            try:
                self._put(given)
                if self._differ(given, self._values):
                    self._section, self._values = self._make(), given
                yield
            finally:
                self._put(before)

    def _put(self, values: Sequence[Values]) -> None:
        for f, arrays in zip(self._functions, values, strict=True):
            for part, array in zip(f.subfunctions, arrays, strict=True):
                part.dat.data_wo[...] = array

    def _differ(self, first: Sequence[Values], second: Sequence[Values]) -> bool:
        pairs = [
            pair for a, b in zip(first, second, strict=True) for pair in zip(a, b, strict=True)
        ]
        return bool(self._comm.allreduce(int(not all(np.array_equal(a, b) for a, b in pairs))))

    # --- again, and derivatives ------------------------------------------------------------------
    def prepare_recompute_component(self, inputs, relevant_outputs):
        with self._at(inputs):
            return self._matrices("section stiffness", "section inertia")

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return prepared[idx]

    def prepare_evaluate_adj(self, inputs, adj_inputs, relevant_dependencies):
        if _asks(self._functions, relevant_dependencies):
            raise _no_coordinates()
        with self._at(inputs):
            at_points = self._section.slopes.pull(*_matrices(adj_inputs))
            return {
                k: self._composition.pull(self._functions[k], at_points)
                for k, _ in relevant_dependencies
            }

    def prepare_evaluate_tlm(self, inputs, tlm_inputs, relevant_outputs):
        *changes, move = tlm_inputs
        if move is not None:
            raise _no_coordinates()
        with self._at(inputs):
            pushed = self._pushed(zip(self._functions, changes, strict=True))
            return [self._real(values) for values in self._section.slopes.push(*pushed)]

    def _pushed(self, changes: Iterable[tuple[Function, Function | None]]) -> list[np.ndarray]:
        """Changes of C and ρ with those of Functions; None without any."""
        pushed = [self._composition.push(f, move) for f, move in changes if move is not None]
        return [sum(parts) for parts in zip(*pushed, strict=True)]

    def prepare_evaluate_hessian(self, inputs, hessian_inputs, adj_inputs, relevant_dependencies):
        *variables, place = self.get_dependencies()
        if place.tlm_value is not None or _asks(self._functions, relevant_dependencies):
            raise _no_coordinates()
        moves = zip(self._functions, (v.tlm_value for v in variables), strict=True)
        changes = {f: move for f, move in moves if move is not None}
        bars, rates = _matrices(adj_inputs), _matrices(hessian_inputs)
        slopes, composition = self._section.slopes, self._composition
        with self._at(inputs):
            if changes:
                moved = self._pushed(changes.items())
                at_points, rates = slopes.pull_rates(bars, rates, *moved)
            else:
                at_points, rates = (), slopes.pull(*rates)
            return {
                k: add(composition.pull(f, rates), composition.pull_bent(f, at_points, changes))
                for k, f in ((k, self._functions[k]) for k, _ in relevant_dependencies)
            }


def made_on_tape(make: Callable[[], Any]) -> Any:
    """Make a section, and record it on the working tape if its materials contain Functions."""
    with stop_annotating():
        section = make()
    if annotate_tape():
        with stop_annotating():
            composition = Composition(section)
        if composition.functions:
            SectionBlock(section, composition, make).take()
    return section


def _values(f: Function) -> Values:
    return tuple(np.array(part.dat.data_ro) for part in f.subfunctions)


def _matrices(bars: Sequence) -> list[np.ndarray]:
    """Cotangents of the two matrices; None is zero."""
    return [np.zeros((6, 6)) if bar is None else bar.dat.data_ro.reshape(6, 6) for bar in bars]


def _asks(functions: Sequence[Function], relevant_dependencies) -> bool:
    """Whether the derivative by the mesh coordinates, the last dependency, is needed."""
    return any(k == len(functions) for k, _ in relevant_dependencies)


def _no_coordinates() -> NotImplementedError:
    return NotImplementedError(
        "gradients of Section.from_mesh by the coordinates of its mesh are not available: take differences "
        "of sections drawn on moved meshes"
    )
