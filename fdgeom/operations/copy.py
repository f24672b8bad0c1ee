"""Copies of degrees of freedom."""

from dataclasses import dataclass

import numpy as np
from firedrake import Function

from fdgeom.operations.operation import Cotangents, Operation, Tangents, parts


@dataclass(frozen=True, kw_only=True, eq=False)
class Copy(Operation):
    """Copies degrees of freedom of one Function to another one, or adds them.

    Parameters
    ----------
    source : Function, optional
        The Function to copy; None for zeros.
    target : Function
        A Function with as many degrees of freedom.
    rows : array of int, optional
        The flat degrees of freedom (of this rank, ghosts included) to copy; by default all.
    adds : bool, optional
        Whether the values are added.

    Raises
    ------
    ValueError
        If source and target are the same Function.
    """

    source: Function | None
    target: Function
    rows: np.ndarray | None = None
    adds: bool = False

    def __post_init__(self) -> None:
        if self.source is self.target:
            raise ValueError("target must be another Function than source")

    @property
    def reads(self) -> list[Function]:
        found = [] if self.source is None else [self.source]
        return [*found, self.target] if self.adds or self.rows is not None else found

    @property
    def writes(self) -> list[Function]:
        return [self.target]

    def jvp(self, tangents: Tangents) -> list[Operation]:
        if self.target not in tangents:
            return []
        return [self._like(tangents.get(self.source), tangents[self.target])]

    def vjp(self, cotangents: Cotangents) -> list[Operation]:
        if self.target not in cotangents:
            return []
        found = zero_rest(self._timed(), self.target, cotangents)
        bar = cotangents[self.target]
        if cotangents.is_active(self.source):
            own, adds = cotangents[self.source], self.rows is not None
            if self.source in cotangents:
                found += zero_rest(self._timed(), self.source, cotangents)
                adds = True
            elif adds:
                found.append(Copy(source=None, target=own, **self._timed()))
            cotangents.add([self.source])
            found.append(self._like(bar, own, adds))
        if not self.adds and self.rows is None:
            cotangents.drop([self.target])
        elif not self.adds:
            found.append(Copy(source=None, target=bar, rows=self.rows, **self._timed()))
        return found

    def _like(self, source: Function | None, target: Function, adds: bool | None = None) -> "Copy":
        adds = self.adds if adds is None else adds
        return Copy(source=source, target=target, rows=self.rows, adds=adds, **self._timed())


def zero_rest(timed: dict, f: Function, cotangents: Cotangents) -> list[Copy]:
    """The operations that set the zero parts of the cotangent of a mixed Function with other parts."""
    if f not in cotangents:
        return []
    zero = [part for part in parts(f) if part not in cotangents]
    return [Copy(source=None, target=cotangents[part], **timed) for part in zero]
