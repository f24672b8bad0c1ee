"""Drawn sections on pyadjoint's tape: their matrices by the Functions in their materials."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import ufl
from firedrake import Function, FunctionSpace, TensorFunctionSpace
from pyadjoint.tape import annotate_tape, stop_annotating
from ufl.algorithms import extract_coefficients

from fdgeom.operations import ArrayOperation, Interpolate, Operation, owned_values, up_to_date
from fdgeom.operations.dependent import Sources, private
from fdgeom.systems.system import Consistency, Model
from fdgeom.taping import record

from .drawn_section import DrawnSection
from .elasticity import in_ufl


class TapedSection(ArrayOperation):
    """Stiffness and inertia of a drawn section as an operation on C and ρ at its points."""

    # Replays make a new section by ``make()``; the user's section is not changed.
    # It is also the system of its block on the tape, whose functions are the two matrices.
    def __init__(self, section: DrawnSection, make: Callable[[], DrawnSection]) -> None:
        self._section, self._make = section, make
        elasticity = section.elasticity.function_space()
        scalar = FunctionSpace(section.mesh, elasticity.ufl_element().sub_elements[0])
        # For tangents and cotangents alone.
        self._points = [private(Function(space)) for space in (elasticity, scalar)]
        matrix = TensorFunctionSpace(section.mesh, "R", 0, shape=(6, 6))
        self.matrices = tuple(
            Function(matrix, name=f"section {name}") for name in ("stiffness", "inertia")
        )
        super().__init__(self._points, self.matrices)
        #: C and ρ of each material at the points.
        self.updates = list(self._updates(scalar))
        self._read = Sources(*(update.expression for update in self.updates))
        self._read.take()

    def _updates(self, scalar) -> Iterator[Interpolate]:
        for _, material, nodes in self._section.regions.nodes(scalar):
            own = np.zeros(scalar.dof_dset.size, dtype=bool)
            own[nodes] = True
            values = in_ufl(material), ufl.as_ufl(material.density)
            for field, value in zip(self._points, values, strict=True):
                if extract_coefficients(value):
                    yield Interpolate(expression=value, target=field, rows=own, adds=True)

    def run(self) -> None:
        section = self._present()
        for f, values in zip(self.matrices, (section.stiffness, section.inertia), strict=True):
            f.dat.data_wo[...] = values.reshape(f.dat.data_ro.shape)

    def _present(self) -> DrawnSection:
        """The section of the present materials."""
        if self._read.changed():
            with stop_annotating():
                self._section = self._make()
            self._read.take()
        return self._section

    def tangents(self, dots):
        found = self._present().slopes().push(*owned_values(dots))
        return [m.reshape(f.dat.data_ro.shape) for m, f in zip(found, self.matrices, strict=True)]

    def cotangents(self, bars):
        return self._present().slopes().pull(*(bar.reshape(6, 6) for bar in bars))

    def cotangent_rates(self, bars, dots):
        bars = [bar.reshape(6, 6) for bar in bars]
        return self._present().slopes().pull_rates(bars, *owned_values(dots))

    # --- as the system of its block --------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        """The two matrices."""
        return {f.name(): f for f in self.matrices}

    model = cached_property(Model)
    #: Nobody sets the matrices.
    consistency = cached_property(Consistency)

    def operations(self) -> list[Operation]:
        """The matrices from the materials."""
        return [*map(up_to_date, self.updates), self]


def made_on_tape(make: Callable[[], Any]) -> Any:
    """Make a section, and record it on the working tape if its materials contain Functions."""
    with stop_annotating():
        section = make()
    if not annotate_tape():
        return section
    with stop_annotating():
        taped = TapedSection(section, make)
    if taped.updates:
        record("Section.from_mesh", taped.run, taped.operations, taped)
        section.on_tape = taped.matrices
    return section
