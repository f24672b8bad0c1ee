"""Symmetric compositions: high order from a symmetric method of order two."""

from typing import ClassVar

from fdgeom.operations import Flow, completed
from fdgeom.steppers.composition_schemes import (
    BLANES_MOAN,
    PAPERS,
    pair_fractions,
    scheme_of,
    weights,
)
from fdgeom.steppers.stepper import Stepper


def Composition(
    stepper_class: type[Stepper], order: int = 4, scheme: str | None = None
) -> type[Stepper]:
    """The stepper class that composes a symmetric method of order two to a higher order.

    Parameters
    ----------
    stepper_class : type
        A symmetric stepper of order 2, such as :class:`StormerVerlet`.
    order : {4, 6, 8}
        Order of the result.
    scheme : str, optional
        The scheme:

        - order 4: "suzuki" (default, 5 stages), "yoshida" (3), "blanes-moan" (see below);
        - order 6: "kahan-li" (default, 9 stages), "yoshida" (7), "suzuki" (25);
        - order 8: "kahan-li" (default, 17 stages), "suzuki-umeno" (15), "yoshida" (15), "suzuki"
          (125).

        Fewer stages are cheaper, but have larger errors and longer negative substeps.

    Returns
    -------
    type
        A stepper class, to be called with ``(system, dt, ...)`` like any other.

    Raises
    ------
    TypeError
        If ``stepper_class`` is no stepper class.
    ValueError
        If it is not symmetric and of order two, or there is no composition of that order; in the
        call of the class, if the scheme is "blanes-moan" and the method does not consist of two
        flows, or the method is not symmetric for that system and these options.

    Notes
    -----
    One step is Ψ(w_s Δt) ∘ ... ∘ Ψ(w_1 Δt) with Σ w_i = 1 and w_i = w_{s+1-i}; some w_i are
    negative. If the method has a limit of the step, the largest |w_i| reduces it: 0.66, 1.70 for
    order 4, 0.80, 1.32, 0.32 for order 6, 0.61, 0.80, 1.96, 0.14 for order 8, in the order above.
    Hairer, Lubich & Wanner, Geometric Numerical Integration, section V.3.

    The order also holds with supported and prescribed ends, with loads that depend on time and with
    follower loads: the time advances by the fractions of the step, forwards and backwards. If flows
    are composed, it advances with the flow of the configuration. Combinations that would lose the
    order are refused.

    Blanes & Moan's splitting S6 composes the two flows inside a splitting method (the two halves of
    the energy in :class:`StormerVerlet`, in :class:`Splitting` with two energies, the two parts of a
    state in :class:`SymmetricPoissonIntegrator`, forces and free motion in
    :class:`VariationalIntegrator`), six times each. At the same cost its errors
    are far smaller than those of the compositions of order 4.

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
    chosen = scheme_of(order, scheme)
    name = f"{stepper_class.__name__}Order{order}"
    if scheme is not None:
        name += "".join(word.capitalize() for word in scheme.split("-"))
    traits = {
        "__doc__": f"{stepper_class.__name__} composed to order {order} by the scheme {chosen!r}.",
        "__module__": __name__,
        "order": order,
        "cites": PAPERS.get(chosen, ()),
        "_method": stepper_class.__name__,
        "_scheme": chosen,
    }
    return type(name, (_Composed, stepper_class), traits)


class _Composed(Stepper):
    """The part of a composition before its method in the order of base classes."""

    _method: ClassVar[str]
    _scheme: ClassVar[str]
    _is_composed = True

    def _setup(self) -> None:
        super()._setup()
        if why := self.uncomposable():
            raise ValueError(why)

    def flows(self):
        flows = completed(super().flows(), self.system)  # type: ignore[safe-super]
        if self._scheme == BLANES_MOAN:
            return self._flows_of_pair(flows)
        found, begin = [], 0.0
        for weight in weights(self.order, self._scheme).tolist():
            found += [flow.scaled(weight, begin) for flow in flows]
            begin += weight
        return found

    def _flows_of_pair(self, flows: list[Flow]) -> list[Flow]:
        """The composition of the two flows inside a splitting method."""
        fractions = [flow.fraction for flow in flows]
        first, last = ([op.original for op in flows[k].operations] for k in (0, -1))
        if fractions != [0.5, 1.0, 0.5] or first != last:
            raise ValueError(
                f"scheme: {self._scheme!r} needs a method of two flows, half of the first, the second "
                f"and again half of the first, and {self._method} of this "
                f"{type(self.system).__name__} is not; use scheme='suzuki'"
            )
        # The time passes with the second one.
        half, timed, _ = flows
        waiting = tuple(op.placed(at=0.0) for op in half.operations)
        exact = half.exact, timed.exact
        found, begin, order = [], 0.0, (0, 1)
        for fraction in pair_fractions().tolist():
            for which in order:
                operations = timed.operations if which else waiting
                found.append(Flow(operations, fraction, begin, exact[which]))
                begin += fraction if which else 0.0
            order = order[::-1]
        return found
