"""Symmetric compositions: high order from a symmetric method of order two."""

from __future__ import annotations

import numpy as np

from fdgeom.steppers.stepper import Stepper

# Half of each palindromic scheme, the middle weight last.
_FOURTH = 1 / (4 - 4 ** (1 / 3))
_HALVES = {
    # Suzuki (1990), five stages: small error constants for one stage of price.
    4: (_FOURTH, _FOURTH, 1 - 4 * _FOURTH),
    # Kahan & Li (1997), nine stages.
    6: (
        0.39216144400731413928,
        0.33259913678935943860,
        -0.70624617255763935981,
        0.082213596293550800230,
        0.79854399093482996340,
    ),
}


def weights(order: int) -> np.ndarray:
    """The fractions of the step that a composition of that order takes, one after another."""
    if order not in _HALVES:
        raise ValueError(f"order must be one of {tuple(_HALVES)}, not {order!r}")
    half = _HALVES[order]
    return np.array([*half, *half[-2::-1]])


def Composition(stepper_class: type[Stepper], order: int = 4) -> type[Stepper]:
    """The stepper class that composes a symmetric method of order two to a higher order.

    Parameters
    ----------
    stepper_class : type
        A symmetric stepper of order 2, such as :class:`SymmetricPoissonIntegrator`.
    order : {4, 6}
        Order of the result: Suzuki's five stages or Kahan & Li's nine.

    Returns
    -------
    type
        A stepper class, to be called with ``(system, dt, ...)`` like any other.

    Raises
    ------
    TypeError
        If ``stepper_class`` is no stepper class.
    ValueError
        If it is not symmetric and of order two, or there is no composition of that order.

    Notes
    -----
    One step is Ψ(w_s Δt) ∘ ... ∘ Ψ(w_1 Δt) with Σ w_i = 1 and w_i = w_{s+1-i}; some w_i are
    negative, so the largest |w_i| (0.66 and 0.80) bounds the step where the method has a bound.
    Hairer, Lubich & Wanner, Geometric Numerical Integration, section V.3.

    Examples
    --------
    >>> Fourth = Composition(SymmetricPoissonIntegrator, order=4)  # doctest: +SKIP
    >>> stepper = Fourth(beam, dt=1e-4)  # doctest: +SKIP
    """
    if not (isinstance(stepper_class, type) and issubclass(stepper_class, Stepper)):
        raise TypeError("stepper_class must be a stepper class, such as SymmetricPoissonIntegrator")
    if not stepper_class.symmetric or stepper_class.order != 2:
        raise ValueError(
            f"stepper_class must be symmetric and of order 2; {stepper_class.__name__} is "
            f"{'' if stepper_class.symmetric else 'not '}symmetric and of order {stepper_class.order}"
        )
    name = f"{stepper_class.__name__}Order{order}"
    traits = {
        "__doc__": f"{stepper_class.__name__} composed to order {order} in {len(weights(order))} stages.",
        "__module__": __name__,
        "order": order,
        "symmetric": True,
        "symplectic": stepper_class.symplectic,
        "conserves": stepper_class.conserves,
        "_stepper_class": stepper_class,
    }
    return type(name, (_Composed,), traits)


class _Composed(Stepper):
    """A stepper whose step is a sequence of steps of another one."""

    _stepper_class: type[Stepper]

    def __init__(
        self, system, dt, *, solver_parameters=None, options_prefix=None, compiled=None, **options
    ) -> None:
        self._method_options = options
        super().__init__(
            system,
            dt,
            solver_parameters=solver_parameters,
            options_prefix=options_prefix,
            compiled=compiled,
        )

    def _setup(self) -> None:
        self._inner = self._stepper_class(
            self.system,
            self.dt,
            solver_parameters=self._given,
            options_prefix=self._prefix or None,
            **self._method_options,
        )
        self._weights = weights(self.order).tolist()

    def _step(self, t: float, dt: float) -> None:
        for weight in self._weights:
            self._inner._step(t, weight * dt)
            t += weight * dt

    def substeps(self):
        return [(s, w * f) for w in self._weights for s, f in self._inner.substeps()]

    def _solvers(self):
        return self._inner._solvers()
