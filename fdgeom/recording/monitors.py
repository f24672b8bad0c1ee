"""Monitors of a run: energies, momenta, Casimirs, UFL functionals, values at a point, reactions.

A monitor has two methods: `bind(system)`, called once at the start of a run, and `sample()`, which
returns a dict from names to floats or vectors. If it also has `step()`, the run takes its steps one by
one and calls it after each of them.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import ufl
from firedrake import Constant, Function, PointEvaluator, assemble
from firedrake.assemble import get_assembler
from firedrake.exceptions import VertexOnlyMeshMissingPointsError
from mpi4py import MPI
from pyadjoint.tape import annotate_tape, stop_annotating
from ufl.algorithms import extract_coefficients
from ufl.domain import extract_unique_domain

from fdgeom.execution import FunctionalAssembly
from fdgeom.forms import check_domains, checked_form
from fdgeom.line import inside_of, without_links
from fdgeom.messages import Described, brief, format_value
from fdgeom.operations.dependent import present, refresh
from fdgeom.validation import real_array, text

from .interpolated import Interpolated, common_element

# Of the size of a cell: round-off of a point at the boundary.
_OUTSIDE = 1e-9


def hold(form: ufl.BaseForm | float, name: str) -> Callable[[], float]:
    """Return a function that gives the present value of a 0-form by one cached assembler."""
    if isinstance(form, ufl.Form) and not form.arguments():
        form = checked_form(f"monitor {name!r}", form)
        with stop_annotating():
            return FunctionalAssembly(form).assemble
    if isinstance(form, ufl.BaseForm) and not form.arguments():
        assembler = get_assembler(form)
        return lambda: float(assembler.assemble())
    # A sum of no forms. Other numbers would be those of the time when the monitor was made.
    if type(form) is int and form == 0:
        return lambda: 0.0
    hint = " (multiply it by a measure, say dx)" if isinstance(form, ufl.core.expr.Expr) else ""
    hint = " (which would stay as it is)" if isinstance(form, int | float) else hint
    raise TypeError(
        f"'{name}' must be a 0-form, a UFL form without arguments, got {format_value(form)}{hint}"
    )


def _assembled(form: ufl.BaseForm | float, name: str, times: dict) -> float:
    with stop_annotating():
        hold(form, name)  # for its errors
    if not isinstance(form, ufl.BaseForm):
        return 0.0
    return assemble(ufl.replace(form, times) if isinstance(form, ufl.Form) and times else form)


def _each(forms, action: Callable):
    """The result of an action for a form, or a list of the results for several."""
    return [action(form) for form in forms] if isinstance(forms, Sequence) else action(forms)


def _of_user(name: str, forms, system) -> dict:
    """A user's form or forms by name, over the beams of an assembly alone."""
    return present({name: _each(forms, partial(without_links, f"monitor {name!r}"))}, system)


def _provided(system, method: str, monitor: str) -> dict:
    provided = getattr(system, method)()
    if not provided:
        raise TypeError(
            f"{monitor} needs a system with {method}(), and {type(system).__name__} has none"
        )
    return provided


class FormMonitor(Described):
    """Base class of monitors of 0-forms, which `_forms(system)` returns by name."""

    def _forms(self, system) -> dict:
        raise NotImplementedError

    def _checked_forms(self, system) -> dict:
        no_system = isinstance(system, type) or not hasattr(system, "functions")
        if no_system or hasattr(system, "advance"):
            raise TypeError(
                f"{type(self).__name__}() needs a system, such as a beam or the system of a stepper, "
                f"not {format_value(system)}"
            )
        # Fields of the beams of an assembly follow its own.
        fields = (*system.functions().values(), *system.consistency.followers().values())
        meshes = {f.function_space().mesh() for f in fields}
        found = self._forms(system)
        for name, forms in found.items():
            for form in forms if isinstance(forms, Sequence) else (forms,):
                if isinstance(form, ufl.Form):
                    check_domains(f"monitor {name!r}", form, *meshes)
        return found

    def bind(self, system) -> None:
        """Build the assemblers for `system`; TypeError naming what the system lacks."""
        found = self._checked_forms(system)
        self._held = {name: _each(forms, partial(hold, name=name)) for name, forms in found.items()}

    def sample(self) -> dict[str, float | np.ndarray]:
        """Return the present values by name."""
        return {
            name: np.array([value() for value in held]) if isinstance(held, list) else held()
            for name, held in self._held.items()
        }

    def __call__(self, system) -> dict[str, float | list[float]]:
        """The present values by name.

        While pyadjoint records they are functionals on its tape; fields that depend on those that
        were set by hand are then updated for good.
        """
        times: dict = {}
        if annotate_tape() and hasattr(system, "model"):
            # A replay is to read the time of this sample.
            times = {clock: Constant(float(clock)) for clock in system.model.clocks}
        sample = partial(_assembled, times=times)
        has_fields, records = hasattr(system, "consistency"), annotate_tape()
        if has_fields and records and not system.consistency.holds():
            self._checked_forms(system)  # before anything changes
            system.consistency.prepare()
        with system.consistency.prepared() if has_fields and not records else nullcontext():
            # Here, as fields that depend on the state are computed for it.
            found = self._checked_forms(system)
            return {name: _each(forms, partial(sample, name=name)) for name, forms in found.items()}


class Energy(FormMonitor):
    """The system's energies: "energy" is the total, "kinetic_energy", "potential_energy" (of a beam
    the elastic one) and "load_potential" (of gravity, dead forces, ...) are its parts, as far as the
    system has them; ``TypeError`` in a run whose system has none.
    """

    def _forms(self, system) -> dict:
        return _provided(system, "energies", "Energy()")


class Momentum(FormMonitor):
    """The system's momenta in the space frame: a beam's linear and angular momentum, (3,) each.

    ``TypeError`` in a run whose system has none.
    """

    def _forms(self, system) -> dict:
        return _provided(system, "momenta", "Momentum()")


class Casimir(FormMonitor):
    """Casimirs, the functionals whose bracket with every other one is zero.

    Parameters
    ----------
    name : str, optional
        One of the system's own Casimirs, or the name under which `form` is recorded.
        Without it all of the system's own are recorded.
    form : ufl.Form, optional
        A 0-form of one's own; ``TypeError`` for anything else, or if the system has no such Casimir.
    """

    _shown = ("name",)

    def __init__(self, name: str | None = None, form: ufl.BaseForm | None = None) -> None:
        self.name = None if name is None else text("name", name, "; a form is given as form=")
        self.form = form
        if form is not None:
            hold(form, name or "casimir")

    def _forms(self, system) -> dict:
        if self.form is not None:
            return _of_user(self.name or "casimir", self.form, system)
        known = _provided(system, "casimirs", "Casimir()")
        if self.name is None:
            return known
        if self.name not in known:
            raise TypeError(
                f"Casimir('{self.name}') is not among the Casimirs of {type(system).__name__}: "
                f"{', '.join(known)}"
            )
        return {self.name: known[self.name]}


class ConstraintDefect(Described):
    """Errors in the constraints of a system: "constraint" is the largest |g(q)|, "velocity constraint"
    the largest |Dg(q) q̇|, of a system with `constraint_defect()` and `velocity_defect()`;
    ``TypeError`` in a run of any other.
    """

    def bind(self, system) -> None:
        """TypeError if the system has no constraints."""
        if getattr(system, "constraint", None) is None:
            raise TypeError(
                "ConstraintDefect() needs a system with constraints, and "
                f"{type(system).__name__} has none"
            )
        self._system = system

    def sample(self) -> dict[str, float]:
        """Return the present values by name."""
        return {
            "constraint": self._system.constraint_defect(),
            "velocity constraint": self._system.velocity_defect(),
        }


class Functional(FormMonitor):
    """Any UFL functional: a 0-form, or a sequence of them recorded as a vector.

    Parameters
    ----------
    name : str
        Key in the history.
    forms : ufl.Form or sequence of ufl.Form
        0-forms, in which the system's Functions appear; ``TypeError`` for anything else. Integrals
        over the mesh of an assembly, which has a cell for each joint, count its beams alone; a
        beam's fields are on the beam's own mesh.
    """

    _shown = ("name",)

    def __init__(self, name: str, forms: ufl.BaseForm | Sequence[ufl.BaseForm]) -> None:
        self.name = text("name", name)
        self.forms = forms
        _each(forms, partial(hold, name=name))

    def _forms(self, system) -> dict:
        return _of_user(self.name, self.forms, system)


class Probe(Described):
    """Value of a Function or a UFL expression at one point of its mesh.

    Parameters
    ----------
    name : str
        Key in the history.
    function : firedrake.Function or UFL expression
        Scalar or vector valued, on a mesh whose coordinates do not move. An expression of Functions
        is interpolated to the Lagrange element that has the highest degree among theirs, so it is
        exact at the nodes: ``beam.velocity_in_space()``, say.
    point : float or sequence of float
        A point of the mesh, ``ValueError`` in a run if it is outside: for a beam, also of an assembly,
        the arc length.
    """

    _shown = ("name", "point")

    def __init__(
        self, name: str, function: Function | ufl.core.expr.Expr, point: float | Sequence[float]
    ) -> None:
        if not isinstance(function, ufl.core.expr.Expr) or not extract_coefficients(function):
            raise TypeError(
                f"function must be a firedrake.Function or a UFL expression of Functions, "
                f"got {format_value(function)}"
            )
        self.name = text("name", name)
        self.function = function
        self.point = np.atleast_1d(real_array("point", point, "a number or numbers"))

    def bind(self, system) -> None:
        """Find the cell that holds the point; ValueError when the point is outside the mesh."""
        mesh: Any = extract_unique_domain(self.function)
        self._interpolated = None
        if not isinstance(self.function, Function):
            element = common_element(mesh, [self.function])
            self._interpolated = Interpolated(self.function, element, mesh)
        if self.point.shape != (mesh.geometric_dimension,):
            raise ValueError(
                f"point must have {mesh.geometric_dimension} coordinates, as the mesh of Probe "
                f"{self.name!r} has, not {format_value(self.point.tolist())}"
            )
        point, here = self.point.reshape(1, -1), f"point = {self.point} of Probe('{self.name}')"
        if inside_of(mesh) is not None:
            raise ValueError(
                f"{here}: cells of joints lie over those of the beams on the mesh of an assembly; take a "
                "beam's own field, such as beam.position, and its arc length"
            )
        self._evaluator = PointEvaluator(mesh, point)
        try:
            self.sample()
        except Exception as exc:
            outside = isinstance(exc, VertexOnlyMeshMissingPointsError)
            reason = "it is outside the mesh" if outside else brief(exc)
            raise ValueError(f"{here}: {reason}") from exc
        # Firedrake extrapolates to points up to mesh.tolerance, half a cell, outside of the mesh.
        (cell,), _, (off,) = mesh.locate_cells_ref_coords_and_dists(point)
        off = mesh.comm.allreduce(off if cell >= 0 else np.inf, op=MPI.MIN)
        if off > _OUTSIDE:
            raise ValueError(f"{here}: it is outside the mesh, by {off:.1e} of a cell")

    def sample(self) -> dict[str, float | np.ndarray]:
        """Return the present value by name."""
        refresh(self.function)
        values = self.function if self._interpolated is None else self._interpolated.apply()
        return {self.name: self._evaluator.evaluate(values)[0]}


class Reactions(Described):
    """Support reactions of a beam or an assembly: moments about the nodes, and forces, (3,) each in space.

    A beam has "left_moment", "left_force", "right_moment", "right_force" at its supports;
    an assembly has these as "beam0_left_moment", ..., and "joint0_moment", "joint0_force", ... on the
    second place of each joint. The moment at an end with a given orientation is the torque that
    turns it. ``reactions`` of the systems and `Assembly.force` say to which state they belong.
    ``TypeError`` in a run of any other system.
    """

    def bind(self, system) -> None:
        """TypeError if the system has no reactions."""
        if not hasattr(system, "reactions"):
            raise TypeError(f"Reactions() needs a beam or an assembly, not {type(system).__name__}")
        self._system = system

    def sample(self) -> dict[str, np.ndarray]:
        """Return the present values by name."""
        found = self._system.reactions()
        if not isinstance(found, dict):
            of_beams = [
                (f"beam{k}_{end}", w) for k, ends in enumerate(found) for end, w in ends.items()
            ]
            of_joints = [(f"joint{k}", w) for k, w in enumerate(self._system.joint_forces())]
            found = dict(of_beams + of_joints)
        parts = ("moment", "force")
        return {
            f"{name}_{part}": vector
            for name, wrench in found.items()
            for part, vector in zip(parts, wrench, strict=True)
        }


def bound(monitors, system) -> list:
    """The monitors of a run, bound to its system."""
    if not isinstance(monitors, list | tuple) or _is_pair(monitors):
        monitors = [monitors]
    found = []
    for i, item in enumerate(monitors):
        if isinstance(item, ufl.BaseForm):
            item = Functional(f"functional_{i}", item)
        elif _is_pair(item):
            item = Functional(*item)
        elif isinstance(item, type) or not (hasattr(item, "bind") and hasattr(item, "sample")):
            raise TypeError(
                f"monitors[{i}] must be a monitor such as Energy(), a UFL 0-form or a (name, form) "
                f"pair, got {format_value(item)}"
            )
        found.append(item)
    for monitor in found:
        monitor.bind(system)
    return found


def joint_sample(monitors: list) -> dict[str, float | np.ndarray]:
    """The values of all monitors by name; ValueError if a name occurs twice."""
    together: dict[str, float | np.ndarray] = {}
    for monitor in monitors:
        sample = monitor.sample()
        twice = [name for name in sample if name in together or name in ("t", "step")]
        if twice:
            raise ValueError(f"monitors record the name '{twice[0]}' twice; rename one")
        together.update(sample)
    return together


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
