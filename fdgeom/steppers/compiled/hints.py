"""Notes about solves for compiled steps, beside their operations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from firedrake import Function

from fdgeom.operations import Assignments, Solve


@dataclass(frozen=True)
class Following:
    """Given motion of degrees of freedom in steps that are compiled as a whole."""

    #: The given values of the unknown's first components.
    values: Function
    #: Evaluates them for the end of the coming step; comes first in it.
    given: Assignments
    #: Assignments after the preparations, and (``finished``) after the assignments.
    prepared: Assignments = field(default_factory=dict)
    finished: Assignments = field(default_factory=dict)


_HINTS: WeakKeyDictionary[Solve, dict[str, Any]] = WeakKeyDictionary()


def hint(solve: Solve, **hints) -> Solve:
    """Note for compiled code: ``essential``, ``other``, ``uncompilable``, ``following``,
    the operations that these replace (``replaced``), and the part of a step after which a chain
    reads the time (``share``).
    """
    _HINTS[solve] = hints
    return solve


def hints_of(solve: Solve) -> Mapping[str, Any]:
    """What has been noted for a solve."""
    return _HINTS.get(solve, {})
