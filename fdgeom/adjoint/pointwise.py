"""Derivatives of nodal assignments."""

from collections.abc import Mapping, Set
from functools import cached_property

import ufl
from firedrake import Function
from ufl.algorithms import expand_derivatives, extract_coefficients
from ufl.classes import Zero
from ufl.core.expr import Expr

from fdgeom.adjoint.values import Vectors, fill
from fdgeom.solvers import PointwiseUpdate, key
from fdgeom.solvers.compiled import has_nodal_values


class Assigned:
    """Simultaneous assignments t_i ← e_i(f_1, f_2, ...) at each node, and their derivatives."""

    # active: keys of the functions that derivatives are taken by.
    def __init__(self, group: Mapping[Function, Expr], active: Set[int]) -> None:
        self._group = {t: expand_derivatives(ufl.as_ufl(e)) for t, e in group.items()}
        self.targets = tuple(group)
        self.update = PointwiseUpdate(group)
        found = {key(f): f for e in self._group.values() for f in extract_coefficients(e)}
        self._read = [f for k, f in found.items() if k in active]
        for f in (*self.targets, *found.values()):
            if not has_nodal_values(f.function_space()):
                raise NotImplementedError(
                    f"gradients where the degrees of freedom of {f.name()} are no values at nodes "
                    "are not there: its assignments are not differentiated"
                )

    def apply(self) -> None:
        """Do the assignments."""
        self.update.apply()

    def pull(self, bars: Vectors) -> None:
        """Replace the cotangents of the targets by f̄ += Σ_i (∂e_i/∂f)ᵀ t̄_i."""
        seeds = [(t, bars.take(t)) for t in self.targets]
        if all(values is None for _, values in seeds) or not self._read:
            return
        update, places, results = self._pull
        for place, (_, values) in zip(places, seeds, strict=True):
            fill(place, values)
        if update is not None:
            update.apply()
        for f, result in results:
            bars.add(f, result.dat.data_ro)

    def pull_rates(self, bars: Vectors, rates: Vectors, tangents: Vectors) -> None:
        """:meth:`pull`, and its derivative along tangents: cotangents and their rates,

        ḟ̄ += Σ_i (∂e_i/∂f)ᵀ ṫ̄_i + ∂/∂f (Σ_i t̄_i·∂e_i/∂g ġ).
        """
        seeds = [bars.of(t) for t in self.targets]
        found = Vectors()
        if self._read and any(values is not None for values in seeds):
            update, places, along, results = self._bend
            for place, values in zip(places, seeds, strict=True):
                fill(place, values)
            for place, f in zip(along, self._read, strict=True):
                fill(place, tangents.of(f))
            if update is not None:
                update.apply()
            for f, result in results:
                found.add(f, result.dat.data_ro)
        self.pull(rates)
        self.pull(bars)
        for f in self._read:
            if f in found:
                rates.add(f, found.of(f))

    @cached_property
    def _bend(self):
        seeds = [Function(t.function_space()) for t in self.targets]
        along = [Function(f.function_space()) for f in self._read]
        work = sum(
            (ufl.inner(e, s) for e, s in zip(self._group.values(), seeds, strict=True)),
            ufl.as_ufl(0.0),
        )
        change = expand_derivatives(
            sum(
                (ufl.derivative(work, f, p) for f, p in zip(self._read, along, strict=True)),
                ufl.as_ufl(0.0),
            )
        )
        slopes = {f: expand_derivatives(ufl.diff(change, f)) for f in self._read}
        update, _, results = self._made(seeds, slopes)
        return update, seeds, along, results

    def push(self, tangents: Vectors) -> None:
        """Set the tangents of the targets, Σ_f (∂e_i/∂f) δf."""
        given = [(f, tangents.of(f)) for f in self._read]
        for t in self.targets:
            tangents.take(t)
        if all(values is None for _, values in given):
            return
        update, places, results = self._push
        for place, (_, values) in zip(places, given, strict=True):
            fill(place, values)
        if update is not None:
            update.apply()
        for t, result in results:
            tangents.put(t, result.dat.data_ro)

    @cached_property
    def _pull(self):
        seeds = [Function(t.function_space()) for t in self.targets]
        work = sum(
            (ufl.inner(e, s) for e, s in zip(self._group.values(), seeds, strict=True)),
            ufl.as_ufl(0.0),
        )
        slopes = {f: expand_derivatives(ufl.diff(work, f)) for f in self._read}
        return self._made(seeds, slopes)

    @cached_property
    def _push(self):
        places = [Function(f.function_space()) for f in self._read]
        slopes = {}
        for t, e in self._group.items():
            along = (ufl.derivative(e, f, p) for f, p in zip(self._read, places, strict=True))
            slopes[t] = expand_derivatives(sum(along, ufl.zero(*t.ufl_shape)))
        return self._made(places, slopes)

    @staticmethod
    def _made(places, slopes):
        results = {f: Function(f.function_space()) for f, e in slopes.items() if not _is_zero(e)}
        update = PointwiseUpdate({r: slopes[f] for f, r in results.items()}) if results else None
        return update, places, list(results.items())


def _is_zero(expression: Expr) -> bool:
    return isinstance(expression, Zero)
